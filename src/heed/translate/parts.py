"""The parts of a line that are searched as a whole, with their protected spans.

`source.py` has the model's input for a part with spans; `text/segment.py` cuts lines.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from heed.decode.guided import Guide
from heed.decode.phrases import Phrases
from heed.decode.slots import Slot
from heed.text.capitals import in_small_letters, is_in_capitals
from heed.text.known import ENDS
from heed.text.memory import LEAST_SIMILARITY, TranslationMemory
from heed.text.normalize import normalize
from heed.text.protected import NAME, Rules, Span, find_spans, with_things
from heed.text.readings import corrections, in_usual_case, with_usual_capitals
from heed.text.segment import cut
from heed.text.slots import Slots, encode_with
from heed.text.vocab import Vocab
from heed.translate.given_spans import prefix_marks
from heed.translate.glossary.glossary import Glossary
from heed.translate.result import Match
from heed.translate.source import (
    Source,
    make_source,
    moved,
    stretches_around,
    within,
)

Found = TypeVar("Found")

SAME_BONUS = 60.0
"""Bonus of a guide for the same source: its translation is taken, however improbable."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one line that is translated as a whole.

    Attributes:
        src_ids: input of the encoder.
        prefix: target ids that the translation must begin with.
        key: of the part in the stream; seeds its random draws.
        source: the part with its protected spans; None = it has none, and was not in capitals.
        begun: the prefix as text.
        inner: texts inside protected spans.
        glossary: terms and their translations; None = none.
        phrases: phrases that the translation must or must not contain; None = none.
        guide: the translation of a similar source; None = none.
        match: the pair that the guide is from.
        corrected: misspelled words of the line and the words read instead, if this is the line's
            first part.
    """

    src_ids: list[int]
    prefix: list[int]
    key: int
    source: Source | None = None
    begun: str = ""
    inner: tuple["Inner", ...] = ()
    glossary: Glossary | None = None
    phrases: Phrases | None = None
    guide: Guide | None = None
    match: Match | None = None
    corrected: tuple[tuple[str, str], ...] = ()

    @property
    def n_tokens(self) -> int:
        """Source tokens, those of inner texts included."""
        return len(self.src_ids) + sum(part.n_tokens for text in self.inner for part in text.parts)

    def with_inner(self) -> Iterator["Chunk"]:
        """The part, and those of the texts inside it."""
        yield self
        for text in self.inner:
            for part in text.parts:
                yield from part.with_inner()

    @property
    def is_remembered(self) -> bool:
        """Whether its guide is a translation of the same source, which is not to be replaced.

        A prefix that leaves the guide makes another translation.
        """
        if self.guide is None or self.guide.bonus != SAME_BONUS:
            return False
        return self.guide.ids[: len(self.prefix)] == tuple(self.prefix)

    @property
    def slots(self) -> list[Slot]:
        """The slots that its translation must contain once."""
        return [] if self.source is None else self.source.required(self.prefix)

    @property
    def question(self) -> tuple[object, ...]:
        """A key that is equal for parts with the same translation, unless it is sampled."""
        asked = tuple(self.src_ids), tuple(self.prefix), self.source
        return *asked, self.glossary, self.phrases, self.guide

    @property
    def is_copied(self) -> bool:
        """Whether it is its own translation: it has only protected spans and punctuation."""
        return self.source is not None and not self.prefix and not self.source.has_words


@dataclass(frozen=True, slots=True)
class Inner:
    """A text inside a protected span, such as one of an ICU message, that is translated by itself.

    Attributes:
        span: the index of the span.
        parts: of the text.
    """

    span: int
    parts: tuple[Chunk, ...]


def with_terms(chunks: Iterable[Chunk], glossary: Glossary) -> list[Chunk]:
    """Parts, and the texts inside them, with the terms of a glossary."""
    return [
        replace(
            chunk,
            glossary=glossary,
            inner=tuple(
                replace(text, parts=tuple(with_terms(text.parts, glossary))) for text in chunk.inner
            ),
        )
        for chunk in chunks
    ]


@dataclass(frozen=True, kw_only=True)
class PartCutter:
    """Makes the parts of one line, and of the texts inside its protected spans.

    Attributes:
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        max_source_tokens: a text of more pieces is cut.
        tag: in front of each source.
        rules: what is protected.
        write_number: a number → its form in the translation.
        keep_typos: do not correct misspelled words.
        glossary: terms, which are never corrected.
        memories: translated pairs; the one most like a part guides its search, of equals that of
            the last.
        source_lang: code of the language of the line; "" = unknown.
    """

    src_vocab: Vocab
    tgt_vocab: Vocab
    max_source_tokens: int
    tag: list[int]
    rules: Rules
    write_number: Callable[[str], str]
    keep_typos: bool = False
    glossary: Glossary | None = None
    memories: Sequence[TranslationMemory] = ()
    source_lang: str = ""

    @property
    def slots(self) -> tuple[Slots, Slots] | None:
        """Those of the source and of the target vocabulary, if both have any."""
        src, tgt = self.src_vocab.slots, self.tgt_vocab.slots
        return None if src is None or tgt is None else (src, tgt)

    def parts(self, text: str, prefix: str, keys: Iterator[int]) -> list[Chunk]:
        """The parts of a text: one, several if it is too long, none if it is blank.

        Args:
            text: as it was written.
            prefix: beginning of its translation.
            keys: one for each part.
        """
        text, begun = normalize(text), normalize(prefix)
        if not text:
            return []
        spans = find_spans(text, self.rules)
        # In capitals, the translation would no longer begin with this prefix.
        small = None if begun else self._in_small_letters(text, spans)
        read = self._as_usual(text, spans) if small is None else self._recased(small, spans)
        read, spans, corrected = self._corrected(read, spans)
        if small is None and not self.rules.is_empty:
            spans = self._with_names(read, spans)
        found = (
            self._with_spans(read, spans, begun, keys, in_capitals=small is not None)
            if spans or small is not None
            else self._plain(read, begun, keys)
        )
        if self.memories:
            found = [self._guided(chunk) for chunk in found]
        return [replace(found[0], corrected=corrected), *found[1:]] if corrected else found

    def as_read(self, text: str) -> str:
        """A text that is not in capitals as it is read: in usual case, without typing errors.

        Args:
            text: normalized.
        """
        spans = find_spans(text, self.rules)
        return self._corrected(self._as_usual(text, spans), spans)[0]

    def _guided(self, chunk: Chunk) -> Chunk:
        """The part with the translation of the most similar source, if there is one."""
        if chunk.is_copied:
            return chunk
        matches = [
            (similarity, memory, found.number)
            for memory in reversed(self.memories)
            if (found := memory.match(chunk.src_ids[:-1], len(self.tag)))
            and (similarity := found.similarity - self._share_lost(memory, found.number))
            >= LEAST_SIMILARITY
        ]
        if not matches:
            return chunk
        similarity, memory, number = max(matches, key=lambda match: match[0])
        # 1,500 software strings, BLEU and chrF2 with 16 times the third power of the similarity:
        # 32.3, 56.0; with 12 times the second: 32.0, 55.6; with 20 times the fourth: 32.0, 55.5.
        bonus = SAME_BONUS if similarity == 1 else memory.bonus * similarity**3
        match = Match(
            similarity=similarity,
            source=_shown(self.src_vocab, memory.src(number).tolist()[len(self.tag) :]),
            target=_shown(self.tgt_vocab, memory.tgt(number).tolist()),
        )
        return replace(
            chunk, guide=Guide(self._followed(chunk, memory, number), bonus), match=match
        )

    def _followed(self, chunk: Chunk, memory: TranslationMemory, number: int) -> tuple[int, ...]:
        """The ids of a remembered translation as a guide; -1 where it is not to be followed.

        If only one of the two sources ends a sentence, the model decides how the translation ends.
        """
        src_ids, tgt_ids = memory.src(number).tolist(), memory.tgt(number).tolist()
        own = {id for slot in chunk.slots for id in (slot.id, slot.closing_id)}
        ids = [i if i in own or not self.tgt_vocab.is_control(i) else -1 for i in tgt_ids]
        ids.append(self.tgt_vocab.eos_id)
        had_mark, ends_with_mark = _ends(self.src_vocab, src_ids), _ends(self.tgt_vocab, tgt_ids)
        if had_mark == ends_with_mark != _ends(self.src_vocab, chunk.src_ids[:-1]):
            ids[-2 if ends_with_mark else -1] = -1
        return tuple(ids)

    def _share_lost(self, memory: TranslationMemory, number: int) -> float:
        """The share of a remembered source that is a slot which its translation lacks.

        Such a translation is only right for one text of the span: `Chapter 3`, `Drittes Kapitel`.
        """
        if self.slots is None:
            return 0.0
        src, tgt = memory.src(number).tolist(), memory.tgt(number).tolist()
        n_lost = sum(map(self.slots[0].ids.__contains__, src))
        n_lost -= sum(map(self.slots[1].ids.__contains__, tgt))
        return max(0, n_lost) / (len(src) - len(self.tag))

    def _plain(self, text: str, begun: str, keys: Iterator[int]) -> list[Chunk]:
        """The parts of a text without protected spans."""
        whole = self.src_vocab.encode(text)
        fits = len(whole) <= self.max_source_tokens
        return [
            Chunk(
                [*self.tag, *ids, self.src_vocab.eos_id],
                [] if number or not begun else self.tgt_vocab.encode(begun),
                next(keys),
                begun="" if number else begun,
            )
            for number, ids in enumerate([whole] if fits else self._stretches(text))
        ]

    def _with_spans(
        self, text: str, spans: list[Span], begun: str, keys: Iterator[int], *, in_capitals: bool
    ) -> list[Chunk]:
        """The parts of a text with protected spans, or in capitals."""
        return [
            self._chunk(source, begun if number == 0 else "", keys)
            for number, source in enumerate(self._sources(text, spans, in_capitals=in_capitals))
        ]

    def _as_usual(self, text: str, spans: list[Span]) -> str:
        """The text with the usual case of its words."""
        known = self.src_vocab.known_words
        # Texts inside a message are parts of a sentence.
        if known is None or self.rules.is_within_icu:
            return text
        find = functools.partial(in_usual_case, known)
        return self._outside_terms(find, text, spans, only_exact=True) or text

    def _recased(self, text: str, spans: list[Span]) -> str:
        """A lowercase text with the usual capitals of its words."""
        known = self.src_vocab.known_words
        if known is None:
            return text
        find = functools.partial(with_usual_capitals, known)
        return self._outside_terms(find, text, spans, only_exact=True)

    def _corrected(
        self, text: str, spans: list[Span]
    ) -> tuple[str, list[Span], tuple[tuple[str, str], ...]]:
        """A text without typing errors, its spans, and the corrected words."""
        known = self.src_vocab.known_words
        if known is None or self.keep_typos:
            return text, spans, ()
        found = self._outside_terms(functools.partial(corrections, known), text, spans)
        for one in reversed(found):
            start, end = one.place
            text = f"{text[:start]}{one.meant}{text[end:]}"
            spans = moved(spans, end, len(one.meant) - len(one.word))
        return text, spans, tuple((one.word, one.meant) for one in found)

    def _outside_terms(
        self,
        find: Callable[[str, Sequence[tuple[int, int]]], Found],
        text: str,
        spans: list[Span],
        *,
        only_exact: bool = False,
    ) -> Found:
        """The result of `find` outside protected spans and the glossary's terms.

        Args:
            find: gets a text and the places to leave out, in order.
            text: the text.
            spans: its protected spans.
            only_exact: of the terms, leave out only those whose case matters.
        """
        taken = [(span.start, span.end) for span in spans]
        found = find(text, taken)
        if found and self.glossary:
            terms = self.glossary.occurrences(text, taken)
            places = [(one.start, one.end) for one in terms if one.is_exact or not only_exact]
            found = find(text, sorted([*taken, *places])) if places else found
        return found

    def _with_names(self, text: str, spans: list[Span]) -> list[Span]:
        """The spans of a text, plus its names, which the model does not know."""
        known = self.src_vocab.known_words
        if known is None or self.slots is None:
            return spans
        names = self._outside_terms(known.names, text, spans)
        return with_things(spans, names, NAME) if names else spans

    def _chunk(self, source: Source, begun: str, keys: Iterator[int]) -> Chunk:
        """A part with protected spans, ready to be searched."""
        ids = encode_with(self.src_vocab, source.read, source.marks)
        prefix = encode_with(self.tgt_vocab, begun, prefix_marks(begun, source)) if begun else []
        key = next(keys)
        of_inner = replace(self, rules=self.rules.within_icu())
        inner = tuple(
            Inner(index, tuple(of_inner.parts(span.written[slice(*place)], "", keys)))
            for index, span in enumerate(source.spans)
            for place in span.inner
        )
        return Chunk([*self.tag, *ids, self.src_vocab.eos_id], prefix, key, source, begun, inner)

    def _in_small_letters(self, text: str, spans: list[Span]) -> str | None:
        """A line in capitals in lower case; None if it is not, or is better read in capitals."""
        kept = [(span.start, span.end) for span in spans]
        if not is_in_capitals(text, kept):
            return None
        small = self._outside_terms(in_small_letters, text, spans, only_exact=True)
        if small is None or len(self.src_vocab.encode(small)) >= len(self.src_vocab.encode(text)):
            return None  # the model has learned from text in capitals
        return small

    def _sources(self, text: str, spans: list[Span], *, in_capitals: bool) -> list[Source]:
        """The parts of a text with protected spans, or in capitals; no span is cut."""
        whole = self._source(text, spans, in_capitals=in_capitals)
        if len(encode_with(self.src_vocab, whole.read, whole.marks)) <= self.max_source_tokens:
            return [whole]
        encoded = functools.cache(self.src_vocab.encode)
        return [
            self._source(text[start:end], within(spans, start, end), in_capitals=in_capitals)
            for start, end in stretches_around(text, self._cut(text, encoded), spans)
        ]

    def _source(self, text: str, spans: list[Span], *, in_capitals: bool) -> Source:
        return make_source(
            text,
            spans,
            self.rules,
            self.slots,
            self.write_number,
            in_capitals=in_capitals,
            lang=self.source_lang,
        )

    def _stretches(self, text: str) -> list[list[int]]:
        """The ids of each part of a text that is too long; blank parts are left out."""
        # Cached: each stretch is encoded to be measured, and again to be read.
        encoded = functools.cache(self.src_vocab.encode)
        return [encoded(part) for each in self._cut(text, encoded) if (part := each.strip())]

    def _cut(self, text: str, encoded: Callable[[str], list[int]]) -> list[str]:
        """Stretches of a text that are short enough, measured by their ids."""
        return cut(
            text,
            max_length=self.max_source_tokens,
            length=lambda stretch: len(encoded(stretch.strip())),
        )


def _shown(vocab: Vocab, ids: list[int]) -> str:
    """The text of a remembered side, with … for its slots."""
    stretches = [
        "…" if is_slot else vocab.decode([*stretch]).strip()
        for is_slot, stretch in groupby(ids, vocab.is_control)
    ]
    return " ".join(filter(None, stretches))


def _ends(vocab: Vocab, ids: Sequence[int]) -> bool:
    """Whether pieces end a sentence."""
    return bool(ids) and vocab.pieces(ids[-1:])[0][-1:] in ENDS
