"""Puts the terms of a glossary into translations, by the cheapest method that works.

A translation that has the terms stays as it is. Else each missing term replaces the words that are
aligned with it. If no words are, or the term has several forms, the model scores translations with
the term in each possible place and form, and the most probable one is taken. If the translation
has forbidden words, the part is searched once more with required and forbidden phrases.
`docs/terms.md` has the measurements behind this order.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress, islice

from heed.bundle.alignment import AlignmentHeads
from heed.decode.options import DecodeOptions
from heed.errors import ConfigError
from heed.model.interface import Decodable, Inspectable
from heed.text.protected import find_spans
from heed.text.slots import encode_with
from heed.text.vocab import Vocab
from heed.translate.given_spans import prefix_marks, words_equal
from heed.translate.glossary.glossary import Glossary, Occurrence
from heed.translate.glossary.honored import find_banned, find_targets
from heed.translate.glossary.pieces import phrases_of
from heed.translate.glossary.placing import Site
from heed.translate.inspect import cross_attention, mean_log_probs
from heed.translate.parts import Chunk
from heed.translate.protect import tokens_in_capitals
from heed.translate.result import Doubt, Translation
from heed.translate.whole import in_likely_case, shown_pieces, written_pieces
from heed.translate.words import Span

Search = Callable[[list[Chunk], DecodeOptions, list[int]], list[Translation]]
"""Translates parts, which have phrases and no glossary; also gets their places in the call."""

Part = tuple[int, "_Wanted"]
"""The index of a part in the call, and the requirements for its translation."""

Answer = tuple[Translation, Translation]
"""The model's own translation, and the one with the terms."""

LEAST_BEAM = 8
"""A narrower beam hardly finds places for required phrases."""
_MOST_SEARCHES = 3
"""Each search also forbids the forbidden words that the one before wrote."""


