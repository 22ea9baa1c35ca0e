"""Qt's translation files (.ts): what is unfinished and empty is filled in, everything else is kept.

The translations stay `unfinished`: a person has still to look at them. Each plural form is
translated from the source.

Source: https://doc.qt.io/qt-6/linguist-ts-file-format.html
"""

from heed.data.xml_segments import require_target
from heed.documents.assembly import Assembly
from heed.documents.attributes import attribute
from heed.documents.fields import format_of
from heed.documents.markup import escape_xml
from heed.documents.message import Message
from heed.documents.segment import OnRead, ignore
from heed.documents.structure import matched
from heed.documents.tags import Token, opened, read_tokens, require_root


def split_ts(text: str, target_lang: str = "", on_read: OnRead = ignore) -> Assembly:
    """The unfinished messages of a file that have no translation.

    Args:
        text: the file.
        target_lang: the language of the translations; "" = unknown.
        on_read: called for each translation; may stop this.

    Raises:
        DataError: the XML is malformed, or not Qt's; or its translations are in another language.
    """
    tokens = read_tokens(text, is_xml=True)
    partner = matched(text, tokens, is_xml=True)
    root = require_root(text, tokens, "TS")
    require_target([attribute(root.raw, "language")], target_lang)
    assembly = Assembly(text, on_read=on_read)
    source, behind = "", 0
    for number, token in enumerate(tokens):
        if number < behind or token.kind not in ("open", "empty"):
            continue
        last = partner.get(number, number)
        if token.name in ("source", "translation"):
            behind = last
        if token.name == "source":
            inside = tokens[number + 1 : last]
            is_text = all(each.kind == "text" for each in inside)  # no <byte>
            source = "".join(each.text for each in inside) if is_text else ""
        elif token.name == "translation" and source and _is_to_fill(tokens[number : last + 1]):
            for first, end in _forms(tokens, partner, number, last):
                assembly.keep_until(tokens[first].start)
                assembly.keep(opened(tokens[first]))
                assembly.add(Message.of(source, format_of("qt"), escape_xml))
                assembly.keep(f"</{tokens[first].name}>")
                assembly.place = tokens[end].start + len(tokens[end].raw)
            source = ""
    assembly.keep_until(len(text))
    return assembly


def _is_to_fill(element: list[Token]) -> bool:
    """Whether a translation, given its first to its last token, is unfinished and empty."""
    if attribute(element[0].raw, "type") != "unfinished":
        return False
    return all(
        each.name == "numerusform" or (each.kind == "text" and not each.text.strip())
        for each in element[1:-1]
    )


def _forms(
    tokens: list[Token], partner: dict[int, int], first: int, last: int
) -> list[tuple[int, int]]:
    """The first and last tokens of a translation's plural forms; its own if it has none."""
    forms = [
        (number, partner.get(number, number))
        for number in range(first + 1, last)
        if tokens[number].name == "numerusform" and tokens[number].kind in ("open", "empty")
    ]
    return forms or [(first, last)]
