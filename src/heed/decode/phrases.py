"""Phrases that a hypothesis must contain, and phrases that it must not, as sequences of ids.

`Progress` tracks the phrases of a hypothesis. `banks.py` divides the places of a beam between
hypotheses of different progress.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Form = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WordEdges:
    """Which ids begin or end within a word, so that part of a word does not count as a phrase.

    Attributes:
        begins_inside: ids whose text continues the word before it.
        ends_inside: ids whose text may be continued by one of those.
    """

    begins_inside: frozenset[int] = frozenset()
    ends_inside: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Phrases:
    """The required and forbidden phrases of one source.

    Attributes:
        required: the forms of each phrase, one of which must occur; no two phrases share an
            occurrence.
        banned: sequences of ids that must not occur.
        edges: which ids are within words, so that a phrase is not part of one.
    """

    required: tuple[tuple[Form, ...], ...] = ()
    banned: tuple[Form, ...] = ()
    edges: WordEdges = WordEdges()

    def __bool__(self) -> bool:
        return bool(self.required or self.banned)

    @property
    def n_ids(self) -> int:
        """The total number of ids of the shortest forms."""
        return sum(min(map(len, forms)) for forms in self.required)

    @property
    def ids(self) -> list[int]:
        """All ids of required phrases, ascending."""
        return sorted({id for forms in self.required for form in forms for id in form})


class State(NamedTuple):
    """The progress of a hypothesis with its phrases.

    Attributes:
        met: phrases that it has, one bit each.
        begun: the newest ids that may be the beginning of a missing phrase.
        is_after_word: whether the id before `begun` may be continued.
        within: phrases found within `begun`: number, start and end.
        last: the phrase that ended with the newest id, and may turn out to be part of a longer
            word; -1 if there is none.
        ends_inside: whether the newest id may be continued.
    """

    met: int
    begun: Form
    is_after_word: bool
    within: tuple[tuple[int, int, int], ...]
    last: int
    ends_inside: bool


START = State(0, (), False, (), -1, False)


class Progress:
    """The states of the hypotheses of one source; each step of each state is computed once.

    Args:
        phrases: of the source.
    """

    def __init__(self, phrases: Phrases) -> None:
        self.phrases = phrases
        self._edges = phrases.edges
        self._all = (1 << len(phrases.required)) - 1
        self._least = [min(map(len, forms)) for forms in phrases.required]
        # Phrases with few forms come first, so that others do not take their occurrences.
        self._order = sorted(range(len(self._least)), key=lambda n: len(phrases.required[n]))
        self._steps: dict[tuple[State, int], State] = {}
        self._remaining: dict[State, int] = {}
        self._next: dict[State, list[int]] = {}
        self._banned: dict[Form, list[int]] = {}
        for sequence in phrases.banned:
            self._banned.setdefault(sequence[:-1], []).append(sequence[-1])
        self._banned_lengths = sorted({len(before) for before in self._banned})

    @property
    def has_banned(self) -> bool:
        """Whether any sequence is banned."""
        return bool(self._banned)

    def has_all(self, state: State) -> bool:
        """Whether a hypothesis has all phrases."""
        return state.met == self._all

    def step(self, state: State, id: int) -> State:
        """The state after one more id."""
        key = (state, id)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._step(state, id)
        return found

    def remaining(self, state: State) -> int:
        """The smallest number of ids that completes the missing phrases."""
        found = self._remaining.get(state)
        if found is None:
            found = self._remaining[state] = self._count(state)
        return found

    def next_ids(self, state: State) -> list[int]:
        """The ids that begin or continue a missing phrase."""
        found = self._next.get(state)
        if found is None:
            found = self._next[state] = sorted(
                {
                    form[n]
                    for number, forms in self._missing(state.met)
                    for form in forms
                    for n in self._matches(state, form)
                    if n < len(form)
                }
            )
        return found

    def banned_ids(self, tokens: Sequence[int]) -> list[int]:
        """The ids that would complete a banned sequence.

        Args:
            tokens: of the hypothesis so far.
        """
        found: list[int] = []
        for length in self._banned_lengths:
            if length <= len(tokens):
                found += self._banned.get(tuple(tokens[len(tokens) - length :]), ())
        return found

    def _missing(self, met: int) -> list[tuple[int, tuple[Form, ...]]]:
        return [
            (number, forms)
            for number, forms in enumerate(self.phrases.required)
            if not met >> number & 1
        ]

    def _matches(self, state: State, form: Form) -> list[int]:
        """All numbers of newest ids that are the beginning of a form, 0 included."""
        found = []
        for start in range(len(state.begun) + 1):
            n = len(state.begun) - start
            if state.begun[start:] == form[:n] and self._may_start(state, start, form):
                found.append(n)
        return found

    def _may_start(self, state: State, start: int, form: Form) -> bool:
        """Whether a form may begin at this place of `begun`."""
        if any(first < start < end for _, first, end in state.within):
            return False
        if form[0] not in self._edges.begins_inside:
            return True
        if start == 0:
            # If no phrase is begun, the newest id is the one before.
            return not (state.is_after_word if state.begun else state.ends_inside)
        return state.begun[start - 1] not in self._edges.ends_inside

    def _step(self, state: State, id: int) -> State:
        met, within = state.met, state.within
        if state.last != -1 and state.ends_inside and id in self._edges.begins_inside:
            # The apparent phrase is the beginning of a longer word.
            met &= ~(1 << state.last)
            within = tuple(one for one in within if one[0] != state.last)
        begun = (*state.begun, id)
        before = state.is_after_word if state.begun else state.ends_inside
        now = State(met, begun, before, within, -1, id in self._edges.ends_inside)
        found = [self._with(now, start) for start in range(len(begun))]
        # The reading with most phrases; of equal ones that in which a longer phrase ends here.
        ends = [state for state in found if state.last != -1]
        return self._trimmed(max(ends, key=lambda state: state.met.bit_count(), default=now))

    def _with(self, state: State, start: int) -> State:
        """The state with the phrase that is all of `begun` from `start` on, if one is."""
        whole = self._completed(state, start)
        if whole == -1:
            return state
        # It revokes the occurrences of shorter ones within it.
        inside = sum(1 << number for number, first, _ in state.within if first >= start)
        return state._replace(
            met=state.met & ~inside | 1 << whole,
            within=(
                *(one for one in state.within if one[1] < start),
                (whole, start, len(state.begun)),
            ),
            last=whole,
        )

    def _completed(self, state: State, start: int) -> int:
        """The first missing phrase of which a form is all of `begun` from `start` on; -1 = none."""
        inside = {number for number, first, _ in state.within if first >= start}
        found = state.begun[start:]
        for number in self._order:
            forms = self.phrases.required[number]
            is_missing = not state.met >> number & 1 or number in inside
            if is_missing and found in forms and self._may_start(state, start, found):
                return number
        return -1

    def _trimmed(self, state: State) -> State:
        """The state with only those newest ids that may be the beginning of a phrase."""
        for start in range(len(state.begun)):
            rest = state.begun[start:]
            inside = {number for number, first, _ in state.within if first >= start}
            for number, forms in enumerate(self.phrases.required):
                if state.met >> number & 1 and number not in inside:
                    continue
                for form in forms:
                    is_longer = len(form) > len(rest) and form[: len(rest)] == rest
                    if is_longer and self._may_start(state, start, form):
                        return self._from(state, start)
        return self._from(state, len(state.begun))

    def _from(self, state: State, start: int) -> State:
        before = state.is_after_word
        if start:
            before = state.begun[start - 1] in self._edges.ends_inside
        if start == len(state.begun):
            before = False  # the newest id is the one before, and `ends_inside` is used for it
        within = tuple(
            (number, first - start, end - start)
            for number, first, end in state.within
            if end > start
        )
        return state._replace(begun=state.begun[start:], is_after_word=before, within=within)

    def _count(self, state: State) -> int:
        total, saved = 0, 0
        for number, forms in self._missing(state.met):
            total += self._least[number]
            for form in forms:
                for n in self._matches(state, form):
                    start = len(state.begun) - n
                    # Continuing this phrase revokes shorter phrases that are already found.
                    lost = sum(self._least[one] for one, first, _ in state.within if first >= start)
                    left = len(form) - n + lost
                    saved = max(saved, self._least[number] - left)
        return total - saved
