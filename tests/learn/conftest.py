"""What every learning test does: pairs of ids in memory, heed's own loop, greedy decoding.

Not here: the tasks, or what counts as learned. Read on in `heed/train/step/loop.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.data.readers import Pair, ParallelFiles
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.families import config_from, family_named
from heed.train.step.config import TrainConfig
from heed.train.step.control import Request
from heed.train.step.loop import train
from heed.train.step.optimizer import Optimizer
from heed.train.step.trainer import Trainer
from heed.train.step.validate import Validation

Row = tuple[int, ...]

SPECIAL: dict[str, Any] = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
FIRST_WORD = 4

MODEL = ModelConfig(
    src_vocab_size=24,
    tgt_vocab_size=24,
    d_model=64,
    n_heads=4,
    d_ff=128,
    n_encoder_layers=2,
    n_decoder_layers=2,
    dropout=0.0,
    norm="pre",
)
TRAINING = TrainConfig(
    max_steps=1000, batch_tokens=1024, warmup_steps=50, label_smoothing=0.0, validations=0
)


class PairsInMemory:
    """Training pairs that were never on disk."""

    def __init__(self, pairs: Sequence[tuple[Row, Row]]) -> None:
        self.rows = [(np.array(src), np.array(tgt)) for src, tgt in pairs]
        self.src_lengths = np.array([len(src) + 1 for src, _ in pairs])
        self.tgt_lengths = np.array([len(tgt) + 1 for _, tgt in pairs])

    def src(self, index: int) -> np.ndarray[Any, Any]:
        return self.rows[index][0]

    def tgt(self, index: int) -> np.ndarray[Any, Any]:
        return self.rows[index][1]


class NoKeeper:
    """Keeps nothing: these models live for one test."""

    def save(self, trainer: Trainer, optimizer: dict[str, torch.Tensor]) -> None: ...

    def save_best(self, trainer: Trainer, validation: Validation) -> bool:
        return True

    def restore(self, trainer: Trainer) -> int:
        raise AssertionError("no model here bursts")


@dataclass(frozen=True)
class Learned:
    """A model after its training.

    Attributes:
        trainer: the model and all that belongs to it.
        losses: nats a target token, step by step.
    """

    trainer: Trainer
    losses: list[float]

    def answers(self, sources: Sequence[Row]) -> list[Row]:
        """What the model says to each source, by greedy search."""
        width = max(map(len, sources)) + 1
        rows = [[*row, SPECIAL["eos_id"]] for row in sources]
        src = np.array([row + [SPECIAL["pad_id"]] * (width - len(row)) for row in rows])
        model = TorchDecodable(self.trainer.model.eval(), torch.device("cpu"))
        found = decode(model, src, DecodeOptions(beam_size=1), **SPECIAL)
        return [tuple(best.ids) for best, *_ in found]

    def exact_match(self, pairs: Sequence[tuple[Row, Row]]) -> float:
        """Share of the pairs whose whole target is said, 0 to 1."""
        answers = self.answers([src for src, _ in pairs])
        return float(np.mean([said == tgt for said, (_, tgt) in zip(answers, pairs, strict=True)]))


Learn = Callable[..., Learned]


@pytest.fixture(scope="session")
def parallel_files() -> Callable[..., ParallelFiles]:
    """`parallel_files(folder, name, pairs, "en", "fr")`: pairs of sentences as two files."""

    def write(
        folder: Path, name: str, pairs: list[Pair], source: str, target: str
    ) -> ParallelFiles:
        src, tgt = folder / f"{name}.{source}", folder / f"{name}.{target}"
        src.write_text("".join(f"{pair.src}\n" for pair in pairs), encoding="utf-8")
        tgt.write_text("".join(f"{pair.tgt}\n" for pair in pairs), encoding="utf-8")
        return ParallelFiles(files=(str(src), str(tgt)), source_lang=source, target_lang=target)

    return write


@pytest.fixture
def learn() -> Learn:
    """`learn(pairs, model={...}, **training)`: a small model trained on pairs of ids."""

    def run(
        pairs: Sequence[tuple[Row, Row]], *, model: dict[str, Any] | None = None, **training: Any
    ) -> Learned:
        config = replace(TRAINING, **training)
        data = PairsInMemory(pairs)
        torch.manual_seed(config.seed)
        changes = model or {}
        kind = family_named(changes.get("family", "transformer")).config
        known = {field.name for field in fields(kind)} - {"family"}
        shape = {key: value for key, value in MODEL.to_dict().items() if key in known}
        network = build_model(config_from({**shape, **changes}))
        trainer = Trainer(
            model=network,
            config=config,
            optimizer=Optimizer(network, config),
            pairs=lambda epoch: data,
            special_ids=SPECIAL,
            device=torch.device("cpu"),
        )
        losses: list[float] = []
        is_finished = train(
            trainer,
            keeper=NoKeeper(),
            validate=lambda _: Validation(
                loss=losses[-1], bleu=None, chrf=None, n_translated=0, seconds=0.0, samples=[]
            ),
            report=lambda event: losses.append(event["nll"]) if event["kind"] == "step" else None,
            requests=lambda: Request.NONE,
        )
        assert is_finished
        return Learned(trainer, losses)

    return run
