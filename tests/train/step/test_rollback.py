"""Numbers that are not finite, batches that are too large: noticed, mended, never kept.

Checks N8 and N9.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.data.batch import collate
from heed.disk.files import read_json_lines
from heed.disk.tensors import decode_tensors
from heed.errors import RunError
from heed.train.step import forward
from heed.train.step.control import Request, ask
from heed.train.step.fit_memory import in_parts, is_out_of_memory, split
from heed.train.step.loss import output_cross_entropy
from heed.train.step.optimizer import Optimizer
from heed.train.step.progress import Progress
from heed.train.step.rollback import MAX_MENDS, MAX_SKIPPED, roll_back

Run = Callable[..., Any]


@contextmanager
def spoilt(
    is_spoilt: Callable[[int], bool], *, weights: bool = False, row: int = 0
) -> Iterator[None]:
    """Steps (from 1, in this process) whose gradients are no numbers, or whose update bursts.

    What bursts is a row of the embedding.
    """
    clip, step, n_calls = Optimizer.clip, Optimizer.step, 0

    def clip_spoilt(self: Optimizer) -> torch.Tensor:
        nonlocal n_calls
        n_calls += 1
        if is_spoilt(n_calls) and not weights:
            gradient = next(iter(self.parameters.values())).grad
            assert gradient is not None
            gradient[0] = math.nan
        return clip(self)

    def step_spoilt(self: Optimizer, *arguments: Any) -> None:
        step(self, *arguments)
        if is_spoilt(n_calls) and weights:
            with torch.no_grad():
                next(iter(self.parameters.values()))[row] = math.inf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Optimizer, "clip", clip_spoilt)
        patch.setattr(Optimizer, "step", step_spoilt)
        yield


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["kind"] == kind]


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def assert_all_finite(out: Path) -> None:
    paths = list(out.rglob("*.safetensors"))
    assert len(paths) > 3
    for path in paths:
        for tensor in decode_tensors(path.read_bytes(), path).values():
            assert np.isfinite(tensor).all(), path


def test_one_spoilt_batch_is_skipped_told_once_and_its_pairs_are_logged(
    tmp_path: Path, small_run: Run
) -> None:
    with spoilt(lambda call: call in (4, 9)):
        outcome, events = small_run(tmp_path / "run")
    assert outcome.is_finished
    skipped = [event for event in of_kind(events, "step") if event["is_skipped"]]
    assert [event["step"] for event in skipped] == [4, 9]
    assert all(event["pairs"] for event in skipped)
    (alarm,) = of_kind(events, "alarm")
    assert (alarm["name"], alarm["step"]) == ("non-finite", 4)
    assert list(alarm["numbers"]["pairs"]) == list(skipped[0]["pairs"])[:5]
    assert of_kind(events, "mend") == []
    logged = list(read_json_lines(tmp_path / "run" / "metrics.jsonl"))
    assert [e["step"] for e in of_kind(logged, "step") if e["is_skipped"]] == [4, 9]
    assert_all_finite(tmp_path / "run")


def test_after_some_in_a_row_the_run_goes_back_to_its_checkpoint_with_half_the_rates(
    tmp_path: Path, small_run: Run
) -> None:
    with spoilt(lambda call: 9 <= call < 9 + MAX_SKIPPED):
        outcome, events = small_run(tmp_path / "run", max_steps=20, checkpoint_every=4)
    assert outcome.is_finished
    (mended,) = of_kind(events, "mend")
    assert (mended["step"], mended["restored_step"]) == (8 + MAX_SKIPPED, 8)
    assert mended["rate_scale"] == 0.5
    assert "back to the weights of step 8, with learning rates at 50.00%" in mended["text"]
    factors = {event["step"]: event["rate_factor"] for event in of_kind(events, "step")}
    assert factors[8 + MAX_SKIPPED + 1] < 0.6 * factors[8] + 0.2
    assert outcome.progress.rate_scale == 0.5
    # Step 12 lies among the skipped ones: it is not known to be sound, so it is kept once mended.
    assert [event["step"] for event in of_kind(events, "checkpoint")] == [4, 8, 13, 16, 20]
    assert_all_finite(tmp_path / "run")


def test_without_a_checkpoint_it_goes_back_to_the_first_weights(
    tmp_path: Path, small_run: Run
) -> None:
    with spoilt(lambda call: call <= MAX_SKIPPED):
        outcome, events = small_run(tmp_path / "run", ema_decay=0.9)
    assert outcome.is_finished
    assert of_kind(events, "mend")[0]["restored_step"] == 0


def test_weights_that_burst_in_an_update_are_neither_kept_nor_scored(
    tmp_path: Path, small_run: Run
) -> None:
    with spoilt(lambda call: call == 4, weights=True):
        outcome, events = small_run(tmp_path / "run", max_steps=16, checkpoint_every=3)
    assert outcome.is_finished
    assert of_kind(events, "mend")[0]["restored_step"] == 3
    (at_five, *_) = of_kind(events, "validation")
    assert (at_five["step"], at_five["loss"], at_five["is_best"]) == (5, None, False)
    assert_all_finite(tmp_path / "run")


def test_a_request_to_stop_after_weights_have_burst_goes_back_and_is_served_at_once(
    tmp_path: Path, small_run: Run
) -> None:
    """Steps that do not use the burst weights may go well for ever."""
    out = tmp_path / "run"
    with spoilt(lambda call: call == 4, weights=True):
        outcome, events = small_run(out, stop_at=4, checkpoint_every=3)
    assert (outcome.is_finished, outcome.progress.step) == (False, 4)
    (mended,) = of_kind(events, "mend")
    assert mended["text"].startswith("weights are not finite: back to the weights of step 3, ")
    assert [event["step"] for event in of_kind(events, "checkpoint")] == [3, 4]


def test_a_row_that_bursts_and_is_not_read_ends_no_checkpoints(
    tmp_path: Path, small_run: Run
) -> None:
    out, untied = tmp_path / "run", {"model": {"tied": "none"}}
    with spoilt(lambda call: call == 4, weights=True, row=100):
        outcome, events = small_run(out, checkpoint_every=3, settings=untied)
    assert outcome.is_finished
    (mended,) = of_kind(events, "mend")
    assert mended["step"] == 6
    assert mended["text"].startswith("weights are not finite: back to the weights of step 3, ")
    assert [event["step"] for event in of_kind(events, "checkpoint")] == [3, 6, 9, 12]
    at_five, *_ = of_kind(events, "validation")
    assert at_five["loss"] is not None
    assert (at_five["step"], at_five["is_best"]) == (5, False)
    assert_all_finite(out)


def test_a_run_whose_only_validation_is_not_finite_ends_with_the_weights_before(
    tmp_path: Path, small_run: Run
) -> None:
    with spoilt(lambda call: call == 3, weights=True):
        outcome, events = small_run(tmp_path / "run", max_steps=3)
    assert outcome.is_finished
    (mended,) = of_kind(events, "mend")
    assert (mended["step"], mended["restored_step"]) == (3, 0)
    assert_all_finite(tmp_path / "run")


def test_a_run_that_mends_is_exact_wherever_it_is_cut(tmp_path: Path, small_run: Run) -> None:
    settings = {"max_steps": 18, "checkpoint_every": 3}

    def spoil(offset: int) -> Callable[[int], bool]:
        return lambda call: 8 <= call + offset < 8 + MAX_SKIPPED

    with spoilt(spoil(0)):
        small_run(tmp_path / "whole", **settings)
    for cut in (7, 10, 13):
        out = tmp_path / f"cut-{cut}"
        with spoilt(spoil(0)):
            paused, _ = small_run(out, stop_at=cut, **settings)
        # At 10 the last step was skipped: the request waits until the run has mended itself.
        kept = 12 if cut == 10 else cut
        assert (paused.is_finished, paused.progress.step) == (False, kept)
        assert (out / "checkpoints" / f"step-{kept:06}").is_dir()
        with spoilt(spoil(kept)):
            small_run(out, **settings)
        if cut != 7:  # a pause keeps a later state to go back to than the undisturbed run has
            assert digest(out) == digest(tmp_path / "whole"), cut


def test_a_request_to_save_after_a_skipped_step_is_served_after_the_next_sound_one(
    tmp_path: Path, small_run: Run
) -> None:
    out = tmp_path / "run"

    def at_step_four(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 4:
            ask(out, Request.SAVE)

    with spoilt(lambda call: call in (4, 5)):
        _, events = small_run(out, on=at_step_four)
    assert [event["step"] for event in of_kind(events, "checkpoint")] == [6, 12]


def test_a_run_that_cannot_be_mended_ends_in_words_and_its_checkpoint_stays(
    tmp_path: Path, small_run: Run
) -> None:
    with (
        spoilt(lambda call: call > 4),
        pytest.raises(RunError, match=r"diverged: .* in 5 steps in a row, .* halved 10 times"),
    ):
        small_run(tmp_path / "run", max_steps=1000, checkpoint_every=2)
    assert_all_finite(tmp_path / "run")
    with pytest.raises(RunError, match="Lower training.learning_rate"):
        roll_back(Progress(mends=MAX_MENDS), lambda: 0)


def test_an_absurd_rate_writes_no_number_that_is_not_finite(tmp_path: Path, small_run: Run) -> None:
    outcome, events = small_run(
        tmp_path / "run",
        max_steps=40,
        learning_rate=1e3,
        matrix_learning_rate=1e3,
        weight_decay=10.0,
        checkpoint_every=3,
        warmup_steps=0,
    )
    assert outcome.is_finished
    assert of_kind(events, "mend")
    assert_all_finite(tmp_path / "run")


# Memory


def make_batch(n_pairs: int = 5) -> Any:
    class Pairs:
        def src(self, index: int) -> np.ndarray[Any, Any]:
            return np.arange(5, 6 + index % 3)

        tgt = src

    return collate(Pairs(), list(range(n_pairs)), pad_id=0, bos_id=2, eos_id=3)


def test_parts_are_halved_until_they_fit() -> None:
    tried: list[int] = []
    undone: list[int] = []

    def compute(n_parts: int) -> str:
        tried.append(n_parts)
        if n_parts < 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "done"

    found = in_parts(compute, undo=lambda: undone.append(1), max_parts=5)
    assert found == ("done", 4)
    assert (tried, len(undone)) == ([1, 2, 4], 2)


def test_a_pair_that_does_not_fit_and_other_errors_are_told() -> None:
    def never(n_parts: int) -> None:
        raise MemoryError

    with pytest.raises(RunError, match="a single training pair does not fit into memory"):
        in_parts(never, undo=lambda: None, max_parts=3)

    def wrong(n_parts: int) -> None:
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        in_parts(wrong, undo=lambda: None, max_parts=3)


def test_the_cpu_allocator_is_understood() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(refused.value)


def test_the_parts_of_a_batch_are_the_batch() -> None:
    batch = make_batch(5)
    parts = list(split(batch, 2))
    assert [len(part.src) for part in parts] == [3, 2]
    assert torch.equal(torch.cat([part.tgt_in for part in parts]), batch.tgt_in)
    assert torch.equal(torch.cat([part.src_mask for part in parts]), batch.src_mask)
    assert len(list(split(batch, 8))) == 5


def test_a_batch_too_large_for_memory_is_split_and_counted(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute, largest = output_cross_entropy, 10**9

    def with_little_memory(states: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        if states.requires_grad and len(states) > largest:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return compute(states, *arguments, **options)

    monkeypatch.setattr(forward, "output_cross_entropy", with_little_memory)
    whole, _ = small_run(tmp_path / "whole", optimizer="adamw")
    largest = 40
    parts, events = small_run(tmp_path / "parts", optimizer="adamw")
    assert parts.is_finished
    assert parts.progress.tgt_tokens == whole.progress.tgt_tokens
    assert 0 < parts.progress.splits <= 12
    assert max(event["n_parts"] for event in of_kind(events, "step")) == 2
