"""What `time_to_quality.py` has measured, read: time to a score, equal time, tables, the picture.

Not here: measuring. Everything is a function of the runs' records (`Record`), so the tables and
the picture can be made again, and while the benchmark still goes on.
"""

import html
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OURS = "heed"
GRACE = 1.05
"""A peer saves when it saves: its moment may have cost so much more time than our end."""
SHARE_OF_BEST = 0.99
"""A curve wobbles around its end; this share of its best score counts as having arrived."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One moment of a training.

    Attributes:
        name: of the moment: the folder or file that held it.
        seconds: what it had cost when it was written, everything included.
        wall_s: the same by the clock on the wall.
        scores: metric → score on the test set; empty before it is translated.
        is_end: the finished model.
    """

    name: str
    seconds: float
    wall_s: float
    scores: dict[str, float] = field(default_factory=dict)
    is_end: bool = False


@dataclass(frozen=True, kw_only=True)
class Record:
    """One training, its moments in order.

    Attributes:
        case: which system and recipe.
        seed: of weights and order.
        time_s: seconds it was given.
        points: its moments.
    """

    case: str
    seed: int
    time_s: float
    points: list[Point]

    @property
    def end(self) -> Point | None:
        """The finished model, if it is scored."""
        return next((point for point in self.points if point.is_end and point.scores), None)


def is_ours(case: str) -> bool:
    """heed, in any of its cases."""
    return case.split()[0] == OURS


def best_by(record: Record, seconds: float = math.inf) -> Point | None:
    """What a run has to show by then: its finished model; without one, the best of its moments.

    Best by BLEU on the test set itself, which is generous to a peer.
    """
    known = [record.end] if record.end else [point for point in record.points if point.scores]
    known = [point for point in known if point.seconds <= seconds]
    return max(known, key=lambda point: point.scores["bleu"], default=None)


def seconds_to(records: Sequence[Record], score: float) -> float | None:
    """Seconds to a BLEU score, of one case and seed; None = never.

    A curve counts from where the line between two moments first meets the score. A system whose
    schedule ends with the time given has a run for each time: the shortest whose end reached it.
    """
    ends = [record.end for record in records if record.end]
    if ends:
        return min((end.seconds for end in ends if end.scores["bleu"] >= score), default=None)
    before = Point(name="", seconds=0.0, wall_s=0.0, scores={"bleu": 0.0})
    for point in (point for record in records for point in record.points if point.scores):
        low, high = before.scores["bleu"], point.scores["bleu"]
        if high >= score:
            share = (score - low) / (high - low) if score > low else 0.0
            return before.seconds + share * (point.seconds - before.seconds)
        before = point
    return None


def by_seed(records: Iterable[Record], case: str) -> dict[int, list[Record]]:
    """The records of one case."""
    found: dict[int, list[Record]] = {}
    for record in records:
        if record.case == case and any(point.scores for point in record.points):
            found.setdefault(record.seed, []).append(record)
    return found


def cases_of(records: Sequence[Record]) -> list[str]:
    """The cases that have a score, in their order."""
    return [case for case in dict.fromkeys(r.case for r in records) if by_seed(records, case)]


def targets(records: Sequence[Record], scores: Sequence[float]) -> dict[str, float]:
    """The scores to reach, by name: those asked for, and what each peer arrives at."""
    wanted = {f"BLEU {score:g}": score for score in scores}
    for case in cases_of(records):
        if not is_ours(case):
            arrived = [best_by(record) for record in _runs(records, case)]
            best = statistics.median(point.scores["bleu"] for point in arrived if point)
            wanted[f"{case}'s {SHARE_OF_BEST * best:.1f}"] = SHARE_OF_BEST * best
    return wanted


