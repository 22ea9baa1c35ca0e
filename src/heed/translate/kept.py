"""Hypotheses that are kept, so that the same parts need not be searched twice.

At the end of a run, development sentences are searched to learn how to rank hypotheses. Then their
translations, ranked so, are looked at: they are among the same hypotheses.
"""

from collections.abc import Sequence
from dataclasses import replace

from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis
from heed.decode.state import IsWanted as BatchIsWanted
from heed.translate.empty import Search
from heed.translate.parts import Chunk
from heed.translate.rerank import Ranking, reranking

_Question = tuple[tuple[object, ...], DecodeOptions]


class KeptSearches:
    """Hypotheses of parts by their question and the options; satisfies `Ranking`.

    Attributes:
        adds: keep those of new searches too; if not, what is kept is only read.
        ranking: of hypotheses, kept or not; None = by their scores.
    """

    def __init__(self) -> None:
        self.adds = True
        self.ranking: Ranking | None = None
        self._kept: dict[_Question, list[Hypothesis]] = {}
        self._n_best: dict[_Question, int] = {}

    def applied(self, search: Search) -> Search:
        """The same search in the order of `ranking`; it leaves out parts that are kept."""

        def changed(
            parts: Sequence[Chunk], options: DecodeOptions, are_wanted: BatchIsWanted | None
        ) -> list[list[Hypothesis]]:
            # Samples differ by more than the question, and an unwanted part has no hypotheses.
            if options.sample or are_wanted is not None:
                return search(parts, options, are_wanted)
            every = replace(options, n_best=1)
            found = [self._of(part, (part.question, every), options.n_best) for part in parts]
            new = [place for place, some in enumerate(found) if some is None]
            if new:
                searched = search([parts[place] for place in new], options, None)
                for place, some in zip(new, searched, strict=True):
                    found[place] = some
                    self._keep((parts[place].question, every), some, options.n_best)
            return [some or [] for some in found]

        return reranking(changed, self.ranking)

    def _of(self, part: Chunk, question: _Question, n_best: int) -> list[Hypothesis] | None:
        n_kept = self._n_best.get(question, 0)
        # Beside a guide, or with required phrases, a search may end sooner if it keeps fewer.
        is_free = part.guide is None and part.phrases is None
        if n_kept == n_best or (n_kept > n_best and is_free):
            return self._kept[question][:n_best]
        return None

    def _keep(self, question: _Question, found: list[Hypothesis], n_best: int) -> None:
        if self.adds and n_best > self._n_best.get(question, 0):
            self._kept[question], self._n_best[question] = found, n_best
