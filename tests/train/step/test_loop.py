"""The loop on toy ids: it learns, it is exact, it can be cut anywhere."""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from heed.data.batch import Batch, collate
from heed.machine.cpu import has_compiled_bfloat16
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.fast import products
from heed.train.step import train_step as step
from heed.train.step.config import TrainConfig
from heed.train.step.control import Request
from heed.train.step.loop import train
from heed.train.step.optimizer import Optimizer
from heed.train.step.progress import Progress, training_seconds
from heed.train.step.train_step import train_step
from heed.train.step.trainer import Trainer
from heed.train.step.validate import Validation

SPECIAL = {"pad_id": 0, "bos_id": 2, "eos_id": 3}


class CopyPairs:
    """Targets equal their sources: the smallest task with a source to read."""

    def __init__(self, n_pairs: int = 64, longest: int = 6) -> None:
        random = np.random.default_rng(0)
        self.rows = [
            random.integers(5, 15, random.integers(1, longest + 1)) for _ in range(n_pairs)
        ]
        self.src_lengths = np.array([len(row) + 1 for row in self.rows])
        self.tgt_lengths = self.src_lengths

    def src(self, index: int) -> np.ndarray[Any, Any]:
        return self.rows[index]

    tgt = src


class MemoryKeeper:
    """Keeps deep copies instead of files."""

    def __init__(self) -> None:
        self.saved: list[tuple[dict[str, Any], dict[str, Any], Progress, dict[str, Any]]] = []
        self.best_steps: list[int] = []

    def save(self, trainer: Trainer, optimizer: dict[str, torch.Tensor]) -> None:
        state = (
            trainer.model.state_dict(),
            optimizer,
            trainer.progress,
            trainer.averaged,
        )
        self.saved.append(copy.deepcopy(state))

    def save_best(self, trainer: Trainer, validation: Validation) -> bool:
        self.best_steps.append(trainer.progress.step)
        return True

    def restore(self, trainer: Trainer) -> int:
        model_state, optimizer_state, progress, averaged = copy.deepcopy(self.saved[-1])
        trainer.model.load_state_dict(model_state)
        trainer.optimizer.load_state(optimizer_state)
        trainer.averaged = averaged
        return progress.step


def make_trainer(config: TrainConfig, pairs: CopyPairs | None = None) -> Trainer:
    torch.manual_seed(config.seed)
    model = build_model(
        ModelConfig(
            src_vocab_size=16,
            tgt_vocab_size=16,
            d_model=16,
            n_heads=2,
            d_ff=32,
            n_encoder_layers=1,
            n_decoder_layers=1,
            dropout=0.1,
        )
    )
    averaged = {}
    if config.ema_decay:
        averaged = {name: p.detach().clone() for name, p in model.named_parameters()}
    data = pairs or CopyPairs()
    return Trainer(
        model=model,
        config=config,
        optimizer=Optimizer(model, config),
        pairs=lambda epoch: data,
        special_ids=SPECIAL,
        device=torch.device("cpu"),
        averaged=averaged,
    )


def fixed_validation(*losses: float) -> Callable[[Trainer], Validation]:
    remaining = list(losses)

    def validate(trainer: Trainer) -> Validation:
        loss = remaining.pop(0) if remaining else 1.0
        return Validation(loss=loss, bleu=None, chrf=None, n_translated=0, seconds=0.0, samples=[])

    return validate


def run(
    trainer: Trainer,
    keeper: MemoryKeeper | None = None,
    validate: Callable[[Trainer], Validation] | None = None,
    stop_after: int | None = None,
    save_after: int | None = None,
) -> list[dict[str, Any]]:
    asked = {save_after: Request.SAVE, stop_after: Request.STOP}
    events: list[dict[str, Any]] = []
    train(
        trainer,
        keeper=keeper or MemoryKeeper(),
        validate=validate or fixed_validation(),
        report=events.append,
        requests=lambda: asked.get(trainer.progress.step, Request.NONE),
    )
    return events


def weights(trainer: Trainer) -> list[torch.Tensor]:
    return [p.detach().clone() for p in trainer.model.parameters()] + list(
        trainer.averaged.values()
    )


