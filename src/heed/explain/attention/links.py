"""Hard alignments: links between source and target words, their files and their error rate.

A link is `(source, target)`, both from 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.data.lines import read_lines
from heed.data.word_alignment import Link
from heed.errors import DataError
from heed.model.interface import Floats

_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")
_NAACL = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?(?:\s+[\d.]+)?")
_NEIGHBORS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


@dataclass(frozen=True, slots=True)
class Gold:
    """The manual alignment of one pair.

    Attributes:
        sure: links that must be found.
        possible: links that may be found, including the sure ones.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def strongest(weights: Floats) -> set[Link]:
    """For each target position, the source position with the largest weight.

    Args:
        weights: attention of target positions to source positions, `(n_target, n_source)`.
    """
    if not weights.shape[1]:
        return set()
    return {(int(source), target) for target, source in enumerate(weights.argmax(axis=1))}


def strongest_readers(weights: Floats) -> set[Link]:
    """For each source position, the target position that attends to it most.

    Args:
        weights: attention of target positions to source positions, `(n_target, n_source)`.
    """
    return {(source, target) for target, source in strongest(weights.T)}


def grow_diag(one: Iterable[Link], other: Iterable[Link]) -> set[Link]:
    """The links of both directions, extended by neighboring links of a single direction.

    A neighbor is added if its source or its target has no link yet, until none can be added.

    Source: Koehn, Och and Marcu 2003, "Statistical Phrase-Based Translation", section 4.5.
    """
    links, union = set(one) & set(other), set(one) | set(other)
    has_grown = True
    while has_grown:
        has_grown = False
        for source, target in sorted(links):
            for step, other_step in _NEIGHBORS:
                link = source + step, target + other_step
                has_source = any(i == link[0] for i, _ in links)
                has_target = any(j == link[1] for _, j in links)
                if link in union - links and not (has_source and has_target):
                    links.add(link)
                    has_grown = True
    return links


def pharaoh(links: Iterable[Link]) -> str:
    """Links in the form `0-0 1-2`, source first, sorted by target."""
    ordered = sorted(links, key=lambda link: (link[1], link[0]))
    return " ".join(f"{source}-{target}" for source, target in ordered)


def error_rate(found: Sequence[Iterable[Link]], gold: Sequence[Gold]) -> float:
    """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all pairs: 0 is best.

    Args:
        found: links of each pair.
        gold: sure and possible links of each pair.

    Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models",
        section 5.
    """
    n_agreed, n_counted = 0, 0
    for links, wanted in zip(map(set, found), gold, strict=True):
        n_agreed += len(links & wanted.sure) + len(links & wanted.possible)
        n_counted += len(links) + len(wanted.sure)
    return 1 - n_agreed / n_counted if n_counted else 0.0


def read_gold(path: str | Path, n_pairs: int | None = None) -> list[Gold]:
    """Read manual alignments.

    It reads two formats. Pharaoh: one line per pair, such as `0-0 1-2 2?3`, from 0, with `-` for
    sure and `?` or `p` for possible links. NAACL 2003: one line per link, `PAIR SOURCE TARGET S`,
    from 1, with `S` for sure, `P` for possible, and sure without either.

    Args:
        path: the file.
        n_pairs: number of pairs in the corpus; NAACL files omit pairs without links.

    Raises:
        DataError: a line has neither format, or the number of pairs is not `n_pairs`.
    """
    lines = list(read_lines(path))
    first = next((line for line in lines if line.strip()), "")
    if _NAACL.fullmatch(first.strip()):
        gold = _from_naacl(lines, str(path), n_pairs)
    else:
        gold = [_from_pharaoh(line, f"{path} line {n}") for n, line in enumerate(lines, start=1)]
    if n_pairs is not None and len(gold) != n_pairs:
        raise DataError(f"{path} must have alignments of {n_pairs} pairs, but has {len(gold)}.")
    return gold


def _from_pharaoh(line: str, where: str) -> Gold:
    sure, possible = set(), set()
    for item in line.split():
        match = _PHARAOH.fullmatch(item)
        if match is None:
            raise DataError(f"{where}: a link must be like 3-5 or 3?5, but is {item!r}.")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def _from_naacl(lines: list[str], path: str, n_pairs: int | None) -> list[Gold]:
    links: dict[int, tuple[set[Link], set[Link]]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = _NAACL.fullmatch(line.strip())
        if match is None or min(int(match[2]), int(match[3])) < 1:
            raise DataError(
                f"{path} line {number}: a link must be like 1 3 5 S, from 1, but is {line!r}."
            )
        sure, possible = links.setdefault(int(match[1]), (set(), set()))
        link = int(match[2]) - 1, int(match[3]) - 1
        possible.add(link)
        if match[4] != "P":
            sure.add(link)
    count = n_pairs or max(links, default=0)
    if outside := [number for number in links if not 1 <= number <= count]:
        raise DataError(f"{path} must have pairs from 1 to {count}, but has pair {outside[0]}.")
    nothing: tuple[set[Link], set[Link]] = (set(), set())
    found = [links.get(number, nothing) for number in range(1, count + 1)]
    return [Gold(frozenset(sure), frozenset(possible)) for sure, possible in found]
