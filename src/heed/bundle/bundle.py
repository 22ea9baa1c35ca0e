"""A model on disk: config, vocabulary and weights in one folder, with checksums.

A run folder is a model folder too; during training its best checkpoint is the model. The training
state itself is in `train/run/checkpoint.py`, crash-safe writing in `disk/folders.py`.
"""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.bundle.alignment import AlignmentHeads
from heed.bundle.card import is_edited, model_card
from heed.bundle.counted import FILES, counted_files, read_counted
from heed.bundle.doubts import Judgment
from heed.bundle.find import (
    ALIGNMENT,
    ALIGNMENT_HEADS,
    AVERAGE,
    CHECKPOINTS,
    CONFIG,
    DOUBT_WORDS,
    DOUBTS,
    INT8,
    JOINT_VOCAB,
    LEXICON,
    MEMORY,
    MODEL_FILES,
    SHORTLIST,
    SRC_VOCAB,
    TGT_VOCAB,
    WEIGHTS,
    checkpoints_of,
    find_model_folder,
    lacks_manifest,
)
from heed.bundle.languages import check_languages, language_fields
from heed.bundle.lexicon import Lexicon
from heed.disk.files import parse_json, read_bytes, to_json
from heed.disk.folders import (
    CARD,
    MANIFEST,
    Entry,
    Manifest,
    finish_update,
    map_file,
    read_directory,
    read_manifest,
    update_directory,
    write_directory,
)
from heed.disk.tensors import decode_tensors, decode_with_metadata, encode_tensors
from heed.errors import ConfigError, FormatError
from heed.model.config import AnyConfig
from heed.model.families import config_from, stored_shapes, with_all_names
from heed.text.languages import Directions
from heed.text.memory import TranslationMemory
from heed.text.vocab import N_SPECIAL, Vocab

FORMAT = "heed"
TASKS = ("translate", "lm", "mlm", "classify")
"""The tasks of models: translate, continue a text, fill gaps, label texts."""
FORMAT_VERSION = 1
MAX_CONFIG_BYTES = 1 << 20
"""Far more than the size of any configuration."""
_DESCRIPTION = (
    *(CONFIG, ALIGNMENT_HEADS, DOUBTS, DOUBT_WORDS, LEXICON, MEMORY, *FILES),
    *(JOINT_VOCAB, SRC_VOCAB, TGT_VOCAB),
)
"""The files of a model other than its weights."""
_KEYS = (
    "format",
    "format_version",
    "source_lang",
    "target_lang",
    "target_langs",
    "directions",
    "model",
    "decoding",
    "task",
    "labels",
)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A model and everything needed to translate with it.

    Attributes:
        config: the model's shape.
        weights: its parameters by the names of its plan; a tied one may be
            under all of its names or under the first. Read-only when they come from a file
            (`torch.tensor` takes them without a warning, `torch.as_tensor` does not).
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side; equal to `src_vocab` when it is joint.
        source_lang: language code of the input; "" if unknown or several.
        target_lang: language code of the output; of a model with several, the default.
        target_langs: all output languages if there are several: source ids then begin with a tag.
        directions: all, where these languages do not imply them; see `known_directions`.
        decoding: decoding options that this model prefers, by name.
        int8: the rounded weights by the names of `heed.engine.packed`, or None. They replace
            `weights`, which is then empty, and are views of the mapped file.
        path: the folder it was read from.
        task: the model's task, one of `TASKS`.
        labels: of a classifier, in the order of their ids.
        alignment_heads: the heads that are read as an alignment; None = not chosen.
        judgment: learned to judge translations; None = not learned.
        lexicon: word translations that rank its hypotheses anew; None = not learned.
        memory: pairs that the model learned from, to guide its searches; None = not stored.
    """

    config: AnyConfig
    weights: dict[str, NDArray[np.float32]]
    src_vocab: Vocab
    tgt_vocab: Vocab
    source_lang: str = ""
    target_lang: str = ""
    target_langs: tuple[str, ...] = ()
    directions: Directions = ()
    decoding: dict[str, Any] = field(default_factory=dict)
    int8: dict[str, NDArray[Any]] | None = None
    path: Path | None = None
    task: str = "translate"
    labels: tuple[str, ...] = ()
    alignment_heads: AlignmentHeads | None = None
    judgment: Judgment | None = None
    lexicon: Lexicon | None = None
    memory: TranslationMemory | None = None


def save_bundle(
    path: str | os.PathLike[str],
    bundle: Bundle,
    *,
    numbers: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a model folder atomically: it always holds the old model or the new one.

    A new folder, or one that holds a model and nothing else, is replaced as a whole. In any other,
    such as a run folder, the other files stay. An edited card stays.

    Args:
        path: the folder.
        bundle: the model.
        numbers: measurements, name → value, for the model card.
        metadata: for the manifest.

    Raises:
        RunError: the disk is full or read-only, permission is denied, or a weight is not finite.
    """
    folder = Path(path)
    files = _with_edited_card(folder, bundle_files(bundle, numbers=numbers))
    others = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    others -= {MANIFEST, *MODEL_FILES}
    (update_directory if others else write_directory)(folder, files, metadata)


