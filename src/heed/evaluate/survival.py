"""How well a translator bears text as people write it: rows of one table, judged from strings.

A row is a copy of a test set that was changed in one way (`translate/survival.py` makes them). Its
score stands beside that of the same lines unchanged. Not here: what changes the lines.
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
"""What is compared: whether a sentence in capitals is translated into capitals is not judged."""

_FINAL = re.compile(r"[.!?…。．！？؟۔।։።]+(?=[\"'”’»“«」』)\]）]*\s*$)")
_PLAIN_MARKS = (
    *((mark, '"') for mark in ("“", "”", "„", "«", "»", "''")),
    *((mark, "'") for mark in ("‘", "’", "‚")),
    *((mark, "-") for mark in ("--", "–", "—", "‑")),
    ("…", "..."),
)
PAIR = "pair of tags"
"""The kind of two spans that have to keep their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A changed copy of a test set, and how the answers to it are judged.

    Attributes:
        key: its name in JSON.
        label: its name in the table.
        sources: the changed lines.
        numbers: the line of the test set that each comes from, from 0.
        references: one set or more, a line for each source; empty = judged without references.
        view: what of an answer is compared with a reference.
        spans: of each source, what its answer must hold, each as often as it stands here; empty =
            nothing is counted.
        kinds: the kind of the spans of each source.
        is_rest: spans are taken out of an answer before it is compared.
        must_copy: an answer is right if it is the source, or if the translator doubts it.
        has_terms: the translator got a glossary, and answers say which terms they have.
        reason: why there are no lines; "" if there are.
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
        text: of the translation.
        is_doubted: whether the translator itself doubts it.
        terms: whether each term of a glossary that occurs in the source stands in the answer.
    """

    text: str
    is_doubted: bool = False
    terms: Sequence[bool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One trial, judged.

    Attributes:
        key: of the trial.
        label: of the trial.
        n_lines: how many lines the change has changed.
        bleu: of the answers; None without references.
        chrf: of the answers.
        clean_bleu: of the unchanged lines, compared in the same way.
        clean_chrf: of the unchanged lines.
        kept: share of the lines whose spans all stand in their answers as often as in the source;
            of a trial whose lines must be copied, the share copied or doubted; of one with a
            glossary, the share of its terms that stand there. None where nothing has to be kept.
        by_kind: the same for each kind, and how many there are.
        reason: why the trial does not exist.
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
    """The whole table.

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
        """As a table, with what is not in it and why."""
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
    """Judge the answers to each trial.

    Args:
        trials: the first one is the unchanged test set.
        answers: to the sources of each.
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
    """Whether the spans stand in a text, each as often as it is given, and a pair in its order.

    A part of a longer number or field does not count, nor a name inside a word; an ending may
    follow a name, as in German.
    """
    places: list[int] = []
    for span, wanted in Counter(spans).items():
        found = [match.start() for match in _whole(span, kind).finditer(text)]
        if len(found) != wanted:
            return False
        # Of `😀😀😀` the first two are not a span `😀😀` that was kept.
        if kind == "emoji" and text.count(span[0]) != span.count(span[0]):
            return False
        places += found
    return kind != PAIR or places == sorted(places)


def _whole(span: str, kind: str) -> re.Pattern[str]:
    """Finds a span where it is not part of something longer of its kind."""
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
    """Whether a text is its source, apart from blanks and how letters are composed."""
    first, second = ("".join(unicodedata.normalize("NFC", each).split()) for each in (source, text))
    return first == second


def without(text: str, spans: Sequence[str]) -> str:
    """A text without the spans, and without what set a name apart."""
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
