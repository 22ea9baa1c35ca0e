"""Words to ids and back, without loss: a strict wrapper around a SentencePiece model.

SentencePiece: Kudo and Richardson 2018, https://arxiv.org/abs/1808.06226.
"""

import io
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from heed.config import Range, check
from heed.disk.files import read_bytes
from heed.errors import ConfigError, DataError, FormatError
from heed.machine.threads import count_cores
from heed.text.known import KnownWords
from heed.text.languages import require_language
from heed.text.letter_case import with_other_case
from heed.text.normalize import replace_surrogates
from heed.text.sampling import Sampler, has_choice, sampler_of
from heed.text.slots import SLOT_PIECES, Slots, find_slots
from heed.text.spans import BLANK_SIGN

Kind = Literal["unigram", "bpe", "char", "word"]

_MASK_PIECE = "<mask>"
_LANGUAGE_PIECE = re.compile(r"<2([A-Za-z][A-Za-z0-9_-]*)>")

# SentencePiece writes a blank as U+2581, so a U+2581 in a text would come back as a blank. While a
# text is encoded, U+FDD0 replaces it: a noncharacter, never inside a piece, so always bytes.
_STAND_IN = "\ufdd0"
_STOOD_IN = re.compile(f"[{BLANK_SIGN}{_STAND_IN}]")

# SentencePiece ends a line at NUL or a line break and uses the other two itself (U+2585, U+2581).
_PRIVATE_SIGNS = re.compile(f"[\0\r\n\u2585\ufdd1{BLANK_SIGN}{_STAND_IN}]")

# A model must decode these unchanged: blanks, U+2581, a ligature, the stand-in, NUL, line break.
_PROBE = f"  a {BLANK_SIGN}\ufb01{_STAND_IN}\0<s>\r\n "

MAX_CHARACTERS = 16_000_000
"""Most characters to learn pieces from: learning takes about 30 bytes of memory for each, and more
characters change few pieces."""
# Bounds memory for larger corpora: 0.85 million sentences of 45 characters took 0.9 GB.
_MAX_SENTENCES = 1_000_000
# SentencePiece leaves out longer lines; 1000 characters are 4000 bytes at most.
_MAX_LINE_BYTES = 4192
_MAX_CHARS = 1000
# The number of threads decides the order of float sums in unigram training, hence the pieces. One
# number everywhere gives one vocabulary everywhere; 16 is also SentencePiece's own default.
_TRAINING_THREADS = 16

# Chinese characters: those of the blocks called CJK ideographs, and the signs for "again" and zero.
_HAN = "[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
# Compiled when pieces are learned: it takes longer than to open a model.
BETWEEN_HAN = f"(?<={_HAN})(?={_HAN})"
# A noncharacter that `_lines` has removed from the text.
_DELIMITER = "\ufdd1"

SPECIAL_IDS = {"pad_id": 0, "bos_id": 2, "eos_id": 3}
"""Ids of special pieces, the same in every vocabulary learned here."""

N_SPECIAL = 4
"""Ids below all pieces of text: those of `SPECIAL_IDS` and `<unk>`. A classifier's labels begin
here too."""

