"""Files that are named in the wrong order are refused before any of them is read."""

from typing import Any

import pytest

from heed.cli.corpus import CorpusFlags, corpus_from
from heed.data.corpus import Corpus, DataConfig, tagged_languages
from heed.data.readers import ParallelFiles
from heed.errors import ConfigError, UsageError
from heed.text.vocab import TokenizerConfig


def part(name: str, source_lang: str = "", target_lang: str = "") -> ParallelFiles:
    files = f"{name}.{source_lang}", f"{name}.{target_lang}"
    return ParallelFiles(files=files, source_lang=source_lang, target_lang=target_lang)


def tags(corpus: Corpus, *, both_directions: bool = False) -> tuple[str, ...]:
    config = DataConfig(both_directions=both_directions)
    return tagged_languages(corpus, config, TokenizerConfig(), ())


def test_development_pairs_have_the_direction_of_the_training_pairs() -> None:
    train, same, opposite = part("a", "en", "de"), part("val", "en", "de"), part("val", "de", "en")
    words = "val.de and val.en must be translated in the direction of the training pairs, en to de"
    for right, wrong in (
        (Corpus(train=(train,), dev=(same,)), Corpus(train=(train,), dev=(opposite,))),
        (Corpus(train=(train,), test=(same,)), Corpus(train=(train,), test=(opposite,))),
    ):
        assert tags(right) == ()
        with pytest.raises(ConfigError, match=words):
            tags(wrong)
    assert tags(Corpus(train=(train,), dev=(part("val"), part("val", "fr", "de")))) == ()
    assert tags(Corpus(train=(part("a"),), dev=(opposite,))) == ()
    assert tags(Corpus(train=(train,), dev=(opposite,)), both_directions=True) == ("de", "en")


@pytest.mark.parametrize("role", ["", "dev-"])
def test_files_are_not_named_against_the_languages_of_the_flags(role: str) -> None:
    into_german: Any = {"source_lang": "en", "target_lang": "de"}
    files: Any = {"src": ("a.en",), "tgt": ("a.de",), "dev_src": ("b.en",), "dev_tgt": ("b.de",)}
    assert len(corpus_from(CorpusFlags(**into_german, **files), []).train) == 1
    src, tgt = (f"{role}{side}".replace("-", "_") for side in ("src", "tgt"))
    files[src], files[tgt] = files[tgt], files[src]
    with pytest.raises(UsageError) as caught:
        corpus_from(CorpusFlags(**into_german, **files), [])
    assert str(caught.value) == (
        f"--{role}src {files[src][0]} and --{role}tgt {files[tgt][0]} are de and en by their "
        "names, but --source-lang is en and --target-lang is de. Exchange the files or the "
        "languages."
    )
    given: Any = {"source_lang": "en", "target_lang": "fr"}  # names may say less than flags
    assert corpus_from(CorpusFlags(**given, **files), []).train[0].target_lang == "fr"
