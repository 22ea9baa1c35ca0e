"""Diagnose a run: from measurements to a cause in words and a remedy.

`probe.py` and `observe.py` measure. `diagnose` is a pure function; the reason for each threshold
is beside it. Figures of healthy runs come from Multi30k, Tatoeba and the built-in corpus
(`docs/log`).
"""

import math
from collections.abc import Callable

from heed.data.clean import amount
from heed.train.watch.evidence import Alarm, Evidence, Measurement
from heed.train.watch.probe import Probe

MAX_LEAK = 0.01
"""Nats. The same kernel on the same shapes gives the same bits, so a sound model has exactly 0."""

MIN_ECHO = 0.8
"""Share of echoes. Sound models trained for a while have at most 0.01, those that ignore the source
up to 0.6; a model that learned to repeat what it reads has nearly 1. (So has a fresh one with tied
embeddings: see `ECHO_LOSS`.)"""

ECHO_LOSS = 0.5
"""Largest training loss of an echo, as a share of the loss on true text: repeating the label costs
nothing in training and much on true text, while the two losses of a fresh model are equal."""

NO_EFFECT = 1e-4
"""Nats. The source moves a fresh model's log-probs by 0.1 and more; rounding does by 1e-6."""

EVEN = 0.99
"""Normalized entropy of the sharpest head of cross-attention. Fresh models have 0.86 to 0.95,
models that were trained for a third of their time at most 0.86, good ones 0.3."""

NO_GAIN = 0.05
"""Nats a token. A model at BLEU 5 gains 0.5, at BLEU 20 over 1.4."""

PLATEAU = 0.02
"""A loss that falls by less than this share between validations has stopped falling."""

LATE = 0.3
"""Share of the budget after which a model should use the source. Models learn the target language
first and the source after it; on real text the source begins to count within a tenth."""

UNCORRELATED = 0.3
"""Correlation of lengths. Pairs that belong together have 0.53 (four languages mixed) to 0.86,
lines out of step at most 0.25; corpora of one-word lines may have anything, so lengths alone raise
no alarm."""

DEV_GAIN = 0.25
"""Share of the training pairs' gain that dev pairs should have: sound runs have 0.8 to 1.4."""

CLEAR_GAIN = 0.3
"""Nats a token by which training pairs must gain before dev pairs are compared with them."""

FRESH_EPOCHS = 3.0
"""Fewest epochs before a corpus can be memorized."""

UNLIKE_LOSS = 1.5
"""Times, and nats, by which dev text may be harder than training text seen rarely: unseen
sentences of the same kind are within 5 % at the beginning, within 0.9 nats at the end."""

SAME_SHARE = 0.9
"""Share of equal translations. Sound ones differ from the second validation on (0.03)."""

MAX_DEAD = 0.9
"""Share of features of a layer. Sound layers have at most 0.08 on the few sentences of a probe."""

MOVED = 0.5
"""Of the weights' size. After as many steps as `MIN_STEPS` a sound run has moved by 0.3 to 2."""

WILD = 0.1
"""Relative to the weights' size, for each step: larger updates destroy more than they teach. A
sound rate moves them by 0.006 a step at first; a hundred times the default by 0.6."""

HARDLY_MOVED = 0.05
"""Of the weights' size, after `MIN_STEPS`; a hundredth of a sound rate moves them by 0.01."""

MIN_STEPS = 100
"""Steps after the warm-up before a rate is judged."""

LOSS_JUMP = 0.5
"""Nats by which the loss may rise above its best; batches differ by 0.2."""

RISE = 0.03
"""Share by which the dev loss must have risen above its best, while the training loss fell."""

STEEP_RISE = 0.25
"""Share of rise that raises an alarm even while translations still improve."""


def non_finite(now: Evidence) -> Alarm | None:
    """A loss or gradient was not finite; the loop has skipped that update."""
    if not now.n_skipped:
        return None
    step, pairs = now.skipped.get("step"), list(now.skipped.get("pairs", ()))[:5]
    return Alarm(
        name="non-finite",
        text=f"loss or gradient was not finite at step {step}; the update was skipped",
        remedy=(
            "no action is needed for a single one. If it happens again, training rolls back to "
            "the last checkpoint and halves its rates automatically; lower "
            "training.learning_rate and training.matrix_learning_rate for the next run"
            + (f", and look at training pairs {', '.join(map(str, pairs))}" if pairs else "")
        ),
        numbers={"n_skipped": now.n_skipped, "pairs": pairs},
    )


