"""What `heed evaluate` prints: scores of one system or two, by length, and the worst sentences."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from heed.errors import ConfigError, DataError
from heed.evaluate.counts import PLAIN, Counts, Numbers, Reading, count_chrf
from heed.evaluate.metrics import (
    RESAMPLES,
    SEED,
    Difference,
    Evaluation,
    count,
    difference_of,
    evaluation_of,
    find_doubts,
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """The scores of sentences of similar length.

    Attributes:
        label: a range of lengths such as `11-15`, in the unit of `Report.length_unit`.
        n_sentences: their number.
        scores: by system, then by metric.
    """

    label: str
    n_sentences: int
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """One sentence with the translation of each system.

    Attributes:
        number: its line number, from 1.
        source: None if no sources were given.
        reference: the first of its references.
        translations: by system.
        chrf: of this sentence alone, by system.
    """

    number: int
    source: str | None
    reference: str
    translations: Mapping[str, str]
    chrf: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Report:
    """The report on one or two systems.

    Attributes:
        evaluations: by system, in the order given.
        differences: by metric, the second system minus the first; empty for one system.
        buckets: by length, shortest first; empty unless requested.
        length_unit: what the buckets count: words or characters, of sources or references.
        worst: the sentences of lowest chrF; with two systems, those where the second is worst
            against the first.
    """

    evaluations: Mapping[str, Evaluation]
    differences: Mapping[str, Difference]
    buckets: Sequence[Bucket]
    length_unit: str
    worst: Sequence[JudgedLine]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        record: dict[str, Any] = {
            "systems": [
                {"name": name, **found.as_dict()} for name, found in self.evaluations.items()
            ]
        }
        if self.differences:
            record["comparison"] = {key: each.as_dict() for key, each in self.differences.items()}
        if self.buckets:
            record["length_unit"] = self.length_unit
            record["by_length"] = [asdict(bucket) for bucket in self.buckets]
        if self.worst:
            record["worst"] = [asdict(line) for line in self.worst]
        return record

    def as_text(self) -> str:
        """As text: scores and differences; if requested, also a table by length and sentences."""
        parts = [_scores(self), _differences(self)]
        if self.buckets:
            parts += ["", _bucket_table(self)]
        if self.worst:
            parts += ["", _worst_lines(self)]
        return "\n".join(part for part in parts if part is not None)


def report(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    sources: Sequence[str] | None = None,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    reading: Reading = PLAIN,
    source_lang: str = "",
    by_length: bool = False,
    length_edges: Sequence[int] = (5, 10, 15, 20, 30, 40),
    n_worst: int = 0,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    processes: int = 1,
    progress: Callable[[str, str, int], None] = lambda system, metric, n_done: None,
) -> Report:
    """Report on one system, or compare a second one with the first.

    Args:
        systems: translations by name; of two systems, the first is the baseline.
        references: one or more reference sets, each with a line for every translation.
        sources: the lines that were translated; their lengths are counted, and they are shown.
        metrics: keys of `metrics.METRICS`.
        reading: target language, tokenizer and case.
        source_lang: code; characters are counted if the language is written without blanks.
        by_length: also score groups of sentences of similar length; so does `n_worst`.
        length_edges: greatest length of each group but the last, in words (or characters) of the
            source, or of the first reference if there are no sources.
        n_worst: how many of the worst sentences to show.
        resamples: number of resampled sets for intervals and p-values.
        seed: of the resampling.
        processes: the largest number of processes that count TER, which takes the longest.
        progress: called with a system, a metric and the number of sentences done.

    Raises:
        ConfigError: if there is no system or more than two, or a metric or tokenizer is unknown.
        DataError: if there is nothing to score, counts differ, or the references are not nested.
        MissingExtraError: if sacreBLEU is not installed.
    """
    _require_sensible(systems, sources)
    counted = partial(count, metrics=metrics, processes=processes)
    counts = {
        name: counted(lines, references, reading=reading, progress=partial(progress, name))
        for name, lines in systems.items()
    }
    evaluations = {
        name: evaluation_of(
            counts[name], find_doubts(lines, references, metrics, reading), resamples, seed
        )
        for name, lines in systems.items()
    }
    if sources is None:
        unit, lengths = _lengths("reference", references[0], reading)
    else:
        unit, lengths = _lengths("source", sources, Reading(target_lang=source_lang))
    buckets = _buckets(counts, lengths, length_edges) if by_length or n_worst else []
    worst = _worst(n_worst, sources, references, systems, reading) if n_worst else []
    differences = _differences_between(*counts.values(), resamples=resamples, seed=seed)
    return Report(evaluations, differences, buckets, unit, worst)


def _require_sensible(systems: Mapping[str, Sequence[str]], sources: Sequence[str] | None) -> None:
    if not 1 <= len(systems) <= 2:
        raise ConfigError(f"A report needs one system or two, but is given {len(systems)}.")
    n_lines = len(next(iter(systems.values())))
    if sources is not None and len(sources) != n_lines:
        raise DataError(
            f"Each translation needs its source, but there are {n_lines} translations "
            f"and {len(sources)} sources."
        )


def _differences_between(
    first: Mapping[str, Counts], *others: Mapping[str, Counts], resamples: int, seed: int
) -> dict[str, Difference]:
    return {
        key: difference_of(first[key], second[key], resamples, seed)
        for second in others
        for key in first
    }


def _lengths(side: str, lines: Iterable[str], reading: Reading) -> tuple[str, Numbers]:
    """The unit, and the length of each line: words, or characters in a script without blanks."""
    if reading.counts_characters:
        unit, counted = "characters", [len("".join(line.split())) for line in lines]
    else:
        unit, counted = "words", [len(line.split()) for line in lines]
    return f"{side} {unit}", np.array(counted, dtype=np.float64)


def _buckets(
    counts: Mapping[str, Mapping[str, Counts]], lengths: Numbers, edges: Sequence[int]
) -> list[Bucket]:
    buckets = []
    for above, up_to in pairwise([-1, *edges, np.inf]):
        chosen = (lengths > above) & (lengths <= up_to)
        if not chosen.any():
            continue
        first = max(int(above) + 1, 0)
        label = f"{first}-{int(up_to)}" if up_to < np.inf else f"{first} or more"
        scores = {
            name: {key: counted.of(chosen) for key, counted in by_metric.items()}
            for name, by_metric in counts.items()
        }
        buckets.append(Bucket(label, int(chosen.sum()), scores))
    return buckets


def _sentence_chrf(
    lines: Sequence[str], references: Sequence[Sequence[str]], reading: Reading
) -> Numbers:
    """The chrF of each sentence; unlike BLEU, it is meaningful for a single one."""
    counted = count_chrf(lines, references, reading)
    return counted.score(counted.per_sentence)


def _worst(
    n_worst: int,
    sources: Sequence[str] | None,
    references: Sequence[Sequence[str]],
    systems: Mapping[str, Sequence[str]],
    reading: Reading,
) -> list[JudgedLine]:
    """The sentences, worst first; ties keep their order."""
    chrf = {name: _sentence_chrf(lines, references, reading) for name, lines in systems.items()}
    first, *rest = chrf.values()
    merit = rest[0] - first if rest else first
    order = np.argsort(merit, kind="stable")[:n_worst]
    return [_line(int(i), sources, references, systems, chrf) for i in order]


def _line(
    i: int,
    sources: Sequence[str] | None,
    references: Sequence[Sequence[str]],
    systems: Mapping[str, Sequence[str]],
    chrf: Mapping[str, Numbers],
) -> JudgedLine:
    return JudgedLine(
        number=i + 1,
        source=sources[i] if sources is not None else None,
        reference=references[0][i],
        translations={name: lines[i] for name, lines in systems.items()},
        chrf={name: float(scores[i]) for name, scores in chrf.items()},
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell: the first aligned left, numbers right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _scores(found: Report) -> str:
    lines = []
    for name, evaluation in found.evaluations.items():
        n = evaluation.n_sentences
        lines.append(f"{name}  ({n} {'sentence' if n == 1 else 'sentences'})")
        for score in evaluation.scores.values():
            interval = f"[{score.low:.2f}, {score.high:.2f}]"
            lines.append(
                f"  {score.name:<12} {score.value:6.2f}  {interval:<16}  {score.signature}"
            )
    return "\n".join(lines)


def _differences(found: Report) -> str | None:
    if not found.differences:
        return None
    lines = ["difference, second minus first"]
    for each in found.differences.values():
        interval = f"[{each.low:+.2f}, {each.high:+.2f}]"
        p_value = f"p = {each.p_value:.4f}"
        lines.append(f"  {each.name:<12} {each.value:+6.2f}  {interval:<16}  {p_value}")
    return "\n".join(lines)


def _bucket_table(found: Report) -> str:
    keys = list(next(iter(found.evaluations.values())).scores)
    header = [f"{name} {key}" for key in keys for name in found.evaluations]
    rows = [[found.length_unit, "sentences", *header]]
    for bucket in found.buckets:
        cells = [f"{bucket.scores[name][key]:.2f}" for key in keys for name in found.evaluations]
        rows.append([bucket.label, str(bucket.n_sentences), *cells])
    return table(rows)


def _worst_lines(found: Report) -> str:
    width = max(len(name) for name in ("reference", *found.evaluations))
    blocks = []
    for line in found.worst:
        rows = [("source", line.source)] if line.source is not None else []
        rows.append(("reference", line.reference))
        rows += [
            (name, f"{text}  (chrF {line.chrf[name]:.1f})")
            for name, text in line.translations.items()
        ]
        block = [f"line {line.number}", *(f"  {name.ljust(width)}  {text}" for name, text in rows)]
        blocks.append("\n".join(block))
    return "\n\n".join(blocks)