class TermSearch:
    """Puts the terms of glossaries into translations.

    Args:
        model: for alignments.
        vocabs: pieces of the sources and of the translations.
        heads: the heads that are read as an alignment.
        options: of the search.
        search: translates parts once more.
    """

    def __init__(
        self,
        model: Decodable,
        vocabs: tuple[Vocab, Vocab],
        heads: AlignmentHeads | None,
        options: DecodeOptions,
        search: Search,
    ) -> None:
        self._model, self._heads, self._search = model, heads, search
        self._vocabs = vocabs
        self._most = math.inf if model.length_limit is None else model.length_limit
        self._options = _with_beam(options)

    def applied(self, chunks: Sequence[Chunk], found: list[Translation]) -> list[Translation]:
        """The translations with the terms of their parts' glossaries.

        Args:
            chunks: the translated parts.
            found: a translation of each.
        """
        found = list(found)
        parts = [
            (place, _Wanted(chunk, chunk.glossary, _text_of(chunk, self._vocabs[0])))
            for place, chunk in enumerate(chunks)
            if chunk.glossary is not None and found[place].status != "unwanted"
        ]
        lacking = [(place, wanted) for place, wanted in parts if not wanted.is_met(found[place])]
        self._place(found, lacking)
        again = [(place, wanted) for place, wanted in lacking if not wanted.is_met(found[place])]
        self._search_again(found, again)
        self._place(found, again)
        for place, wanted in lacking:
            found[place] = wanted.doubted(found[place])
        self._place_in_alternatives(found, parts)
        return found

    def _place_in_alternatives(self, found: list[Translation], parts: list[Part]) -> None:
        """Put missing terms into the alternatives of translations, without another search."""
        of_others = [wanted for place, wanted in parts for _ in found[place].alternatives]
        if not of_others:
            return
        others = [other for place, _ in parts for other in found[place].alternatives]
        self._place(others, list(enumerate(of_others)))
        done = map(_Wanted.doubted, of_others, others)
        for place, _ in parts:
            alternatives = tuple(islice(done, len(found[place].alternatives)))
            found[place] = replace(found[place], alternatives=alternatives)

    def _place(self, found: list[Translation], lacking: list[Part]) -> None:
        """Put missing terms in place of the words aligned with them, or where they fit."""
        waiting = [(place, wanted) for place, wanted in lacking if wanted.lacks(found[place].text)]
        aligned = self._aligned(found, waiting)
        done = {place: each for (place, _), each in zip(waiting, aligned, strict=True)}
        while waiting:
            options: list[list[Translation]] = []
            for place, wanted in waiting:
                done[place] = wanted.placed(done[place], is_certain=True)
                options.append(wanted.variants(done[place]))
            chosen = self._likeliest(waiting, options)
            waiting = [part for part, best in zip(waiting, chosen, strict=True) if best]
            done.update(
                (part[0], best) for part, best in zip(waiting, filter(None, chosen), strict=True)
            )
        for place, each in done.items():
            if each.text != found[place].text:
                found[place] = each if found[place].alignment else replace(each, alignment=None)

    def _likeliest(
        self, parts: list[Part], options: list[list[Translation]]
    ) -> list[Translation | None]:
        """The most probable option of each part, by the model; None if it has none."""
        rows = [
            (wanted.chunk.src_ids, _target_ids(wanted.chunk, self._vocabs[1], each.text))
            for (_, wanted), some in zip(parts, options, strict=True)
            if len(some) > 1
            for each in some
        ]
        # A variant that the model cannot read at once is the last choice.
        fits = [len(ids) < self._most for _, ids in rows]
        known = iter(mean_log_probs(self._model, self._vocabs, list(compress(rows, fits))))
        scores = iter([next(known) if is_fit else -math.inf for is_fit in fits])
        return [
            max(some, key=lambda each: next(scores)) if len(some) > 1 else next(iter(some), None)
            for some in options
        ]

    def _aligned(self, found: list[Translation], missing: list[Part]) -> list[Translation]:
        """Translations with alignments, from one forced pass over those that have none."""
        src_vocab, tgt_vocab = self._vocabs
        without = [(place, wanted) for place, wanted in missing if not found[place].alignment]
        ids = {
            place: _target_ids(wanted.chunk, tgt_vocab, found[place].text)
            for place, wanted in without
        }
        without = [part for part in without if 0 < len(ids[part[0]]) < self._most]
        weights = []
        if without and isinstance(self._model, Inspectable):
            try:
                weights = cross_attention(
                    self._model,
                    self._vocabs,
                    [wanted.chunk.src_ids for _, wanted in without],
                    [ids[place] for place, _ in without],
                    self._heads,
                )
            except ConfigError:  # A model without attention: words are linked by their places.
                weights = []
        aligned = {
            place: replace(
                found[place],
                tokens=_shown(wanted.chunk, tgt_vocab, ids[place]),
                source_tokens=shown_pieces(src_vocab, wanted.chunk),
                alignment=matrix,
            )
            for (place, wanted), matrix in zip(without, weights, strict=False)
        }
        return [aligned.get(place, found[place]) for place, _ in missing]

    def _search_again(self, found: list[Translation], again: list[Part]) -> None:
        """Search with required and forbidden phrases, and keep better translations."""
        for place, wanted in again:
            wanted.forbid(found[place].text)
        for _ in range(_MOST_SEARCHES):
            if not again:
                return
            parts = [wanted.searched(self._vocabs[1]) for _, wanted in again]
            others = self._search(parts, self._options, [place for place, _ in again])
            for (place, wanted), other in zip(again, others, strict=True):
                if other.status == "unwanted" or wanted.faults(other) < wanted.faults(found[place]):
                    found[place] = other
            # Without more forbidden words, a search would find the same.
            again = [part for part in again if part[1].forbid(found[part[0]].text)]


