"""`Opened`: one version of a model, in memory."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from heed.bundle.find import INT8, WEIGHTS, find_model_folder
from heed.disk.files import read_bytes
from heed.disk.folders import MANIFEST, MAX_MANIFEST_BYTES, read_manifest
from heed.errors import ConfigError, FormatError
from heed.translate.translator import Translator, load

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model, as its folder was when it was loaded.

    Attributes:
        name: name of the model.
        version: hash of the folder's manifest, which has the hash of every file.
        translator: computes with one thread; any number of threads may call it.
        size_bytes: size of the files that are in memory.
    """

    name: str
    version: str
    translator: Translator
    size_bytes: int

    def require_same_languages(self, other: "Opened") -> None:
        """Refuse a version whose languages differ from those of another version.

        Raises:
            ConfigError: they differ; names the languages of both.
        """
        if self._languages() != other._languages():
            raise ConfigError(
                f"{self.name} translated {other._languages()}, and its new version translates "
                f"{self._languages()}. Start the server again."
            )

    def _languages(self) -> str:
        reader = self.translator.reader
        targets = ", ".join(reader.target_langs) or self.translator.target_lang
        return f"{self.translator.source_lang} to {targets}"


def version_of(folder: Path) -> str:
    """The hash of the manifest of a model or run folder.

    Raises:
        FormatError: the folder holds no model.
        DataError: its manifest cannot be read.
    """
    manifest = read_bytes(find_model_folder(folder) / MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    return hashlib.sha256(manifest).hexdigest()


def open_version(folder: Path, name: str) -> Opened:
    """Load the model in a folder as it is now.

    Raises:
        FormatError: it is damaged, or keeps changing.
        ConfigError: it does not fit this machine.
    """
    for _ in range(_ATTEMPTS):
        version = version_of(folder)
        size = size_bytes(folder)
        translator = load(folder, threads=1)
        if version_of(folder) == version:
            return Opened(name=name, version=version, translator=translator, size_bytes=size)
    raise FormatError(
        f"{folder} keeps changing while it is read. Finish writing it, then try again."
    )


def size_bytes(folder: Path) -> int:
    """The size of all files except weights that are not used for computing."""
    sizes = {
        name: entry.size for name, entry in read_manifest(find_model_folder(folder)).files.items()
    }
    if INT8 in sizes:
        sizes.pop(WEIGHTS, None)
    return sum(sizes.values())
