"""The tree of a recorded search, as nodes and as lines for a terminal."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from heed.explain.decoding.record import REASONS, Candidate, Finished, SearchRecord
from heed.explain.render import without_controls
from heed.translate.result import Match

ROOT = "root"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A hypothesis: the empty one, or another one continued by one token.

    Attributes:
        id: `root`, or the numbers of step and candidate: `3.0`.
        parent: id of the node it continues; None for the root.
        candidate: the token it adds, with its scores and its fate; None for the root.
        finished: the finished hypothesis, if it ended here.
        rank: rank of the best finished hypothesis through it, from 1; None if there is none.
    """

    id: str
    parent: str | None
    candidate: Candidate | None
    finished: Finished | None
    rank: int | None


@dataclass(frozen=True)
class Tree:
    """All nodes of a search; an edge leads from each node's parent to it.

    Attributes:
        nodes: maps ids to nodes, parents before children, better before worse.
    """

    nodes: dict[str, Node]

    @cached_property
    def children(self) -> dict[str, list[Node]]:
        """The nodes that continue each node, by its id."""
        found: dict[str, list[Node]] = {each: [] for each in self.nodes}
        for node in self.nodes.values():
            if node.parent is not None:
                found[node.parent].append(node)
        return found

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Parent and child of each edge."""
        return [(node.parent, node.id) for node in self.nodes.values() if node.parent is not None]


def tree_of(record: SearchRecord) -> Tree:
    """Build the tree of a search."""
    parents = _parents(record)
    ranks: dict[str, int] = {}
    finished = {f"{each.step}.{each.candidate}": each for each in record.finished}
    for rank, name in enumerate(finished, start=1):
        at: str | None = name
        while at is not None and at not in ranks:
            ranks[at] = rank
            at = parents[at]
    nodes = {
        ROOT: Node(id=ROOT, parent=None, candidate=None, finished=None, rank=ranks.get(ROOT)),
    }
    for step in record.steps:
        for place, candidate in enumerate(step.candidates):
            name = f"{step.number}.{place}"
            nodes[name] = Node(
                id=name,
                parent=parents[name],
                candidate=candidate,
                finished=finished.get(name),
                rank=ranks.get(name),
            )
    return Tree(nodes)


def _parents(record: SearchRecord) -> dict[str, str | None]:
    found: dict[str, str | None] = {ROOT: None}
    for step in record.steps:
        at = {
            row.slot: ROOT if row.candidate is None else f"{step.number - 1}.{row.candidate}"
            for row in step.rows
        }
        for place, candidate in enumerate(step.candidates):
            found[f"{step.number}.{place}"] = at[candidate.parent]
    return found


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The characters for drawing a tree.

    Attributes:
        branch: before a child.
        last: before the last child.
        line: beside the descendants of a child.
        ended: after a hypothesis that ended.
        pruned: after one that was pruned.
    """

    branch: str
    last: str
    line: str
    ended: str
    pruned: str


DRAWN = Marks(branch="├─ ", last="└─ ", line="│  ", ended="✔", pruned="×")
ASCII = Marks(branch="|- ", last="`- ", line="|  ", ended="*", pruned="x")

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def tree_lines(
    record: SearchRecord,
    *,
    is_colored: bool,
    marks: Marks = DRAWN,
    with_pruned: bool = False,
) -> list[str]:
    """A search as text: its tree, why it stopped, what was pruned, its guide, and the ranking.

    A chain of tokens without a branch is one line, with the sum of its scores at the end.

    Args:
        record: the record of the search.
        is_colored: show the answer in bold and pruned hypotheses dim, by escape codes.
        marks: characters to draw with.
        with_pruned: also draw candidates that were pruned at once.
    """
    tree = tree_of(record)
    lines = [record.root, *_branches(tree, marks, with_pruned, is_colored)]
    lines += ["", f"{len(record.steps)} steps; {record.stop.sentence}."]
    lines += [*_pruned_counts(tree), *memory_lines(record.match), "", *_ranking(record, is_colored)]
    return lines


def memory_lines(match: Match | None) -> list[str]:
    """A line of text with the remembered pair that guided a search; none if no pair did."""
    if match is None:
        return []
    percent = math.floor(100 * match.similarity)
    pair = without_controls(f"{match.source} → {match.target}")
    return [f"Guided by a remembered pair, {percent} % similar: {pair}"]


def _branches(tree: Tree, marks: Marks, with_pruned: bool, is_colored: bool) -> list[str]:
    lines = []
    # Not by recursion: the tree of a long text is deeper than Python's stack.
    waiting = _children(tree, ROOT, "", with_pruned)
    while waiting:
        child, indent, is_last = waiting.pop()
        chain = [child]
        while len(following := _shown(tree, chain[-1].id, with_pruned)) == 1:
            chain.append(following[0])
        label = _chain_label(tree, chain, marks)
        style = _style(chain[-1]) if is_colored else ""
        lines.append(
            f"{indent}{marks.last if is_last else marks.branch}"
            f"{style}{label}{_PLAIN if style else ''}"
        )
        deeper = indent + (" " * len(marks.line) if is_last else marks.line)
        waiting += _children(tree, chain[-1].id, deeper, with_pruned)
    return lines


def _children(tree: Tree, at: str, indent: str, with_pruned: bool) -> list[tuple[Node, str, bool]]:
    """The children of a node, last first: each with its indentation, and whether it is the last."""
    shown = _shown(tree, at, with_pruned)
    return [(child, indent, child is shown[-1]) for child in reversed(shown)]


def _shown(tree: Tree, at: str, with_pruned: bool) -> list[Node]:
    return [
        child
        for child in tree.children[at]
        if with_pruned or (child.candidate and child.candidate.fate != "pruned")
    ]


def _chain_label(tree: Tree, chain: Sequence[Node], marks: Marks) -> str:
    added = [node.candidate for node in chain if node.candidate]
    pieces = " ".join(without_controls(each.piece) for each in added)
    last, node = added[-1], chain[-1]
    label = f"{pieces}  {_signed(last.total)}"
    if node.finished:
        return f"{label}  {marks.ended} score {_signed(last.score)}, rank {node.rank}"
    if last.fate == "pruned":
        return f"{label}  {marks.pruned} {REASONS[last.reason]}"
    if all(
        child.candidate and child.candidate.fate == "pruned" for child in tree.children[node.id]
    ):
        return f"{label}  {marks.pruned} no continuation stayed"
    return label


def _style(node: Node) -> str:
    if node.rank == 1:
        return _BOLD
    return "" if node.rank else _DIM


def _pruned_counts(tree: Tree) -> list[str]:
    counts = Counter(
        REASONS[node.candidate.reason]
        for node in tree.nodes.values()
        if node.candidate and node.candidate.fate == "pruned"
    )
    return [f"{count} pruned: {reason}." for reason, count in counts.most_common()]


def _ranking(record: SearchRecord, is_colored: bool) -> list[str]:
    lines = []
    for rank, each in enumerate(record.finished, start=1):
        cut = "" if each.status == "eos" else ", cut at the limit"
        lines += [f"{rank}. {without_controls(each.text)}{cut}", f"   {each.formula}"]
        if is_colored and each.is_answer:
            lines[-2] = f"{_BOLD}{lines[-2]}{_PLAIN}"
    return lines


def _signed(value: float) -> str:
    return f"{value:.3f}"