def are_equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


SHORT = TrainConfig(
    max_steps=24,
    batch_tokens=64,
    first_batch_tokens=24,
    warmup_steps=4,
    validate_every=7,
    ema_decay=0.9,
    metric="loss",
)


def test_same_seed_gives_identical_weights_and_another_seed_does_not() -> None:
    first, second = make_trainer(SHORT), make_trainer(SHORT)
    run(first)
    run(second)
    assert are_equal(weights(first), weights(second))
    other = make_trainer(TrainConfig(max_steps=24, batch_tokens=64, seed=2))
    run(other)
    assert not are_equal(weights(first)[:3], weights(other)[:3])


def test_cut_at_any_step_and_resumed_ends_with_identical_weights() -> None:
    """Fault R9: mid-epoch, at validations, across the growing batch size."""
    assert_exact_when_resumed(SHORT)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("max_steps", [pytest.param(36, marks=pytest.mark.reliability), 60])
def test_steps_of_two_batches_cut_at_any_end_with_identical_weights(max_steps: int) -> None:
    """Fault R9: steps of several batches, and while the rate falls."""
    longer = replace(SHORT, max_steps=max_steps, accumulate=2, decay_share=0.5, validate_every=11)
    assert_exact_when_resumed(longer)


def assert_exact_when_resumed(config: TrainConfig) -> None:
    """What each checkpoint of a run leads to is what the run led to."""
    keeper, undisturbed = MemoryKeeper(), make_trainer(config)
    run(undisturbed)
    run(make_trainer(replace(config, checkpoint_every=1)), keeper)
    cuts = [progress.step for _, _, progress, _ in keeper.saved]
    assert cuts == list(range(1, 1 + undisturbed.progress.step))
    for model_state, optimizer_state, progress, averaged in keeper.saved[:-1]:
        cut, resumed = progress.step, make_trainer(config)
        resumed.model.load_state_dict(model_state)
        resumed.optimizer.load_state(optimizer_state)
        resumed.progress = progress
        resumed.averaged = averaged
        torch.manual_seed(999)  # whatever state the new process is in
        run(resumed)
        assert are_equal(weights(undisturbed), weights(resumed)), f"cut at step {cut}"


def test_a_request_to_save_saves_at_once_and_changes_nothing_else() -> None:
    plain, asked, keeper = make_trainer(SHORT), make_trainer(SHORT), MemoryKeeper()
    run(plain)
    run(asked, keeper, save_after=3)
    assert [progress.step for _, _, progress, _ in keeper.saved] == [3, 24]
    assert are_equal(weights(plain), weights(asked))


def test_epochs_say_at_which_step_and_batch_they_begin_or_go_on() -> None:
    events = run(make_trainer(SHORT))
    steps, first = 0, [e for e in events if e["kind"] == "epoch"]
    for event in first:
        assert (event["step"], event["batch"]) == (steps, 0)
        steps += event["steps"]


def test_training_lowers_the_loss() -> None:
    trainer = make_trainer(TrainConfig(max_steps=300, batch_tokens=256, warmup_steps=10))
    events = run(trainer)
    losses = [event["nll"] for event in events if event["kind"] == "step"]
    # A blind guess among ten digits costs ln 10 = 2.3; copying costs nothing.
    assert np.mean(losses[:5]) > 2.0
    assert np.mean(losses[-20:]) < 1.0


def test_accumulated_batches_equal_one_large_batch() -> None:
    pairs = CopyPairs()
    config = TrainConfig(optimizer="adamw", clip_norm=0)
    together, apart = make_trainer(config, pairs), make_trainer(config, pairs)
    for trainer in (together, apart):
        trainer.model.eval()  # no dropout: the two draw different random numbers
    whole = collate(pairs, list(range(8)), **SPECIAL)
    halves = [collate(pairs, rows, **SPECIAL) for rows in ([0, 1, 2], [3, 4, 5, 6, 7])]
    one, two = train_step(together, [whole]), train_step(apart, halves)
    assert one.nll == pytest.approx(two.nll, rel=1e-5)
    assert one.gradient_norm == pytest.approx(two.gradient_norm, rel=1e-4)


