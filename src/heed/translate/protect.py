"""Protected spans in a translation: from slots or from copies, else placed by alignment.

Whatever the model wrote, the translation contains each span once; pairs of tags are well nested and
enclose the same content. `tape.py` finds places; `source.py` makes the model's input.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from heed.text.capitals import in_capitals
from heed.text.letter_case import upper
from heed.text.normalize import BLANKS, normalize
from heed.text.protected import find_spans
from heed.text.slots import decode_with
from heed.text.spans import BLANK_SIGN
from heed.text.vocab import Vocab
from heed.translate.given_spans import words_equal
from heed.translate.result import Doubt, Translation
from heed.translate.source import Place, Source
from heed.translate.tape import Atom, Tape
from heed.translate.words import (
    Links,
    is_byte_piece,
    link_spans,
    piece_spans,
    words_around,
)

Mark = tuple[int, int, int]
"""Start and end of a span in a translation, and its index in the source."""

_MOST_REPAIRS = 100


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A translation as the model wrote it, in which some protected spans are found.

    Attributes:
        source: the source.
        text: the text, with spans in place of their slots.
        marks: the spans found, in order.
        tokens: the pieces of the text; a span in place of its slot.
        prefix: the caller's prefix.
    """

    source: Source
    text: str
    marks: tuple[Mark, ...]
    tokens: list[str]
    prefix: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all spans are found, so that none has to be placed."""
        return len(self.marks) == len(self.source.spans) and not self.tape().missing

    def tape(self) -> Tape:
        """The words and spans of the text, without spans that are outside their pairs."""
        words = words_around(self.text, [(start, end) for start, end, _ in self.marks])
        spans = {(start, end): index for start, end, index in self.marks}
        fixed = len(self.prefix) if self.text.startswith(self.prefix) else 0
        atoms = [
            Atom(
                self.source.spans[spans[start, end]].text
                if (start, end) in spans
                else self.text[start:end],
                is_spaced=self.text[start - 1 : start] == " ",
                span=spans.get((start, end)),
                word=number,
                is_fixed=start < fixed,
            )
            for number, (start, end) in enumerate(words)
        ]
        tape = Tape(self.source.spans, atoms)
        tape.clean()
        return tape


def text_of(ids: Sequence[int], vocab: Vocab, source: Source | None) -> str:
    """The text that a model wrote, with spans in place of its slots only.

    Args:
        ids: of the target side.
        vocab: of the target side.
        source: the source, if it has protected spans.
    """
    if source is None:
        return normalize(vocab.decode(ids))
    draft = read_draft(source, ids, vocab, "")
    if not source.in_capitals:
        return draft.text
    return in_capitals(draft.text, [(start, end) for start, end, _ in draft.marks])[0]


def read_draft(source: Source, ids: Sequence[int], vocab: Vocab, prefix: str) -> Draft:
    """Find the protected spans of a source in the model's output.

    Args:
        source: the source.
        ids: of the translation.
        vocab: of the target side.
        prefix: the caller's prefix.
    """
    slots = {span.slots[1]: i for i, span in enumerate(source.spans) if span.slots is not None}
    texts = {id: source.spans[index].text for id, index in slots.items()}
    raw, marks = decode_with(vocab, ids, texts) if slots else (vocab.decode(ids), [])
    text, places = _normalized(raw, [(start, end) for start, end, _ in marks])
    first: dict[int, Mark] = {}
    for (start, end), (_, _, id) in zip(places, marks, strict=True):
        first.setdefault(slots[id], (start, end, slots[id]))
    found = _with_copies(source, text, [*first.values()])
    tokens = [texts.get(id, piece) for id, piece in zip(ids, vocab.pieces(ids), strict=True)]
    return Draft(source=source, text=text, marks=tuple(found), tokens=tokens, prefix=prefix)


def _normalized(text: str, places: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """A text normalized around places that stay as they are, and the new places."""
    written, begin = "", 0
    found: list[tuple[int, int]] = []
    for start, end in places:
        written = _appended(written, text[begin:start])
        found.append((len(written), len(written) + end - start))
        written += text[start:end]
        begin = end
    written = _appended(written, text[begin:])
    last = found[-1][1] if found else 0
    return written[:last] + written[last:].rstrip(" "), found


def _appended(written: str, text: str) -> str:
    """A text with another one, normalized, appended; the text before it does not change."""
    body = normalize(text)
    is_spaced = bool(written) and text[:1] != "" and text[0] in BLANKS
    # A combining mark would change the character before it.
    if written and body and unicodedata.category(body[0]) in ("Mn", "Mc", "Me"):
        is_spaced = True
    written += (" " if is_spaced else "") + body
    is_ended = bool(body) and text[-1] in BLANKS
    return written + (" " if is_ended else "")


def _with_copies(source: Source, text: str, marks: list[Mark]) -> list[Mark]:
    """The marks, plus those of spans that are spelled out in the text."""
    there = {index for _, _, index in marks}
    missing: dict[str, list[int]] = {}
    for index, span in enumerate(source.spans):
        if index not in there:
            for spelling in {span.text, span.written}:
                missing.setdefault(spelling, []).append(index)
    if not missing:
        return sorted(marks)
    taken = [(start, end) for start, end, _ in marks]
    found = [(span.start, span.end) for span in find_spans(text, source.rules)]
    # Text that is a span only in its context, such as a match of a user's expression.
    found += [place for copy in missing for place in words_equal(text, copy)]
    for start, end in found:
        waiting = missing.get(text[start:end])
        if waiting and not any(a < end and start < b for a, b in taken):
            taken.append((start, end))
            index = waiting[0]
            marks.append((start, end, index))
            for spelling in {source.spans[index].text, source.spans[index].written}:
                missing[spelling].remove(index)
    return sorted(marks)


@dataclass(kw_only=True)
class Restored:
    """A translation that contains every protected span once.

    Attributes:
        text: its text.
        atoms: its words and spans; empty = it is the source.
        places: their places in the text.
        doubts: doubts about the placement of spans.
    """

    text: str
    atoms: list[Atom] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)


def with_spans(
    draft: Draft, translation: Translation, alignment: list[list[float]] | None
) -> Translation:
    """A translation that contains every protected span once.

    Args:
        draft: the model's output.
        translation: with the scores of the model, the pieces that it read, and its alignment if
            requested.
        alignment: of the draft's tokens with the pieces read; None = there is none.
    """
    links = None if draft.is_whole else links_of(draft, translation.source_tokens, alignment)
    restored = restore(draft, links, is_aligned=alignment is not None)
    return finished(draft, restored, translation)


def restore(draft: Draft, links: Links | None, *, is_aligned: bool) -> Restored:
    """Put missing spans in their places, and remove second copies of spans.

    Args:
        draft: the model's output.
        links: of the words of its source with its own; None = nothing is missing.
        is_aligned: whether the links were read from attention, and not guessed.
    """
    source, tape = draft.source, draft.tape()
    missing = tape.missing
    if missing and links is not None:
        starts = [start for start, _ in links.src]
        sources = [_words_from(starts, span.read) for span in source.spans]
        tape.correct_copies(links, sources)
        tape.place_missing(links, sources)
    tape.space_spans()
    n_removed = _repair(tape, source)
    if n_removed is None or tape.missing:
        return Restored(text=as_source(source), doubts=[_SOURCE_KEPT])
    text, places = tape.write()
    doubts: list[Doubt] = []
    by_span = {atom.span: place for atom, place in zip(tape.atoms, places, strict=True)}
    if missing and not is_aligned:
        doubts += [_moved(source, index, by_span[index]) for index in missing]
    if n_removed:
        doubts.append(_REPEATED)
    return Restored(text=text, atoms=tape.atoms, places=places, doubts=doubts)


_SOURCE_KEPT = Doubt(
    kind="untranslated",
    sentence="The protected spans could not be placed, so the source was kept.",
)
_REPEATED = Doubt(
    kind="span_repeated", sentence="The model wrote a protected span twice; one copy was removed."
)


def _moved(source: Source, index: int, place: tuple[int, int]) -> Doubt:
    sentence = f"The place of {source.spans[index].text} was guessed."
    return Doubt(kind="span_moved", sentence=sentence, start=place[0], end=place[1])


def as_source(source: Source) -> str:
    """The source with its spans as in a translation."""
    parts: list[str] = []
    place = 0
    for span in source.spans:
        parts += (source.text[place : span.place[0]], span.text)
        place = span.place[1]
    return "".join([*parts, source.text[place:]])


def _words_from(starts: Sequence[int], read: tuple[int, int]) -> tuple[int, int]:
    first = sum(start < read[0] for start in starts)
    return first, sum(start < read[1] for start in starts) if read[0] < read[1] else first


def links_of(draft: Draft, source_tokens: list[str], alignment: list[list[float]] | None) -> Links:
    """The words that the model read, linked with those that it wrote; a span is one word.

    Args:
        draft: as the model wrote it.
        source_tokens: the pieces that it read.
        alignment: of its tokens with those; None = there is none.
    """
    source = draft.source
    src = words_around(source.read, [span.read for span in source.spans if span.is_read])
    tgt = words_around(draft.text, [(start, end) for start, end, _ in draft.marks])
    translation = Translation(
        text=draft.text, tokens=draft.tokens, source_tokens=source_tokens, alignment=alignment
    )
    return link_spans(source.read, src, translation, tgt)


def _repair(tape: Tape, source: Source) -> int | None:
    """Separate spans from adjacent text, and remove second copies of spans.

    Returns:
        The number of copies removed; None if the text cannot be repaired.
    """
    n_removed = 0
    swapped: set[tuple[int, int]] = set()
    for _ in range(_MOST_REPAIRS):
        text, places = tape.write()
        if _part(tape, text, places, source):
            continue
        doomed, is_copy = _doomed(tape, text, places, source)
        if doomed:
            tape.remove(doomed)
            n_removed += is_copy
            continue
        # Two adjacent spans that are not recognized may be recognized in the other order.
        clashes = [each for each in _clashes(tape, text, places, source) if each not in swapped]
        clash = next((each for each in clashes if tape.swap(*each)), None)
        if clash is None:
            return n_removed
        swapped |= {clash, clash[::-1]}
    return None


def _part(tape: Tape, text: str, places: list[tuple[int, int]], source: Source) -> bool:
    """Put blanks beside spans that are not recognized; return whether any was put."""
    found = tape.recognized(text, places, source.rules)
    has_changed = False
    for number, (atom, place) in enumerate(zip(tape.atoms, places, strict=True)):
        if atom.span is None or place in found or _is_free(tape, number, source):
            continue
        for side in tape.outer_sides(number):
            if not tape.atoms[side].is_spaced:
                tape.atoms[side].is_spaced = has_changed = True
    return has_changed


def _is_free(tape: Tape, number: int, source: Source) -> bool:
    """Whether a span is as close to its neighbors as in the source."""
    span = source.spans[tape.atoms[number].span or 0]
    before, after = source.text[: span.place[0]][-1:], source.text[span.place[1] :][:1]
    text_before = tape.atoms[number - 1].text[-1] if number else ""
    following = tape.atoms[number + 1 : number + 2]
    is_spaced_after = not following or following[0].is_spaced
    text_after = "" if is_spaced_after else following[0].text[0]
    if tape.atoms[number].is_spaced:
        text_before = ""
    return (not text_before or text_before == before) and (not text_after or text_after == after)


def _doomed(
    tape: Tape, text: str, places: list[tuple[int, int]], source: Source
) -> tuple[list[Atom], bool]:
    """Words that form a second copy of a span, or a span that contains another one.

    Returns:
        The words, if any, and whether they are a copy.
    """
    wanted = Counter(span.text for span in source.spans)
    has_pairs = any(span.kind == "open" for span in source.spans)
    spelled: Counter[str] = Counter()
    own = {place for atom, place in zip(tape.atoms, places, strict=True) if atom.span is not None}
    for found in find_spans(text, source.rules):
        if (found.start, found.end) in own:
            continue
        inside = [
            atom
            for atom, (start, end) in zip(tape.atoms, places, strict=True)
            if start < found.end and found.start < end
        ]
        words = [atom for atom in inside if atom.span is None and not atom.is_fixed]
        if not words:
            continue
        copy = text[found.start : found.end]
        is_copy = copy in wanted
        if is_copy and spelled[copy] < source.spelled_numbers()[copy]:
            spelled[copy] += 1  # not a copy: the source has a word for this number
            continue
        if is_copy and len(words) == len(inside):
            return words, True
        if len(words) < len(inside):
            return [words[0], words[-1]], False
        if has_pairs and found.rule == "tag":
            return words, True
    return [], False


def _clashes(
    tape: Tape, text: str, places: list[tuple[int, int]], source: Source
) -> list[tuple[int, int]]:
    """The indices of neighboring spans of which one is not recognized."""
    found = tape.recognized(text, places, source.rules)
    lost = {atom.span for atom, place in zip(tape.atoms, places, strict=True) if place not in found}
    return [
        (one.span, other.span)
        for one, other in pairwise(tape.atoms)
        if one.span is not None and other.span is not None and {one.span, other.span} & lost
    ]


def finished(draft: Draft, restored: Restored, translation: Translation) -> Translation:
    """A translation with the restored text, and tokens that spell it.

    Args:
        draft: the model's output.
        restored: with all spans.
        translation: with the scores of the model, the pieces that it read, and its alignment if
            requested.
    """
    shown, columns = _with_unread(draft.source, translation.source_tokens)
    if not restored.atoms:
        places = [span.place for span in draft.source.spans]
        text, _, _ = _cased(draft.source, restored.text, places)
        return replace(
            translation,
            text=text,
            tokens=[text],
            token_scores=[0.0],
            source_tokens=shown,
            alignment=None if translation.alignment is None else [[0.0] * len(shown)],
            doubts=(*translation.doubts, *restored.doubts),
        )
    order = _order(draft, restored)
    tokens = [draft.tokens[one] if isinstance(one, int) else one for one in order]
    n_tokens = len(draft.tokens)
    scores = [translation.token_scores[one] if isinstance(one, int) else 0.0 for one in order]
    alignment = translation.alignment
    if alignment is not None:
        rows = [alignment[one] if isinstance(one, int) else None for one in order]
        alignment = [
            [0.0 if row is None or column is None else row[column] for column in columns]
            for row in rows
        ]
    atoms = zip(restored.atoms, restored.places, strict=True)
    places = [place for atom, place in atoms if atom.span is not None]
    text, tokens, shifted = _cased(draft.source, restored.text, places, tokens)
    return replace(
        translation,
        text=text,
        tokens=tokens,
        token_scores=[*scores, *translation.token_scores[n_tokens:]],
        source_tokens=shown,
        alignment=alignment,
        doubts=(*translation.doubts, *_moved_with(restored.doubts, places, shifted)),
    )


def _moved_with(
    doubts: Sequence[Doubt], places: Sequence[Place], shifted: Sequence[Place]
) -> Iterator[Doubt]:
    """Doubts about spans, which have other places than before."""
    now = dict(zip(places, shifted, strict=True))
    for doubt in doubts:
        if doubt.start is None or doubt.end is None:
            yield doubt
        else:
            start, end = now[doubt.start, doubt.end]
            yield replace(doubt, start=start, end=end)


def _cased(
    source: Source, text: str, kept: Sequence[Place], tokens: Sequence[str] = ()
) -> tuple[str, list[str], list[Place]]:
    """A text and its tokens in capitals if the source was; protected spans stay as they are.

    Returns:
        The text, its tokens, and the new places of the spans, which `kept` are.
    """
    if not source.in_capitals:
        return text, [*tokens], [*kept]
    text, places = in_capitals(text, kept)
    return text, tokens_in_capitals({span.text for span in source.spans}, tokens), places


def tokens_in_capitals(spans: Collection[str], tokens: Sequence[str]) -> list[str]:
    """Pieces of a translation in capitals; spans and the names of bytes stay as they are."""
    return [
        token if is_byte_piece(token) or token.strip(BLANK_SIGN) in spans else upper(token)
        for token in tokens
    ]


def _with_unread(source: Source, tokens: list[str]) -> tuple[list[str], list[int | None]]:
    """The pieces of a source plus the spans that the model did not read, and the index of each."""
    places = piece_spans(tokens, source.read)
    shown: list[str] = []
    columns: list[int | None] = []
    number = 0
    for span in source.spans:
        if span.is_read:
            continue
        while number < len(tokens) and places[number][1] <= span.read[0]:
            shown.append(tokens[number])
            columns.append(number)
            number += 1
        shown.append(span.text)
        columns.append(None)
    return [*shown, *tokens[number:]], [*columns, *range(number, len(tokens))]


def _order(draft: Draft, restored: Restored) -> list[int | str]:
    """The tokens of the restored text: indices of the draft's, and spans that were put in."""
    words = words_around(draft.text, [(start, end) for start, end, _ in draft.marks])
    of_words: list[list[int]] = [[] for _ in words]
    number = 0
    for token, (start, end) in enumerate(piece_spans(draft.tokens, draft.text)):
        place = max(start, end - 1) if start < end else start
        while number + 1 < len(words) and words[number][1] <= min(start, place):
            number += 1
        if words:
            of_words[number].append(token)
    order: list[int | str] = []
    for atom in restored.atoms:
        is_new = atom.word is None or atom.text != draft.text[slice(*words[atom.word])]
        if is_new:
            order.append(f"{BLANK_SIGN if atom.is_spaced else ''}{atom.text}")
        elif atom.word is not None:
            order += of_words[atom.word]
    return order
