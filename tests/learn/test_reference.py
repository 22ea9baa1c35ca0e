"""What "it" is, asked of a model that has learned the demo's sentences."""

from pathlib import Path

import pytest

from heed.cli.demo import SETTINGS, write_parts
from heed.data.corpus import Corpus
from heed.demo.grammar import demo_corpus
from heed.explain.causes.memories import firing
from heed.explain.causes.effects import log_probs_under
from heed.explain.causes.pair import Pair
from heed.explain.causes.reference import Reference, reference
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training
from heed.translate.translator import Translator, load

pytestmark = [pytest.mark.slow, pytest.mark.reliability, pytest.mark.timeout(1800)]

SENTENCE = "The animal didn't cross the street because it was too {}"


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """`heed demo`, its sentences into French alone."""
    folder = tmp_path_factory.mktemp("reference")
    train, dev, _ = (
        [example for example in part if example[1] == "fr"]
        for part in demo_corpus(1, train_size=2500, dev_size=25, test_size=5)
    )
    corpus = Corpus(
        train=tuple(write_parts(folder, "train", train)),
        dev=tuple(write_parts(folder, "dev", dev)),
    )
    asked = Asked(SETTINGS).plus("training.max_steps", 900)
    run_training(asked, corpus, folder / "run", report=lambda _: None, should_stop=lambda: False)
    return load(folder / "run", threads=1)
