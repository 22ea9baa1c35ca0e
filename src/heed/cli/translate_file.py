"""`heed translate-file`: a page, a document or subtitles; what is no text is kept.

The formats are in `documents/files.py`.
"""

import sys
from pathlib import Path

import click

from heed.bundle.outputs import STANDARD, require_not_read
from heed.cli.command import Session, command, options
from heed.cli.glossary import note_terms, open_glossary
from heed.cli.models import (
    ModelFlags,
    checked_search,
    load_translator,
    model_files,
    model_options,
)
from heed.cli.protect import Protection, protect_options
from heed.disk.files import read_bytes, write_atomically
from heed.documents.files import open_document
from heed.errors import UsageError

EXAMPLES = """
heed translate-file page.html page.de.html -m run/
heed translate-file film.srt film.de.srt -m run/ -b 5
heed translate-file notes.md notes.de.md -m run/ --glossary terms.tsv
"""

option = options("Options")


@command("translate-file", "Translate a page, a document or subtitles.", examples=EXAMPLES)
@click.argument("input_path", metavar="IN")
@click.argument("output_path", metavar="OUT")
@model_options
@protect_options
@option("-b --beam-size --beam", int, "Hypotheses kept at each step; 1 is greedy.")
@option(
    "--glossary glossary_path",
    str,
    "Lines of source term and target term, with a tab between them (.csv: a comma).",
    metavar="FILE",
)
@click.pass_obj
def translate_file(
    session: Session,
    /,
    input_path: str,
    output_path: str,
    opening: ModelFlags,
    protection: Protection,
    beam_size: int | None,
    glossary_path: str | None,
) -> None:
    """Translate the text of a file and write it as a file of the same format.

    IN is plain text, HTML, XML, Markdown, SubRip or WebVTT subtitles, a gettext catalog, a document
    of Office (.docx, .pptx) or OpenDocument, or an EPUB book; its ending says which. OUT may be -,
    standard output.
    """
    if input_path == STANDARD:
        raise UsageError(
            "IN must be a file, whose ending says its format, but is standard input. Save it first."
        )
    for name, path in (("IN", input_path), ("OUT", output_path)):
        if not path:
            raise UsageError(f"{name} must be the name of a file, but is empty.")
    document = open_document(Path(input_path).name, read_bytes(Path(input_path)))
    glossary = open_glossary(session, glossary_path)
    inputs = [input_path, *([glossary_path] if glossary_path else []), *protection.inputs]
    require_not_read(output_path, [*inputs, *model_files(opening.model)])
    translator, target_lang = load_translator(session, opening)
    search = checked_search(translator, {"beam_size": beam_size})
    translations = translator.translate(
        [segment.text for segment in document.segments],
        target_lang=target_lang,
        alignment=any(s.needs_alignment for s in document.segments),
        glossary=glossary,
        **protection.applied(translator),
        **search,
    )
    note_terms(session, translations)
    written = document.join(translations)
    if output_path == STANDARD:
        name = "standard output"
        sys.stdout.buffer.write(written)
    else:
        name = output_path
        write_atomically(output_path, written, follow_links=True)
    session.say(f"{name}: {len(document.segments)} texts translated")
