"""The vocabularies of a corpus: learned from its training pairs, and kept beside its ids.

`text/vocab.py` learns the pieces.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from heed.data.progress import Report
from heed.data.readers import Pair
from heed.disk.files import write_atomically
from heed.errors import ConfigError
from heed.text.extend import extend_vocab
from heed.text.protected import Rules
from heed.text.shared import shared_spans
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import (
    TokenizerConfig,
    Vocab,
    choose_vocab_size,
    language_tags,
    train_vocab,
)

JOINT_VOCAB_FILE = "spm.model"
SRC_VOCAB_FILE = "source.spm"
TGT_VOCAB_FILE = "target.spm"
VOCAB_FILES = (JOINT_VOCAB_FILE, SRC_VOCAB_FILE, TGT_VOCAB_FILE)


def learn_vocabs(
    pairs: Callable[[], Iterable[Pair]],
    tokenizer: TokenizerConfig,
    *,
    n_pairs: int,
    characters: tuple[Counter[str], Counter[str]],
    languages: tuple[str, ...],
) -> tuple[Vocab, Vocab]:
    """Learn pieces of both sides; a joint vocabulary is one object for both.

    Args:
        pairs: the training pairs, from the first one at each call.
        tokenizer: kind and size.
        n_pairs: number of pairs.
        characters: those of the sources and those of the targets, counted.
        languages: each gets a tag.
    """
    if tokenizer.joint:
        characters = (characters[0] + characters[1],) * 2

    def learn(side: int, sentences: Iterable[str]) -> Vocab:
        n_characters = _n_usual(characters[side], tokenizer.character_coverage)
        usual_size = choose_vocab_size(n_pairs, n_characters=n_characters)
        return train_vocab(
            sentences,
            size=tokenizer.vocab_size or usual_size,
            kind=tokenizer.kind,
            character_coverage=tokenizer.character_coverage,
            split_han=tokenizer.split_han,
            languages=languages,
            slots=tokenizer.slots,
        )

    if tokenizer.slots and _has_text(rest := _without_spans(pairs), tokenizer.joint):
        pairs = rest
    return _by_side(learn, pairs, tokenizer.joint)


def extend_vocabs(
    base: tuple[Vocab, Vocab],
    pairs: Callable[[], Iterable[Pair]],
    tokenizer: TokenizerConfig,
    *,
    languages: tuple[str, ...],
) -> tuple[Vocab, Vocab]:
    """Extend a model's vocabularies by the pieces and tags that these pairs need.

    Args:
        base: the model's; one object twice if they are joint.
        pairs: the training pairs, from the first one at each call.
        tokenizer: share of the text whose characters must get pieces, and whether slots are added.
        languages: each gets a tag if it has none.
    """

    def extend(side: int, sentences: Iterable[str]) -> Vocab:
        return extend_vocab(
            base[side],
            sentences,
            character_coverage=tokenizer.character_coverage,
            controls=[*language_tags(languages), *(SLOT_PIECES if tokenizer.slots else ())],
        )

    read = _without_spans(pairs) if tokenizer.slots else pairs
    return _by_side(extend, read, base[0] is base[1])


def _without_spans(pairs: Callable[[], Iterable[Pair]]) -> Callable[[], Iterable[Pair]]:
    """The pairs without the spans that both sides share: they become slots and need no pieces."""

    def read() -> Iterator[Pair]:
        rules = Rules.default()
        for pair in pairs():
            shared = shared_spans(pair.src, pair.tgt, rules)
            if shared:
                src = _cut_out(pair.src, [span.src for span in shared])
                tgt = _cut_out(pair.tgt, sorted(span.tgt for span in shared))
                pair = replace(pair, src=src, tgt=tgt)
            yield pair

    return read


def _has_text(pairs: Callable[[], Iterable[Pair]], is_joint: bool) -> bool:
    """Whether there is text to learn each vocabulary from."""
    sides = (any(pair.src.strip() for pair in pairs()), any(pair.tgt.strip() for pair in pairs()))
    return any(sides) if is_joint else all(sides)


def _cut_out(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with a blank in place of each span."""
    parts, done = [], 0
    for start, end in spans:
        parts.append(text[done:start])
        done = end
    return " ".join((*parts, text[done:]))


def _by_side(
    make: Callable[[int, Iterable[str]], Vocab],
    pairs: Callable[[], Iterable[Pair]],
    is_joint: bool,
) -> tuple[Vocab, Vocab]:
    """`make(0, sources)` and `make(1, targets)`; if joint, `make(0, both)` for both sides."""
    if is_joint:
        vocab = make(0, (text for pair in pairs() for text in (pair.src, pair.tgt)))
        return vocab, vocab
    return make(0, (pair.src for pair in pairs())), make(1, (pair.tgt for pair in pairs()))


def write_vocabs(directory: Path, vocabs: tuple[Vocab, Vocab]) -> None:
    """Write one file for a joint vocabulary, else two."""
    src_vocab, tgt_vocab = vocabs
    if src_vocab is tgt_vocab:
        write_atomically(directory / JOINT_VOCAB_FILE, src_vocab.to_bytes())
        return
    write_atomically(directory / SRC_VOCAB_FILE, src_vocab.to_bytes())
    write_atomically(directory / TGT_VOCAB_FILE, tgt_vocab.to_bytes())


def note_shortfall(vocabs: tuple[Vocab, Vocab], tokenizer: TokenizerConfig, report: Report) -> None:
    """Report that a corpus yields less than nine tenths of the pieces that were asked for."""
    asked, found = tokenizer.vocab_size, list(dict.fromkeys(vocab.size for vocab in vocabs))
    if asked is None or min(found) >= 0.9 * asked:
        return
    sizes = " and ".join(f"{size:,}" for size in found)
    text = f"the corpus yields only {sizes} pieces: tokenizer.vocab_size is {asked:,}"
    report({"kind": "note", "text": text})


def read_vocabs(directory: Path, *, is_joint: bool) -> tuple[Vocab, Vocab]:
    """Read the files of `write_vocabs`.

    Raises:
        FormatError: a file is missing or damaged.
    """
    if is_joint:
        joint = Vocab.load(directory / JOINT_VOCAB_FILE)
        return joint, joint
    return Vocab.load(directory / SRC_VOCAB_FILE), Vocab.load(directory / TGT_VOCAB_FILE)


def take_over_vocabs(folder: Path | str) -> tuple[Vocab, Vocab]:
    """Read the vocabularies of a model folder.

    Raises:
        FormatError: there are none, or a file is damaged.
    """
    folder = Path(folder)
    return read_vocabs(folder, is_joint=not (folder / SRC_VOCAB_FILE).exists())


def require_tags(vocab: Vocab, languages: Iterable[str], folder: str) -> None:
    """Refuse vocabularies without a tag for a wanted language.

    Raises:
        ConfigError: names the languages without a tag.
    """
    if missing := [language for language in languages if language not in vocab.languages]:
        raise ConfigError(
            f"tokenizer.vocab_from needs pieces with a tag for {' and '.join(missing)}, but those "
            f"of {folder} have none. Learn new ones, or give text in one direction."
        )


def _n_usual(characters: Counter[str], coverage: float) -> int:
    """Number of distinct characters that cover this share of a text."""
    counts = np.cumsum([count for _, count in characters.most_common()])
    return int(np.searchsorted(counts, coverage * counts[-1])) + 1 if len(counts) else 0