def labels_not_shifted(now: Evidence) -> Alarm | None:
    """The decoder reads the token that it must predict, so it learns to copy it."""
    last, found = _last_probe(now)
    if found is None or found.echo < MIN_ECHO or last.train_loss > ECHO_LOSS * found.dev_loss:
        return None
    return Alarm(
        name="labels-not-shifted",
        text=(
            f"the model repeats the token it reads ({found.echo:.0%} of positions), with a "
            f"training loss of {last.train_loss:.2f} but {found.dev_loss:.2f} on true text: its "
            "labels are not shifted by one"
        ),
        remedy=(
            "tgt_in must be <bos> followed by the target, tgt_out the target followed by <eos> "
            "(data/batch.py)"
        ),
        numbers={"echo": found.echo, "train_loss": last.train_loss, "dev_loss": found.dev_loss},
    )


def mask_leak(now: Evidence) -> Alarm | None:
    """The decoder reads future target tokens."""
    _, found = _last_probe(now)
    if found is None or found.leak <= MAX_LEAK:
        return None
    return Alarm(
        name="mask-leak",
        text=(
            f"predictions change by up to {found.leak:.2f} nats when only later words change: the "
            "decoder reads future tokens, so its loss says nothing about translation"
        ),
        remedy="look at the causal mask of decoder self-attention (model/attention.py, masks.py)",
        numbers={"leak": found.leak},
    )


def rate_too_high(now: Evidence) -> Alarm | None:
    """The weights change much, and the loss does not fall or rises again."""
    if not now.measurements:
        return None
    *earlier, last = now.measurements
    best = min((reading.train_loss for reading in earlier), default=math.inf)
    movement = last.movement or 0.0
    is_wild = movement > WILD * last.n_moves
    has_jumped = _is_judged(now) and last.train_loss > best + max(LOSS_JUMP, 0.1 * best)
    is_lost = _is_judged(now) and movement > MOVED and now.unigram_entropy < last.train_loss
    is_lost = is_lost and now.unigram_entropy < best < math.inf
    if not (is_wild or has_jumped or is_lost):
        return None
    if has_jumped:
        words = f"the training loss has risen from {best:.2f} to {last.train_loss:.2f}"
    elif is_wild:
        words = f"a step moves the weights by {movement / last.n_moves:.0%} of their size"
    else:
        words = (
            f"the training loss is {last.train_loss:.2f}, no better than guessing by frequency "
            f"({now.unigram_entropy:.2f}), though the weights have moved far"
        )
    return Alarm(
        name="rate-too-high",
        text=f"{words}: the learning rate is too high",
        remedy=(
            "start again with training.learning_rate and training.matrix_learning_rate a third of "
            "what they are, or a longer training.warmup_steps"
        ),
        numbers={"train_loss": last.train_loss, "best": best, "movement": movement},
    )


def rate_too_low(now: Evidence) -> Alarm | None:
    """The weights hardly change, and the loss does not fall."""
    last = now.measurements[-1] if now.measurements else None
    if last is None or last.movement is None or not _is_judged(now):
        return None
    if last.n_moves < MIN_STEPS or last.movement > HARDLY_MOVED:
        return None
    if last.train_loss < 0.9 * now.unigram_entropy:
        return None  # fine-tuning changes weights little, and the model has learned before
    return Alarm(
        name="rate-too-low",
        text=(
            f"in {last.n_moves} steps the weights have moved by {last.movement:.1%} of their size "
            f"and the loss is still {last.train_loss:.2f}: the learning rate is too low"
        ),
        remedy=(
            "start again with training.learning_rate and training.matrix_learning_rate ten times "
            "what they are, or leave them at their defaults"
        ),
        numbers={"movement": last.movement, "train_loss": last.train_loss},
    )


def misaligned_training(now: Evidence) -> Alarm | None:
    """Sources and targets of the training pairs do not belong together."""
    _, found = _last_probe(now)
    correlation = now.train_length_correlation
    if found is None or correlation is None or correlation >= UNCORRELATED:
        return None
    if found.train_gain > NO_GAIN or found.source_effect < NO_EFFECT or not _is_late(now):
        return None
    return Alarm(
        name="misaligned-training",
        text=(
            "the source does not help to predict its target even in training "
            f"({found.train_gain:+.2f} nats), and the lengths of sources and targets are not "
            f"correlated (r = {correlation:.2f}): line n of one file is not line n of the other"
        ),
        remedy="look at a few pairs side by side (paste FILE FILE | head) and realign the files",
        numbers={"train_gain": found.train_gain, "train_length_correlation": correlation},
    )


