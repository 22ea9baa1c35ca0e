"""A folder of parallel text: which of its files form pairs, and the role of each.

File names alone decide, in alphabetical order, so the same files always make the same corpus.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from heed.data.lines import suffix_of
from heed.data.readers import BILINGUAL, ParallelFiles
from heed.errors import ConfigError, DataError

_COMPRESSED = re.compile(r"\.(gz|xz|zst)$")
_DEV = re.compile(r"(dev|val)", re.IGNORECASE)
_TEST = re.compile(r"test", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Found:
    """The files found in a folder.

    Attributes:
        train: training files.
        dev: files whose names begin with `dev` or `val`.
        test: files whose names begin with `test`.
        unused: names of files that are none of these.
    """

    train: tuple[ParallelFiles, ...]
    dev: tuple[ParallelFiles, ...]
    test: tuple[ParallelFiles, ...]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        roles = [
            ("to learn from", self.train),
            ("to choose by", self.dev),
            ("set aside", self.test),
        ]
        said = [f"{role}: {_names(parts)}" for role, parts in roles if parts]
        return "; ".join([*said, *([f"not used: {', '.join(self.unused)}"] if self.unused else [])])


def _names(parts: tuple[ParallelFiles, ...]) -> str:
    return ", ".join(" + ".join(Path(file).name for file in part.files) for part in parts)


def read_folder(folder: str | Path, *, source_lang: str, target_lang: str) -> Found:
    """Find the parallel text in a folder, not in folders inside it.

    TMX, XLIFF, PO, TSV and CSV files are one part each. Two files of plain text are a part if their
    names differ only in the language: `law.en` and `law.de`, `law.en.gz` and `law.de.gz`. Of a file
    and its compressed copy one is read; hidden files are not.

    Raises:
        ConfigError: a language is not given.
        DataError: the folder holds no training files.
    """
    if not source_lang or not target_lang:
        raise ConfigError(
            f"{folder} is a folder: say which languages to take from it, with --source-lang and "
            "--target-lang."
        )
    files_found = (path.name for path in Path(folder).iterdir() if path.is_file())
    names = sorted(name for name in files_found if not name.startswith("."))
    # A compressed copy comes after its file, which takes its place here.
    by_key = {split_name(name): name for name in reversed(names)}
    parts: dict[str, ParallelFiles] = {}
    used: set[str] = set()
    for (stem, language), name in reversed(by_key.items()):
        other = by_key.get((stem, target_lang))
        if suffix_of(name) in BILINGUAL:
            files: tuple[str, ...] = (name,)
        elif language == source_lang and other is not None:
            files = (name, other)
        else:
            continue
        used.update(files)
        parts[name] = ParallelFiles(
            files=tuple(str(Path(folder) / file) for file in files),
            source_lang=source_lang,
            target_lang=target_lang,
        )
    dev = {name for name in parts if _DEV.match(name)}
    test = {name for name in parts if _TEST.match(name)}
    found = Found(
        train=tuple(part for name, part in parts.items() if name not in dev | test),
        dev=tuple(parts[name] for name in sorted(dev)),
        test=tuple(parts[name] for name in sorted(test)),
        unused=tuple(name for name in names if name not in used),
    )
    if not found.train:
        raise DataError(
            f"{folder} holds nothing to learn from: no .tmx, .xliff, .po, .tsv or .csv file, and "
            f"no two files such as train.{source_lang} and train.{target_lang}."
        )
    return found


def split_name(name: str) -> tuple[str, str]:
    """A file name without its language, and the language: `a.en.gz` → (`a`, `en`)."""
    stem, _, language = _COMPRESSED.sub("", name).rpartition(".")
    return stem, language
