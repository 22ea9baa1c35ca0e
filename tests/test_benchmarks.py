"""benchmarks/speed.py on tiny settings: every number is there, and no parent spoils a child's."""

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "speed.py"
SHAPE = ("d_model=16", "n_heads=2", "d_ff=16", "n_encoder_layers=1", "n_decoder_layers=1")


@pytest.fixture
def speed(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["speed"]


def measured(*arguments: str) -> dict[str, Any]:
    """What the script finds, once, on one thread."""
    shared = ("--threads", "1", "--repeat", "1", "--json")
    command = [sys.executable, str(SCRIPT), *arguments, *shared]
    done = subprocess.run(command, capture_output=True, check=True, timeout=550)
    found: dict[str, Any] = json.loads(done.stdout)["results"]
    return found


def test_the_table_shows_the_median_and_what_lies_around_it(speed: ModuleType) -> None:
    runs = [{"gflops": value, "threads": 2} for value in (90.0, 120.0, 100.0)]
    assert speed.table({"a": runs, "b": [{"gflops": 50.0, "threads": 2}]}).splitlines() == [
        "| | a | b |",
        "|---|--:|--:|",
        "| GEMM peak (float32), GFLOP/s | 100.0 (90.0 – 120.0) | 50.0 |",
        "| threads | 2 | 2 |",
    ]


def test_one_side_of_a_corpus_alone_is_refused(
    speed: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        speed.main(["train", "--src", "train.en"])
    assert "--src and --tgt go together" in capsys.readouterr().err


def test_the_parent_stays_light_so_that_a_childs_peak_memory_is_its_own() -> None:
    program = f"import runpy, sys; runpy.run_path({str(SCRIPT)!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert not {"torch", "numpy", "heed"} & set(done.stdout.decode().split())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_training_is_measured(speed: ModuleType, tmp_path: Path) -> None:
    for side, word in (("en", "sentence"), ("de", "Satz")):
        lines = (f"{word} {n}\n" for n in range(200))
        (tmp_path / f"train.{side}").write_text("".join(lines), encoding="utf-8")
    files = ("--src", f"{tmp_path}/train.en", "--tgt", f"{tmp_path}/train.de")
    shape = [f"model.{setting}" for setting in SHAPE]
    settings = ("tokenizer.kind=char", "tokenizer.vocab_size=300", "training.batch_tokens=64")
    steps = ("--preset", "tiny", "--steps", "3", "--warmup", "1")
    (numbers,) = measured("train", *files, *steps, *settings, *shape)["tiny"]
    assert all(value > 0 for name, value in numbers.items() if name != "pad_share")
    assert 0 <= numbers["pad_share"] < 1
    # A model this small is far from the roof; the two are measured one after the other.
    assert numbers["peak_share"] < 0.5
    # A shorter step takes less time: 64 positions at most, some of them padding.
    assert 0 < numbers["tgt_tokens_per_s"] * numbers["step_ms"] / 1e3 < 4 * 64
    assert numbers["threads"] == 1
    assert set(numbers) <= set(speed.MEANINGS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_translating_is_measured(speed: ModuleType, tmp_path: Path) -> None:
    from heed.bundle.bundle import Bundle, save_bundle
    from heed.model.build import build_model, count_parameters
    from heed.model.config import ModelConfig
    from heed.text.vocab import train_vocab

    vocab = train_vocab(["two dogs play in the snow", "zwei Hunde spielen"] * 5, size=300)
    shape: dict[str, Any] = {
        name: int(value) for name, value in (setting.split("=") for setting in SHAPE)
    }
    config = ModelConfig(src_vocab_size=vocab.size, tgt_vocab_size=vocab.size, **shape)
    model = build_model(config)
    bundle = Bundle(
        config=config,
        weights={name: w.numpy() for name, w in model.state_dict().items()},
        src_vocab=vocab,
        tgt_vocab=vocab,
        decoding={"max_length": 6},
    )
    save_bundle(tmp_path / "model", bundle)
    (tmp_path / "test.en").write_text("two dogs\n\nplay\n", encoding="utf-8")
    found = measured("translate", "-m", f"{tmp_path}/model", "--input", f"{tmp_path}/test.en")
    assert list(found) == list(speed.SEARCHES)
    on_disk = sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    for (numbers,) in found.values():
        assert all(value > 0 for value in numbers.values())
        assert numbers["parameters"] == count_parameters(model)
        assert numbers["disk_mb"] == pytest.approx(on_disk / 1e6, rel=0.2)  # without the manifest
        assert set(numbers) <= set(speed.MEANINGS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_roof_is_measured() -> None:
    ((numbers,),) = measured("peak").values()
    assert numbers["gflops"] > 0.1