def source_ignored(now: Evidence) -> Alarm | None:
    """The decoder does not use the source."""
    _, found = _last_probe(now)
    if found is None:
        return None
    is_cut_off = found.source_effect < NO_EFFECT
    gains_nothing = found.train_gain < NO_GAIN and _stands_still(now)
    is_even = found.evenness is not None and found.evenness > EVEN and _is_late(now)
    if not (is_cut_off or gains_nothing or is_even):
        return None
    code = "look at the encoder's output and at cross-attention (model/transformer.py)"
    if is_cut_off:
        words, remedy = "replacing the source does not change the predictions", code
    elif gains_nothing:
        words = f"the right source is worth only {found.train_gain:+.2f} nats a token"
        remedy = (
            "model.norm=pre, a longer training.warmup_steps or lower rates help a decoder to use "
            "its source; also check that the training files are aligned line by line"
        )
    else:
        words = "every head of cross-attention attends to all words equally, so their order is lost"
        remedy = f"model.norm=pre or a longer training.warmup_steps; if that does not help, {code}"
    return Alarm(
        name="source-ignored",
        text=f"{words}: the source is ignored",
        remedy=remedy,
        numbers={
            "source_effect": found.source_effect,
            "train_gain": found.train_gain,
            "evenness": found.evenness,
        },
    )


def bad_dev_set(now: Evidence) -> Alarm | None:
    """The dev set overlaps training, is misaligned, or is another kind of text."""
    if now.n_dev and now.n_dev_in_train >= now.n_dev / 2:
        return Alarm(
            name="bad-dev-set",
            text=(
                f"{amount(now.n_dev_in_train, 'training pair')} "
                f"{'shares' if now.n_dev_in_train == 1 else 'share'} a sentence with the "
                f"{amount(now.n_dev, 'dev pair')}: the dev set was taken from the training data"
            ),
            remedy=(
                "they were left out of training, so scores are not inflated; use other dev pairs"
            ),
            numbers={"n_dev": now.n_dev, "n_dev_in_train": now.n_dev_in_train},
        )
    last, found = _last_probe(now)
    if found is None:
        return None
    numbers = {
        "train_gain": found.train_gain,
        "dev_gain": found.dev_gain,
        "train_loss": found.train_loss,
        "dev_loss": found.dev_loss,
    }
    is_fresh = last.epochs < FRESH_EPOCHS
    correlation = now.dev_length_correlation
    is_uncorrelated = correlation is not None and correlation < UNCORRELATED
    gains_nothing = found.dev_gain < DEV_GAIN * found.train_gain
    if found.train_gain > CLEAR_GAIN and gains_nothing and (is_fresh or is_uncorrelated):
        return Alarm(
            name="bad-dev-set",
            text=(
                f"the source is worth {found.train_gain:.2f} nats a token on training pairs but "
                f"{found.dev_gain:+.2f} on dev pairs: their lines are not aligned"
            ),
            remedy="each dev line must translate its source; until then scores are meaningless",
            numbers=numbers,
        )
    excess = found.dev_loss - found.train_loss
    is_new = is_fresh and not now.has_parent
    if is_new and excess > UNLIKE_LOSS and found.dev_loss > UNLIKE_LOSS * found.train_loss:
        return Alarm(
            name="bad-dev-set",
            text=(
                f"the loss is {found.train_loss:.2f} on training pairs but {found.dev_loss:.2f} "
                "on dev pairs, before any could be memorized: dev is from a different domain"
            ),
            remedy="use dev pairs from the domain to be translated, or add training pairs from it",
            numbers=numbers,
        )
    return None


def same_output(now: Evidence) -> Alarm | None:
    """Every source gets the same translation."""
    if len(now.measurements) < 2:
        return None
    before, last = now.measurements[-2:]
    if min(before.same_share or 0.0, last.same_share or 0.0) < SAME_SHARE:
        return None
    found = last.probe
    # Both losses are on training pairs: one as training reads them, one as translation does.
    disagrees = found is not None and found.train_loss > max(
        UNLIKE_LOSS * last.train_loss, last.train_loss + UNLIKE_LOSS
    )
    if not (disagrees or _stands_still(now)):
        return None
    return Alarm(
        name="same-output",
        text=f"{last.same_share:.0%} of the dev sentences get the same translation",
        remedy=(
            "check the output layer and its bias: they are not the ones used in training"
            if disagrees
            else "longer training.warmup_steps or lower rates; check that the targets vary at all"
        ),
        numbers={"same_share": last.same_share, "train_loss": last.train_loss},
    )


