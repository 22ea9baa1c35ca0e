"""Start a run from a model: its weights, its shape, and its vocabulary with new pieces appended.

The parent may have been trained on another task: then the run takes over the parts that both have,
such as an encoder, and initializes the rest.

The parent is only read. Its weights go into the run folder as the checkpoint of step 0, so the run
continues like any other. `text/extend.py` finds the new pieces.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heed.bundle.bundle import Bundle, load_bundle
from heed.bundle.find import INT8, WEIGHTS, find_model_folder, step_folders
from heed.data.prepared import Prepared
from heed.data.vocabularies import take_over_vocabs
from heed.decode.options import DecodeOptions
from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import CARD, read_manifest
from heed.errors import ConfigError, RunError
from heed.model.config import AnyConfig, ModelConfig
from heed.model.families import plan, stored_shapes
from heed.text.extend import kind_of, new_spellings
from heed.text.languages import Directions, known_directions
from heed.text.vocab import TokenizerConfig, Vocab
from heed.train.recipe.asked import Asked, TaskName
from heed.train.recipe.choose import BY_TASK, FAMILIES_OF_TASK, choose_rates
from heed.train.recipe.folder import PARENT_FILE
from heed.train.start.depth import with_depth
from heed.train.step.averages import to_tensors

FREE = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "n_encoder_layers",
    "n_decoder_layers",
    "decoder_self",
    "average_feed_forward",
)
"""Settings of a model that a run from it may change: layers are left out or repeated, and another
way to read the target begins fresh beside all that stays."""

ENCODER_NAMES = {"embed.tokens.weight": "embed_src.tokens.weight"}
"""By its name in an encoder-only model, the name of a weight in an encoder–decoder."""


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The model a run starts from.

    Attributes:
        folder: the path given by the user.
        bundle: its content.
    """

    folder: str
    bundle: Bundle

    @property
    def vocabs(self) -> tuple[Vocab, Vocab]:
        """The vocabularies of source and target, the same object if joint."""
        return self.bundle.src_vocab, self.bundle.tgt_vocab

    @property
    def is_joint(self) -> bool:
        """Whether one vocabulary serves both sides."""
        return self.bundle.src_vocab is self.bundle.tgt_vocab

    def directions(self, data: Prepared) -> Directions:
        """The directions of a run from this model; none if they are not all known.

        With tags it keeps the model's directions beside those of the corpus.
        """
        own = self.bundle
        if own.task != "translate" or not own.target_langs:
            return data.learned
        languages = own.source_lang, own.target_lang, own.target_langs
        before = known_directions(*languages, own.directions)
        return (*before, *data.learned) if before and data.learned else ()

    def tokenizer(self, config: TokenizerConfig) -> TokenizerConfig:
        """The model's settings, except those that `config` may change."""
        return replace(config, kind=kind_of(self.bundle.src_vocab), joint=self.is_joint)

    def shape(self, task: TaskName) -> dict[str, Any]:
        """The parts of the model's shape that a model of another task takes over; or all of it.

        Raises:
            ConfigError: models of that task have no part in common with this one.
        """
        config, own = self.bundle.config, self.bundle.task
        if config.family == "bag":
            raise ConfigError(
                f"{self.folder} is a bag of n-grams, which shares no weights with other models. "
                "Leave --from out, and train on all texts together."
            )
        shape = config.to_dict()
        is_of_task = config.family in FAMILIES_OF_TASK.get(task, ())
        is_fitting = is_of_task or (own, task) == ("lm", "translate")
        if task == own or is_fitting:
            needed = BY_TASK.get(task, {}).get("model", {})
            # The task's settings override the parent's, except positions: weights depend on them.
            return {**shape, **{k: v for k, v in needed.items() if k != "positions"}}
        if (own, task) == ("mlm", "translate"):
            known = {field.name for field in fields(ModelConfig)} - {"family", "tied"}
            found = {key: value for key, value in shape.items() if key in known}
            return {**found, "n_encoder_layers": shape["n_layers"]}
        raise ConfigError(
            f"{self.folder} was trained for the task {own}, from which {task} cannot start. Leave "
            "--from out."
        )

    def settings(self, data: Prepared, task: TaskName) -> dict[str, Any]:
        """Settings that follow from the model, by section; the user's settings win."""
        options, shape = asdict(DecodeOptions()), self.shape(task)
        del shape["dropout"]  # follows from the new corpus
        sizes = {"src_vocab_size": data.src_vocab.size, "tgt_vocab_size": data.n_outputs}
        found: dict[str, Any] = {
            "tokenizer": {"kind": kind_of(data.src_vocab), "joint": self.is_joint},
            "model": {**shape, **sizes},
        }
        if task == self.bundle.task:
            decoding = {k: v for k, v in self.bundle.decoding.items() if k in options}
            return {**found, "decoding": decoding}
        return {**found, "training": choose_rates({}, shape["d_model"])}