def as_faithful(
    chunk: Chunk, vocab: Vocab, first: Translation, others: list[Answer]
) -> list[Answer]:
    """The other answers that follow a part's glossary at least as well as the first one.

    Missing terms are put into them first.

    Args:
        chunk: the translated part.
        vocab: pieces of the sources.
        first: the answer into which the terms were put.
        others: answers of other searches.
    """
    if chunk.glossary is None:
        return others
    wanted = _Wanted(chunk, chunk.glossary, _text_of(chunk, vocab))
    most = wanted.faults(first)
    others = [(own, wanted.placed(other)) for own, other in others]
    return [answer for answer in others if wanted.faults(answer[1]) <= most]


def in_pieces(chunk: Chunk, vocabs: tuple[Vocab, Vocab], answer: Answer) -> Translation:
    """A translation into which terms were put, as pieces, which the learned doubts need.

    Args:
        chunk: the translated part.
        vocabs: pieces of the sources and of the translations.
        answer: the translation, in words where terms were put in.
    """
    own, found = answer
    if found.text == own.text or len(found.token_scores) >= len(found.tokens):
        return found
    ids = _target_ids(chunk, vocabs[1], found.text)
    return replace(
        found,
        tokens=_shown(chunk, vocabs[1], ids),
        token_scores=own.token_scores,  # the scores of the model's own words
        source_tokens=shown_pieces(vocabs[0], chunk),
        alignment=None,
    )


def _target_ids(chunk: Chunk, vocab: Vocab, text: str) -> list[int]:
    if chunk.source is None:
        return vocab.encode(text)
    marks = prefix_marks(text, chunk.source)
    if chunk.source.in_capitals:
        # Much as the model wrote it, before it was put in capitals.
        text = in_likely_case(text, [(start, end) for start, end, _ in marks], vocab)
    return encode_with(vocab, text, marks)


def _shown(chunk: Chunk, vocab: Vocab, ids: list[int]) -> list[str]:
    """The pieces of the translation of a part, as its text has them."""
    pieces, source = written_pieces(vocab, ids, chunk.source), chunk.source
    if source is None or not source.in_capitals:
        return pieces
    return tokens_in_capitals({span.text for span in source.spans}, pieces)


def _text_of(chunk: Chunk, vocab: Vocab) -> str:
    return vocab.decode(chunk.src_ids) if chunk.source is None else chunk.source.text


