"""`heed translate-file`: translate a page, a document or subtitles, and keep the rest unchanged.

The formats are in `documents/files.py`.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import click

from heed.bundle.outputs import STANDARD, are_one_file, require_not_read
from heed.cli.command import Session, command, options
from heed.cli.doubting import Doubtful, Doubting, doubt_options
from heed.cli.glossary import note_terms, open_glossary
from heed.cli.memory import Memories, memory_options
from heed.cli.models import (
    ModelFlags,
    checked_search,
    model_options,
)
from heed.cli.protect import Protection, protect_options
from heed.disk.files import read_bytes, require_writable_file, write_atomically
from heed.documents.files import open_document
from heed.errors import UsageError

EXAMPLES = """
heed translate-file page.html page.de.html -m run/
heed translate-file film.srt film.de.srt -m run/ -b 5
heed translate-file notes.md notes.de.md -m run/ --glossary terms.tsv
heed translate-file app_en.arb app_de.arb -m run/
"""

option = options("Options")


@command("translate-file", "Translate a page, a document or subtitles.", examples=EXAMPLES)
@click.argument("input_path", metavar="IN")
@click.argument("output_path", metavar="OUT")
@model_options
@memory_options
@protect_options
@doubt_options(
    ("keep", "source", "fail"),
    "Keep a doubtful text, write its source instead, or stop.",
)
@option("-b --beam-size --beam", int, "Hypotheses kept at each step; 1 is greedy.")
@option(
    "--glossary glossary_path",
    str,
    "File of terms: source term, tab, target term (.csv: comma or semicolon).",
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
    memories: Memories,
    doubting: Doubting,
    beam_size: int | None,
    glossary_path: str | None,
) -> None:
    """Translate the text of a file and write it as a file of the same format.

    IN is plain text, HTML, XML, Markdown, subtitles, texts of a program (such as .po, .xliff, .json
    or .resx), an Office document (.docx, .pptx, .xlsx), an OpenDocument file or an EPUB book; its
    suffix tells which. OUT may be -, standard output.
    """
    if input_path == STANDARD:
        raise UsageError(
            "IN must be a file, because its suffix tells its format, but is standard input. Save "
            "it to a file first."
        )
    for name, path in (("IN", input_path), ("OUT", output_path)):
        if not path:
            raise UsageError(f"{name} must be the name of a file, but is empty.")
    data = read_bytes(Path(input_path))
    glossary = open_glossary(session, glossary_path)
    inputs = [input_path, *([glossary_path] if glossary_path else []), *protection.inputs]
    inputs += memories.inputs(opening)
    for path in filter(None, [output_path, doubting.report_path]):
        require_not_read(path, inputs)
    if (report := doubting.report_path) and are_one_file(report, output_path):
        raise UsageError(f"--report and OUT are both {report}: each needs its own file.")
    if output_path != STANDARD:
        require_writable_file(output_path)
    translator, target_lang = memories.load(session, opening, protection)
    _, tgt_lang = translator.reader.direction(opening.source_lang, target_lang)
    document = open_document(Path(input_path).name, data, tgt_lang)
    doubting.apply(translator)
    with ExitStack() as stack:
        doubtful = Doubtful(doubting, stack, unit="text")
        found = translator.translate_stream(
            doubtful.reading(segment.text for segment in document.segments),
            processes=None,
            target_lang=target_lang,
            alignment=any(s.needs_alignment for s in document.segments),
            glossary=glossary,
            **checked_search(translator.options, {"beam_size": beam_size}),
        )
        translations = [doubtful.looked_at(each) for each in found]
    note_terms(session, translations)
    written = document.join(translations)
    name = "standard output" if output_path == STANDARD else output_path
    if output_path == STANDARD:
        sys.stdout.buffer.write(written)
    else:
        write_atomically(output_path, written, follow_links=True)
    session.say(f"{name}: {len(translations):,} text{'s' * (len(translations) != 1)} translated")
    doubtful.summarize(session)
