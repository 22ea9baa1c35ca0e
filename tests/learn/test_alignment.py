"""A real small run on the built-in corpus: does "city" read 城市, and "New York" 纽约?

Not how well it translates: `heed demo` shows that. Here is what SEEDS row 66 expects of attention.
"""

from pathlib import Path
from typing import Any

import pytest

from heed.data.grammar import compositional_split
from heed.data.prepare import Corpus
from heed.data.readers import Pair, Part
from heed.train.run import run_training
from heed.translate import Translator, load

SETTINGS: dict[str, Any] = {
    # A character of Chinese is a piece, and a frequent word of English.
    "tokenizer": {"kind": "bpe", "vocab_size": 1400, "split_han": True},
    "model": {
        "d_model": 64,
        "n_heads": 8,
        "d_ff": 128,
        # No layer mixes the source words, so who wants to know of 城 has to read 城 itself.
        "n_encoder_layers": 0,
        "n_decoder_layers": 1,
        # "New York is a" is hardly ever followed by anything but "city". With little dropout the
        # decoder trusts its own words, and then it does not matter what it reads.
        "dropout": 0.3,
        "norm": "pre",
    },
    "training": {
        "max_steps": 800,
        "batch_tokens": 1024,
        "matrix_learning_rate": 0.02,
        "warmup_steps": 30,
        "validations": 1,
        "validation_sentences": 0,
        "threads": 1,
    },
}


def write(folder: Path, name: str, pairs: list[Pair]) -> Part:
    src, tgt = folder / f"{name}.zh", folder / f"{name}.en"
    src.write_text("".join(f"{pair.src}\n" for pair in pairs), encoding="utf-8")
    tgt.write_text("".join(f"{pair.tgt}\n" for pair in pairs), encoding="utf-8")
    return Part(files=(str(src), str(tgt)), source_lang="zh", target_lang="en")


def trained(folder: Path) -> Translator:
    seen, unseen = compositional_split("zh", "en", 1)
    corpus = Corpus(train=(write(folder, "train", seen),), dev=(write(folder, "dev", unseen[:40]),))
    outcome = run_training(SETTINGS, corpus, folder / "run", report=lambda event: None)
    assert outcome.is_finished
    return load(folder / "run", threads=1)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # half a minute on an idle core
def test_new_york_reads_its_name_and_city_reads_its_word(tmp_path: Path) -> None:
    translator = trained(tmp_path)
    found = translator.translate(["纽约是一座城市"], alignment=True)[0]
    assert found.text == "New York is a city"
    assert found.tokens == ["▁New", "▁York", "▁is", "▁a", "▁city"]
    assert found.source_tokens == ["▁纽", "约", "是", "一", "座", "城", "市"]
    read = {found.tokens[tgt]: found.source_tokens[src] for src, tgt in found.links()}
    assert read["▁New"] in ("▁纽", "约")
    assert read["▁York"] in ("▁纽", "约")
    assert read["▁city"] in ("城", "市")
