"""From the parts of lines to their translations: batches, searches, results.

`lines.py` makes the parts; `decode/search.py` searches ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from heed.bundle.alignment import AlignmentHeads
from heed.decode.batching import each_batch, padded
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis, Observer
from heed.decode.state import IsWanted as BatchIsWanted
from heed.errors import ConfigError
from heed.model.interface import Decodable, Inspectable
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.translate.assembly import UNWANTED, copied, filled, join_halves, with_origin
from heed.translate.doubts.again import (
    better,
    fits,
    halves_of,
    is_beyond_doubt,
    needs_help,
    other_options,
)
from heed.translate.doubts.judge import Judge
from heed.translate.each_language import each_language, never_written
from heed.translate.empty import search_non_empty
from heed.translate.inspect import Weights, cross_attention
from heed.translate.parts import Chunk
from heed.translate.protect import Draft, read_draft, with_spans
from heed.translate.rerank import Ranking, reranking
from heed.translate.result import Translation
from heed.translate.term_search import Answer, TermSearch, as_faithful, in_pieces
from heed.translate.wanted import IsWanted, of_batch, of_equals, of_items
from heed.translate.whole import shown_pieces

BATCH_TOKENS, BATCH_TOKENS_ON_GPU = 4096, 16384
"""Source positions times beam of a batch: bounds memory, does not change results.

