"""The table of all endpoints, and how each API spells its errors."""

from heed.serve.shapes import deepl, deepl_glossaries, libretranslate, own
from heed.serve.shapes.endpoint import Endpoint
from heed.serve.shapes.style import Style

ENDPOINTS: tuple[Endpoint, ...] = (
    *own.ENDPOINTS,
    *libretranslate.ENDPOINTS,
    *deepl.ENDPOINTS,
    *deepl_glossaries.ENDPOINTS,
)
STYLES: tuple[Style, ...] = (own.STYLE, deepl.STYLE, libretranslate.STYLE)
"""The first with a prefix of the path counts."""


def style_of(path: str) -> Style:
    """How errors of a path are spelled."""
    return next(
        style for style in STYLES if any(path.startswith(prefix) for prefix in style.prefixes)
    )
