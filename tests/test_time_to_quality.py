"""benchmarks/time_to_quality.py; its systems are scripts of a few lines, nothing is installed."""

import itertools
import json
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from heed.model.config import PRESETS

# Saves a folder every 20 ms; the name is the text that it will translate everything into.
LEARNER = """
import pathlib, sys, time
model, texts, is_endless = pathlib.Path(sys.argv[1]), sys.argv[2].split("|"), len(sys.argv) > 3
for number, text in enumerate(texts):
    draft = model / f"draft-{number}"
    draft.mkdir(parents=True)
    (draft / "done").write_text(text)
    draft.rename(model / f"step-{number}")
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
(model / "done").write_text(texts[-1])
time.sleep(60 if is_endless else 0)
"""
TRANSLATOR = """
import pathlib, sys
lines = sys.stdin.read().splitlines()
text = (pathlib.Path(sys.argv[1]) / "done").read_text()
pathlib.Path(sys.argv[2]).write_text(f"{text}\\n" * len(lines))
"""


@pytest.fixture
def curves(scripts: dict[str, Any]) -> Any:
    return scripts["curves"]


@pytest.fixture
def race(scripts: dict[str, Any]) -> Any:
    return scripts["time_to_quality"]


@pytest.fixture
def peers(scripts: dict[str, Any]) -> Any:
    return scripts["peers"]


def record(curves: Any, case: str, scores: dict[float, float], *, end: bool = False) -> Any:
    """A run with a BLEU score at each of these seconds; for ours, the only one is its end."""
    points = [
        curves.Point(
            name=f"{seconds:g}",
            seconds=seconds,
            wall_s=seconds,
            scores={"bleu": score, "chrf": score + 20},
            is_end=end,
        )
        for seconds, score in scores.items()
    ]
    return curves.Record(case=case, seed=1, time_s=max(scores), points=points)


def test_a_curve_reaches_a_score_on_the_line_between_two_moments(curves: Any) -> None:
    runs = [record(curves, "eole", {600: 10.0, 1200: 30.0, 1800: 28.0})]
    assert curves.seconds_to(runs, 5.0) == 300
    assert curves.seconds_to(runs, 0.0) == 0
    assert curves.seconds_to(runs, 25.0) == 1050
    assert curves.seconds_to(runs, 31.0) is None


def test_of_runs_that_end_by_schedule_the_shortest_that_got_there_counts(curves: Any) -> None:
    runs = [record(curves, "heed", {t: score}, end=True) for t, score in ((300, 24), (900, 33))]
    # On the way the longer run may have been as good earlier, but it was never a finished model.
    runs[1].points.insert(0, record(curves, "heed", {200: 26.0}).points[0])
    assert curves.seconds_to(runs, 24.0) == 300
    assert curves.seconds_to(runs, 25.0) == 900
    assert curves.seconds_to(runs, 34.0) is None


def test_the_table_says_how_many_times_our_time_a_peer_takes(curves: Any) -> None:
    runs = [
        record(curves, "heed", {300: 26.0}, end=True),
        record(curves, "heed", {600: 36.0}, end=True),
        record(curves, "eole", {900: 20.0, 1800: 30.0}),
    ]
    assert curves.time_table(runs, (25.0, 35.0)).splitlines() == [
        "| minutes to | BLEU 25 | BLEU 35 | eole's 29.7 | best BLEU |",
        "|---|--:|--:|--:|--:|",
        "| heed | 5.0 | 10.0 | 10.0 | 36.00 |",
        "| eole | 22.5 (4.5 ×) | > 30.0 (> 3.0 ×) | 29.6 (3.0 ×) | 30.00 |",
    ]


def test_at_equal_time_a_peer_shows_its_best_moment_so_far(curves: Any) -> None:
    ours = record(curves, "heed", {1000: 30.0}, end=True)
    theirs = record(curves, "eole", {500: 21.0, 900: 20.0, 1100: 25.0})
    (pairing,) = curves.pairings([ours, theirs])
    assert pairing.best.seconds == 500
    # It saves when it saves, so a little later counts, too.
    theirs = record(curves, "eole", {500: 21.0, 1040: 24.0, 1100: 25.0})
    (pairing,) = curves.pairings([ours, theirs])
    assert pairing.best.seconds == 1040