_TRAINING_OPTIONS: dict[str, Any] = {
    "byte_fallback": True,
    # SentencePiece changes nothing, so that ids decode to the same text; `normalize` runs before.
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "add_dummy_prefix": True,
    "split_digits": True,
    "unk_id": 1,
    **SPECIAL_IDS,
    # A small corpus gives fewer pieces than requested, not an error.
    "hard_vocab_limit": False,
    "shuffle_input_sentence": True,
    "num_threads": _TRAINING_THREADS,
    "minloglevel": 2,
}


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """How text becomes pieces.

    Attributes:
        kind: the kind of piece: a probable part of a word (`unigram`), a merge of frequent pairs
            (`bpe`), one character (`char`), or a whole word (`word`). Source: Kudo 2018; Sennrich
            et al. 2016.
        vocab_size: most pieces, control symbols and 256 bytes included; None = by the corpus size.
        joint: one vocabulary for both languages, so that their embeddings can be shared.
        character_coverage: share of the corpus's characters that get a piece of their own; the rest
            are spelled in bytes. 0.9999 keeps whole alphabets, also rare capitals of usual letters,
            and leaves signs seen once to bytes; 1.0 keeps every sign.
        split_han: no piece joins two Chinese characters. Chinese has no blanks, so whole phrases
            become pieces otherwise; in a small corpus those hide the words inside them.
        vocab_from: folder of a model whose pieces are used unchanged; "" = learn pieces.
        subword_alpha: subword regularization in training, see `Vocab.sample`; 0 = off.
        slots: of a translator, pieces that replace text that must not change, such as `%s` or a URL
            (`text/slots.py`).

    Raises:
        ConfigError: a value is out of its range.
    """

    kind: Kind = "unigram"
    vocab_size: Annotated[
        int | None, Range(1, 10_000_000, "Leave it out to take it from the corpus.")
    ] = None
    joint: bool = True
    character_coverage: Annotated[float, Range(0.9, 1)] = 0.9999
    split_han: bool = True
    vocab_from: str = ""
    subword_alpha: Annotated[float, Range(0, 1)] = 0.0
    slots: bool = False

    def __post_init__(self) -> None:
        check(self, "tokenizer")
        if self.subword_alpha > 0 and self.kind in ("char", "word"):
            raise ConfigError(
                f"tokenizer.subword_alpha must be 0 for kind {self.kind!r}, which splits a text "
                f"in only one way, but is {self.subword_alpha}. Try kind 'unigram' or 'bpe'."
            )


