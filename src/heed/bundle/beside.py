"""Files written beside the weights of a finished model, such as its alignment heads."""

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path

from heed.bundle.find import CHECKPOINTS, find_model_folder
from heed.disk.folders import read_manifest, update_directory
from heed.errors import ConfigError


def save_beside(
    path: str | PathLike[str], files: Mapping[str, bytes], *, replaced: Collection[str]
) -> Path:
    """Write files beside the weights of a model, in place of older ones.

    Args:
        path: a model folder, or a run folder.
        files: contents by name.
        replaced: names of the files that these take the place of.

    Returns:
        The folder.

    Raises:
        ConfigError: the run has not ended, so its model will be replaced.
        FormatError: it is not a model folder.
        RunError: the disk is full or read-only, or permission is denied.
    """
    folder = find_model_folder(path)
    if folder.parent.name == CHECKPOINTS:
        raise ConfigError(
            f"{folder} is a checkpoint of a run that has not ended, and will be replaced. "
            "Finish the run first."
        )
    manifest = read_manifest(folder)
    others = {name: entry for name, entry in manifest.checked.items() if name not in replaced}
    update_directory(folder, files, manifest.metadata, others=others)
    return folder
