"""How well a translator copes with real-world text: a table of scores on changed test sets.

A row is a copy of a test set with one kind of change (`translate/survival.py` makes them). Its
score is printed beside that of the same lines unchanged. Not here: the changes themselves.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from heed.evaluate.counts import PLAIN, Reading
from heed.evaluate.metrics import count
from heed.evaluate.report import table

View = Literal["as it is", "without case", "without final marks", "with plain marks"]
"""The form in which texts are compared. Whether capitals stay capitals is not judged."""

_FINAL = re.compile(r"[.!?…。．！？؟۔।։።]+(?=[\"'”’»“«」』)\]）]*\s*$)")
_PLAIN_MARKS = (
    *((mark, '"') for mark in ("“", "”", "„", "«", "»", "''")),
    *((mark, "'") for mark in ("‘", "’", "‚")),
    *((mark, "-") for mark in ("--", "–", "—", "‑")),
    ("…", "..."),
)
PAIR = "pair of tags"
"""The kind of two spans that must keep their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A changed copy of a test set, and how the answers to it are judged.

    Attributes:
        key: its name in JSON.
        label: its name in the table.
        sources: the changed lines.
        numbers: for each of them, the index of its line in the test set, from 0.
        references: one set or more, a line for each source; empty = judged without references.
        view: the form in which answers and references are compared.
        spans: for each source, the spans that its answer must contain, each as often as here; empty
            = nothing is counted.
        kinds: the kind of the spans of each source.
        is_rest: the spans are removed from an answer before it is compared.
        must_copy: an answer is right if it equals the source, or if the translator doubts it.
        has_terms: the translator got a glossary, and each answer says which terms it contains.
        reason: why there are no lines; "" if there are some.
    """

    key: str
    label: str
    sources: Sequence[str] = ()
    numbers: Sequence[int] = ()
    references: Sequence[Sequence[str]] = ()
    view: View = "as it is"
    spans: Sequence[Sequence[str]] = ()
    kinds: Sequence[str] = ()
    is_rest: bool = False
    must_copy: bool = False
    has_terms: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation.

    Attributes:
        text: the translated text.
        is_doubted: whether the translator doubts it.
        terms: for each glossary term in the source, whether the answer contains it.
    """

    text: str
    is_doubted: bool = False
    terms: Sequence[bool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result of one trial.

    Attributes:
        key: the trial's name in JSON.
        label: the trial's name in the table.
        n_lines: number of lines that were changed.
        bleu: of the answers; None without references.
        chrf: of the answers.
        clean_bleu: of the unchanged lines, compared in the same way.
        clean_chrf: of the unchanged lines.
        kept: share of the lines whose answers contain all spans as often as the source. If the
            lines must be copied: the share copied or doubted. With a glossary: the share of its
            terms that the answers contain. None if nothing must be kept.
        by_kind: for each kind of span, the same share and the number of lines.
        reason: why the trial has no result.
    """

    key: str
    label: str
    n_lines: int = 0
    bleu: float | None = None
    chrf: float | None = None
    clean_bleu: float | None = None
    clean_chrf: float | None = None
    kept: float | None = None
    by_kind: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    reason: str = ""

    @property
    def share(self) -> float | None:
        """BLEU as a share of the BLEU of the unchanged lines."""
        return self.bleu / self.clean_bleu if self.bleu is not None and self.clean_bleu else None


@dataclass(frozen=True, slots=True)
class Survival:
    """The whole table of results.

    Attributes:
        rows: one for each trial, the unchanged test set first.
        signatures: of the scores, as sacreBLEU writes them.
    """

    rows: Sequence[Row]
    signatures: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        rows = [{**asdict(row), "share_of_clean": row.share} for row in self.rows]
        return {"survival": rows, "signatures": dict(self.signatures)}

    def as_text(self) -> str:
        """As a table, followed by the trials without a result and why."""
        header = ["", "lines", "BLEU", "unchanged", "share", "chrF2", "unchanged", "kept"]
        there = [row for row in self.rows if not row.reason]
        lines = [table([header, *(_cells(row) for row in there)])]
        for row in there:
            lost = [
                f"{kind} {share:.1%} of {n}"
                for kind, (share, n) in row.by_kind.items()
                if share < 1
            ]
            if len(row.by_kind) > 1 and lost:
                lines.append(f"not all kept: {row.label}: {', '.join(lost)}")
        lines += [f"left out: {row.label}: {row.reason}" for row in self.rows if row.reason]
        lines += [f"{name}: {signature}" for name, signature in self.signatures.items()]
        return "\n".join(lines)


def judge(
    trials: Sequence[Trial],
    answers: Sequence[Sequence[Answer]],
    *,
    reading: Reading = PLAIN,
) -> Survival:
    """Score the answers to each trial.

    Args:
        trials: the first one is the unchanged test set.
        answers: the answers to the sources of each trial.
        reading: target language, tokenizer and case.

    Raises:
        DataError: if there is nothing to score, or the references are not nested.
        MissingExtraError: if sacreBLEU is not installed.
    """
    clean = [answer.text for answer in answers[0]]
    rows = [
        _row(trial, given, trials[0], clean, reading)
        for trial, given in zip(trials, answers, strict=True)
    ]
    counts = count(clean, trials[0].references, metrics=("bleu", "chrf"), reading=reading)
    return Survival(rows, {each.name: each.signature for each in counts.values()})


def _row(
    trial: Trial,
    answers: Sequence[Answer],
    original: Trial,
    clean: Sequence[str],
    reading: Reading,
) -> Row:
    row = Row(key=trial.key, label=trial.label, n_lines=len(answers), reason=trial.reason)
    if trial.reason:
        return row
    texts = [answer.text for answer in answers]
    if trial.must_copy:
        right = [
            answer.is_doubted or is_copied(source, answer.text)
            for source, answer in zip(trial.sources, answers, strict=True)
        ]
        return replace(row, kept=_mean(right), by_kind=_by_kind(trial.kinds, right))
    if trial.has_terms:
        row = replace(row, kept=_mean([term for answer in answers for term in answer.terms]))
    if trial.spans:
        right = [
            is_kept(spans, text, kind=kind)
            for spans, text, kind in zip(trial.spans, texts, trial.kinds, strict=True)
        ]
        row = replace(row, kept=_mean(right), by_kind=_by_kind(trial.kinds, right))
        if trial.is_rest:
            texts = [without(text, spans) for text, spans in zip(texts, trial.spans, strict=True)]
    bleu, chrf = _scores(texts, trial.references, trial.view, reading)
    if trial is original:
        return replace(row, bleu=bleu, chrf=chrf)
    before = [clean[number] for number in trial.numbers]
    known = [[lines[number] for number in trial.numbers] for lines in original.references]
    clean_bleu, clean_chrf = _scores(before, known, trial.view, reading)
    return replace(row, bleu=bleu, chrf=chrf, clean_bleu=clean_bleu, clean_chrf=clean_chrf)


def _scores(
    texts: Sequence[str], references: Sequence[Sequence[str]], view: View, reading: Reading
) -> tuple[float, float]:
    if view == "without case":
        reading = replace(reading, lowercase=True)
    look = _LOOKS.get(view, str)
    counts = count(
        [look(text) for text in texts],
        [[look(line) for line in lines] for lines in references],
        metrics=("bleu", "chrf"),
        reading=reading,
    )
    return counts["bleu"].of(), counts["chrf"].of()


def _without_final(text: str) -> str:
    return _FINAL.sub("", text)


def _with_plain_marks(text: str) -> str:
    for mark, plain in _PLAIN_MARKS:
        text = text.replace(mark, plain)
    return text


_LOOKS: dict[str, Callable[[str], str]] = {
    "without case": str.casefold,  # unlike lower(), it makes GROSS and groß equal
    "without final marks": _without_final,
    "with plain marks": _with_plain_marks,
}


def is_kept(spans: Sequence[str], text: str, *, kind: str = "") -> bool:
    """Whether a text contains each span as often as `spans` does, and a pair in the right order.

    A span inside a longer number or field, or a name inside a word, does not count. An ending may
    follow a name, as in German.
    """
    places: list[int] = []
    for span, wanted in Counter(spans).items():
        found = [match.start() for match in _whole(span, kind).finditer(text)]
        if len(found) != wanted:
            return False
        # The first two of `😀😀😀` are not a kept span `😀😀`.
        if kind == "emoji" and text.count(span[0]) != span.count(span[0]):
            return False
        places += found
    return kind != PAIR or places == sorted(places)


def _whole(span: str, kind: str) -> re.Pattern[str]:
    """A pattern for a span that is not part of something longer of its kind."""
    before, behind = "", ""
    if kind == "name" and span.isascii():
        before = r"(?<![^\W_])"
    elif span[0].isdigit():
        before = r"(?<!\d)(?<!\d[.,])"
    elif span[0] == "{":
        before = "(?<![{$])"
    if span[-1].isdigit():
        behind = r"(?!\d)(?![.,]\d)"
    return re.compile(before + re.escape(span) + behind)


def is_copied(source: str, text: str) -> bool:
    """Whether a text equals its source, apart from blanks and Unicode composition."""
    first, second = ("".join(unicodedata.normalize("NFC", each).split()) for each in (source, text))
    return first == second


def without(text: str, spans: Sequence[str]) -> str:
    """A text without the spans, and without the punctuation around a name."""
    for span in spans:
        text = re.sub(rf"(?:[\s(]|,(?=\s))*{re.escape(span)}[:)]?", " ", text, count=1)
    return " ".join(text.split())


def _mean(right: Sequence[bool]) -> float:
    return sum(right) / len(right)


def _by_kind(kinds: Sequence[str], right: Sequence[bool]) -> dict[str, tuple[float, int]]:
    found: dict[str, list[bool]] = {}
    for kind, is_right in zip(kinds, right, strict=True):
        found.setdefault(kind, []).append(is_right)
    return {kind: (_mean(all_of), len(all_of)) for kind, all_of in sorted(found.items())}


def _cells(row: Row) -> list[str]:
    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    def percent(value: float | None) -> str:
        return "" if value is None else f"{value:.1%}"

    return [
        row.label,
        str(row.n_lines),
        number(row.bleu),
        number(row.clean_bleu),
        percent(row.share),
        number(row.chrf),
        number(row.clean_chrf),
        percent(row.kept),
    ]