class _Wanted:
    """The requirements of a glossary for the translation of a part."""

    def __init__(self, chunk: Chunk, glossary: Glossary, text: str) -> None:
        self.chunk, self.text = chunk, text
        self._glossary = glossary
        taken = [span.place for span in chunk.source.spans] if chunk.source else []
        self.occurrences: list[Occurrence] = glossary.occurrences(text, taken)
        self._targets = [one for one in self.occurrences if one.targets]
        self._forbidden: dict[str, None] = {}
        self._places: dict[str, list[Span | None]] = {}
        self._site: Site | None = None

    def lacks(self, text: str) -> list[Occurrence]:
        """The occurrences of which a translation has no form."""
        places = self._there(text)
        if None not in places:
            return []
        return [one for one, place in zip(self._targets, places, strict=True) if place is None]

    def _is_large(self, text: str) -> bool:
        """Whether the source and a translation are lines in capitals."""
        if self.chunk.source is not None and self.chunk.source.in_capitals:
            return True  # its translations are put in capitals, except for spans such as {name}
        return self.text.isupper() and text.isupper()

    def _there(self, text: str) -> list[Span | None]:
        """For each occurrence the place of one of its forms in a translation, if it is there."""
        found = self._places.get(text)
        if found is None:
            found = self._places[text] = find_targets(
                text, self._targets, is_large=self._is_large(text)
            )
        return found

    def banned(self, text: str) -> list[str]:
        """The forbidden words in a translation."""
        if not self._glossary.banned and not any(one.banned for one in self.occurrences):
            return []
        kept = [place for place in self._there(text) if place is not None]
        return find_banned(text, self.occurrences, self._glossary, kept)

    def forbid(self, text: str) -> bool:
        """Add a translation's forbidden words to the search; False if all are added already."""
        found = dict.fromkeys(self.banned(text))
        is_new = not found.keys() <= self._forbidden.keys()
        self._forbidden.update(found)
        return is_new

    def searched(self, vocab: Vocab) -> Chunk:
        """The part with its required and forbidden phrases."""
        phrases = phrases_of(self.occurrences, self.text, vocab, self._forbidden)
        return replace(self.chunk, glossary=None, phrases=phrases)

    def faults(self, found: Translation) -> int:
        """The number of missing terms and forbidden words of a translation."""
        return len(self.lacks(found.text)) + len(self.banned(found.text))

    def is_met(self, found: Translation) -> bool:
        """Whether a translation meets all requirements."""
        return not self.lacks(found.text) and not self.banned(found.text)

    def placed(self, found: Translation, *, is_certain: bool = False) -> Translation:
        """A translation with missing terms in place of the words aligned with them.

        Args:
            found: the translation.
            is_certain: leave out terms of several forms.
        """
        if not self.lacks(found.text):
            return found
        done = self._site_of(found).placed(is_certain=is_certain).translation
        return done if done is found or self._keeps_spans(found, done) else found

    def variants(self, found: Translation) -> list[Translation]:
        """Translations with one more term; none if no term is missing, or none has a place."""
        n_missing = len(self.lacks(found.text))
        if not n_missing:
            return []
        return [
            other
            for other in self._site_of(found).variants()
            if len(self.lacks(other.text)) < n_missing and self._keeps_spans(found, other)
        ]

    def _site_of(self, found: Translation) -> Site:
        """A translation linked with its source; the last result is cached."""
        if self._site is None or self._site.translation is not found:
            taken = self._taken(found.text)
            there = self._there(found.text)
            begun = self.chunk.begun
            n_fixed = len(begun) if found.text.startswith(begun) else 0
            is_large = self._is_large(found.text)
            self._site = Site.of(
                self._targets, there, self.text, found, taken, n_fixed, is_large=is_large
            )
        return self._site

    def _keeps_spans(self, found: Translation, other: Translation) -> bool:
        """Whether a translation has the spans of another, and no more except those of terms."""
        if self.chunk.source is None:
            return True
        before, after = (
            Counter(each.text[slice(*place)] for place in self._taken(each.text))
            for each in (found, other)
        )
        if before == after:
            return True
        of_terms = {
            form[slice(*place)]
            for one in self._targets
            for form in one.targets
            for place in self._taken(form)
        }
        return before <= after and of_terms.issuperset(after - before)

    def _taken(self, text: str) -> list[Span]:
        """The places of protected spans in a translation; a term must not replace them."""
        source = self.chunk.source
        if source is None:
            return []
        taken = [(span.start, span.end) for span in find_spans(text, source.rules)]
        # Names, and spans that no rule finds beside the letters of this text.
        for copy in {span.text for span in source.spans}:
            for start, end in words_equal(text, copy):
                if all(end <= first or last <= start for first, last in taken):
                    taken.append((start, end))
        return sorted(taken)

    def doubted(self, found: Translation) -> Translation:
        """A translation with doubts about the terms that it does not follow."""
        doubts = [
            Doubt(
                kind="glossary_not_placed",
                sentence=f"There was no place for the glossary's translation of {one.term}.",
            )
            for one in self.lacks(found.text)
        ]
        doubts += [
            Doubt(kind="glossary_forbidden", sentence=f"The glossary forbids {word} here.")
            for word in self.banned(found.text)
        ]
        return replace(found, doubts=(*found.doubts, *doubts)) if doubts else found


def _with_beam(options: DecodeOptions) -> DecodeOptions:
    """The same for a beam search that is wide enough."""
    beam_size = max(LEAST_BEAM, options.beam_size)
    return replace(
        options,
        sample=False,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        min_p=0.0,
        beam_size=beam_size,
        n_best=min(options.n_best, beam_size),
    )
