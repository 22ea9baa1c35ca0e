import torch

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import idle_batches
from heed.train.step.forward import losses


def test_a_batch_without_pairs_has_no_loss_and_reaches_every_layer() -> None:
    class Behind(Group):
        """One pass behind the others."""

        def most(self, value: float) -> float:
            return value + 1

    model = build_model(ModelConfig(src_vocab_size=8, tgt_vocab_size=8, d_model=8, n_heads=2))
    special_ids = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
    (nothing,) = idle_batches(special_ids, 0, Behind())
    loss, nll = losses(
        model,
        nothing,
        pad_id=0,
        smoothing=0.1,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    loss.backward()
    assert (loss, nll) == (0, 0)
    assert all(p.grad is not None for p in model.encoder.parameters()), "all layers took part"