def dead_units(now: Evidence) -> Alarm | None:
    """ReLU features that never fire and therefore never learn."""
    _, found = _last_probe(now)
    if found is None or found.dead_share is None or found.dead_share < MAX_DEAD:
        return None
    revive = "" if now.revives_features else "training.revive_features=true, "
    return Alarm(
        name="dead-units",
        text=(
            f"{found.dead_share:.0%} of the ReLU features of a feed-forward layer never fire, and "
            "get no gradient"
        ),
        remedy=f"{revive}lower rates, or model.activation=gelu",
        numbers={"dead_share": found.dead_share},
    )


def over_fitting(now: Evidence) -> Alarm | None:
    """The model overfits: it memorizes training pairs."""
    # A model that is refined is also validated before its first step.
    measurements = [reading for reading in now.measurements if reading.train_loss < math.inf]
    if len(measurements) < 3:
        return None
    best = min(measurements, key=lambda reading: reading.dev_loss)
    before, last = measurements[-2:]
    if best in (before, last) or last.train_loss > (1 - RISE) * best.train_loss:
        return None
    rise = min(before.dev_loss, last.dev_loss) / max(best.dev_loss, 1e-9) - 1
    if rise < RISE or (last.is_best and rise < STEEP_RISE):
        return None
    return Alarm(
        name="over-fitting",
        text=(
            f"the dev loss has risen from {best.dev_loss:.2f} (step {best.step}) to "
            f"{last.dev_loss:.2f} while the training loss fell to {last.train_loss:.2f}: the "
            "model overfits the training pairs"
        ),
        remedy=(
            "the best model so far is kept. More pairs, more model.dropout, a smaller model or a "
            "shorter run will help"
        ),
        numbers={"best": best.dev_loss, "best_step": best.step, "dev_loss": last.dev_loss},
    )


CHECKS: dict[str, Callable[[Evidence], Alarm | None]] = {
    "non-finite": non_finite,
    "labels-not-shifted": labels_not_shifted,
    "mask-leak": mask_leak,
    "rate-too-high": rate_too_high,
    "rate-too-low": rate_too_low,
    "misaligned-training": misaligned_training,
    "source-ignored": source_ignored,
    "bad-dev-set": bad_dev_set,
    "same-output": same_output,
    "dead-units": dead_units,
    "over-fitting": over_fitting,
}
"""Every alarm, causes before consequences."""

_LATER = tuple(CHECKS)
EXPLAINS: dict[str, frozenset[str]] = {
    "labels-not-shifted": frozenset(_LATER[2:]),
    "mask-leak": frozenset(_LATER[3:]),
    "rate-too-high": frozenset(_LATER[4:]),
    "rate-too-low": frozenset(_LATER[5:]),
    "misaligned-training": frozenset(_LATER[6:]),
    "source-ignored": frozenset({"bad-dev-set", "same-output", "over-fitting"}),
    "bad-dev-set": frozenset({"over-fitting"}),
}
"""Alarm → its consequences, which are not raised beside it."""


def diagnose(evidence: Evidence) -> list[Alarm]:
    """The alarms to raise now: each once in a run, without consequences of others."""
    known = set(evidence.said)
    found = []
    for name, check in CHECKS.items():
        is_explained = any(name in EXPLAINS.get(cause, ()) for cause in known)
        if name not in known and not is_explained and (alarm := check(evidence)):
            found.append(alarm)
            known.add(name)
    return found


def _last_probe(now: Evidence) -> tuple[Measurement, Probe | None]:
    """The latest validation and its probe."""
    if not now.measurements:
        return Measurement(step=0, share=0.0, epochs=0.0, train_loss=0.0, dev_loss=0.0), None
    return now.measurements[-1], now.measurements[-1].probe


def _is_judged(now: Evidence) -> bool:
    """Whether the learning rate has been at its peak for a while."""
    return now.measurements[-1].step >= now.warmup_steps + MIN_STEPS


def _is_late(now: Evidence) -> bool:
    """Whether a model should use its sources by now; never in a very short run."""
    return now.measurements[-1].share >= LATE and _is_judged(now)


def _stands_still(now: Evidence) -> bool:
    """Whether a model that has learned something has stopped learning, late in the run."""
    if len(now.measurements) < 2 or not _is_late(now):
        return False
    before, last = now.measurements[-2:]
    return (1 - PLATEAU) * before.train_loss < last.train_loss < now.unigram_entropy
