"""Learn to judge translations of a model, from its training and development pairs.

Good pairs are development pairs, and the model's own translations of their sources that are right.
Bad pairs are the same with a fault put in (`faults.py`). From its own translations, the model's
confidence is learned too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.doubts import WORD_ARRAYS, Fit, Judgment
from heed.data.links import Counted
from heed.errors import DataError
from heed.evaluate.counts import count_chrf, reading_here
from heed.machine.seeds import derived_random
from heed.text.vocab import Vocab
from heed.translate.doubts.faults import cut_clause, cut_stretch, in_no_language
from heed.translate.doubts.features import NAMES, SOURCE, TEXT, measure, places_of
from heed.translate.doubts.fit import calibration_error, fit, knots_of, logistic, unseen
from heed.translate.doubts.scripts import USUAL, script_shares
from heed.translate.doubts.words import N_VALUES, Words, learn_words
from heed.translate.result import Translation

RIGHT = 50.0
"""A translation counts as right when its sentence chrF2 against the reference is at least this."""

LEAST_PAIRS = 100
"""Fewer development pairs say too little."""

MOST_PAIRS = 1000
"""More development pairs would take longer and say little more."""

PAIRS_PER_SECOND = 4
"""After a run of less than four minutes fewer pairs are read: so many for each second of it."""

LEAST_TRAINING_PAIRS = 1000
"""Fewer training pairs do not tell which pieces translate which."""

FALSE_ALARMS = {
    "left_out": 0.010,
    "added": 0.003,
    "wrong_language": 0.001,
    "source_language": 0.001,
}
"""The share of good development pairs that may be called doubtful, by kind."""

Cut = Callable[[str, np.random.Generator], str | None]

CUTS: tuple[Cut, ...] = (cut_stretch, cut_stretch, cut_stretch, cut_clause)
"""How something is cut out of a good text to learn from; one in each way."""

BENT = frozenset({"left_out", "added"})
"""Kinds whose regressions bend: how much may be uncovered depends on how usual that is."""

LOW_SCORES = 0.002
"""The same of a low mean log-probability, and of low confidence among right translations."""

MOST_LOW_CONFIDENCE = 0.2
"""A higher confidence is never called low."""

Numbers = NDArray[np.float64]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The functions that give pairs their numbers.

    Attributes:
        translate: translates texts, without doubts; each with the index of its development pair,
            which may have its own target language.
        score: the probabilities of given translations, with the pieces of both sides; likewise.
        read: the pieces of both sides alone; likewise.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        target_lang: code of the target language; "" if there are several.
    """

    translate: Callable[[Sequence[str], Sequence[int]], list[Translation]]
    score: Callable[[Pairs, Sequence[int]], list[Translation]]
    read: Callable[[Pairs, Sequence[int]], list[Translation]]
    src_vocab: Vocab
    tgt_vocab: Vocab
    target_lang: str


def n_pairs_after(time_s: float | None) -> int:
    """The most development pairs to read after a run of this many seconds; None = no limit."""
    if time_s is None:
        return MOST_PAIRS
    return max(2 * LEAST_PAIRS, min(MOST_PAIRS, round(PAIRS_PER_SECOND * time_s)))


def validations_after(time_s: float | None) -> float:
    """The duration of calibration after such a run, in validations of 500 translations.

    After ten minutes on three corpora, one of 500 development pairs and two of 1,000, it took 4.8
    to 6.0, and after a minute, with 240 pairs, 3.7; some of it is for the training pairs.
    """
    return 2.0 + 5.0 * n_pairs_after(time_s) / MOST_PAIRS


