"""The settings and the recipe of a run, kept in its folder.

A run continues only with the settings it began with, except for those in `MAY_CHANGE`; another
change is an error that names the setting.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heed.bundle.find import step_folders
from heed.config import NONE, to_toml
from heed.data.prepared import Prepared
from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.errors import ConfigError, FormatError, RunError
from heed.model.families import family_named
from heed.text.vocab import SPECIAL_IDS
from heed.train.recipe.asked import Asked, merge
from heed.train.recipe.cost import Facts
from heed.train.recipe.files import ASKED_FILE, RECIPE_FILE, RESOLVED_FILE
from heed.train.recipe.recipe import (
    Recipe,
    build_recipe,
    facts_of_pieces,
    load_recipe,
    resolve,
)
from heed.train.recipe.renamed import with_new_names

MAY_CHANGE = {
    ("training", "time_s"),
    ("training", "max_steps"),
    ("training", "threads"),
    ("training", "shard"),
    ("training", "patience"),
    ("training", "checkpoint_every"),
    ("training", "checkpoint_every_s"),
    ("training", "keep_checkpoints"),
    ("decoding", "*"),
}
"""Settings that a continued run may have changed; `*` stands for a whole section."""


def settle(
    out: Path,
    asked: Asked,
    data: Prepared,
    gflops: Callable[[], float],
    inherited: Mapping[str, Any],
) -> Recipe:
    """The stored recipe of a run that continues, else one resolved for this corpus and machine.

    Args:
        out: the run folder; the recipe is written there.
        asked: the user's settings.
        data: the corpus.
        gflops: measures the machine, if a new recipe needs it.
        inherited: settings of a parent model; the user's take precedence.
    """
    path = out / RECIPE_FILE
    if (known := _known(out)) is not None:
        stored = asdict(_load_own(known))
        _require_unedited(out, stored)
        changed = {
            section: {
                key: value
                for key, value in asked.section(section).items()
                if _may_change((section, key))
            }
            for section, _ in MAY_CHANGE
        }
        recipe = build_recipe(merge(stored, changed), where=str(known))
    else:
        facts = Facts(
            src_vocab_size=data.src_vocab.size,
            tgt_vocab_size=data.n_outputs,
            n_pairs=len(data.train),
            n_made=len(data.train) - data.n_real,
            n_src_tokens=int(data.train.src_lengths.sum()),
            n_tgt_tokens=int(data.train.tgt_lengths.sum()),
            gflops=gflops(),
            special_ids={key: getattr(data.tgt_vocab, key) for key in SPECIAL_IDS},
        )
        if asked.get("tokenizer.vocab_from"):
            pieces = facts_of_pieces(data.src_vocab, data.tgt_vocab)
            inherited = merge(inherited, {"tokenizer": pieces})
        recipe = resolve(asked.over(inherited), facts)
    text = to_toml(recipe).encode()
    write_atomically(out / RESOLVED_FILE, text)
    write_atomically(path, text)
    return recipe


def _known(out: Path) -> Path | None:
    """The recipe of a run that has learned something; None for a new run.

    Raises:
        RunError: there are checkpoints, but no recipe.
    """
    if (out / RECIPE_FILE).exists():
        return out / RECIPE_FILE
    if not step_folders(out):
        return None
    if (out / RESOLVED_FILE).exists():
        return out / RESOLVED_FILE
    raise RunError(
        f"{out} has checkpoints, but {RECIPE_FILE}, which holds the settings of the run, is "
        "missing. Restore it, or start a new run with another --out."
    )


def _require_unedited(out: Path, stored: Mapping[str, Any]) -> None:
    """Refuse a recipe that was edited by hand since heed wrote it.

    Raises:
        RunError: names the setting.
    """
    if not (out / RESOLVED_FILE).exists():  # the run is of heed 0.1
        return
    before, now = _flat(asdict(_load_own(out / RESOLVED_FILE))), _flat(stored)
    for key in sorted({*before, *now}):
        if not _may_change(key) and before.get(key) != now.get(key):
            was = before.get(key)
            raise RunError(
                f"{out / RECIPE_FILE}: {'.'.join(key)} was {was} when the run began, but is now "
                f"{now.get(key)}. A run continues only with its original settings: set it back to "
                f"{was}, or start a new run with another --out."
            )


def require_same_asked(out: Path, asked: Asked) -> None:
    """Refuse to continue with other settings than the run began with.

    Raises:
        RunError: names the setting.
    """
    path = out / ASKED_FILE
    # Before there is a recipe, nothing has been learned, so settings may still change.
    if (known := _known(out)) is not None:
        if path.exists():
            then, today = _flat(_asked_before(path)), _flat(asked.values)
        else:
            then = _flat(asdict(_load_own(known)))
            today = then | _as_stored(asked, then)
        for key in sorted({*then, *today}):
            was, now = then.get(key), today.get(key)
            if not _may_change(key) and was != now:
                raise RunError(
                    f"{out} was started with {'.'.join(key)} = {_spelled(was)}, but this command "
                    f"sets {_spelled(now)}. Use the same settings to continue, or another --out."
                )
    write_atomically(path, to_json(asked.values))


def _load_own(path: Path) -> Recipe:
    """The recipe in one of the two files that hold it.

    Raises:
        ConfigError: it is damaged; names the other one, if there is one.
    """
    other = path.with_name(RESOLVED_FILE if path.name == RECIPE_FILE else RECIPE_FILE)
    try:
        return load_recipe(path)
    except ConfigError as error:
        if not other.is_file():
            raise
        gap = "\n" if "\n" in str(error) else " "
        raise ConfigError(
            f"{error}{gap}Remove {path} to continue: {other} holds the settings of the run."
        ) from error


def _asked_before(path: Path) -> dict[str, Any]:
    try:
        return parse_json(read_bytes(path), path)
    except FormatError as error:
        raise FormatError(
            f"{error} Remove it, and repeat the command with the settings that the run began with: "
            f"they are in {path.with_name(RECIPE_FILE)}."
        ) from error


def _as_stored(asked: Asked, stored: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    """A command's settings as a recipe has them: sizes for their preset, None for `none`.

    Args:
        asked: the settings.
        stored: those of the recipe of a run.
    """
    values, family = with_new_names(asked.values), family_named(stored["model", "family"])
    preset = values.pop("preset", None)
    if preset and not family.counts_texts:  # a bag's sizes follow from its labels
        values = merge({"model": family.presets[preset]}, values)
    return {
        key: None if stored.get(key, "") is None and str(value).lower() == NONE else value
        for key, value in _flat(values).items()
    }


def _may_change(key: tuple[str, ...]) -> bool:
    return key in MAY_CHANGE or (key[0], "*") in MAY_CHANGE


def _flat(values: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    flat: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update({(key, *rest): inner for rest, inner in _flat(value).items()})
        else:
            flat[(key,)] = value
    return flat


def _spelled(value: Any) -> str:
    return "the default" if value is None else str(value)
