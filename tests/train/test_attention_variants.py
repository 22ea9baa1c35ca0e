"""Each variant of attention by the usual commands: trained, resumed, opened, used, refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heed
from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.machine.seeds import seed_everything
from heed.model.build import build_model
from heed.model.families import plan
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training

Call = Callable[..., tuple[int, str, str]]

ATTENTIONS: dict[str, dict[str, Any]] = {
    "window": {"window": 2},
    "masked after": {"mask": "after"},
    "linear": {"attention": "linear"},
    "favor": {"attention": "favor", "n_features": 12},
}
FAMILIES: dict[str, dict[str, Any]] = {
    "transformer": {"n_encoder_layers": 1, "n_decoder_layers": 1},
    "decoder": {"family": "decoder", "n_layers": 1},
}
SIZES = {"d_model": 16, "n_heads": 2, "d_ff": 32}
each = pytest.mark.parametrize("attention", ATTENTIONS)


def settings(attention: str, family: str) -> Asked:
    return Asked(
        {
            "tokenizer": {"kind": "word", "vocab_size": 330},
            "model": {**SIZES, **FAMILIES[family], **ATTENTIONS[attention]},
            "training": {"max_steps": 6, "batch_tokens": 64, "validation_sentences": 2, "seed": 3},
        }
    )


@pytest.mark.parametrize("attention", ["linear", "favor"])
def test_attention_by_sums_trains_and_resumes_in_bfloat16(
    attention: str, tmp_path: Path, small_corpus: Corpus
) -> None:
    """Sums and features are in float32 all the same: the loss is that of float32, but for 1 %."""
    curves: dict[str, list[float]] = {}

    def run(name: str, precision: str, stop_at: int = 6) -> Path:
        losses = curves.setdefault(name, [])
        asked = settings(attention, "transformer").plus("training.precision", precision)
        run_training(
            # Other numbers fall in bfloat16 than in float32.
            asked.plus("model.dropout", 0.0),
            small_corpus,
            tmp_path / name,
            report=lambda event: losses.append(event["nll"]) if event["kind"] == "step" else None,
            should_stop=lambda: len(losses) == stop_at,
        )
        return tmp_path / name / "model.safetensors"

    run("float32", "float32")
    whole = run("whole", "bfloat16")
    run("parts", "bfloat16", stop_at=3)
    assert run("parts", "bfloat16").read_bytes() == whole.read_bytes()
    assert curves["whole"] == curves["parts"] == pytest.approx(curves["float32"], rel=0.01)
    assert curves["whole"] != curves["float32"]


@each
@pytest.mark.parametrize("family", FAMILIES)
def test_it_trains_resumes_to_the_bit_opens_and_is_used(
    attention: str, family: str, tmp_path: Path, small_corpus: Corpus, call: Call
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    asked = settings(attention, family)
    losses: list[float] = []

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            losses.append(event["nll"])

    run_training(asked, small_corpus, whole, report=report)
    assert sum(losses[-2:]) < sum(losses[:2])
    losses.clear()
    paused = run_training(
        asked, small_corpus, parts, report=report, should_stop=lambda: len(losses) == 4
    )
    assert not paused.is_finished
    assert run_training(asked, small_corpus, parts, report=report).is_finished
    name = "model.safetensors"
    assert (whole / name).read_bytes() == (parts / name).read_bytes()

    found = json.loads((whole / "config.json").read_bytes())["model"]
    assert found | ATTENTIONS[attention] == found
    translator = heed.load(whole)
    for beam_size in (1, 3):
        _, together = translator.translate(["baum blau", "ein hund rot"], beam_size=beam_size)
        (alone,) = translator.translate(["ein hund rot"], beam_size=beam_size)
        assert together.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
    assert call("align", "-m", str(whole), "baum blau", "muab ualb")[0] == 0
    code, _, err = call("quantize", str(whole))
    assert code == 1
    assert "this model is:" in err


@each
def test_a_language_model_and_a_classifier_have_it_too(
    attention: str, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "text").write_text("the dog sees a house\n" * 40, encoding="utf-8")
    (tmp_path / "labels").write_text("a\tthe dog\nb\ta house\nb\tthe sea\n" * 20, "utf-8")
    sizes = {**SIZES, "n_layers": 1, **ATTENTIONS[attention]}
    shape = [f"model.{name}={value}" for name, value in sizes.items()]
    steps = ["training.max_steps=3", "tokenizer.kind=char", *shape]
    lm, classifier = str(tmp_path / "lm"), str(tmp_path / "classifier")
    text = ["--text", str(tmp_path / "text")]
    code, _, err = call("train", "--task", "lm", *text, "--out", lm, "text.context=16", *steps)
    assert code == 0, err
    code, out, _ = call("generate", "-m", lm, "the dog", "--length", "20")
    assert code == 0
    assert len(out) >= 20
    labels = ["--labeled", str(tmp_path / "labels")]
    code, _, err = call("train", "--task", "classify", *labels, "--out", classifier, *steps)
    assert code == 0, err
    assert call("classify", "-m", classifier, "the dog")[1].strip() in ("a", "b")


def test_random_features_are_stored_as_drawn_and_never_trained(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    """Neither by the optimizer nor by the average of the weights."""
    run_training(
        settings("favor", "transformer"), small_corpus, tmp_path / "run", report=lambda event: None
    )
    bundle = load_bundle(tmp_path / "run")
    seed_everything(3, "weights")
    model = build_model(bundle.config)
    fresh = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    fixed = [weight.name for weight in plan(bundle.config) if weight.role == "fixed"]
    assert fixed == [name for name in fresh if name.endswith(".directions")]
    assert len(fixed) == 3
    for name, weight in fresh.items():
        is_drawn = np.array_equal(bundle.weights[name], weight)
        assert is_drawn == (name in fixed), name