def test_the_picture_is_sound_and_its_names_do_not_cover_each_other(curves: Any) -> None:
    runs = [
        record(curves, "heed", {300: 26.0}, end=True),
        record(curves, "heed", {600: 33.0}, end=True),
        record(curves, "eole", {60: 1.0, 600: 33.0}),
        record(curves, "JoeyNMT", {60: 1.0, 600: 32.9}),
    ]
    root = ET.fromstring(curves.picture(runs, "A & B"))
    name = "{http://www.w3.org/2000/svg}"
    lines = [line.get("points", "").split() for line in root.iter(f"{name}polyline")]
    # Of our runs only the ends are known: two places, then the line from one to the other.
    assert [len(line) for line in lines] == [1, 1, 2, 2, 2]
    for line in lines[2:]:
        (x0, y0), (x1, y1) = (map(float, place.split(",")) for place in line)
        assert 0 < x0 < x1 < curves.WIDTH  # later is further right,
        assert curves.HEIGHT > y0 > y1 > 0  # better is higher up
    words = {text.text: float(text.get("y", "")) for text in root.iter(f"{name}text")}
    heights = sorted(words[case] for case in ("heed", "eole", "JoeyNMT"))
    assert heights[1] - heights[0] >= 16 <= heights[2] - heights[1]
    assert "A & B" in words


@pytest.mark.parametrize("preset", [None, "tiny"])
def test_the_peers_get_one_network(peers: Any, tmp_path: Path, preset: str | None) -> None:
    task = peers.Task(
        corpus={},
        data=tmp_path / "data",
        run=tmp_path / "run",
        python=Path("python"),
        time_s=60,
        seed=3,
        preset=preset,
        threads=1,
        beam_size=5,
    )
    (tmp_path / "data").mkdir()
    configs = {}
    for case in ("eole", "eole tuned", "JoeyNMT", "transformers"):
        (path,) = (word for word in peers.SYSTEMS[case].train(task) if str(word).count("config."))
        configs[case] = json.loads(Path(path).read_text("utf-8"))
    assert configs["eole"]["model"] == configs["eole tuned"]["model"]
    assert configs["eole"]["training"]["warmup_steps"] == 4000
    assert configs["eole tuned"]["training"]["warmup_steps"] < 1000
    eole, joey = configs["eole"]["model"], configs["JoeyNMT"]["model"]["encoder"]
    sizes = configs["transformers"]["sizes"]
    assert sizes["d_model"] == PRESETS[preset or "small"]["d_model"]
    assert eole["hidden_size"] == joey["hidden_size"] == sizes["d_model"]
    assert eole["transformer_ff"] == joey["ff_size"] == sizes["d_ff"]
    assert eole["encoder"]["layers"] == joey["num_layers"] == sizes["n_encoder_layers"]
    assert eole["heads"] == joey["num_heads"] == sizes["n_heads"]


def test_a_case_may_end_with_a_network(peers: Any) -> None:
    assert peers.system_of("eole tuned") == (peers.SYSTEMS["eole tuned"], None)
    assert peers.system_of("eole tuned tiny") == (peers.SYSTEMS["eole tuned"], "tiny")
    for unknown in ("eole tony", "tiny", "fairseq tiny"):
        with pytest.raises(KeyError):
            peers.system_of(unknown)