def time_table(records: Sequence[Record], scores: Sequence[float]) -> str:
    """Markdown: minutes to each score, the median of the seeds, and how many times ours that is."""
    wanted, cases = targets(records, scores), cases_of(records)
    rows = [
        f"| minutes to | {' | '.join(wanted)} | best BLEU |",
        "|---" + "|--:" * (len(wanted) + 1) + "|",
    ]
    ours = {name: _median_seconds(records, OURS, score) for name, score in wanted.items()}
    for case in cases:
        cells = []
        for name, score in wanted.items():
            seconds, reference = _median_seconds(records, case, score), ours[name]
            if seconds is None:
                longest = max(record.time_s for record in records if record.case == case)
                least, sign = longest, "> "
            else:
                least, sign = seconds, ""
            ratio = f" ({sign}{least / reference:.1f} ×)" if reference and case != OURS else ""
            cells.append(f"{sign}{least / 60:.1f}{ratio}")
        best = [best_by(record) for record in _runs(records, case)]
        values = [point.scores["bleu"] for point in best if point]
        rows.append(f"| {case} | {' | '.join(cells)} | {max(values):.2f} |")
    return "\n".join(rows)


def _median_seconds(records: Sequence[Record], case: str, score: float) -> float | None:
    """The median of the seeds; None if half of them never arrive."""
    found = by_seed(records, case)
    times = [seconds_to(runs, score) for runs in found.values()]
    if not times:
        return None
    middle = statistics.median(math.inf if seconds is None else seconds for seconds in times)
    return None if math.isinf(middle) else middle


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Our finished model beside a peer's best moment in the same time.

    Attributes:
        ours: our run.
        end: its model.
        theirs: the peer's run, of the same seed.
        best: its moment.
    """

    ours: Record
    end: Point
    theirs: Record
    best: Point


def pairings(records: Sequence[Record]) -> list[Pairing]:
    """Who meets whom at equal time, or a little more for the peer."""
    found = []
    for ours in records:
        for theirs in records:
            if is_ours(ours.case) and not is_ours(theirs.case) and ours.seed == theirs.seed:
                best = ours.end and best_by(theirs, GRACE * ours.end.seconds)
                if ours.end and best:
                    found.append(Pairing(ours=ours, end=ours.end, theirs=theirs, best=best))
    return found


def equal_time_table(differences: Sequence[tuple[Pairing, dict[str, Any]]]) -> str:
    """Markdown: a row for each time and peer; over the seeds the mean and the largest p."""
    groups: dict[tuple[str, float, str], list[tuple[Pairing, dict[str, Any]]]] = {}
    for pairing, found in differences:
        key = (pairing.ours.case, pairing.ours.time_s, pairing.theirs.case)
        groups.setdefault(key, []).append((pairing, found))
    rows = [
        "| case, minutes | peer | its BLEU | our BLEU | BLEU, p | chrF, p |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for (case, time_s, peer), members in sorted(groups.items()):
        theirs = statistics.mean(pairing.best.scores["bleu"] for pairing, _ in members)
        ours = statistics.mean(pairing.end.scores["bleu"] for pairing, _ in members)
        cells = []
        for metric in ("bleu", "chrf"):
            value = statistics.mean(found[metric].value for _, found in members)
            p_value = max(found[metric].p_value for _, found in members)
            cells.append(f"{value:+.2f}, {p_value:.3f}")
        cells = [f"{case}, {time_s / 60:g}", peer, f"{theirs:.2f}", f"{ours:.2f}", *cells]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


# ---- the picture

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 150, 24, 48
COLORS = ("#c2410c", "#1d4ed8", "#0e7490", "#7c3aed", "#4d7c0f", "#be185d")


@dataclass(frozen=True, kw_only=True)
class Axes:
    """From seconds (on a logarithmic axis) and scores to places in the picture."""

    first_s: float
    last_s: float
    top_score: float

    def x(self, seconds: float) -> float:
        """From the left."""
        share = math.log(seconds / self.first_s) / math.log(self.last_s / self.first_s)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, score: float) -> float:
        """From the top."""
        return round(HEIGHT - BOTTOM - score / self.top_score * (HEIGHT - TOP - BOTTOM), 1)


def picture(records: Sequence[Record], title: str) -> str:
    """Score over time as SVG: a line for each case and seed.

    Ours goes from the end of a run to the end of the next; how each got there stays faint.
    """
    points = [point for record in records for point in record.points if point.scores]
    seconds = [point.seconds for point in points]
    best = max(point.scores["bleu"] for point in points)
    axes = Axes(
        first_s=min(seconds) / 1.1,
        last_s=max(seconds) * 1.1,
        top_score=5 * math.ceil((best + 1) / 5),
    )
    parts = [_frame(axes, title)]
    labels = []
    for case, color in zip(cases_of(records), COLORS, strict=False):
        for runs in by_seed(records, case).values():
            ends = sorted((run.end for run in runs if run.end), key=lambda end: end.seconds)
            parts += [_line(axes, _scored(run), color, is_faint=bool(ends)) for run in runs]
            if ends:
                parts.append(_line(axes, ends, color, has_dots=True))
        last = max(_scored(*_runs(records, case)), key=lambda point: point.seconds)
        labels.append((axes.y(last.scores["bleu"]), case, color))
    parts.append(_labels(labels))
    return svg(parts)


def svg(parts: Iterable[str]) -> str:
    """The whole picture."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="system-ui, sans-serif" font-size="13"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _runs(records: Sequence[Record], case: str) -> list[Record]:
    return [run for runs in by_seed(records, case).values() for run in runs]


