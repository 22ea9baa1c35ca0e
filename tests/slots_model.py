"""A small model that learns from text with fields, tags and numbers: German puts the verb last.

Not random weights: it places the spans of a source where they belong.
"""

import random
from pathlib import Path

from heed.data.corpus import Corpus
from heed.data.readers import ParallelFiles
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training

VERBS = {"open": "öffnen", "close": "schließen", "save": "sichern", "print": "drucken"}
NOUNS = {"file": "Datei", "page": "Seite", "list": "Liste", "map": "Karte", "line": "Zeile"}
SPANS = ["%s", "{name}", "%1$d", "https://example.org/a", "12", "1,500", "me@example.org", "{0}"]

SETTINGS = {
    "model": {
        "d_model": 64,
        "n_heads": 2,
        "d_ff": 128,
        "n_encoder_layers": 1,
        "n_decoder_layers": 1,
        "dropout": 0.0,
    },
    "tokenizer": {"vocab_size": 380},
    # A memory is stored where it helps, which differs between processors; it would guide searches.
    "data": {"disturb": 0.0, "memory": False},
    "training": {
        "batch_tokens": 768,
        "warmup_steps": 40,
        "max_steps": 240,
        "validations": 1,
        "learning_rate": 0.005,
        "seed": 1,
    },
}


def sentence(chooser: random.Random) -> tuple[str, str]:
    """A line and its translation, with the same spans."""
    verb, noun, other = (chooser.choice(sorted(words)) for words in (VERBS, NOUNS, NOUNS))
    span, second = chooser.sample(SPANS, 2)
    src, tgt = chooser.choice(
        [
            (f"{verb} the {noun} {span}", f"die {NOUNS[noun]} {span} {VERBS[verb]}"),
            (
                f"{verb} {span} and the {noun} {second}",
                f"{span} und die {NOUNS[noun]} {second} {VERBS[verb]}",
            ),
            (f"{verb} the <b>{noun}</b>", f"die <b>{NOUNS[noun]}</b> {VERBS[verb]}"),
            (
                f"<i>{verb}</i> the {noun} {span}",
                f"die {NOUNS[noun]} {span} <i>{VERBS[verb]}</i>",
            ),
            (
                f"the <b>{noun} {span}</b> of the {other}",
                f"die <b>{NOUNS[noun]} {span}</b> der {NOUNS[other]}",
            ),
            (f"{verb} the {noun}", f"die {NOUNS[noun]} {VERBS[verb]}"),
        ]
    )
    return f"{src}.", f"{tgt}."


def train_slots_model(folder: Path) -> Path:
    """Train the model, in seconds; gives the folder of the run."""
    chooser = random.Random(0)
    pairs = sorted({sentence(chooser) for _ in range(1500)})
    files = folder / "ui.en", folder / "ui.de"
    for file, lines in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = str(files[0]), str(files[1])
    corpus = Corpus(train=(ParallelFiles(files=names, source_lang="en", target_lang="de"),))
    out = folder / "run"
    run_training(Asked(SETTINGS), corpus, out, report=lambda event: None)
    return out
