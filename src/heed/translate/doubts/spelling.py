"""The text of pieces, and its characters that the model has no piece for."""

import re
from collections.abc import Sequence

from heed.text.spans import BLANK_SIGN

_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")
_UNKNOWN = "<unk>"


def spelled(tokens: Sequence[str]) -> str:
    """The text of pieces."""
    joined = "".join(tokens)
    if "<0x" in joined:
        joined = _BYTES.sub(lambda match: _decoded(match[0]), joined)
    return joined.replace(BLANK_SIGN, " ").strip()


def unknown_characters(source_tokens: Sequence[str]) -> list[str]:
    """Characters of the source that the model reads as bytes, or not at all (given as `?`).

    Args:
        source_tokens: pieces of the source.
    """
    joined = "".join(source_tokens)
    if "<0x" not in joined and _UNKNOWN not in joined:
        return []
    found: list[str] = []
    for match in re.finditer(rf"{_BYTES.pattern}|{_UNKNOWN}", joined):
        found += ["?"] if match[0] == _UNKNOWN else _decoded(match[0]).strip()
    return found


def _decoded(pieces: str) -> str:
    """The characters of byte pieces in a row, such as `<0xC3><0xA4>`."""
    data = bytes.fromhex(pieces.replace("<0x", "").replace(">", ""))
    return data.decode("utf-8", errors="replace")