Between steps a GPU waits for the processor, even with few rows.
"""


def usual_batch_tokens(model: Decodable) -> int:
    """The default batch size for the model's device."""
    return BATCH_TOKENS_ON_GPU if getattr(model, "is_on_gpu", False) else BATCH_TOKENS


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """Translates parts of lines.

    Attributes:
        model: anything that can be decoded, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        batch_tokens: source positions times beam computed at once; results do not depend on it.
        batch_lines: at most this many parts at once; None = no such limit.
        alignment_heads: the heads that are read as an alignment.
        judge: adds doubts to translations; None = no doubts.
        searches_again: search once more for doubtful translations.
        reranker: ranks hypotheses anew; None = by their scores only.
    """

    model: Decodable
    src_vocab: Vocab
    tgt_vocab: Vocab
    batch_tokens: int
    batch_lines: int | None
    alignment_heads: AlignmentHeads | None = None
    judge: Judge | None = None
    searches_again: bool = False
    reranker: Ranking | None = None

    def search(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool = False,
        is_wanted: IsWanted | None = None,
    ) -> list[Translation]:
        """Translate parts in batches of similar length; results come in the order given.

        Args:
            chunks: the parts to translate.
            options: of the search.
            alignment: also record cross-attention.
            is_wanted: called after every step; a part that is no longer wanted leaves the search at
                once, and has the status `unwanted`.
        """
        if not any(chunk.inner for chunk in chunks):
            found = self._judged(chunks, options, alignment=alignment, is_wanted=is_wanted)
            return list(map(with_origin, chunks, found))
        every = [(place, each) for place, part in enumerate(chunks) for each in part.with_inner()]
        done = iter(
            self._judged(
                [part for _, part in every],
                options,
                alignment=alignment,
                is_wanted=of_items(is_wanted, [place for place, _ in every]),
            )
        )
        return [filled(chunk, done) for chunk in chunks]

    def search_once(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool = False,
        is_wanted: IsWanted | None = None,
    ) -> list[Translation]:
        """The first half of `search`: translations of which some may be open, see `is_open`.

        Args:
            chunks: without inner texts.
            options: as in `search`, like the other arguments.
        """
        found = self._once(chunks, options, alignment=alignment, is_wanted=is_wanted)
        return [
            each if self.is_open(each, options) else with_origin(chunk, each)
            for chunk, each in zip(chunks, found, strict=True)
        ]

    def is_open(self, found: Translation, options: DecodeOptions) -> bool:
        """Whether a first translation needs `search_again`."""
        # A sampled translation is not replaced by another.
        may_be = self.judge is not None and self.searches_again and not options.sample
        return may_be and needs_help(found)

    def search_again(
        self,
        chunks: Sequence[Chunk],
        found: Sequence[Translation],
        options: DecodeOptions,
        *,
        alignment: bool = False,
        is_wanted: IsWanted | None = None,
    ) -> list[Translation]:
        """The second half of `search`, for parts whose first translations are open.

        Args:
            chunks: the parts; they may be of several first halves with the same options.
            found: the first translations.
            options: as in `search`, like the other arguments.
        """
        best = [*found]
        self._search_again(chunks, best, options, alignment, is_wanted)
        return list(map(with_origin, chunks, best))

    def _judged(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> list[Translation]:
        """Translate parts, and search again for doubtful ones."""
        found = self._once(chunks, options, alignment=alignment, is_wanted=is_wanted)
        if any(self.is_open(each, options) for each in found):
            self._search_again(chunks, found, options, alignment, is_wanted)
        return found

    def _once(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> list[Translation]:
        """Translate parts by one search each."""
        own = self._found(chunks, options, alignment=alignment, is_wanted=is_wanted)
        found = self._with_terms(chunks, own, options, alignment, is_wanted)
        if self.judge is None:
            return found
        return self._judge(chunks, list(zip(own, found, strict=True)))

    def _search_again(
        self,
        chunks: Sequence[Chunk],
        found: list[Translation],
        options: DecodeOptions,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> None:
        """Replace doubtful translations by better ones, if other searches find any."""
        origins = [*found]
        groups: dict[DecodeOptions, list[int]] = {}
        for place, each in enumerate(found):
            if needs_help(each) and not chunks[place].is_remembered:
                groups.setdefault(other_options(each, options), []).append(place)
        for changed, places in groups.items():
            if changed == options:
                continue
            # Without a guide, which may have led to the doubt.
            parts = [replace(chunks[place], guide=None) for place in places]
            wanted = of_items(is_wanted, places)
            others = self._found(parts, changed, alignment=alignment, is_wanted=wanted)
            best = [replace(other, alternatives=()) for other in others]
            best = self._with_terms(parts, best, changed, alignment, wanted)
            pairs = zip(others, best, strict=True)
            first = {place: [pair] for place, pair in zip(places, pairs, strict=True)}
            answers = self._kept(chunks, found, first)
            further = {
                place: [(each, each) for each in other.alternatives]
                for place, other in zip(places, others, strict=True)
                if not any(map(is_beyond_doubt, answers[place]))
            }
            for place, more in self._kept(chunks, found, further).items():
                answers[place] += more
            for place, some in answers.items():
                found[place] = better(found[place], some, "a second search")
        halved = halves_of(chunks, found, self.src_vocab)
        parts = [part for two in halved.values() for part in two]
        wanted = of_items(is_wanted, [place for place, two in halved.items() for _ in two])
        own = self._found(parts, options, alignment=alignment, is_wanted=wanted)
        done = self._with_terms(parts, own, options, alignment, wanted)
        joined = {
            place: [(whole, join_halves(done[n : n + 2]))]
            for n, place in zip(range(0, len(parts), 2), halved, strict=True)
            if fits(whole := join_halves(own[n : n + 2]), chunks[place], options)
        }
        for place, some in self._kept(chunks, found, joined).items():
            found[place] = better(found[place], some, "its two halves", origins[place])

    def _kept(
        self,
        chunks: Sequence[Chunk],
        found: Sequence[Translation],
        answers: dict[int, list[Answer]],
    ) -> dict[int, list[Translation]]:
        """The answers that follow the glossary of their part as well as the first one, judged."""
        kept = {
            place: as_faithful(chunks[place], self.src_vocab, found[place], some)
            for place, some in answers.items()
        }
        parts = [chunks[place] for place, some in kept.items() for _ in some]
        judged = iter(self._judge(parts, [answer for some in kept.values() for answer in some]))
        return {place: [next(judged) for _ in some] for place, some in kept.items()}

    def _judge(self, chunks: Sequence[Chunk], answers: Sequence[Answer]) -> list[Translation]:
        """Answers with their doubts and their confidence."""
        assert self.judge is not None
        vocabs = self.src_vocab, self.tgt_vocab
        read = [
            in_pieces(chunk, vocabs, answer) for chunk, answer in zip(chunks, answers, strict=True)
        ]
        texts = [None if chunk.source is None else chunk.source.text for chunk in chunks]
        judged = self.judge.judge(read, texts)
        return [
            one if each is found else replace(found, doubts=one.doubts, confidence=one.confidence)
            for one, each, (_, found) in zip(judged, read, answers, strict=True)
        ]

    def _with_terms(
        self,
        chunks: Sequence[Chunk],
        found: list[Translation],
        options: DecodeOptions,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> list[Translation]:
        """Translations with the terms of their parts' glossaries."""
        if not any(chunk.glossary for chunk in chunks):
            return found

        def again(
            parts: list[Chunk], changed: DecodeOptions, items: list[int]
        ) -> list[Translation]:
            wanted = of_items(is_wanted, items)
            return self._found(parts, changed, alignment=alignment, is_wanted=wanted)

        vocabs = self.src_vocab, self.tgt_vocab
        terms = TermSearch(self.model, vocabs, self.alignment_heads, options, again)
        return terms.applied(chunks, found)

    def _found(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> list[Translation]:
        """Translate equal parts once, unless each draws its own random numbers."""
        first: dict[tuple[object, ...], int] = {}
        same = [
            first.setdefault((chunk.key if options.sample else 0, chunk.question), len(first))
            for chunk in chunks
        ]
        distinct = dict(zip(same, chunks, strict=True))
        found = {
            place: copied(chunk, alignment=alignment)
            for place, chunk in distinct.items()
            if chunk.is_copied
        }
        is_distinct_wanted = of_equals(is_wanted, same)

        def search(
            group: list[int], model: Decodable, numbers: list[int]
        ) -> dict[int, Translation]:
            places = [group[number] for number in numbers]
            if is_distinct_wanted is not None:
                places = [place for place in places if is_distinct_wanted(place)]
            batch = [distinct[place] for place in places]
            wanted = of_batch(is_distinct_wanted, places)
            translations = self._translations(model, batch, options, alignment, wanted)
            return dict(zip(places, translations, strict=True))

        lengths = {
            place: len(chunk.src_ids) * rows_of(options)
            for place, chunk in distinct.items()
            if not chunk.is_copied
        }
        for group in self._groups(distinct, lengths):
            for _, translations in each_batch(
                self.model,
                [lengths[place] for place in group],
                partial(search, group),
                max_tokens=self.batch_tokens,
                max_rows=self.batch_lines,
            ):
                found.update(translations)
        return [found.get(place, UNWANTED) for place in same]

    def _groups(self, chunks: dict[int, Chunk], lengths: dict[int, int]) -> list[list[int]]:
        """The parts without and with slots; slots cost time in each row of a batch.

        Args:
            chunks: by index.
            lengths: of the parts to search, times their rows.
        """
        if max(lengths.values(), default=0) * len(lengths) <= self.batch_tokens:
            return [[*lengths]]  # all fit into one batch
        found: list[list[int]] = [[], []]
        for place in lengths:
            source = chunks[place].source
            found[source is not None and bool(source.marks)].append(place)
        return found

    def _translations(
        self,
        model: Decodable,
        chunks: list[Chunk],
        options: DecodeOptions,
        alignment: bool,
        is_wanted: BatchIsWanted | None,
    ) -> list[Translation]:
        if not chunks:
            return []
        search = reranking(
            each_language(partial(self.decode, model=model), self.tgt_vocab), self.reranker
        )
        ranked = search_non_empty(search, chunks, options, is_wanted)
        drafts = [
            [self._draft(chunk, hypothesis) for hypothesis in hypotheses]
            for chunk, hypotheses in zip(chunks, ranked, strict=True)
        ]
        weights = self._alignments(model, chunks, ranked, drafts, is_wanted=alignment)
        return [
            self._translation(chunk, hypotheses, begun, matrices, alignment)
            if hypotheses
            else UNWANTED
            for chunk, hypotheses, begun, matrices in zip(
                chunks, ranked, drafts, weights, strict=True
            )
        ]

    def _draft(self, chunk: Chunk, hypothesis: Hypothesis) -> Draft | None:
        """The model's output, if the part has protected spans."""
        if chunk.source is None:
            return None
        return read_draft(chunk.source, hypothesis.ids, self.tgt_vocab, chunk.begun)

    def decode(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        is_wanted: BatchIsWanted | None = None,
        *,
        model: Decodable | None = None,
        observer: Observer | None = None,
    ) -> list[list[Hypothesis]]:
        """Search all parts in one batch.

        Args:
            chunks: the parts to translate, all into one language.
            options: of the search.
            is_wanted: called after every step with indices in `chunks`.
            model: the one to search with; None = that of the searcher.
            observer: gets a record of every step.

        Returns:
            The hypotheses of each part, as `heed.decode.search.decode` gives them.
        """
        vocab = self.tgt_vocab
        slots = [chunk.slots for chunk in chunks]
        return decode(
            self.model if model is None else model,
            padded([chunk.src_ids for chunk in chunks], self.src_vocab.pad_id),
            options,
            bos_id=vocab.bos_id,
            eos_id=vocab.eos_id,
            pad_id=vocab.pad_id,
            forbidden=never_written(vocab, chunks[0]),
            prefixes=[chunk.prefix for chunk in chunks],
            slots=slots if any(slots) else (),
            keys=[chunk.key for chunk in chunks],
            phrases=[chunk.phrases for chunk in chunks] if any(c.phrases for c in chunks) else None,
            guides=[chunk.guide for chunk in chunks],
            observer=observer,
            is_wanted=is_wanted,
        )

    def _translation(
        self,
        chunk: Chunk,
        hypotheses: list[Hypothesis],
        drafts: list[Draft | None],
        matrices: list[Weights | None],
        alignment: bool,
    ) -> Translation:
        src_tokens = shown_pieces(self.src_vocab, chunk)
        best, *others = [
            self._of_hypothesis(hypothesis, draft, weights, src_tokens, alignment)
            for hypothesis, draft, weights in zip(hypotheses, drafts, matrices, strict=True)
        ]
        return replace(best, alternatives=tuple(others))

    def _of_hypothesis(
        self,
        hypothesis: Hypothesis,
        draft: Draft | None,
        weights: Weights | None,
        src_tokens: list[str],
        alignment: bool,
    ) -> Translation:
        translation = Translation(
            # Byte pieces can spell any character; normalizing leaves no line break.
            text="" if draft else normalize(self.tgt_vocab.decode(hypothesis.ids)),
            score=hypothesis.score,
            log_prob=hypothesis.log_prob,
            tokens=[] if draft else self.tgt_vocab.pieces(hypothesis.ids),
            token_scores=list(hypothesis.token_log_probs),
            source_tokens=src_tokens,
            alignment=weights if alignment else None,
            status="ok" if hypothesis.status == "eos" else "max_length",
        )
        return translation if draft is None else with_spans(draft, translation, weights)

    def _alignments(
        self,
        model: Decodable,
        chunks: list[Chunk],
        ranked: list[list[Hypothesis]],
        drafts: list[list[Draft | None]],
        *,
        is_wanted: bool,
    ) -> list[list[Weights | None]]:
        """Cross-attention of hypotheses, from one forced pass over them.

        It is computed if requested, or if protected spans must be placed and the model has
        cross-attention.
        """
        needed = [
            [is_wanted or (draft is not None and not draft.is_whole) for draft in of]
            for of in drafts
        ]
        pairs = [
            (chunk.src_ids, hypothesis.ids)
            for chunk, found, flags in zip(chunks, ranked, needed, strict=True)
            for hypothesis, is_needed in zip(found, flags, strict=True)
            if is_needed
        ]
        if not pairs or not (is_wanted or isinstance(model, Inspectable)):
            return [[None] * len(found) for found in ranked]
        vocabs = self.src_vocab, self.tgt_vocab
        sources, targets = map(list, zip(*pairs, strict=True))
        try:
            weights = iter(cross_attention(model, vocabs, sources, targets, self.alignment_heads))
        except ConfigError:
            if is_wanted:
                raise
            return [[None] * len(found) for found in ranked]
        return [[next(weights) if flag else None for flag in flags] for flags in needed]


def rows_of(options: DecodeOptions) -> int:
    """The number of hypotheses that are searched at the same time for each source."""
    return options.n_best if options.sample else options.beam_size
