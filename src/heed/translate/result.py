"""The results of a `Translator`: plain records without torch."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from heed.text.scripts import is_written_solid
from heed.translate import notebook

Status = Literal["ok", "empty", "split", "max_length", "replaced_bytes", "unwanted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A reason to look at a translation, or at a place in it.

    Attributes:
        kind: the kind of reason.
        sentence: the reason in words.
        start: start of the place in the text of the translation; None = no single place.
        end: its end, one past the last character.
    """

    kind: str
    sentence: str
    start: int | None = None
    end: int | None = None


def difference(kind: str, what: str, missing: Sequence[str], extra: Sequence[str]) -> Doubt:
    """A doubt about what only one side has.

    Args:
        kind: of the doubt.
        what: the things compared, with a capital: `Numbers`.
        missing: those that only the source has.
        extra: those that only the translation has; one of the two is not empty.
    """
    sides = ((missing, "only in the source"), (extra, "only in the translation"))
    parts = [f"{', '.join(found)} {where}" for found, where in sides if found]
    return Doubt(kind=kind, sentence=f"{what} differ: {'; '.join(parts)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A pair of a translation memory that guided a search.

    Attributes:
        similarity: of its source with the one translated, 0 to 1.
        source: its source as the model reads it, with … for protected spans.
        target: its translation in the same form.
    """

    similarity: float
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """One line, translated. `str(translation)` is its text.

    Attributes:
        text: the translation; never holds a line break.
        score: log-probability after length normalization; larger is better.
        log_prob: natural log of the probability of all target tokens, `<eos>` included.
        tokens: target pieces, without `<eos>`.
        token_scores: log-probability of each token and, if the sentence ended, of `<eos>`.
        source_tokens: source pieces as the model read them, without special ones.
        alignment: how strongly each target token read each source token, as in `Alignment`,
            `(n_tokens, n_source_tokens)`; None unless requested.
        alternatives: the next best translations, best first.
        status: `ok`; `empty` for a blank line; `split` when the line was too long and was
            translated in parts, each of which has a doubt `max_length` if it was cut off;
            `max_length` when the search was cut off before `<eos>`;
            `replaced_bytes` when the input was not valid UTF-8; `unwanted` when the caller ended
            the search.
        doubts: reasons to look at it, see `heed.translate.doubts`.
        confidence: probability that it is right; None = the model is not calibrated.
        matches: pairs of a memory that guided its search: at most one a part, and one a text inside
            a protected span.
    """

    text: str
    score: float = 0.0
    log_prob: float = 0.0
    tokens: list[str] = field(default_factory=list)
    token_scores: list[float] = field(default_factory=list)
    source_tokens: list[str] = field(default_factory=list)
    alignment: list[list[float]] | None = None
    alternatives: tuple["Translation", ...] = ()
    status: Status = "ok"
    doubts: tuple[Doubt, ...] = ()
    confidence: float | None = None
    matches: tuple[Match, ...] = ()

    def __str__(self) -> str:
        return self.text

    def links(self) -> list[tuple[int, int]]:
        """For each target token the source token with the largest weight: `(source, target)`."""
        return strongest_links(self.alignment or [])

    def _repr_html_(self) -> str:
        chances = [f"{math.exp(score):.1%}" for score in self.token_scores]
        pieces = [*self.tokens, "<eos>"][: len(chances)]
        html = f"<p>{notebook.isolated(self.text)}</p>"
        html += f"<p>score {self.score:.3f}, log-probability {self.log_prob:.3f}, {self.status}</p>"
        if pieces:
            html += notebook.table(["token", "probability"], zip(pieces, chances, strict=True))
        if self.alignment:
            html += notebook.matrix(self.alignment, self.tokens, self.source_tokens)
        if self.alternatives:
            others = [(other.text, f"{other.score:.3f}") for other in self.alternatives]
            html += notebook.table(["alternative", "score"], others)
        return html


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """The probability of a given translation.

    Attributes:
        tokens: target pieces, `<eos>` last.
        token_scores: natural log of each token's probability.
        status: `ok`; `too_long` when a side has more tokens than the model reads at once: then
            there are no tokens, and both sums are NaN.
    """

    tokens: list[str]
    token_scores: list[float]
    status: Literal["ok", "too_long"] = "ok"

    @property
    def log_prob(self) -> float:
        """Natural log of the probability of the whole translation."""
        return math.nan if self.status == "too_long" else sum(self.token_scores)

    @property
    def score(self) -> float:
        """`log_prob` per token: comparable between long and short translations."""
        return self.log_prob / max(1, len(self.token_scores))


@dataclass(frozen=True, slots=True, kw_only=True)
class NextToken:
    """A possible next target piece (`▁` begins a word) and its probability."""

    token: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A possible next piece, and the best whole translation that continues with it."""

    token: str
    probability: float
    translation: Translation


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """An alignment of target tokens with source tokens.

    Attributes:
        source_tokens: source pieces.
        target_tokens: target pieces.
        weights: cross-attention, the mean over heads, `(n_target_tokens, n_source_tokens)`. The
            columns of `</s>` and language tags are left out, so a row sums to less than 1.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    weights: list[list[float]]

    def links(self) -> list[tuple[int, int]]:
        """For each target token the source token with the largest weight: `(source, target)`."""
        return strongest_links(self.weights)

    def _repr_html_(self) -> str:
        return notebook.matrix(self.weights, self.target_tokens, self.source_tokens)


def strongest_links(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """A hard alignment from a soft one: `(source, target)` positions, a pair per target token."""
    return [
        (max(range(len(row)), key=row.__getitem__), target)
        for target, row in enumerate(weights)
        if row
    ]


def keep_distinct(translation: Translation, count: int) -> Translation:
    """The translation with the `count` best of its alternatives, all of different text.

    Two hypotheses of different pieces may be the same text.
    """
    texts = {"", translation.text}
    kept: list[Translation] = []
    for other in translation.alternatives:
        if other.text not in texts and len(kept) < count:
            texts.add(other.text)
            kept.append(other)
    return replace(translation, alternatives=tuple(kept))


def join_parts(parts: list[Translation]) -> Translation:
    """The translation of a line, joined from those of its parts."""
    if not parts:
        return Translation(text="", status="empty")
    if len(parts) == 1:
        return parts[0]
    if lost := [part for part in parts if part.status == "unwanted"]:
        return lost[0]
    n_best = 1 + max(len(part.alternatives) for part in parts)
    ranked = []
    for rank in range(n_best):
        # A part with fewer translations than others repeats its last one.
        chosen = [[part, *part.alternatives][: rank + 1][-1] for part in parts]
        ranked.append(_concatenated(chosen))
    return replace(ranked[0], alternatives=tuple(ranked[1:]))


def _concatenated(parts: list[Translation]) -> Translation:
    text = ""
    doubts: list[Doubt] = []
    for part in parts:
        is_spaced = (
            text
            and part.text
            and not (is_written_solid(text[-1]) or is_written_solid(part.text[0]))
        )
        text += " " if is_spaced else ""
        doubts += [moved(doubt, len(text)) for doubt in part.doubts]
        text += part.text
    n_tokens = sum(max(1, len(part.token_scores)) for part in parts)
    # Of the ends of sentences only the last one has a score: it alone follows the last token.
    *earlier, last = parts
    scores = [score for part in earlier for score in part.token_scores[: len(part.tokens)]]
    has_scores = all(part.token_scores or not part.tokens for part in parts)
    return Translation(
        text=text,
        score=sum(part.score * max(1, len(part.token_scores)) for part in parts) / n_tokens,
        log_prob=sum(part.log_prob for part in parts),
        tokens=[token for part in parts for token in part.tokens],
        token_scores=[*scores, *last.token_scores] if has_scores else [],
        source_tokens=[token for part in parts for token in part.source_tokens],
        alignment=_alignment_of(parts),
        status="split",
        doubts=tuple(doubts),
        confidence=_least(part.confidence for part in parts),
        matches=tuple(match for part in parts for match in part.matches),
    )


def _alignment_of(parts: list[Translation]) -> list[list[float]] | None:
    """The alignment of a line, joined from those of its parts; None if no part has one."""
    # The matrix has all tokens of the line on both sides, so it is made only if it is needed.
    if all(part.alignment is None for part in parts):
        return None
    n_columns = sum(len(part.source_tokens) for part in parts)
    alignment: list[list[float]] = []
    start = 0
    for part in parts:
        n_own = len(part.source_tokens)
        after = n_columns - start - n_own
        rows = part.alignment or [[0.0] * n_own] * len(part.tokens)
        alignment += [[0.0] * start + row + [0.0] * after for row in rows]
        start += n_own
    return alignment


def _least(confidences: Iterable[float | None]) -> float | None:
    """The confidence of a line: that of its worst part; None if a part has none."""
    known = list(confidences)
    return None if None in known else min(one for one in known if one is not None)


def moved(doubt: Doubt, by: int) -> Doubt:
    """A doubt about a translation that now starts `by` characters later."""
    if doubt.start is None or doubt.end is None:
        return doubt
    return replace(doubt, start=doubt.start + by, end=doubt.end + by)
