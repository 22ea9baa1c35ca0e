"""The endings of the files that `files.py` opens, without importing the formats."""

TEXT_ENDINGS = (
    "txt",
    "html",
    "htm",
    "xhtml",
    "xml",
    "md",
    "markdown",
    "srt",
    "vtt",
    "ass",
    "ssa",
    "json",
    "properties",
    "strings",
    "resx",
    "resw",
    "po",
    "xlf",
    "xliff",
    "sdlxliff",
    "mqxliff",
    "arb",
    "ts",
)
ARCHIVE_ENDINGS = ("docx", "pptx", "xlsx", "odt", "odp", "ods", "epub")

SUPPORTED_FORMATS = tuple(f".{ending}" for ending in (*TEXT_ENDINGS, *ARCHIVE_ENDINGS))
"""The endings with a dot."""
