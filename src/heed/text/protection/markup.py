"""Tags of XML and HTML, and the marks and code of Markdown.

In strings of programs 99.9 % of 1,578 paired tags and 29 of 31 single ones are unchanged in the
German translation, 21 of 23 pieces of code, and all 26 marks of Markdown. A single tag that is not
HTML and has no attribute, such as `<none>`, is in 6 of 34 cases: it is text, and not protected.
Marks of Markdown are protected only in pairs.

Not found: marks of lists, quotations and tables, single marks (`2 * 3`, `_File`), `[text]` without
an address, text in brackets of comparisons (`a < b`).
"""

import re

_ATTRIBUTE = r"\s++[A-Za-z_:@][\w:.\-]*+\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'|[^\s\"'<>=]++)"
_BARE = r"\s++(?:checked|disabled|hidden|selected|required|readonly|async|defer|controls)"
TAG = re.compile(
    r"<!--(?:[^<\-]++|<(?!!--)|-(?!->))*+-->"
    r"|<!\[CDATA\[|\]\]>"
    r"|<%(?:[^<>%]++|%(?!>))*+%>"
    r"|<\?[A-Za-z](?:[^<>?]++|\?(?!>))*+\?>"
    r"|<!(?:DOCTYPE|doctype)\b[^<>]*+>"
    r"|</(?P<closed>[A-Za-z_][\w:.\-]*+|\d{1,3})\s*+>"
    rf"|<(?P<opened>[A-Za-z_][\w:.\-]*+|\d{{1,3}})(?P<attributes>(?:{_ATTRIBUTE}|{_BARE})*+)"
    r"\s*+(?P<empty>/?)>"
)
HTML_NAMES = frozenset(
    (  # noqa: SIM905
        "a abbr article aside audio b bdi bdo big blockquote body br button canvas caption center "
        "cite code col dd del details dfn div dl dt em embed fieldset figure font form h1 h2 h3 h4 "
        "h5 h6 head hr html i iframe img input ins kbd label legend li link main map mark meta nav "
        "ol option p param pre q s samp script section select small source span strike strong "
        "style sub summary sup svg table tbody td textarea tfoot th thead tr tt u ul var video wbr"
    ).split()
)

# From tick to tick, both beside other characters: quotes such as `this' begin with a tick, too.
CODE = re.compile(
    r"(?<!`)```(?!`)(?:[^`]++|``?(?!`))++```(?!`)"
    r"|(?<!`)``(?!`)(?:[^`]++|`(?!`))++``(?!`)"
    r"|(?<![`\w\\])`(?![`\s])(?:[^`\s]++|\s++(?!`))++`(?![`\w])"
)
LINK_END = (
    r"\]\((?:[^()\s<>]++|\([^()\s]*+\)|<[^<>\n]*+>)*+(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'))?\s*+\)"
)
LINK = re.compile(rf"(?<!\\)!?\[|{LINK_END}|(?<!\\)\]")
EMPHASIS = re.compile(r"(?<![\\*])\*{1,3}(?!\*)|(?<![\\_])_{1,3}(?!_)|(?<![\\~])~~(?!~)")
HEADING = re.compile(r"\A#{2,6}(?= )")

ABOUT = {
    "code": "code between ticks",
    "tag": "tags and comments of XML and HTML",
    "markdown": "marks of Markdown, such as **, and the addresses of links",
}