def _scored(*runs: Record) -> list[Point]:
    return [point for run in runs for point in run.points if point.scores]


def _line(
    axes: Axes,
    curve: Sequence[Point],
    color: str,
    *,
    is_faint: bool = False,
    has_dots: bool = False,
) -> str:
    places = [(axes.x(point.seconds), axes.y(point.scores["bleu"])) for point in curve]
    path = " ".join(f"{x},{y}" for x, y in places)
    style = f'stroke="{color}" stroke-width="{2.5 if has_dots else 1.6}"'
    style += ' opacity="0.35"' if is_faint else ""
    dots = [f'<circle cx="{x}" cy="{y}" r="4" fill="{color}"/>' for x, y in places if has_dots]
    return "\n".join([f'<polyline points="{path}" fill="none" {style}/>', *dots])


def _labels(labels: Sequence[tuple[float, str, str]]) -> str:
    """Each curve's name beside its end, moved down where two would meet."""
    parts, free = [], 0.0
    for y, case, color in sorted(labels):
        free = max(free + 16, y + 4)
        x = WIDTH - RIGHT + 12
        parts.append(f'<text x="{x}" y="{free:g}" fill="{color}">{case}</text>')
    return "\n".join(parts)


def _frame(axes: Axes, title: str) -> str:
    minutes = (0.25, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 240, 480)
    return frame(
        title,
        "minutes of training, start-up included",
        heights={score: axes.y(score) for score in range(0, int(axes.top_score) + 1, 5)},
        places={m: axes.x(60 * m) for m in minutes if axes.first_s <= 60 * m <= axes.last_s},
    )


def frame(
    title: str, below: str, *, heights: Mapping[float, float], places: Mapping[float, float]
) -> str:
    """White ground, the title, what is told below, and a grid with its numbers.

    Args:
        title: above the picture.
        below: what the numbers from left to right are.
        heights: of the lines across, by their numbers.
        places: of the lines down, likewise.
    """
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>',
        f'<text x="{(LEFT + right) / 2:g}" y="{HEIGHT - 10}" text-anchor="middle">{below}</text>',
    ]
    for value, y in heights.items():
        parts.append(f'<path d="M{LEFT} {y}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:g}" text-anchor="end">{value:g}</text>')
    for value, x in places.items():
        parts.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>')
    return "\n".join(parts)
