"""`Opened`: one version of a model, in memory."""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heed.bundle.find import AVERAGE, CHECKPOINTS, INT8, MODEL_FILES, WEIGHTS, find_model_folder
from heed.disk.files import read_bytes
from heed.disk.folders import MANIFEST, MAX_MANIFEST_BYTES, PENDING, read_manifest
from heed.errors import ConfigError, FormatError, HeedError
from heed.serve.work.guides import NO_GUIDES, GuideFile, Guides
from heed.text.languages import known_directions
from heed.translate.glossary.glossary import Glossary
from heed.translate.remember import remember_file
from heed.translate.translator import Translator, load

_ATTEMPTS = 3
_MOST_REMARKS = 5
"""Most remarks about a glossary in the log."""

_NAMES = frozenset({MANIFEST, AVERAGE, *MODEL_FILES})

Terms = Mapping[tuple[str, str], Glossary]
"""The glossary of each direction, by source and target code."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A model, as its folder was when it was loaded.

    Attributes:
        name: name of the model.
        version: as `version_of` gives it.
        translator: computes with one thread; any number of threads may call it.
        size_bytes: size of the files that are in memory, those of pairs and terms included.
        glossaries: terms for all requests, by direction.
    """

    name: str
    version: str
    translator: Translator
    size_bytes: int
    glossaries: Terms = field(default_factory=dict)

    def glossary(self, source: str, target: str, own: Glossary | None) -> Glossary | None:
        """The terms for a text.

        Args:
            source: its language code.
            target: language code of its translation.
            own: terms of the request, which count before those for all requests.
        """
        shared = self.glossaries.get((source, target))
        if own is None or shared is None:
            return shared if own is None else own
        return own.over(shared)

    def require_languages(self, languages: str) -> None:
        """Refuse a version that translates other languages.

        Args:
            languages: those that the server announced at its start.

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
        languages = reader.source_lang, reader.target_lang, reader.target_langs
        known = known_directions(*languages, reader.directions)
        return spelled(known)


def spelled(directions: Iterable[tuple[str, str]]) -> str:
    """Directions in words, such as `en to de, en to fr`."""
    return ", ".join(f"{source} to {target}" for source, target in sorted(directions)) or "?"


def version_of(folder: Path, guides: Guides = NO_GUIDES) -> str:
    """A hash of the manifest of a model or run folder, which has the hash of every file.

    Args:
        folder: the folder.
        guides: files that guide the model; their sizes and times are part of the hash.

    Raises:
        FormatError: the folder holds no model.
        DataError: its manifest or a file that guides it cannot be read.
    """
    manifest = read_bytes(find_model_folder(folder) / MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    state = guides.state.encode(errors="surrogateescape")
    return hashlib.sha256(manifest + state).hexdigest()


def files_state(folder: Path, guides: Guides = NO_GUIDES) -> tuple[object, ...]:
    """A value that differs after every change of a file that a model is read from.

    It is fast, and never raises an error. `version_of` differs only after changes of the manifest.

    Args:
        folder: of a model or a run.
        guides: files that guide the model.
    """
    run = folder.parent if folder.name == CHECKPOINTS else folder
    # Not the logs of a run, which change all the time.
    files = [file for file in _entries(folder) if file.name.removesuffix(PENDING) in _NAMES]
    files += [file for step in _entries(run / CHECKPOINTS) for file in _entries(step)]
    guiding = [Path(file.path) for file in (*guides.memory, *guides.glossaries)]
    return tuple((path, _file_state(path)) for path in (*files, *guiding))


def _entries(folder: Path) -> list[Path]:
    """The paths in a folder; none if it is not there, or a file."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _file_state(path: Path) -> object:
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def open_version(folder: Path, name: str, guides: Guides = NO_GUIDES) -> Opened:
    """Load the model in a folder, and the files that guide it, as they are now.

    Raises:
        FormatError: it is damaged, or keeps changing.
        ConfigError: it does not fit this machine.
        DataError: a file of pairs or terms cannot be read.
        UsageError: a file of pairs is not one of both languages.
    """
    for attempt in range(_ATTEMPTS):
        state = files_state(folder, guides)
        try:
            version = version_of(folder, guides)
            size = size_bytes(folder) + guides.size_bytes
            translator = load(folder, threads=1)
            n_pairs = _remember(translator, guides.memory)
            terms = [_read_terms(Path(file.path)) for file in guides.glossaries]
        except (HeedError, OSError):
            # Of a folder that is replaced meanwhile, a part of each version was read.
            if attempt + 1 == _ATTEMPTS or files_state(folder, guides) == state:
                raise
            continue
        if version_of(folder, guides) == version:
            for file, number in zip(guides.memory, n_pairs, strict=True):
                log.info("%s: %d of its pairs guide the model %s", file.path, number, name)
            for file, glossary in zip(guides.glossaries, terms, strict=True):
                _log_terms(file.path, glossary, name)
            return Opened(
                name=name,
                version=version,
                translator=translator,
                size_bytes=size,
                glossaries=_by_direction(guides.glossaries, terms),
            )
    raise FormatError(
        f"{folder} keeps changing while it is read. Finish writing it, then try again."
    )


def _remember(translator: Translator, files: Iterable[GuideFile]) -> list[int]:
    """Give a translator the pairs of files; return their numbers."""
    return [
        remember_file(translator, file.path, source_lang=file.source, target_lang=file.target)
        for file in files
    ]


def _read_terms(path: Path) -> Glossary:
    glossary = Glossary.open(path)
    # These are computed once. A large glossary would stop the event loop at the first request.
    _ = glossary.occurrences(""), glossary.digest, glossary.never
    return glossary


def _by_direction(files: Sequence[GuideFile], glossaries: Sequence[Glossary]) -> Terms:
    """The glossaries of each direction as one, in which the first one with a term counts."""
    found: dict[tuple[str, str], Glossary] = {}
    for file, glossary in zip(reversed(files), reversed(glossaries), strict=True):
        direction = file.source, file.target
        found[direction] = glossary.over(found[direction]) if direction in found else glossary
    return found


def _log_terms(path: str, glossary: Glossary, name: str) -> None:
    log.info("%s: %d terms guide the model %s", path, len(glossary), name)
    for remark in glossary.remarks[:_MOST_REMARKS]:
        log.warning("%s: %s", path, remark)
    if (n_more := len(glossary.remarks) - _MOST_REMARKS) > 0:
        log.warning("%s: %d more remarks of this kind", path, n_more)


def size_bytes(folder: Path) -> int:
    """The size of all files except weights that are not used for computing."""
    sizes = {
        name: entry.size for name, entry in read_manifest(find_model_folder(folder)).files.items()
    }
    if INT8 in sizes:
        sizes.pop(WEIGHTS, None)
    return sum(sizes.values())