def bundle_files(bundle: Bundle, *, numbers: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The files of a model folder, by name; tied weights are stored once."""
    shapes = stored_shapes(bundle.config)
    weights = {name: bundle.weights[name] for name in shapes}
    for name, shape in shapes.items():
        assert tuple(weights[name].shape) == shape, f"{name}: {weights[name].shape} is not {shape}"
    metadata = {"format": "pt", **_vocabulary_hashes(bundle.src_vocab, bundle.tgt_vocab)}
    return {
        WEIGHTS: encode_tensors(weights, metadata=metadata),
        **description_files(bundle, numbers=numbers),
    }


def _vocabulary_hashes(src: Vocab, tgt: Vocab) -> dict[str, str]:
    """What the weights' file says of the vocabularies they were trained with."""
    return {"source_vocabulary": src.hash, "target_vocabulary": tgt.hash}


def description_files(
    bundle: Bundle, *, numbers: Mapping[str, Any] | None = None
) -> dict[str, bytes]:
    """A model folder's files without the weights, which make a checkpoint a model."""
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "source_lang": bundle.source_lang,
        "target_lang": bundle.target_lang,
        "target_langs": list(bundle.target_langs),
        "model": bundle.config.to_dict(),
        "decoding": bundle.decoding,
    }
    if bundle.directions:
        config["directions"] = [list(direction) for direction in bundle.directions]
    if bundle.task != "translate":  # heed 0.1 does not know tasks, but can open translators
        config["task"] = bundle.task
    if bundle.labels:
        config["labels"] = list(bundle.labels)
    card = model_card(
        bundle.config,
        (bundle.src_vocab, bundle.tgt_vocab),
        (bundle.source_lang, bundle.target_lang, bundle.target_langs, bundle.directions),
        numbers or {},
        bundle.task,
        len(bundle.memory or ()),
    )
    files = {CONFIG: to_json(config), CARD: card}
    if bundle.alignment_heads is not None:
        files[ALIGNMENT_HEADS] = bundle.alignment_heads.to_bytes()
    if bundle.judgment is not None:
        files |= bundle.judgment.to_files()
    if bundle.lexicon is not None:
        files[LEXICON] = bundle.lexicon.to_bytes()
    files |= counted_files(bundle.src_vocab, bundle.tgt_vocab)
    if bundle.memory is not None:
        files[MEMORY] = bundle.memory.to_bytes()
    if bundle.src_vocab.hash == bundle.tgt_vocab.hash:
        return files | {JOINT_VOCAB: bundle.src_vocab.to_bytes()}
    sides = (SRC_VOCAB, bundle.src_vocab), (TGT_VOCAB, bundle.tgt_vocab)
    return files | {name: vocab.to_bytes() for name, vocab in sides}


def save_int8(
    bundle: Bundle, arrays: Mapping[str, NDArray[Any]], target: Path | None = None
) -> Path:
    """Write rounded weights beside the weights of a bundle, or into a folder of their own.

    Args:
        bundle: from `load_bundle`.
        arrays: from `heed.engine.packed.to_arrays`.
        target: a new folder, which gets no other weights; None = beside.

    Returns:
        The folder.

    Raises:
        ConfigError: the bundle is a checkpoint, which will not last.
        RunError: the disk is full or read-only, permission is denied, or `target` is in use.
    """
    assert bundle.path is not None
    if target is None and bundle.path.parent.name == CHECKPOINTS:
        raise ConfigError(
            f"{bundle.path} is a checkpoint of a run that has not ended, and will be replaced. "
            "Finish the run with the same heed train command, or write a folder of its own with "
            "--out."
        )
    data = {INT8: encode_tensors(arrays, alignment=ALIGNMENT)}
    if target is not None:
        write_directory(target, data | _with_edited_card(target, description_files(bundle)))
        return target
    manifest = read_manifest(bundle.path)
    update_directory(bundle.path, data, manifest.metadata, others=manifest.checked)
    return bundle.path