@pytest.mark.parametrize("rounds", [True, False])
def test_a_step_rounds_its_products_if_the_trainer_says_so(
    rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "has_faster_onednn", lambda: False)
    monkeypatch.setattr(products, "has_bfloat16_tiles", lambda: True)
    trainer = make_trainer(TrainConfig(max_steps=2, batch_tokens=1024))
    trainer.rounds = rounds
    kinds: list[bool] = []

    def spy(trainer: Trainer, part: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        weight = torch.zeros(2, 3, requires_grad=True)
        made_by = products.linear(torch.ones(64, 3), weight).grad_fn
        kinds.append("_Linear" in repr(made_by and made_by.next_functions))
        return batch_losses(trainer, part)

    batch_losses = step.batch_losses
    monkeypatch.setattr(step, "batch_losses", spy)
    run(trainer)
    assert set(kinds) == {rounds} and len(kinds) >= 2


def test_a_step_in_bfloat16_whose_activations_are_nan_is_skipped() -> None:
    """ReLU may not make zeros of them, which would look like units that are off."""
    if not has_compiled_bfloat16():
        pytest.skip("this processor has no tiles of bfloat16, or heed is not compiled")
    trainer = make_trainer(TrainConfig())
    trainer.rounds = True
    trainer.model = model = build_model(
        ModelConfig(src_vocab_size=16, tgt_vocab_size=16, d_model=32, n_heads=2, d_ff=64)
    )
    trainer.optimizer = Optimizer(model, trainer.config)
    with torch.no_grad():
        model.get_parameter("encoder.0.feed_forward.expand.bias")[3] = math.nan
    batch = collate(CopyPairs(), list(range(64)), **SPECIAL)
    assert train_step(trainer, [batch]).is_skipped


def test_a_step_with_a_non_finite_loss_changes_nothing_and_is_counted() -> None:
    """Check N8."""
    trainer = make_trainer(TrainConfig(ema_decay=0.9))
    batch = collate(CopyPairs(), [0, 1], **SPECIAL)
    with torch.no_grad():
        trainer.model.encoder_norm = torch.nn.Identity()
        first = next(trainer.model.parameters())
        kept, first[0, 0] = first[0, 0].clone(), math.nan
    before = weights(trainer)
    with torch.no_grad():
        trainer.model.embed_src.tokens.weight[5:] = math.nan
    poisoned = weights(trainer)
    result = train_step(trainer, [batch])
    assert result.is_skipped
    assert trainer.progress.skipped == 1
    assert all(
        torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
        for a, b in zip(poisoned, weights(trainer), strict=True)
    )
    assert len(before) == len(poisoned)
    assert torch.isfinite(kept)
    assert result.pairs == (0, 1)


@pytest.mark.parametrize(
    ("last", "best_steps"), [(2.1, [2, 4]), (2.0, [2, 4, 8])], ids=["worse", "equal"]
)
def test_early_stopping_waits_for_patience_and_keeps_the_best_the_later_of_equals(
    last: float, best_steps: list[int]
) -> None:
    config = TrainConfig(max_steps=1000, validate_every=2, patience=2, metric="loss")
    trainer, keeper = make_trainer(config), MemoryKeeper()
    run(trainer, keeper, fixed_validation(3.0, 2.0, 2.5, last))
    assert trainer.progress.is_finished
    assert trainer.progress.step == 8
    assert keeper.best_steps == best_steps


def test_validations_are_spread_over_the_budget_and_one_comes_last() -> None:
    trainer = make_trainer(TrainConfig(max_steps=20, validations=4, batch_tokens=64))
    events = run(trainer)
    steps = [event["step"] for event in events if event["kind"] == "validation"]
    assert steps == [5, 10, 15, 20]


def test_checkpoints_come_every_n_steps_and_at_the_end() -> None:
    trainer, keeper = make_trainer(TrainConfig(max_steps=10, checkpoint_every=4)), MemoryKeeper()
    run(trainer, keeper)
    assert [progress.step for _, _, progress, _ in keeper.saved] == [4, 8, 10]


def test_batches_grow_over_the_first_third() -> None:
    trainer = make_trainer(TrainConfig(max_steps=60, batch_tokens=90, first_batch_tokens=30))
    sizes = [event["batch_tokens"] for event in run(trainer) if event["kind"] == "epoch"]
    assert sizes[0] == 30
    assert sizes == sorted(sizes)
    assert sizes[-1] == 90


def test_time_limit_ends_the_run() -> None:
    trainer = make_trainer(TrainConfig(time_s=1.0))
    trainer.time_limit_s = 0.5
    run(trainer)
    assert trainer.progress.is_finished
    assert 0.5 <= trainer.elapsed_s < 5


def test_time_is_set_aside_for_the_last_validation_and_for_writing() -> None:
    trainer = make_trainer(TrainConfig(time_s=100.0))
    trainer.validation_s, trainer.write_s, trainer.clock_s = 10.0, 0.5, 40.0
    trainer.set_aside()
    assert trainer.time_limit_s == pytest.approx(100 - 1.1 * 10 - 6 * 0.5)
    assert trainer.left_s == 60.0  # until the model is there, not until training ends
    trainer.config = replace(trainer.config, average_checkpoints=5)  # whose mean is validated too
    trainer.set_aside()
    assert trainer.time_limit_s == pytest.approx(100 - 1.1 * 20 - 6 * 0.5)
    trainer.ending = 2.0  # what follows takes as long as two more
    trainer.set_aside()
    assert trainer.time_limit_s == pytest.approx(100 - 1.1 * 40 - 6 * 0.5)
    trainer.beyond_s = 4.0  # for development pairs that what follows does not read
    trainer.set_aside()
    assert trainer.time_limit_s == pytest.approx(100 - 1.1 * (20 + 2 * 6) - 6 * 0.5)
    by_steps = make_trainer(TrainConfig(max_steps=50))
    assert by_steps.left_s is None
    by_steps.clock_s, by_steps.progress.step = 20.0, 10
    assert by_steps.left_s == 80.0


def test_the_time_left_does_not_count_the_preparation_as_time_of_steps() -> None:
    """Nor the steps of an earlier start, which another machine may have made."""
    trainer = make_trainer(TrainConfig(max_steps=12, batch_tokens=64, validations=0))
    trainer.progress.step = 2
    trainer.started_at -= 1000
    (first, *_, last) = [event for event in run(trainer) if event["kind"] == "step"]
    assert (first["step"], last["step"], last["left_s"]) == (3, 12, 0.0)
    assert 0 < first["left_s"] < 500


def test_slow_validations_take_a_fifth_of_the_time_and_the_run_ends_in_time() -> None:
    trainer = make_trainer(TrainConfig(time_s=10.0, validations=50, warmup_steps=2))
    trainer.time_limit_s = training_seconds(10.0, None)

    def slow(trainer: Trainer) -> Validation:
        time.sleep(0.3)
        return fixed_validation()(trainer)

    events = run(trainer, validate=slow)
    n_validations = sum(event["kind"] == "validation" for event in events)
    # 4 s until the first, then 0.3 s each with 1.2 s between them: 50 would take 15 s.
    assert 3 <= n_validations <= 6
    assert trainer.progress.reserve_s is not None
    assert 0.33 <= trainer.progress.reserve_s < 2
    assert 8 < trainer.elapsed_s < 10.3


def test_a_long_preparation_is_followed_by_no_validation_and_slows_no_forecast() -> None:
    config = TrainConfig(time_s=1000, max_steps=6, batch_tokens=64, warmup_steps=4, validations=10)
    trainer, is_prepared = make_trainer(config), False
    trainer.time_limit_s, own = 1000.0, trainer.pairs

    def prepared(epoch: int) -> Any:
        nonlocal is_prepared
        if not is_prepared:
            is_prepared = True
            trainer.started_at -= 400  # as if so many seconds had passed
        return own(epoch)

    trainer.pairs = prepared
    events = run(trainer)
    assert [event["step"] for event in events if event["kind"] == "validation"] == [6]
    assert trainer.began_s >= 400
