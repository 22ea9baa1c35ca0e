"""`Opened`: one version of a model, in memory."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.bundle.find import INT8, WEIGHTS, find_model_folder
from heed.disk.files import read_bytes
from heed.disk.folders import MANIFEST, MAX_MANIFEST_BYTES, read_manifest
from heed.errors import ConfigError, FormatError
from heed.serve.work.memories import PairFile
from heed.translate.remember import remember_file
from heed.translate.translator import Translator, load

_ATTEMPTS = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model, as its folder was when it was loaded.

    Attributes:
        name: name of the model.
        version: as `version_of` gives it.
        translator: computes with one thread; any number of threads may call it.
        size_bytes: size of the files that are in memory, those of pairs included.
    """

    name: str
    version: str
    translator: Translator
    size_bytes: int

    def require_languages(self, languages: str) -> None:
        """Refuse a version that translates other languages.

        Args:
            languages: those of an earlier version.

        Raises:
            ConfigError: they differ; names the languages of both.
        """
        if self.languages != languages:
            raise ConfigError(
                f"{self.name} translated {languages}, and its new version translates "
                f"{self.languages}. Start the server again."
            )

    @property
    def languages(self) -> str:
        """The languages that it translates, such as `en to de`."""
        reader = self.translator.reader
        targets = ", ".join(reader.target_langs) or self.translator.target_lang
        return f"{self.translator.source_lang} to {targets}"


def version_of(folder: Path, files: Sequence[PairFile] = ()) -> str:
    """A hash of the manifest of a model or run folder, which has the hash of every file.

    Args:
        folder: the folder.
        files: pairs that guide the model; their sizes and times are part of the hash.

    Raises:
        FormatError: the folder holds no model.
        DataError: its manifest or a file of pairs cannot be read.
    """
    manifest = read_bytes(find_model_folder(folder) / MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    states = "".join(file.state for file in files)
    return hashlib.sha256(manifest + states.encode(errors="surrogateescape")).hexdigest()


def open_version(folder: Path, name: str, files: Sequence[PairFile] = ()) -> Opened:
    """Load the model in a folder, and the pairs that guide it, as they are now.

    Raises:
        FormatError: it is damaged, or keeps changing.
        ConfigError: it does not fit this machine.
        DataError: a file of pairs cannot be read.
        UsageError: it is not a file of both languages.
    """
    for _ in range(_ATTEMPTS):
        version = version_of(folder, files)
        size = size_bytes(folder) + sum(file.size_bytes for file in files)
        translator = load(folder, threads=1)
        n_pairs = _remember(translator, files)
        if version_of(folder, files) == version:
            for file, number in zip(files, n_pairs, strict=True):
                log.info("%s: %d of its pairs guide the model %s", file.path, number, name)
            return Opened(name=name, version=version, translator=translator, size_bytes=size)
    raise FormatError(
        f"{folder} keeps changing while it is read. Finish writing it, then try again."
    )


def _remember(translator: Translator, files: Sequence[PairFile]) -> list[int]:
    """Give a translator the pairs of files; return their numbers."""
    return [
        remember_file(translator, file.path, source_lang=file.source, target_lang=file.target)
        for file in files
    ]


def size_bytes(folder: Path) -> int:
    """The size of all files except weights that are not used for computing."""
    sizes = {
        name: entry.size for name, entry in read_manifest(find_model_folder(folder)).files.items()
    }
    if INT8 in sizes:
        sizes.pop(WEIGHTS, None)
    return sum(sizes.values())
