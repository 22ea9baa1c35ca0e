"""The endings of the files that `files.py` opens, for those who only name them."""

TEXT_ENDINGS = ("txt", "html", "htm", "xhtml", "xml", "md", "markdown", "srt", "vtt", "po")
ARCHIVE_ENDINGS = ("docx", "pptx", "odt", "odp", "ods", "epub")

SUPPORTED_FORMATS = tuple(f".{ending}" for ending in (*TEXT_ENDINGS, *ARCHIVE_ENDINGS))
"""With the dot."""
