"""benchmarks/rnn_speed.py: both sides get one network, and JoeyNMT's log is read."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

LOG = """
2026-11-24 07:11:17,310 - INFO - joeynmt.training - Epoch   1, Step:       10, Batch Loss: 8.5, \
Batch Acc: 0.1, Tokens per Sec:      400, Lr: 0.000300
2026-11-24 07:11:19,310 - INFO - joeynmt.training - Epoch   1, Step:       15, Batch Loss: 8.1, \
Batch Acc: 0.1, Tokens per Sec:      661, Lr: 0.000300
2026-11-24 07:11:20,310 - INFO - joeynmt.prediction - Generation took 2.0000[sec].
▁ein ▁Hund
▁zwei
"""


@pytest.fixture
def rnn_speed(scripts: dict[str, ModuleType]) -> Any:
    return scripts["rnn_speed"]


@pytest.fixture
def settings() -> dict[str, Any]:
    return {
        "kind": "LSTM, dot",
        "width": 64,
        "layers": 2,
        "batch_tokens": 512,
        "steps": 10,
        "max_length": 20,
        "threads": 1,
    }


def task(peers: Any, folder: Path) -> Any:
    return peers.Task(
        corpus={},
        data=folder,
        run=folder / "run",
        python=Path("python"),
        time_s=0.0,
        seed=1,
        preset=None,
        threads=1,
        beam_size=1,
    )


def test_the_peer_gets_the_sizes_and_ends_after_as_many_steps(
    rnn_speed: Any, scripts: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    config = rnn_speed.joeynmt_config(settings, task(scripts["peers"], tmp_path))
    encoder, decoder = config["model"]["encoder"], config["model"]["decoder"]
    assert (encoder["hidden_size"], decoder["hidden_size"]) == (32, 64)
    assert encoder["num_layers"] == decoder["num_layers"] == 2
    assert (decoder["rnn_type"], decoder["attention"]) == ("lstm", "luong")
    assert config["training"]["updates"] == config["training"]["validation_freq"] == 20


@pytest.fixture
def model(rnn_speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the peer's model; the peer writes `LOG`, whatever it is asked."""
    monkeypatch.setattr(rnn_speed, "run", lambda *_: LOG)
    (tmp_path / "test.src").write_text("▁a ▁dog\n▁two\n", encoding="utf-8")
    folder = tmp_path / "run" / "model"
    folder.mkdir(parents=True)
    return folder


def test_rates_are_those_after_the_first_steps(
    rnn_speed: Any,
    scripts: dict[str, Any],
    settings: dict[str, Any],
    tmp_path: Path,
    model: Path,
) -> None:
    (model / "20.ckpt").touch()
    found = rnn_speed.measure_joeynmt(settings, task(scripts["peers"], tmp_path))
    assert found == {"tgt_tokens_per_s": 661, "output_tokens_per_s": 2.5, "sentences_per_s": 1.0}
    table = rnn_speed.table({"LSTM, dot": {"heed": [found | {"tgt_tokens_per_s": 1322}] * 2,
                                           "JoeyNMT": [found] * 2}})  # fmt: skip
    assert "| LSTM, dot, training | 1,322 | 661 | 2.00 (2.00 – 2.00) |" in table


def test_the_peer_that_converges_has_its_own_schedule_and_sees_the_development_set(
    rnn_speed: Any, scripts: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    first, last = rnn_speed.STAGES
    peer = task(scripts["peers"], tmp_path)
    config = rnn_speed.converging_config(settings, peer, first)
    training, decoder = config["training"], config["model"]["decoder"]
    assert (training["scheduling"], training["updates"]) == ("exponential", 480)
    assert (training["validation_freq"], training["batch_size"]) == (240, 2048)
    assert training["learning_rate"] * training["decrease_factor"] == pytest.approx(0.001)
    assert training["validation_freq"] % training["logging_freq"] == 0
    assert config["data"]["dev"] == str(tmp_path / "dev")
    assert decoder["input_feeding"] and decoder["attention"] == "luong"
    assert config["model"]["encoder"]["dropout"] == decoder["embeddings"]["dropout"] == 0.3
    assert not {name for name in training if name.startswith(("load", "reset"))}

    training = rnn_speed.converging_config(settings, peer, last, Path("480.ckpt"))["training"]
    assert (training["load_model"], training["batch_size"]) == ("480.ckpt", 512)
    assert training["reset_scheduler"] and training["reset_iter_state"]
    assert "reset_optimizer" not in training  # its moments go on


@pytest.mark.parametrize(("share", "updates"), [(1.0, [480, 6860]), (0.01, [4, 70]), (0, [2, 14])])
def test_a_share_of_the_updates_ends_with_a_validation(
    rnn_speed: Any, share: float, updates: list[int]
) -> None:
    stages = [stage.scaled(share) for stage in rnn_speed.STAGES]
    assert [stage.updates for stage in stages] == updates
    assert all(stage.updates % stage.validations == 0 for stage in stages)


def test_what_converged_is_scored_in_words_by_the_last_stages_best_model(
    rnn_speed: Any,
    scripts: dict[str, Any],
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scripts["peers"], "text_of", lambda found, data: [
        line.replace(" ", "").replace("▁", " ").strip() for line in found
    ])  # fmt: skip
    (tmp_path / "test.src").write_text("▁a ▁dog\n▁two\n", encoding="utf-8")
    (tmp_path / "test.tgt").write_text("ein Hund\nzwei\n", encoding="utf-8")
    trained = []

    def run(command: list[Any], *_: Any) -> str:
        if "train" in command:
            config = json.loads(Path(command[-2]).read_text("utf-8"))
            trained.append(config["training"].get("load_model"))
            folder = Path(config["model_dir"])
            folder.mkdir()
            for name, link in (("240", "best"), ("480", "latest")):
                (folder / f"{name}.ckpt").touch()
                (folder / f"{link}.ckpt").symlink_to(f"{name}.ckpt")
            (folder / "validations.txt").write_text("Steps: 240\nSteps: 480\n", encoding="utf-8")
        return LOG

    monkeypatch.setattr(rnn_speed, "run", run)
    asked = {**settings, "test_tgt": str(tmp_path / "test.tgt")}
    found = rnn_speed.converge(asked, task(scripts["peers"], tmp_path))
    assert (found["step"], found["chrf2"]) == (240, 100.0)
    assert (tmp_path / "run" / "test.hyp").read_text("utf-8") == "ein Hund\nzwei\n"
    assert trained == [None, str(tmp_path / "run" / "1" / "model" / "480.ckpt")]
    translate = json.loads((tmp_path / "run" / "translate.yaml").read_text("utf-8"))
    assert translate["testing"]["load_model"].endswith("run/2/model/240.ckpt")
