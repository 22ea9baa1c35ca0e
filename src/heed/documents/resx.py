"""Resources of .NET (.resx, .resw): the values of strings are translated, everything else is kept.

Kept are data with a type, such as images and sizes, and the names that a form's designer writes
(`>>button.Name`).

Source: https://learn.microsoft.com/dotnet/core/extensions/create-resource-files
"""

from heed.documents.assembly import Assembly
from heed.documents.attributes import attribute
from heed.documents.fields import format_of
from heed.documents.markup import escape_xml
from heed.documents.message import Message
from heed.documents.segment import OnRead, ignore
from heed.documents.structure import matched
from heed.documents.tags import Token, read_tokens, require_root


def split_resx(text: str, on_read: OnRead = ignore) -> Assembly:
    """The strings of a file of resources; `on_read` may stop this.

    Raises:
        DataError: the XML is malformed, or has no resources.
    """
    tokens = read_tokens(text, is_xml=True)
    partner = matched(text, tokens, is_xml=True)
    require_root(text, tokens, "root")
    assembly = Assembly(text, on_read=on_read)
    end = after = 0
    for number, token in enumerate(tokens):
        if token.kind != "open" or number < after:
            continue
        if token.name == "data" and _is_string(token):
            end = partner[number]
        elif token.name == "value" and number < end:
            after = partner[number]
            inside = tokens[number + 1 : after]
            start, behind = token.start + len(token.raw), tokens[after].start
            if all(each.kind == "text" for each in inside):
                value, raw = "".join(each.text for each in inside), text[start:behind]
                message = Message.of(value, format_of("csharp"), escape_xml, raw)
                assembly.replace(start, behind, message)
    assembly.keep_until(len(text))
    return assembly


def _is_string(data: Token) -> bool:
    has_type = attribute(data.raw, "type") or attribute(data.raw, "mimetype")
    return not has_type and not attribute(data.raw, "name").startswith(">>")