class Vocab:
    """A vocabulary: text to ids and back.

    Every string can be encoded and decodes to itself; a character without a piece is spelled in
    UTF-8 bytes. No text encodes to a control id.

    Attributes:
        size: number of ids.
        pad_id, unk_id, bos_id, eos_id, mask_id: padding, never used, begin and end of a sentence, a
            hidden word.
        control_ids: ids without text, `unk_id` and language tags included, ascending.
        languages: the languages that have a tag.
        slots: the ids that represent protected spans; None = there are none.
        known_words: words of the sources that a model with this vocabulary learned from, kept in a
            separate file; None = they were not counted.
        foreign: ids that occur in other target languages only, by the tag of each language, of a
            model with several; kept in a separate file.
        blank_id: the id of a blank alone.
    """

    def __init__(self, data: bytes, *, name: str = "the vocabulary") -> None:
        """Read a serialized SentencePiece model.

        Args:
            data: bytes from `to_bytes`.
            name: its name in errors.

        Raises:
            FormatError: the bytes are not such a model, or it lacks a part that this class needs.
        """
        processor, pieces = _open(data, name)
        self._data = data
        self._processor = processor
        self._pieces = pieces
        self.size = processor.get_piece_size()
        self.pad_id = processor.pad_id()
        self.unk_id = processor.unk_id()
        self.bos_id = processor.bos_id()
        self.eos_id = processor.eos_id()
        self.mask_id = processor.piece_to_id(_MASK_PIECE)
        special = (self.pad_id, self.bos_id, self.eos_id, self.mask_id)
        if not all(id >= 0 and processor.is_control(id) for id in special):
            raise FormatError(
                f"{name} must have control symbols for padding, begin and end of a sentence and "
                f"{_MASK_PIECE}, but lacks one: it was not made by heed."
            )
        is_control = map(processor.is_control, range(self.size))
        controls = itertools.compress(range(self.size), is_control)
        self.control_ids = tuple(sorted({self.unk_id, *controls}))
        self._controls = frozenset(self.control_ids)
        self._language_ids = {
            tag[1]: id for id in self.control_ids if (tag := _LANGUAGE_PIECE.fullmatch(pieces[id]))
        }
        self.languages = tuple(self._language_ids)
        self.known_words: KnownWords | None = None
        self.foreign: dict[int, tuple[int, ...]] = {}
        self.slots: Slots | None = find_slots({pieces[id]: id for id in self.control_ids})
        self._byte_ids = tuple(processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256))
        self._sign, self._stand_in, self._blank = map(self.byte_ids, (BLANK_SIGN, _STAND_IN, " "))
        blank = processor.piece_to_id(BLANK_SIGN)
        self.blank_id = self._blank[0] if blank == self.unk_id else blank
        self._check(pieces, name)
        self._has_choice = has_choice(processor)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the serialized model, in hex: equal hashes, equal ids."""
        import hashlib  # A translation starts without it, and the whole of OpenSSL.

        return hashlib.sha256(self._data).hexdigest()

    @classmethod
    def load(cls, path: Path | str) -> "Vocab":
        """Read a model file.

        Raises:
            FormatError: the file is missing, damaged or foreign.
        """
        return cls(read_bytes(Path(path)), name=str(path))

    def to_bytes(self) -> bytes:
        """The serialized SentencePiece model, as other programs read it."""
        return self._data

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without begin and end; lone surrogates count as U+FFFD."""
        text = replace_surrogates(text)
        ids: list[int] = self._processor.encode(text.replace(BLANK_SIGN, _STAND_IN))
        return self._with_restored_signs(ids, text)

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """`encode` for each text, twice as fast and on all cores."""
        texts = [replace_surrogates(text) for text in texts]
        rows: list[list[int]] = self._processor.encode(
            [text.replace(BLANK_SIGN, _STAND_IN) for text in texts], num_threads=count_cores()
        )
        return [self._with_restored_signs(ids, text) for ids, text in zip(rows, texts, strict=True)]

    def sample(self, text: str, *, alpha: float, seed: int) -> list[int]:
        """A random segmentation of `text` into pieces; it decodes to `text`.

        A pure function of its arguments and the model. For kinds `char` and `word`, which have only
        one segmentation, the same as `encode`.

        Args:
            text: any text.
            alpha: for `unigram`, the preference for probable segmentations (0 none, 0.1 to 0.5
                usual, large: always the best); for `bpe`, the share of merges left out (0.1 usual).
            seed: from 0 to 2**32 - 1.

        `heed.text.sampling` draws it.
        """
        if not self._has_choice:
            return self.encode(text)
        text = replace_surrogates(text)
        if not text:
            return []
        written = f" {text.replace(BLANK_SIGN, _STAND_IN)}".replace(" ", BLANK_SIGN)
        ids: list[int] = []
        for piece in self._sampler.draw(written, alpha=alpha, seed=seed):
            id = self._processor.piece_to_id(piece)
            ids += self.byte_ids(piece) if id == self.unk_id else [id]
        return self._with_restored_signs(ids, text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`: control ids decode to nothing; invalid UTF-8 becomes U+FFFD."""
        spoken = [int(id) for id in ids if int(id) not in self._controls]
        text: str = self._processor.decode(spoken)
        # `encode` adds a blank in front; SentencePiece removes it, unless it is a byte.
        return text[1:] if spoken and spoken[0] == self._byte_ids[ord(" ")] else text

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The pieces of `ids` for display: `▁` is a blank, `<0xC3>` a byte, `<2de>` a tag."""
        # A cached list, 0.7 MB for 8,000 pieces: SentencePiece takes five times as long.
        pieces = self._pieces
        return [pieces[id] for id in ids]

    @cached_property
    def _sampler(self) -> Sampler:
        others = {*self.control_ids, *self._byte_ids}
        texts = {id: piece for id, piece in enumerate(self._pieces) if id not in others}
        return sampler_of(self._processor, texts)

    @cached_property
    def begins_word(self) -> NDArray[np.bool_]:
        """Whether each id is a piece that begins a word, `(size,)`."""
        pieces = self.pieces(range(self.size))
        return np.array([piece.startswith(BLANK_SIGN) for piece in pieces])

    def with_words_marked(self, ids: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """`ids` with `<bos>` in front of each piece that begins a word, `(n_ids,)`."""
        ids = np.asarray(ids, dtype=np.int32)
        return np.insert(ids, np.flatnonzero(self.begins_word[ids]), self.bos_id)

    def is_control(self, id: int) -> bool:
        """Whether `id` decodes to nothing, such as padding or a language tag."""
        return id in self._controls

    def language_id(self, language: str) -> int:
        """The id of the tag of `language`.

        Raises:
            ConfigError: the vocabulary was made without it.
        """
        if language not in self._language_ids:
            known = ", ".join(self.languages) or "none"
            raise ConfigError(
                f"language must be one the vocabulary has a tag for ({known}), but is {language!r}."
            )
        return self._language_ids[language]

    def _with_restored_signs(self, ids: list[int], text: str) -> list[int]:
        """`ids` of `text` with U+2581 restored, and no blank spelled as U+2581 in bytes."""
        sign, stand_in = self._sign, self._stand_in
        if sign[0] in ids:
            # The text has no U+2581, so this is the blank of an unknown word in kind `word`.
            ids = _replace_runs(ids, sign, itertools.repeat(self._blank))
        if BLANK_SIGN in text:
            # A text may contain the stand-in itself: both are replaced in order.
            turns = (sign if typed == BLANK_SIGN else stand_in for typed in _STOOD_IN.findall(text))
            ids = _replace_runs(ids, stand_in, turns)
        return ids

    def byte_ids(self, text: str) -> list[int]:
        """The ids of a text spelled in UTF-8 bytes."""
        return [self._byte_ids[byte] for byte in text.encode()]

    def _check(self, pieces: list[str], name: str) -> None:
        """Raise FormatError unless this model decodes every text unchanged."""
        if not all(self._processor.is_byte(id) for id in self._byte_ids):
            raise FormatError(
                f"{name} must have a piece for each of the 256 bytes, but lacks some: "
                "train the model with byte fallback."
            )
        if _STAND_IN in "".join(pieces):
            raise FormatError(f"{name} must not have the noncharacter U+FDD0 in a piece, but has.")
        if self.decode(self.encode(_PROBE)) != _PROBE:
            raise FormatError(
                f"{name} must reproduce every text unchanged, but does not: train the model with "
                "identity normalization and without removing extra blanks."
            )


# (fewer pairs than, size); multiples of 8 suit the matrix units of GPUs.
_SIZES = (
    (3_000, 2_000),
    (20_000, 4_000),
    (500_000, 8_000),
    (3_000_000, 16_000),
    (math.inf, 32_000),
)


def choose_vocab_size(n_pairs: int, *, n_characters: int = 0) -> int:
    """A vocabulary size for a corpus: more text allows more and rarer pieces.

    Args:
        n_pairs: sentence pairs in the training corpus.
        n_characters: different characters in it, if known; a script with thousands of signs needs
            more room for words.

    Source: our own rule of thumb, in the range that Gowda and May 2020 and Ding et al. 2019 find
    good: thousands for small corpora, 32,000 at most.
    """
    by_pairs = next(size for limit, size in _SIZES if n_pairs < limit)
    return max(by_pairs, 2 * n_characters)


def train_vocab(
    sentences: Iterable[str],
    *,
    size: int,
    kind: Kind = "unigram",
    character_coverage: float = 0.9999,
    split_han: bool = True,
    languages: Sequence[str] = (),
    slots: bool = False,
) -> Vocab:
    """Learn pieces from `sentences`, read once; equal arguments give equal bytes.

    Memory is bounded: of more than a million sentences a fixed sample is used.

    Args:
        sentences: training text, both sides for a joint vocabulary.
        size: pieces at most; a small corpus gets fewer.
        kind: see `TokenizerConfig.kind`.
        character_coverage: see `TokenizerConfig.character_coverage`.
        split_han: see `TokenizerConfig.split_han`.
        languages: codes such as `de` or `pt-BR`; each gets a tag, in this order.
        slots: see `TokenizerConfig.slots`; they count among the pieces.

    Raises:
        DataError: there are only blanks in `sentences`.
        ConfigError: `size` has no room for the characters, or a language code is malformed.
    """
    controls = [_MASK_PIECE, *language_tags(languages), *(SLOT_PIECES if slots else ())]
    smallest = 4 + len(controls) + 256
    lines = _lines(sentences)
    split_han = split_han and kind in ("unigram", "bpe")  # the kinds that could join them
    if split_han:
        lines = itertools.chain.from_iterable(map(_with_delimiters, lines))
    sample = _at_most(_MAX_SENTENCES, lines)
    if not sample:
        raise DataError(
            "the corpus must hold at least one sentence to learn a vocabulary from, but is empty."
        )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sample),
            model_writer=model,
            model_type=kind,
            vocab_size=max(size, smallest),  # or else the size that characters need is unknown
            character_coverage=character_coverage,
            required_chars="" if kind == "word" else with_other_case(sample, character_coverage),
            control_symbols=controls,
            pretokenization_delimiter=_DELIMITER if split_han else "",
            input_sentence_size=_MAX_SENTENCES,
            **_TRAINING_OPTIONS,
        )
    except RuntimeError as error:
        if needed := re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error)):
            raise _too_small(size, int(needed[1])) from None
        raise
    if size < smallest:
        raise _too_small(size, smallest)
    return Vocab(model.getvalue())


def language_tags(languages: Sequence[str]) -> list[str]:
    """The control pieces of these languages, as `Vocab.languages` reads them.

    Raises:
        ConfigError: a language code is malformed.
    """
    for language in languages:
        require_language(language)
    return [f"<2{language}>" for language in dict.fromkeys(languages)]


def _too_small(size: int, needed: int) -> ConfigError:
    return ConfigError(
        f"tokenizer.vocab_size must be at least {needed} for this corpus (control symbols, 256 "
        f"bytes, characters), but is {size}. Raise it, or lower tokenizer.character_coverage."
    )


def _lines(sentences: Iterable[str]) -> Iterator[str]:
    """`sentences` in the form that SentencePiece learns from: short, no reserved characters."""
    for sentence in sentences:
        line = _PRIVATE_SIGNS.sub(" ", replace_surrogates(sentence))
        for start in range(0, len(line), _MAX_CHARS):
            if part := line[start : start + _MAX_CHARS].strip():
                yield part


def _with_delimiters(line: str) -> list[str]:
    """`line` with a delimiter between Chinese characters, cut where it would be too long."""
    marked = re.sub(BETWEEN_HAN, _DELIMITER, line)
    if len(marked.encode()) <= _MAX_LINE_BYTES:
        return [marked]
    middle = len(line) // 2
    return [*_with_delimiters(line[:middle].strip()), *_with_delimiters(line[middle:].strip())]


def _at_most(most: int, lines: Iterable[str]) -> list[str]:
    """All lines, or `most` of them, always the same ones: a sample of SentencePiece's differs."""
    kept: list[str] = []
    chance = random.Random(0)
    for number, line in enumerate(lines):
        place = number if number < most else chance.randrange(number + 1)
        if place < most:
            kept[place : place + 1] = [line]
    return kept


def _open(data: bytes, name: str) -> tuple[sentencepiece.SentencePieceProcessor, list[str]]:
    """The model and its pieces, by id."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(data)
        pieces = list(map(processor.id_to_piece, range(processor.get_piece_size())))
    except (RuntimeError, UnicodeDecodeError) as error:  # Its message quotes broken bytes.
        raise FormatError(
            f"{name} must be a SentencePiece model, but is damaged or another kind of file."
        ) from error
    return processor, pieces


def _replace_runs(ids: list[int], run: list[int], replacements: Iterator[list[int]]) -> list[int]:
    """`ids` with the first occurrence of `run` replaced by the first replacement, and so on."""
    out: list[int] = []
    position = 0
    while position < len(ids):
        if ids[position] == run[0] and ids[position : position + len(run)] == run:
            out += next(replacements)
            position += len(run)
        else:
            out.append(ids[position])
            position += 1
    return out
