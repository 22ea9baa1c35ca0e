"""The languages that a TMX or XLIFF file names, for a message to someone who has not said which.

Not its pairs: `tmx.py` and `xliff.py` read them.
"""

from pathlib import Path

from heed.data.xml_encoding import read_xml
from heed.data.xml_events import XmlEvents
from heed.data.xml_segments import rank_of
from heed.errors import ConfigError, DataError
from heed.text.languages import require_language

_MOST_BYTES = 20 << 20
"""Read of a file: about two seconds."""
_MOST_SHOWN = 25
_FLAGS = ("--source-lang", "--target-lang")
_ATTRIBUTES = {
    "tuv": ("xml:lang", "lang"),
    "file": ("source-language", "target-language"),
    "xliff": ("srcLang", "trgLang"),
}


def languages_asked(path: str | Path, source_lang: str, target_lang: str) -> str:
    """What is said of a file whose languages are needed: which it has, and what to give.

    Args:
        path: of the file; it may be missing or damaged.
        source_lang: the code that was given, or "".
        target_lang: the same.
    """
    found, given = named_languages(path), (source_lang, target_lang)
    ways = [
        _flags(way, given)
        for way in (found, found[::-1])
        if len(way) == 2 and all(map(_fits, given, way))
    ]
    if ways:
        which = f"{path} has {' and '.join(found)}: say which is the source."
        return f"{which} Add {', or '.join(ways)}."
    missing = " and ".join(flag for flag, code in zip(_FLAGS, given, strict=True) if not code)
    has = f" It has {_listed(found)}." if found else ""
    return f"{path} may hold many languages: say which, with {missing}.{has}"


def named_languages(path: str | Path) -> list[str]:
    """The codes of the languages in the first 20 MiB of a file, in order; none if it is damaged.

    Regions are left out, unless without them there would be one language.
    """
    reader = _Reader(str(path))
    reader.read()
    whole = list(reader.codes)
    short = list(dict.fromkeys(code.replace("_", "-").split("-")[0].lower() for code in whole))
    return [code for code in (short if len(short) > 1 else whole) if _is_valid(code)]


class _Reader:
    """Collects language codes from the attributes of elements; a `Handler`."""

    def __init__(self, path: str) -> None:
        self.codes: dict[str, None] = {}
        self._path = path
        self._events = XmlEvents(path, "a TMX or XLIFF file", self)

    def read(self) -> None:
        """Read the file until its end, its limit or a fault."""
        n_bytes = 0
        try:
            for chunk in read_xml(self._path):
                self._events.feed(chunk)
                n_bytes += len(chunk)
                if n_bytes > _MOST_BYTES:
                    return
        except DataError:
            return  # which is said when the languages are known

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        names = _ATTRIBUTES.get(tag.rpartition(":")[2], ())
        found = [attributes[name] for name in names if attributes.get(name)]
        if len(self.codes) <= 10 * _MOST_SHOWN:
            # Older files may have both attributes of a <tuv>: the first one counts.
            self.codes |= dict.fromkeys(found[:1] if tag == "tuv" else found)

    def end(self, tag: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Text of an element."""

    def entity(self, name: str) -> None:
        """An entity of another file."""


def _flags(codes: list[str], given: tuple[str, str]) -> str:
    """The flags for these codes, except those that were given."""
    each = zip(_FLAGS, codes, given, strict=True)
    return " ".join(f"{flag} {code}" for flag, code, known in each if not known)


def _fits(given: str, code: str) -> bool:
    """Whether a code that was given, or none, stands for a language of the file."""
    return not given or rank_of(given, code) is not None


def _is_valid(code: str) -> bool:
    try:
        require_language(code)
    except ConfigError:
        return False
    return True


def _listed(codes: list[str]) -> str:
    """The first codes of many."""
    names = sorted(codes)
    if len(names) == 1:
        return f"only {names[0]}"
    more = len(names) - _MOST_SHOWN
    if more > 0:
        return f"{', '.join(names[:_MOST_SHOWN])} and {more} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