def open_parent(folder: str, asked: Asked, task: TaskName = "translate") -> Parent:
    """Read the model that a run starts from.

    Args:
        folder: a model or run folder.
        asked: the user's settings.
        task: the task that the run learns.

    Raises:
        FormatError: it is not a model folder, or damaged.
        ConfigError: `asked` sets another shape or other pieces than the model has, or the task
            cannot start from it.
    """
    parent = Parent(folder=folder, bundle=load_bundle(folder))
    _require_same_shape(parent, asked, task)
    return parent


def require_same_parent(parent: Parent, out: Path) -> None:
    """Record in a run folder the model from which the run started.

    Raises:
        RunError: the model has changed since.
    """
    path, found = out / PARENT_FILE, model_hash(parent.folder)
    if not path.exists() or not step_folders(out):
        write_atomically(path, to_json({"folder": parent.folder, "sha256": found}))
        return
    before = parse_json(read_bytes(path), path)["sha256"]
    if before != found:
        raise RunError(
            f"{out} was started from {parent.folder} when its hash was {before[:12]}, but now it "
            f"is {found[:12]}. Restore the original model, or use another --out."
        )


def inherited(
    parent: Parent, config: AnyConfig, data: Prepared, fresh: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The initial weights of a run that starts from a model.

    Args:
        parent: the model; its vocabulary was extended to that of `data`.
        config: the run's shape.
        data: the new corpus.
        fresh: the run's weights without a parent, for the parts that the parent does not have.
    """
    weights = grown_weights(parent.bundle, data.src_vocab, data.tgt_vocab)
    if parent.bundle.config.family == config.family:
        weights = with_depth(weights, parent.bundle.config, config)
    else:
        weights = {ENCODER_NAMES.get(name, name): weight for name, weight in weights.items()}
    if data.labels != parent.bundle.labels:
        weights.pop("output.weight", None)  # it scores other labels
    shapes = stored_shapes(config)
    taken = {name: weight for name, weight in weights.items() if name in shapes}
    return {**{name: fresh[name] for name in shapes}, **taken}


def grown_weights(bundle: Bundle, src_vocab: Vocab, tgt_vocab: Vocab) -> dict[str, Tensor]:
    """A model's weights with a row for each new piece: the mean of the rows of its old pieces.

    Args:
        bundle: the model.
        src_vocab: its source vocabulary with new pieces.
        tgt_vocab: its target vocabulary with new pieces.

    Returns:
        Tensors by their first names; a new control piece has the mean of all rows.

    Source: Gee et al. 2022, "Fast Vocabulary Transfer for Language Model Compression".
    """
    weights = to_tensors({name: bundle.weights[name] for name in stored_shapes(bundle.config)})
    added = {
        "src": new_spellings(bundle.src_vocab, src_vocab),
        "tgt": new_spellings(bundle.tgt_vocab, tgt_vocab),
    }
    for weight in plan(bundle.config):
        spellings = added.get(weight.side)
        has_rows = weight.role == "table" or (weight.role == "output" and not bundle.labels)
        if has_rows and weight.tied_to is None and spellings:
            old = weights[weight.name]
            rows = [old[ids].mean(dim=0) if ids else old.mean(dim=0) for ids in spellings]
            weights[weight.name] = torch.cat([old, torch.stack(rows)])
    return weights


def _require_same_shape(parent: Parent, asked: Asked, task: TaskName) -> None:
    """Refuse settings that contradict the existing model."""
    if asked.is_set("preset"):
        raise ConfigError(
            f"preset cannot be chosen with --from: the model keeps the shape of {parent.folder}. "
            "Leave one of the two out."
        )
    pieces = asked.get("tokenizer.vocab_from", "")
    own = {
        "model": parent.shape(task),
        "tokenizer": {
            "kind": kind_of(parent.bundle.src_vocab),
            "joint": parent.is_joint,
            "vocab_from": pieces if pieces and _has_pieces_of(parent, pieces) else "",
        },
    }
    for section, free in (("model", FREE), ("tokenizer", ("subword_alpha", "character_coverage"))):
        for key, value in asked.section(section).items():
            has = own[section].get(key)
            is_new = section == "model" and key not in own[section] and task != parent.bundle.task
            if key not in free and value != has and not is_new:
                was = f", where it is {has}" if section == "model" and key in own[section] else ""
                raise ConfigError(
                    f"{section}.{key} cannot be set with --from: it comes from "
                    f"{parent.folder}{was}. Leave it out."
                )


def _has_pieces_of(parent: Parent, folder: str) -> bool:
    """Whether a folder's vocabularies are the model's own."""
    pairs = zip(take_over_vocabs(folder), parent.vocabs, strict=True)
    return all(theirs.hash == own.hash for theirs, own in pairs)


def model_hash(folder: str) -> str:
    """A hash of all files that decide a model's output, except int8 weights made from them."""
    entries = read_manifest(find_model_folder(folder)).files
    others = {CARD, INT8} if WEIGHTS in entries else {CARD}
    facts = {name: entry.sha256 for name, entry in sorted(entries.items()) if name not in others}
    return hashlib.sha256(to_json(facts)).hexdigest()
