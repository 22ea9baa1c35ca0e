"""Learn what translations of a model are judged by, from its training and development pairs.

Good pairs are development pairs; bad ones are the same with a fault put in (`faults.py`). What the
model itself makes of the sources tells how probable a right translation is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heed.bundle.doubts import WORD_ARRAYS, Fit, Judgment
from heed.data.store import Store
from heed.errors import DataError
from heed.evaluate.counts import count_chrf, reading_here
from heed.machine.seeds import derive_seed
from heed.text.vocab import Vocab
from heed.translate.doubts.faults import cut_stretch, in_no_language
from heed.translate.doubts.features import NAMES, SOURCE, TEXT, measure, places_of
from heed.translate.doubts.fit import calibration_error, fit, logistic, unseen
from heed.translate.doubts.scripts import USUAL, script_shares
from heed.translate.doubts.words import N_VALUES, Words, learn_words
from heed.translate.result import Translation

RIGHT = 50.0
"""A translation counts as right when its sentence chrF2 against the reference is at least this."""

LEAST_PAIRS = 100
"""Fewer development pairs say too little."""

MOST_PAIRS = 1000
"""More development pairs would take longer and say little more."""

LEAST_TRAINING_PAIRS = 1000
"""Fewer training pairs do not tell which pieces translate which."""

FALSE_ALARMS = {
    "left_out": 0.010,
    "added": 0.003,
    "wrong_language": 0.001,
    "source_language": 0.001,
}
"""The share of good development pairs that may be called doubtful, by kind."""

LOW_SCORES = 0.002
"""The same of a low mean log-probability, and of low confidence among right translations."""

MOST_LOW_CONFIDENCE = 0.2
"""A higher confidence is never called low."""

Numbers = NDArray[np.float64]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Sources:
    """How the pairs get their numbers.

    Attributes:
        translate: translates texts, without looking for doubts.
        score: the probabilities of given translations, with the pieces of both sides.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        target_lang: code of the target language.
    """

    translate: Callable[[Sequence[str]], list[Translation]]
    score: Callable[[Pairs], list[Translation]]
    src_vocab: Vocab
    tgt_vocab: Vocab
    target_lang: str


def calibrate(model: Sources, pairs: Pairs, training: Store | None) -> Judgment:
    """Learn to judge translations of a model.

    Args:
        model: that is judged.
        pairs: development pairs; of more than `MOST_PAIRS` the first are read.
        training: the pairs it was trained on; None, or too few = nothing is learned of pieces.

    Raises:
        DataError: there are fewer than `LEAST_PAIRS` development pairs.
    """
    pairs = [(src, tgt) for src, tgt in pairs if src.strip() and tgt.strip()][:MOST_PAIRS]
    if len(pairs) < LEAST_PAIRS:
        raise DataError(
            f"At least {LEAST_PAIRS} development pairs are needed to learn when to doubt, but "
            f"there are {len(pairs)}."
        )
    arrays = {}
    if training is not None and len(training) >= LEAST_TRAINING_PAIRS:
        arrays = learn_words(training, model.src_vocab, model.tgt_vocab)
    words = Words(arrays or _nothing(model), model.src_vocab, model.tgt_vocab)
    own = model.translate([src for src, _ in pairs])
    good = model.score(pairs)
    found = Judgment(
        fits=_fits(model, words, pairs, good, own) if arrays else {},
        low_score=float(np.quantile([_mean(each) for each in good], LOW_SCORES)),
        right=RIGHT,
        scripts=tuple(
            name for name, share in script_shares(tgt for _, tgt in pairs).items() if share >= USUAL
        ),
        n_pairs=len(pairs),
        words=arrays or _nothing(model),
    )
    return _with_confidence(found, measure(words, own).values, are_right(model, pairs, own))


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
    good: Sequence[Translation],
    own: Sequence[Translation],
) -> dict[str, Fit]:
    """A regression for each kind of fault, for given translations and for those of a search.

    The probabilities of its own translations say little about their faults, since the search has
    made the faults probable: there, pieces alone count.
    """
    good_features, own_features = measure(words, good).values, measure(words, own).values
    every, text, source = (places_of(names) for names in (NAMES, TEXT, SOURCE))
    fits = {}
    for kind, bad_pairs in _faults(pairs).items():
        if len(bad_pairs) < LEAST_PAIRS // 4:
            continue
        bad = measure(words, model.score(bad_pairs)).values
        most = FALSE_ALARMS[kind]
        if kind == "source_language":
            fits[kind] = _fitted(good_features, bad, source, most)
            continue
        fits[f"{kind}.given"] = _fitted(good_features, bad, every, most)
        both = np.concatenate([good_features, own_features])
        fits[f"{kind}.searched"] = _fitted(both, bad, text, most)
    return fits


def _faults(pairs: Pairs) -> dict[str, Pairs]:
    """Development pairs with faults, by kind."""
    random = np.random.Generator(np.random.Philox(key=derive_seed(0, "doubts", "faults")))
    left_out, added = [], []
    for src, tgt in pairs:
        if shorter := cut_stretch(tgt, random):
            left_out.append((src, shorter))
        if shorter := cut_stretch(src, random):
            added.append((shorter, tgt))
    some = pairs[: len(pairs) // 4]
    odd_sources = in_no_language([src for src, _ in some], random)
    odd_targets = in_no_language([tgt for _, tgt in some], random)
    long = [place for place, (src, tgt) in enumerate(some) if src != tgt and len(src.split()) > 3]
    return {
        "left_out": left_out,
        "added": added,
        "wrong_language": [
            (some[n][0], other) for n in long for other in (some[n][0], odd_targets[n])
        ],
        "source_language": [
            (other, some[n][1]) for n in long for other in (some[n][1], odd_sources[n])
        ],
    }


def _fitted(good: Numbers, bad: Numbers, places: list[int], false_alarms: float) -> Fit:
    """A regression on some of the features; the others have the weight 0."""
    features = np.concatenate([good, bad])[:, places]
    is_bad = np.arange(len(features)) >= len(good)
    held_out = unseen(features, is_bad)
    found = fit(features, is_bad)
    weights = np.zeros(len(NAMES))
    weights[places] = found.weights
    # Rounded up, so that one good pair too many is not called doubtful.
    threshold = float(np.quantile(held_out[~is_bad], 1 - false_alarms, method="higher"))
    return Fit(weights=tuple(weights.tolist()), bias=found.bias, threshold=threshold)


def _mean(found: Translation) -> float:
    return sum(found.token_scores) / max(1, len(found.token_scores))


def _nothing(model: Sources) -> dict[str, NDArray[np.generic]]:
    """Arrays that know nothing about any piece."""
    sizes = model.src_vocab.size, model.tgt_vocab.size
    links = [np.zeros(0, np.int32)] * 2 + [np.zeros(0, np.uint8)]
    values = [np.zeros((size, N_VALUES), np.float32) for size in sizes]
    return dict(zip(WORD_ARRAYS, [*links, *values], strict=True))
