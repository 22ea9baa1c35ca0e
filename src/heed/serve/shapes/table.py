"""The table of all endpoints, and the error style of each path."""

from heed.serve.shapes import (
    addons,
    causes,
    deepl,
    deepl_documents,
    deepl_glossaries,
    deepl_multilingual,
    deeplx,
    documentation,
    embeddings,
    hcfy,
    libretranslate,
    libretranslate_files,
    libretranslate_page,
    opennmt,
    own,
    own_files,
    own_models,
    searches,
    traces,
    training,
)
from heed.serve.shapes.endpoint import Endpoint
from heed.serve.shapes.style import Style

_TRANSLATING: tuple[Endpoint, ...] = (
    *own.ENDPOINTS,
    *own_models.ENDPOINTS,
    *own_files.ENDPOINTS,
    *causes.ENDPOINTS,  # before the tensors of a trace, whose path pattern matches theirs, too
    *traces.ENDPOINTS,
    *embeddings.ENDPOINTS,
    *training.ENDPOINTS,
    *searches.ENDPOINTS,
    *libretranslate.ENDPOINTS,
    *libretranslate_page.ENDPOINTS,
    *libretranslate_files.ENDPOINTS,
    *deepl.ENDPOINTS,
    *deepl_glossaries.ENDPOINTS,
    *deepl_multilingual.ENDPOINTS,
    *deepl_documents.ENDPOINTS,
    *addons.ENDPOINTS,
    *hcfy.ENDPOINTS,
    *deeplx.ENDPOINTS,
    *opennmt.ENDPOINTS,
)
ENDPOINTS = (*_TRANSLATING, *documentation.endpoints(_TRANSLATING))
STYLES: tuple[Style, ...] = (
    own.STYLE,
    deepl.STYLE,
    addons.GOOGLE_STYLE,
    deeplx.STYLE,
    opennmt.STYLE,
    libretranslate.STYLE,
)
"""The first style with a prefix of the path is used."""


def style_of(path: str) -> Style:
    """The style of errors for a path."""
    return next(
        style for style in STYLES if any(path.startswith(prefix) for prefix in style.prefixes)
    )