def _with_edited_card(folder: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    """The files to write into a folder, with its own card if that was edited."""
    if not (folder / CARD).is_file():
        return files
    card = read_bytes(folder / CARD)
    try:
        # A card of heed 0.1 has no checksum; its manifest has one.
        is_as_written = read_manifest(folder).files.get(CARD) == Entry.of(card)
    except FormatError:
        is_as_written = False
    return files if is_as_written or not is_edited(card) else files | {CARD: card}


def load_bundle(path: str | os.PathLike[str], *, prefer_int8: bool = False) -> Bundle:
    """Read a model folder, or the best model of a run folder.

    Every byte that is used is compared with the manifest, every tensor with the config. Weights
    come as read-only float32, tied ones under each of their names. Needs no torch.

    Args:
        path: the folder.
        prefer_int8: read the int8 weights if there are any.

    Raises:
        FormatError: it is not a model folder, or something in it is missing, damaged, made by a
            newer heed, or does not fit the rest.
    """
    folder = find_model_folder(path)
    manifest = read_manifest(folder)
    kind = _kind_of_weights(folder, manifest, prefer_int8=prefer_int8)
    names = _DESCRIPTION if kind == INT8 else (kind, *_DESCRIPTION)
    _, files = read_directory(folder, names, manifest)
    bundle = _from_files(folder, files, has_weights=kind != INT8)
    if kind != INT8:
        return bundle
    return replace(bundle, int8=decode_tensors(map_file(folder / INT8, manifest), folder / INT8))


def task_of(path: str | os.PathLike[str]) -> str:
    """The task of a folder's model, one of `TASKS`; the weights are not read.

    Raises:
        FormatError: it is not a model folder, or its description is damaged.
    """
    task: str = read_folder_config(find_model_folder(path)).get("task", "translate")
    return task


def restore_manifest(path: str | os.PathLike[str]) -> bool | None:
    """Write a missing manifest of a model folder, after a check that its files fit together.

    heed 0.1 left such a folder when it was killed while it added int8 weights. Rounded weights and
    a shortlist are left out, because without a manifest damage in them cannot be detected.

    Returns:
        None if it was not missing, and for a run folder, which has its checkpoints; else whether
        the weights say of which vocabulary they are. Earlier versions did not write that.

    Raises:
        FormatError: a file is missing, is not heed's, or does not fit the rest; or the vocabulary
            is not that of the weights.
        RunError: the disk is full or read-only, or permission is denied.
    """
    folder = Path(path)
    if not lacks_manifest(folder) or any(checkpoints_of(folder)):
        return None
    finish_update(folder, (WEIGHTS, INT8, SHORTLIST, CARD, *_DESCRIPTION))
    names = [name for name in (WEIGHTS, *_DESCRIPTION) if (folder / name).is_file()]
    files = {name: read_bytes(folder / name) for name in names}
    bundle = _from_files(folder, files, has_weights=True)
    _, metadata = decode_with_metadata(files[WEIGHTS], folder / WEIGHTS)
    hashes = _vocabulary_hashes(bundle.src_vocab, bundle.tgt_vocab)
    if any(metadata.get(side, found) != found for side, found in hashes.items()):
        raise FormatError(
            f"{folder} holds a vocabulary that its weights were not trained with. Restore the "
            f"model's own {JOINT_VOCAB}, or {SRC_VOCAB} and {TGT_VOCAB}, from a copy."
        )
    update_directory(folder, files)
    return metadata.keys() >= hashes.keys()


def _from_files(folder: Path, files: Mapping[str, bytes], *, has_weights: bool) -> Bundle:
    """The model of these files, checked against each other."""
    values = read_config(_file(folder, files, CONFIG), folder / CONFIG)
    config = _model_config(values["model"], folder / CONFIG)
    src_vocab, tgt_vocab = _read_vocabs(folder, files)
    _check_vocab(src_vocab, config, "source", config.src_vocab_size, folder)
    labels = tuple(values.get("labels", ()))
    if not labels:
        _check_vocab(tgt_vocab, config, "target", config.tgt_vocab_size, folder)
    elif config.tgt_vocab_size != N_SPECIAL + len(labels):
        raise FormatError(
            f"{folder / CONFIG} lists {len(labels)} labels, but the model has "
            f"{config.tgt_vocab_size - N_SPECIAL}."
        )
    read_counted(files, src_vocab, tgt_vocab, folder)
    sizes = src_vocab.size, tgt_vocab.size
    return Bundle(
        config=config,
        weights=_read_weights(folder, files, config) if has_weights else {},
        src_vocab=src_vocab,
        tgt_vocab=tgt_vocab,
        **language_fields(values, src_vocab, folder / CONFIG),
        decoding=values["decoding"],
        path=folder,
        task=values.get("task", "translate"),
        labels=labels,
        alignment_heads=_read_alignment_heads(folder, files),
        judgment=Judgment.from_files(files, folder) if DOUBTS in files else None,
        lexicon=Lexicon.from_files(files, sizes, folder),
        memory=TranslationMemory.from_bytes(files[MEMORY], sizes, folder / MEMORY)
        if MEMORY in files
        else None,
    )


def _read_alignment_heads(folder: Path, files: Mapping[str, bytes]) -> AlignmentHeads | None:
    if ALIGNMENT_HEADS not in files:
        return None
    return AlignmentHeads.from_bytes(files[ALIGNMENT_HEADS], folder / ALIGNMENT_HEADS)


def _kind_of_weights(folder: Path, manifest: Manifest, *, prefer_int8: bool) -> str:
    """The file to read weights from."""
    listed = manifest.files
    if INT8 in listed:
        if prefer_int8:
            return INT8
        if AVERAGE not in listed and WEIGHTS not in listed:
            raise FormatError(
                f"{folder} holds int8 weights only: translate with it on a CPU, or use the folder "
                "it was made from."
            )
    return AVERAGE if AVERAGE in listed else WEIGHTS


def read_folder_config(folder: Path) -> dict[str, Any]:
    """The configuration of a model folder, without its other files.

    Raises:
        FormatError: it is damaged, or far too large.
    """
    path = folder / CONFIG
    return read_config(read_bytes(path, max_bytes=MAX_CONFIG_BYTES), path)


def read_config(data: bytes, where: Path) -> dict[str, Any]:
    """Read `config.json`; its section `model` is checked by the config of its family.

    Raises:
        FormatError: it is not JSON, not heed's, or a value is of the wrong kind.
    """
    values = parse_json(data, where)
    if values.get("format") != FORMAT:
        raise FormatError(
            f"{where} was not written by heed: format is {values.get('format')!r}, not {FORMAT!r}."
        )
    version = values.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise FormatError(
            f"{where} has format_version {version!r}; this heed reads "
            f"{FORMAT_VERSION}. Use the heed that wrote it, or a newer one."
        )
    for key in values:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise FormatError(f"{where}: {key} is not a key of a model{hint}")
    for key in ("model", "decoding"):
        if not isinstance(values.get(key), dict):
            raise FormatError(f"{where}: {key} must be an object, but is {values.get(key)!r}.")
    check_languages(values, where)
    if values.get("task", "translate") not in TASKS:
        raise FormatError(f"{where}: task must be one of {', '.join(TASKS)}.")
    labels = values.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise FormatError(f"{where}: labels must be a list of strings.")
    if (values.get("task") == "classify") != bool(values.get("labels")):
        raise FormatError(f"{where}: a classifier must have labels, and any other model must not.")
    return values


def _model_config(values: Mapping[str, Any], where: Path) -> AnyConfig:
    try:
        return config_from(values)
    except ConfigError as error:
        raise FormatError(f"{where}: {error}") from None


def _read_vocabs(folder: Path, files: Mapping[str, bytes]) -> tuple[Vocab, Vocab]:
    if JOINT_VOCAB in files:
        joint = Vocab(files[JOINT_VOCAB], name=str(folder / JOINT_VOCAB))
        return joint, joint
    src = Vocab(_file(folder, files, SRC_VOCAB), name=str(folder / SRC_VOCAB))
    return src, Vocab(_file(folder, files, TGT_VOCAB), name=str(folder / TGT_VOCAB))


def _check_vocab(vocab: Vocab, config: AnyConfig, side: str, size: int, folder: Path) -> None:
    if vocab.size != size:
        raise FormatError(
            f"{folder}: the {side} vocabulary has {vocab.size} pieces, but the model was made for "
            f"{size}."
        )
    in_vocab = (vocab.pad_id, vocab.bos_id, vocab.eos_id)
    if in_vocab != (config.pad_id, config.bos_id, config.eos_id):
        raise FormatError(
            f"{folder}: the {side} vocabulary and the model have different special ids."
        )


def _read_weights(
    folder: Path, files: Mapping[str, bytes], config: AnyConfig
) -> dict[str, NDArray[np.float32]]:
    file = AVERAGE if AVERAGE in files else WEIGHTS
    data, where = _file(folder, files, file), folder / file
    weights = {
        name: _as_float32(tensor, name, where)
        for name, tensor in decode_tensors(data, where, expected=stored_shapes(config)).items()
    }
    return with_all_names(weights, config)


def _as_float32(tensor: NDArray[Any], name: str, where: Path) -> NDArray[np.float32]:
    try:
        with np.errstate(over="raise"):
            narrow = tensor.astype(np.float32, copy=False)
    except FloatingPointError:
        raise FormatError(f"{where}: {name} holds a number out of float32's range.") from None
    narrow.flags.writeable = False
    return narrow


def _file(folder: Path, files: Mapping[str, bytes], name: str) -> bytes:
    if name not in files:
        raise FormatError(f"{folder} has no {name}, or its {MANIFEST} does not list it.")
    return files[name]
