"""From the parts of lines to their translations: batches, searches, results.

`lines.py` makes the parts; `decode/search.py` searches ids.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heed.bundle.alignment import AlignmentHeads
from heed.decode.batching import each_batch, padded
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis, Observer
from heed.decode.state import IsWanted as BatchIsWanted
from heed.model.interface import Decodable
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.translate.inspect import Weights, cross_attention, never_written
from heed.translate.lines import Chunk
from heed.translate.result import Translation

IsWanted = Callable[[int], bool]
"""Whether the item of this index is still wanted; called often, from the thread that searches."""


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """Translates parts of lines.

    Attributes:
        model: anything that can be decoded, in evaluation mode.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        batch_tokens: source positions times beam computed at once; results do not depend on it.
        batch_lines: at most this many parts at once; None = no such limit.
        alignment_heads: what is read as an alignment.
    """

    model: Decodable
    src_vocab: Vocab
    tgt_vocab: Vocab
    batch_tokens: int
    batch_lines: int | None
    alignment_heads: AlignmentHeads | None = None

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
            chunks: what to translate.
            options: how to search.
            alignment: also record cross-attention.
            is_wanted: asked after every step; a part that is not wanted any more leaves the search
                at once, and has the status `unwanted`.
        """
        return self._searched(chunks, options, alignment=alignment, is_wanted=is_wanted)

    def _searched(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        alignment: bool,
        is_wanted: IsWanted | None,
    ) -> list[Translation]:
        """Translate each of the equal parts once, unless it draws random numbers of its own."""
        first: dict[tuple[object, ...], int] = {}
        same = [
            first.setdefault((chunk.key if options.sample else 0, chunk.question), len(first))
            for chunk in chunks
        ]
        distinct = dict(zip(same, chunks, strict=True))
        lengths = [len(chunk.src_ids) * rows_of(options) for chunk in distinct.values()]
        is_distinct_wanted = _of_equals(is_wanted, same)
        found: dict[int, Translation] = {}

        def search(model: Decodable, places: list[int]) -> dict[int, Translation]:
            if is_distinct_wanted is not None:
                places = [place for place in places if is_distinct_wanted(place)]
            batch = [distinct[place] for place in places]
            wanted = _of_batch(is_distinct_wanted, places)
            translations = self._translations(model, batch, options, alignment, wanted)
            return dict(zip(places, translations, strict=True))

        for _, translations in each_batch(
            self.model, lengths, search, max_tokens=self.batch_tokens, max_rows=self.batch_lines
        ):
            found.update(translations)
        return [found.get(place, UNWANTED) for place in same]

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
        ranked = self.decode(chunks, options, model=model, is_wanted=is_wanted)
        weights = self._alignments(model, chunks, ranked) if alignment else [None] * len(chunks)
        return [
            self._translation(chunk, hypotheses, matrices) if hypotheses else UNWANTED
            for chunk, hypotheses, matrices in zip(chunks, ranked, weights, strict=True)
        ]

    def decode(
        self,
        chunks: Sequence[Chunk],
        options: DecodeOptions,
        *,
        model: Decodable | None = None,
        is_wanted: BatchIsWanted | None = None,
        observer: Observer | None = None,
    ) -> list[list[Hypothesis]]:
        """Search all parts in one batch.

        Args:
            chunks: what to translate.
            options: how to search.
            model: the one to search with; None = that of the searcher.
            is_wanted: asked after every step with places in `chunks`.
            observer: gets a record of every step.

        Returns:
            The hypotheses of each part, as `heed.decode.search.decode` gives them.
        """
        vocab = self.tgt_vocab
        return decode(
            self.model if model is None else model,
            padded([chunk.src_ids for chunk in chunks], self.src_vocab.pad_id),
            options,
            bos_id=vocab.bos_id,
            eos_id=vocab.eos_id,
            pad_id=vocab.pad_id,
            forbidden=never_written(vocab),
            prefixes=[chunk.prefix for chunk in chunks],
            keys=[chunk.key for chunk in chunks],
            observer=observer,
            is_wanted=is_wanted,
        )

    def _translation(
        self, chunk: Chunk, hypotheses: list[Hypothesis], matrices: list[Weights] | None
    ) -> Translation:
        src_tokens = self.src_vocab.pieces(
            i for i in chunk.src_ids if not self.src_vocab.is_control(i)
        )
        best, *others = [
            Translation(
                # Byte pieces can spell any character; normalizing leaves no line break.
                text=normalize(self.tgt_vocab.decode(hypothesis.ids)),
                score=hypothesis.score,
                log_prob=hypothesis.log_prob,
                tokens=self.tgt_vocab.pieces(hypothesis.ids),
                token_scores=list(hypothesis.token_log_probs),
                source_tokens=src_tokens,
                alignment=matrices[rank] if matrices else None,
                status="ok" if hypothesis.status == "eos" else "max_length",
            )
            for rank, hypothesis in enumerate(hypotheses)
        ]
        return replace(best, alternatives=tuple(others))

    def _alignments(
        self, model: Decodable, chunks: list[Chunk], ranked: list[list[Hypothesis]]
    ) -> list[list[Weights] | None]:
        """Cross-attention of every hypothesis, from one forced pass over all of them."""
        sources = [
            chunk.src_ids for chunk, found in zip(chunks, ranked, strict=True) for _ in found
        ]
        if not sources:
            return [None] * len(chunks)
        vocabs = self.src_vocab, self.tgt_vocab
        targets = [hypothesis.ids for found in ranked for hypothesis in found]
        weights = iter(cross_attention(model, vocabs, sources, targets, self.alignment_heads))
        return [[next(weights) for _ in found] for found in ranked]


UNWANTED = Translation(text="", status="unwanted")


def rows_of(options: DecodeOptions) -> int:
    """Hypotheses that are searched at the same time for each source."""
    return options.n_best if options.sample else options.beam_size


def _of_equals(is_wanted: IsWanted | None, same: Sequence[int]) -> IsWanted | None:
    """`is_wanted` for one of several equal items: as long as one of them is."""
    if is_wanted is None:
        return None
    items: dict[int, list[int]] = {}
    for item, place in enumerate(same):
        items.setdefault(place, []).append(item)
    return lambda place: any(map(is_wanted, items[place]))


def _of_batch(is_wanted: IsWanted | None, places: Sequence[int]) -> BatchIsWanted | None:
    """`is_wanted` for the sources of a batch, as searches ask."""
    if is_wanted is None:
        return None
    return lambda sources: np.array([is_wanted(places[source]) for source in sources.tolist()])
