"""Errors for a corpus that leaves no pairs to learn from: the reason in words, and what to do.

The rules that drop pairs are in `clean.py`, the draw of dev and test in `split.py`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import CleanConfig, CleanReport, amount
from heed.data.corpus import DataConfig
from heed.data.split import DEV, TEST, TRAIN, Keys, count_groups
from heed.errors import DataError

_OTHER_DEV = "Give one with --dev-src and --dev-tgt"
_MEANINGS: dict[str, Callable[[CleanConfig], str]] = {
    "empty": lambda _: (
        "a side has no text. Look into the files; of a table, --columns chooses other columns."
    ),
    "bad_encoding": lambda _: (
        "text was once read in a wrong encoding, as where ä became Ã¤. Save the files from their "
        "originals again, as UTF-8."
    ),
    "unknown_entity": lambda _: (
        "text has an entity that the file does not define. Write its characters instead of it."
    ),
    "too_long": lambda config: (
        f"a side has more than {amount(config.max_chars, 'character')}. Give one sentence per "
        "line, or raise data.max_chars."
    ),
    "length_ratio": lambda config: (
        f"a side is over {config.max_ratio:g} times as long as usual beside its partner. Line n of "
        "one file must translate line n of the other; if it does, raise data.max_ratio."
    ),
    "copy": lambda _: (
        "source and target are the same. Are both in one language? If the task is to copy, set "
        "data.keep_copies=true."
    ),
    "in_dev": lambda _: (
        "a sentence is also in the development set. Give other development pairs, or leave them "
        "out: then some of these are set aside."
    ),
    "in_test": lambda _: (
        "a sentence is also in the test set. Give other test pairs, or leave them out."
    ),
}
"""The meaning of a rule by which all pairs may be dropped, and what to do."""


def all_dropped(names: str, cleaning: CleanReport, config: CleanConfig) -> DataError:
    """The error for a corpus in which each pair was dropped; explains the most frequent rule.

    Args:
        names: of its files.
        cleaning: the counts, at least one.
        config: the limits of the rules.
    """
    n_read, n_dropped = cleaning.n_read, cleaning.n_dropped
    most = max(n_dropped, key=n_dropped.__getitem__)
    what = "the only one was" if n_read == 1 else f"all {n_read:,} were"
    return DataError(
        f"{names} must hold usable pairs, but {what} dropped ({cleaning.reasons()}). "
        f"{most}: {_MEANINGS[most](config)}"
    )


def require_drawn(
    parts: NDArray[np.uint8],
    keys: tuple[Keys, Keys],
    config: DataConfig,
    cleaning: CleanReport,
    *,
    needs_dev: bool,
    needs_test: bool,
) -> None:
    """Refuse a draw that has left no pairs for dev or for training.

    Args:
        parts: `TRAIN`, `DEV` or `TEST` for each pair, `(n_pairs)`.
        keys: of the sources and the targets, as `split` takes them.
        config: the sizes that were asked for.
        cleaning: the counts, for the message.
        needs_dev: dev was to be drawn.
        needs_test: test was to be drawn.

    Raises:
        DataError: says what to do.
    """
    n_test, usable = int((parts == TEST).sum()), amount(len(parts), "usable pair")
    if needs_dev and not (parts == DEV).any():
        cause, remedy = f"{usable} that share their sentences", f"{_OTHER_DEV}."
        if n_test == len(parts):
            cause = f"{usable}: {'they all' if n_test > 1 else 'it'} went to test"
            is_enough = count_groups(*keys) > 1  # one for dev and one to learn from
            remedy = (
                "Lower data.test_size" if is_enough else f"{_OTHER_DEV}, and lower data.test_size"
            )
        raise DataError(f"No dev set can be drawn from {cause}. {cleaning.fallen()}{remedy}.")
    if (parts == TRAIN).any():
        return
    sizes = {
        "data.dev_size": needs_dev and (config.dev_size or 1) > 1,
        "data.test_size": needs_test and config.test_size > 0,
    }
    lower = " and ".join(name for name, is_above_least in sizes.items() if is_above_least)
    if lower and count_groups(*keys) > needs_dev:  # one group for dev, one to learn from
        remedy = f"Lower {lower}, or give more pairs."
    else:
        remedy = "Give more pairs to learn from."
        if needs_dev:
            also = " and set data.test_size=0" if sizes["data.test_size"] else ""
            remedy = f"Give more pairs, or other pairs for dev with --dev-src and --dev-tgt{also}."
    where = " and ".join(name for name, part in (("dev", DEV), ("test", TEST)) if part in parts)
    raise DataError(
        f"No training pairs are left: of {usable} all went to {where}. {cleaning.fallen()}{remedy}"
    )


def all_too_long(cleaning: CleanReport, config: DataConfig) -> DataError:
    """The error for a corpus whose pairs, as far as they were not dropped before, are too long."""
    n_chars = cleaning.n_dropped.get("too_long", 0)
    also = f", and data.max_chars for those with more than {config.max_chars:,} characters"
    return DataError(
        "No training pairs are left: every pair that was to be learned has more than "
        f"{amount(config.max_length - 1, 'piece')} on a side. {cleaning.fallen()}"
        f"Raise data.max_length{also if n_chars else ''}."
    )