def asked(tmp_path: Path, *more: str) -> list[str]:
    """A command line on three test sentences."""
    for name, text in (("src", "a\nb\nc\n"), ("tgt", "der Hund läuft im Schnee\n" * 3)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    sides = (f"{part}{side}" for part in ("", "dev-", "test-") for side in ("src", "tgt"))
    files = [word for side in sides for word in (f"--{side}", str(tmp_path / side[-3:]))]
    return [*files, "--out", str(tmp_path / "race"), "--jobs", "1", *more]


@pytest.fixture
def fake(scripts: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Systems that learn from nothing in no time; returns the list of trainings made."""
    peers, race = scripts["peers"], scripts["time_to_quality"]
    trained: list[str] = []

    def system(case: str, texts: str, *more: str) -> Any:
        def train(task: Any) -> list[Any]:
            trained.append(case)
            return [sys.executable, "-c", LEARNER, task.model, texts, *more]

        return peers.System(
            train=train,
            translate=lambda task, model, output: [
                *(sys.executable, "-c", TRANSLATOR, model, output)
            ],
            saved="step-*/done",
        )

    systems = {
        "heed": system("heed", "ein Hund|" * 8 + "der Hund läuft im Schnee"),
        "eole": system("eole", "Hund|ein Hund|der Hund läuft im|" * 8 + "ein Hund läuft im", "on"),
        "broken": system("broken", "x"),
    }
    monkeypatch.setattr(peers, "SYSTEMS", systems)
    monkeypatch.setattr(peers, "install", lambda system, folder: Path(sys.executable))
    monkeypatch.setattr(peers, "text_of", lambda lines, data: lines)
    # Each look at a moment finds 20 ms more used: what is kept does not depend on this machine.
    looks: Counter[int] = Counter()

    def cpu_seconds(pid: int) -> float:
        looks[pid] += 1
        return 0.02 * looks[pid]

    monkeypatch.setattr(race, "cpu_seconds", cpu_seconds)
    monkeypatch.setattr(race, "FIRST_S", 0.04)
    monkeypatch.setattr(race, "POLL_S", 0.005)
    monkeypatch.setattr(race, "GRACE_S", 0.0)
    data = tmp_path / "race" / "data"
    data.mkdir(parents=True)
    (data / "vocab.spm").touch()
    (data / "test.src").write_text("a\nb\nc\n", encoding="utf-8")
    return trained


def test_trainings_are_watched_scored_and_not_made_again(
    race: Any, fake: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = asked(tmp_path, "--cases", "heed,eole", "--times", "1s", "--peer-time", "0.3s")
    race.main(arguments)
    printed = capsys.readouterr().out
    assert fake == ["heed", "eole"]
    assert "| heed | " in printed
    assert "| heed, 0.0166667 | eole | " in printed  # at equal time
    theirs = race.read_record(tmp_path / "race" / "eole-0.3s-seed1" / "record.json").points
    assert theirs[-1].seconds >= 0.3 > theirs[-2].seconds  # ended by the watch, not by itself
    steps = [b.seconds / a.seconds for a, b in itertools.pairwise(theirs[:-1])]
    assert min(steps) > 1.19  # `--growth`
    assert not (tmp_path / "race" / "eole-0.3s-seed1" / "moments").exists()
    (end,) = (
        p
        for p in race.read_record(next(tmp_path.glob("race/heed*/record.json"))).points
        if p.is_end
    )
    assert end.scores["bleu"] == pytest.approx(100)

    race.main(arguments)
    race.main([*arguments, "--plot-only", "--plot", str(tmp_path / "figures" / "a.svg")])
    assert fake == ["heed", "eole"]
    assert capsys.readouterr().out == 2 * printed
    assert ET.parse(tmp_path / "figures" / "a.svg")


def test_a_training_that_ends_before_its_time_is_named_with_its_last_words(
    race: Any, fake: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    race.main(asked(tmp_path, "--cases", "broken,heed", "--times", "1s", "--peer-time", "9s"))
    said = capsys.readouterr()
    assert "broken ended before its time; it said in" in said.err
    assert "| heed | " in said.out


def test_what_is_missing_or_unknown_is_said(
    race: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        race.main(["--out", str(tmp_path), "--src", "train.en"])
    assert "give --tgt" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        race.main(["--out", str(tmp_path), "--cases", "heed,fairseq"])
    assert "but not 'fairseq'" in capsys.readouterr().err
