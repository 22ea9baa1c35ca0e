"""What heed 0.1.0 wrote opens for ever: a model, an int8 model, and a run that was interrupted.

`0.1.0/make.txt` is the script that made the files, with the heed of commit a2165d7, on an AMD EPYC
with AVX2. A later format gets a folder of its own beside; these files are never made again.
"""

import json
import shutil
from pathlib import Path

import pytest

from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.data.prepared import open_prepared
from heed.data.readers import ParallelFiles
from heed.train.recipe.asked import Asked
from heed.train.run.checkpoint import load_newest
from heed.train.run.run import run_training
from heed.translate.translator import load

HERE = Path(__file__).parent / "0.1.0"
CORPUS = Corpus(
    train=(ParallelFiles(files=("small.de", "small.xx"), source_lang="de", target_lang="xx"),),
)


@pytest.mark.parametrize(("name", "tolerance"), [("model", 1e-4), ("int8", 1e-6)])
def test_a_model_translates_as_it_did(name: str, tolerance: float) -> None:
    """Float32 sums differ between processors; int8 has the same bits on all."""
    wanted = json.loads((HERE / "translations.json").read_text(encoding="utf-8"))
    translator = load(HERE / name, device="cpu", threads=1)
    results = translator.translate(wanted["texts"], beam_size=2)
    assert [result.text for result in results] == [line["text"] for line in wanted[name]]
    scores = [line["score"] for line in wanted[name]]
    assert [result.score for result in results] == pytest.approx(scores, abs=tolerance)


def test_a_card_that_the_manifest_lists_may_be_edited(tmp_path: Path) -> None:
    """heed 0.1 listed README.md; people edit it, and the model still opens."""
    folder = shutil.copytree(HERE / "model", tmp_path / "model")
    (folder / "README.md").write_text("My own words.\n", encoding="utf-8")
    assert load_bundle(folder).target_lang == "xx"


def test_a_prepared_corpus_opens() -> None:
    prepared = open_prepared(CORPUS, HERE / "run" / "data")
    assert len(prepared.train) == prepared.report["train"]
    assert prepared.dev


def test_a_checkpoint_opens_and_its_run_goes_on_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("small.de", "small.xx"):
        shutil.copy(HERE / name, tmp_path / name)
    run = shutil.copytree(HERE / "run", tmp_path / "run")
    checkpoint = load_newest(run)
    assert checkpoint is not None
    assert checkpoint.step == 150
    monkeypatch.chdir(tmp_path)
    asked = json.loads((run / "asked.json").read_text(encoding="utf-8"))
    outcome = run_training(Asked(asked), CORPUS, Path("run"), report=lambda event: None)
    assert (outcome.is_finished, outcome.progress.step) == (True, 300)
    assert load(Path("run"), device="cpu")("ein hund")
