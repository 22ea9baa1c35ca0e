"""What a model folder says of its directions: all that were learned, where it is not plain."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.bundle.bundle import load_bundle
from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.serve.work.directions import read_routes

Run = Callable[..., Any]

ROOMY = {"tokenizer": {"vocab_size": 360}}


@pytest.fixture
def corpus_of(small_corpus: Corpus) -> Callable[..., Corpus]:
    """`corpus_of("de-xx", "xx-yy")`: a corpus with these directions."""

    def make(*directions: str) -> Corpus:
        files = small_corpus.train[0].files
        return Corpus(
            train=tuple(
                ParallelFiles(files=files, source_lang=source, target_lang=target)
                for source, target in (direction.split("-") for direction in directions)
            )
        )

    return make


def stored(out: Path) -> list[list[str]] | None:
    found: list[list[str]] | None = json.loads((out / "config.json").read_bytes()).get("directions")
    return found


def test_corpora_of_several_sources_are_all_told(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path
) -> None:
    out, corpus = tmp_path / "run", corpus_of("xx-yy", "de-xx", "xx-yy", "xx-de")
    small_run(out, corpus=corpus, settings=ROOMY, stop_at=2)
    small_run(out, corpus=corpus, settings=ROOMY, max_steps=4)
    assert stored(out) == [["xx", "yy"], ["de", "xx"], ["xx", "de"]]
    assert [f"{route.source}-{route.target}" for route in read_routes([str(out)])[1]] == [
        "xx-yy",
        "de-xx",
        "xx-de",
    ]
    assert "# xx → yy, de; de → xx\n" in (out / "README.md").read_text(encoding="utf-8")


def test_both_directions_of_two_corpora_are_four(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path
) -> None:
    out, both = tmp_path / "run", {"data": {"both_directions": True}, **ROOMY}
    small_run(out, corpus=corpus_of("de-xx", "de-yy"), settings=both, max_steps=2)
    assert stored(out) == [["de", "xx"], ["xx", "de"], ["de", "yy"], ["yy", "de"]]


@pytest.mark.parametrize(
    "directions", [["de-xx"], ["de-xx", "de-yy"], ["-xx", "de-xx"]], ids=", ".join
)
def test_nothing_is_stored_that_the_languages_imply_or_that_is_not_known(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path, directions: list[str]
) -> None:
    out = tmp_path / "run"
    small_run(out, corpus=corpus_of(*directions), settings=ROOMY, max_steps=2)
    assert stored(out) is None


def test_a_run_from_a_model_keeps_its_directions(
    small_run: Run, corpus_of: Callable[..., Corpus], tmp_path: Path
) -> None:
    parent = tmp_path / "parent"
    small_run(parent, corpus=corpus_of("de-xx", "xx-yy"), settings=ROOMY, max_steps=2)
    for directions, added in (("de-xx", []), ("yy-de", [["yy", "de"]])):
        out = tmp_path / directions
        small_run(out, corpus=corpus_of(directions), parent=str(parent), max_steps=2)
        assert stored(out) == [["de", "xx"], ["xx", "yy"], *added]
        assert load_bundle(out).target_langs[:2] == ("xx", "yy")