def calibrate(model: Sources, pairs: Pairs, training: Counted | None) -> Judgment:
    """Learn to judge translations of a model.

    Args:
        model: that is judged.
        pairs: development pairs, at most `MOST_PAIRS`, both sides of which have text.
        training: the pairs it was trained on; None, or too few = nothing is learned about pieces.

    Raises:
        DataError: there are fewer than `LEAST_PAIRS` development pairs.
    """
    if len(pairs) < LEAST_PAIRS:
        raise DataError(
            f"At least {LEAST_PAIRS} development pairs are needed to learn which translations are "
            f"doubtful, but there {'is' if len(pairs) == 1 else 'are'} {len(pairs)}."
        )
    arrays = {}
    if training is not None and len(training) >= LEAST_TRAINING_PAIRS:
        arrays = learn_words(training, model.src_vocab, model.tgt_vocab)
    words = Words(arrays or _nothing(model), model.src_vocab, model.tgt_vocab)
    places = range(len(pairs))
    own = model.translate([src for src, _ in pairs], places)
    is_right = are_right(model, pairs, own)
    good = model.score(pairs, places)
    found = Judgment(
        fits=_fits(model, words, pairs, (good, own), is_right) if arrays else {},
        low_score=float(np.quantile([_mean(each) for each in good], LOW_SCORES)),
        right=RIGHT,
        scripts=tuple(
            name for name, share in script_shares(tgt for _, tgt in pairs).items() if share >= USUAL
        ),
        n_pairs=len(pairs),
        words=arrays or _nothing(model),
    )
    return _with_confidence(found, measure(words, own).values, is_right)


def are_right(model: Sources, pairs: Pairs, own: Sequence[Translation]) -> NDArray[np.bool_]:
    """Which translations are right: sentence chrF2 of at least `RIGHT`, `(n,)`."""
    counts = count_chrf(
        [each.text for each in own], [[tgt for _, tgt in pairs]], reading_here(model.target_lang)
    )
    is_right: NDArray[np.bool_] = counts.score(counts.per_sentence) >= RIGHT
    return is_right


def _with_confidence(found: Judgment, features: Numbers, is_right: NDArray[np.bool_]) -> Judgment:
    held_out = logistic(unseen(features, is_right))
    low = np.quantile(held_out[is_right], LOW_SCORES) if is_right.any() else 0.0
    return replace(
        found,
        confidence=fit(features, is_right),
        low_confidence=round(min(float(low), MOST_LOW_CONFIDENCE), 4),
        error=round(calibration_error(held_out, is_right), 4),
    )


def _fits(
    model: Sources,
    words: Words,
    pairs: Pairs,
    found: tuple[list[Translation], list[Translation]],
    is_right: NDArray[np.bool_],
) -> dict[str, Fit]:
    """A regression for each kind of fault, for given translations and for those of a search.

    The probabilities of a model's own translations say little about their faults, because a search
    finds faults only if they are probable. For them only pieces are used.

    Args:
        model: the model that is judged.
        words: statistics about pieces.
        pairs: development pairs.
        found: these with their pieces, and the model's translations of their sources.
        is_right: of the latter, `(n_pairs,)`.
    """
    good, own = found
    places = np.flatnonzero(is_right).tolist()
    right = {place: (pairs[place][0], own[place].text) for place in places}
    every, text, source = (places_of(names) for names in (NAMES, TEXT, SOURCE))

    def measured(made: Made) -> _Rows:
        """Given pairs, compared with the model's translations of their sources."""
        origins = [place for place, _, _ in made]
        changed = [(src, place) for place, src, _ in made if src != pairs[place][0]]
        found = model.translate([src for src, _ in changed], [place for _, place in changed])
        others = dict(zip(changed, found, strict=True))
        beside = [others.get((src, place), own[place]) for place, src, _ in made]
        scored = model.score([(src, tgt) for _, src, tgt in made], origins)
        return _Rows(measure(words, scored, beside).values, np.array(origins, int))

    def read_only(made: Made) -> _Rows:
        """Given pairs by their pieces alone."""
        origins = [place for place, _, _ in made]
        found = model.read([(src, tgt) for _, src, tgt in made], origins)
        return _Rows(measure(words, found).values, np.array(origins, int))

    by_people = _Rows(measure(words, good, own).values, np.arange(len(pairs)))
    again = measured([(place, *pair) for place, pair in right.items()])
    searched = _Rows(measure(words, own).values[is_right], again.groups)
    fits = {}
    for kind, made in _faults(pairs, right).items():
        if len(made) < LEAST_PAIRS // 4:
            continue
        most, has_knots = FALSE_ALARMS[kind], kind in BENT
        if kind == "source_language":
            # Only the source counts. Translations of text in no language are long, and so slow.
            fits[kind] = _fitted([by_people], read_only(made), source, most)
            continue
        bad = measured(made)
        fits[f"{kind}.given"] = _fitted([by_people, again], bad, every, most, has_knots=has_knots)
        # If a model is wrong less often than alarms are false, most alarms are about right answers.
        if 1 - is_right.mean() > most:
            fits[f"{kind}.searched"] = _fitted(
                [by_people, searched], bad, text, most, has_knots=has_knots
            )
    return fits


