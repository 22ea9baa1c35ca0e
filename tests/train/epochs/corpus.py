"""A small corpus, prepared for training."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heed.data.corpus import Corpus, DataConfig
from heed.data.prepare import prepare
from heed.data.prepared import Prepared
from heed.data.readers import ParallelFiles
from heed.text.vocab import TokenizerConfig


def prepared(
    folder: Path, pairs: Iterable[tuple[str, str]], languages: tuple[str, str], **settings: Any
) -> Prepared:
    """Some pairs, prepared with slots; `settings` are those of the section `data`."""
    folder.mkdir(exist_ok=True)
    files = str(folder / languages[0]), str(folder / languages[1])
    for name, lines in zip(files, zip(*pairs, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    part = ParallelFiles(files=files, source_lang=languages[0], target_lang=languages[1])
    return prepare(
        Corpus(train=(part,)),
        folder / "data",
        config=DataConfig(dev_size=5, **settings),
        tokenizer=TokenizerConfig(vocab_size=420, slots=True),
        seed=1,
    )
