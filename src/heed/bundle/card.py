"""The model card, README.md, which describes a model to people and model hubs.

heed does not overwrite a card that was edited.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from heed.model.config import AnyConfig
from heed.text.languages import Directions, source_languages, spelled_direction
from heed.text.vocab import Vocab

_MARK = "<!-- Written by heed, checksum {:08x}. heed does not overwrite an edited card. -->\n"
"""The last line, not shown when the card is rendered; the checksum is that of the text above."""


def model_card(
    config: AnyConfig,
    vocabs: tuple[Vocab, Vocab],
    languages: tuple[str, str, Sequence[str], Directions],
    numbers: Mapping[str, Any],
    task: str = "translate",
    n_remembered: int = 0,
) -> bytes:
    """README.md as model hubs read it: YAML front matter, then text for people.

    Args:
        config: the model's shape.
        vocabs: of the source and of the target.
        languages: source language, target language, all target languages if there are several,
            and the directions if these do not imply them.
        numbers: measurements, by name.
        task: `translate`, `lm`, `mlm` or `classify`.
        n_remembered: training pairs that are stored with it.
    """
    source_lang, target_lang, target_langs, directions = languages
    sources = source_languages(source_lang, (), directions)
    outputs = target_langs or (target_lang,)
    # Quoted, because YAML reads the code of Norwegian, `no`, as false.
    codes = [f'- "{code}"' for code in dict.fromkeys((*sources, *outputs)) if code]
    title = spelled_direction(source_lang, target_lang, tuple(target_langs), directions)
    lines = [
        "---",
        *(["language:", *codes] if codes else []),
        "license: unknown",
        "library_name: heed",
        f"pipeline_tag: {_PIPELINES[task]}",
        "---",
        "",
        f"# {title if task == 'translate' else _TITLES[task]}",
        "",
        *_usage(task),
        "",
        *_language_note(target_langs),
        f"{config.summary()}, {_vocab_words(*vocabs)}.",
        "",
        *_number_table(numbers),
        *_memory_note(n_remembered),
        "The license of the training data was not stated; state it here before passing this on.",
    ]
    text = ("\n".join(lines) + "\n\n").encode()
    return text + _MARK.format(zlib.crc32(text)).encode()


_PIPELINES = {
    "translate": "translation",
    "lm": "text-generation",
    "mlm": "fill-mask",
    "classify": "text-classification",
}
_TITLES = {"lm": "Language model", "mlm": "Masked language model", "classify": "Classifier"}
_COMMANDS = {
    "lm": 'heed generate -m path/to/this/folder "Once upon a time"',
    "mlm": 'heed fill -m path/to/this/folder "New York is a <mask>"',
    "classify": "heed classify -m path/to/this/folder < lines > labels",
}


def _usage(task: str) -> Sequence[str]:
    """A description of the model, and an example of its use."""
    if task == "translate":
        call = ("```python", "import heed", "", 'translator = heed.load("path/to/this/folder")')
        return ("A translation model trained with heed.", "", *call, "```")
    return (f"A {_TITLES[task].lower()} trained with heed.", "", "```sh", _COMMANDS[task], "```")


def is_edited(card: bytes) -> bool:
    """Whether a card was changed since `model_card` wrote it."""
    text = card[: -len(_MARK.format(0))]
    return card != text + _MARK.format(zlib.crc32(text)).encode()


def _language_note(target_langs: Sequence[str]) -> Sequence[str]:
    if not target_langs:
        return ()
    return (
        "Each call names the target language, "
        + " or ".join(f'`translator(text, target_lang="{code}")`' for code in target_langs)
        + ".",
        "",
    )


def _memory_note(n_remembered: int) -> Sequence[str]:
    if not n_remembered:
        return ()
    return (
        f"The folder holds {n_remembered:,} pairs of the training data, as pieces, in "
        "`memory.safetensors`. The model follows their translations where a sentence is like one "
        "of them. `heed quantize --no-memory` writes a copy without them.",
        "",
    )


_CARD_NAMES = {
    "loss": "loss on development sentences, nats a token",
    "bits": "bits a character on development text",
    "accuracy": "accuracy on development text, %",
    "f1": "mean F1 of the labels on development text, %",
    "bleu": "BLEU on development sentences",
    "chrf": "chrF2 on development sentences",
}


def _vocab_words(src_vocab: Vocab, tgt_vocab: Vocab) -> str:
    if src_vocab.hash == tgt_vocab.hash:
        return f"a joint vocabulary of {src_vocab.size:,} pieces"
    return f"vocabularies of {src_vocab.size:,} and {tgt_vocab.size:,} pieces"


def _number_table(numbers: Mapping[str, Any]) -> Sequence[str]:
    if not numbers:
        return ()
    rows = (f"| {_CARD_NAMES.get(name, name)} | {_shown(numbers[name])} |" for name in numbers)
    return ("| Measured | |", "|---|---|", *rows, "")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