class _Rows(NamedTuple):
    """Numbers of some pairs.

    Attributes:
        values: a row a pair, in the order of `NAMES`, `(n, n_features)`.
        groups: the development pair of each, `(n,)`.
    """

    values: Numbers
    groups: NDArray[np.int64]


Made = list[tuple[int, str, str]]
"""Pairs with faults: the place of the development pair, source and translation."""


def _faults(pairs: Pairs, right: Mapping[int, tuple[str, str]]) -> dict[str, Made]:
    """Good pairs with faults, by kind.

    Args:
        pairs: development pairs.
        right: by index, the pairs whose source the model translates well, with its translation.
    """
    random = derived_random(0, "doubts", "faults")
    left_out: Made = []
    added: Made = []
    good = [*enumerate(pairs), *right.items()]
    for place, (src, tgt) in good:
        left_out += [(place, src, shorter) for shorter in _shorter(tgt, random, CUTS)]
        # The model has to translate the new source of each: one is enough.
        added += [(place, shorter, tgt) for shorter in _shorter(src, random, CUTS[:1])]
    some = pairs[: len(pairs) // 4]
    odd_sources = in_no_language([src for src, _ in some], random)
    odd_targets = in_no_language([tgt for _, tgt in some], random)
    long = [place for place, (src, tgt) in enumerate(some) if src != tgt and len(src.split()) > 3]
    return {
        "left_out": left_out,
        "added": added,
        "wrong_language": [
            (n, some[n][0], other) for n in long for other in (some[n][0], odd_targets[n])
        ],
        "source_language": [
            (n, other, some[n][1]) for n in long for other in (some[n][1], odd_sources[n])
        ],
    }


def _shorter(text: str, random: np.random.Generator, cuts: Sequence[Cut]) -> list[str]:
    """A text with one part cut out, in several ways, each once."""
    made = [cut(text, random) for cut in cuts]
    return [*dict.fromkeys(each for each in made if each)]


def _fitted(
    good: list[_Rows],
    bad: _Rows,
    places: list[int],
    false_alarms: float,
    *,
    has_knots: bool = False,
) -> Fit:
    """A regression on some of the features; the others have the weight 0."""
    good_values, good_groups = map(np.concatenate, zip(*good, strict=True))
    values = np.concatenate([good_values, bad.values])
    groups = np.concatenate([good_groups, bad.groups])
    is_bad = np.arange(len(values)) >= len(good_values)
    features = values[:, places]
    bends = knots_of(features) if has_knots else ()
    held_out = unseen(features, is_bad, knots=bends, groups=groups)
    found = fit(features, is_bad, bends)
    # Rounded up, so that no more good pairs than allowed are called doubtful.
    ends = np.cumsum([len(group.values) for group in good])
    groups_of_good = [group for group in np.split(held_out[: ends[-1]], ends[:-1]) if len(group)]
    threshold = max(
        float(np.quantile(group, 1 - false_alarms, method="higher")) for group in groups_of_good
    )
    n_rows, n_places = len(bends), len(places)
    weights, knots = np.zeros((1 + n_rows, len(NAMES))), np.zeros((n_rows, len(NAMES)))
    weights[:, places] = np.reshape(found.weights, (1 + n_rows, n_places))
    knots[:, places] = np.reshape(bends, (n_rows, n_places))
    return Fit(
        weights=tuple(weights.ravel().tolist()),
        bias=found.bias,
        threshold=threshold,
        knots=tuple(tuple(row) for row in knots.tolist()),
    )


def _mean(found: Translation) -> float:
    return sum(found.token_scores) / max(1, len(found.token_scores))


def _nothing(model: Sources) -> dict[str, NDArray[np.generic]]:
    """Arrays without statistics about any piece."""
    sizes = model.src_vocab.size, model.tgt_vocab.size
    links = [np.zeros(0, np.int32)] * 2 + [np.zeros(0, np.uint8)]
    values = [np.zeros((size, N_VALUES), np.float32) for size in sizes]
    return dict(zip(WORD_ARRAYS, [*links, *values], strict=True))
