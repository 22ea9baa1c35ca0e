"""The effect of each tag of a page: it separates texts, or stands among the words of one.

A tag without a partner separates texts. So does a pair that contains a separating tag. Therefore
the tags that move with words are well-nested pairs, and all others stay in place.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from heed.documents.attributes import forbids_translation
from heed.documents.segment import has_words
from heed.documents.tags import RAW_ELEMENTS, Token, position
from heed.errors import DataError

# HTML, section 15.3 (rendering): displayed as blocks, lists, tables and the like. Unknown elements
# are displayed inline.
_BLOCKS = frozenset(
    "address article aside audio base blockquote body button canvas caption center col colgroup dd "  # noqa: SIM905 - a list would fill a page
    "details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 "
    "h4 h5 h6 head header hgroup hr html iframe legend li link main menu meta nav noframes "
    "noscript object ol optgroup option p param plaintext pre search section select source summary "
    "table tbody td template tfoot th thead title tr track ul video xmp".split()
)
# HTML, section 13.1.2.4 (optional tags): elements whose end tag is optional, and what ends them.
_PARAGRAPH_ENDS = frozenset(
    "address article aside blockquote details dialog div dl fieldset figcaption figure footer form "  # noqa: SIM905 - as above
    "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section table ul".split()
)
_ENDED_BY = {
    "p": _PARAGRAPH_ENDS,
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "option": frozenset(("option", "optgroup", "hr")),
    "optgroup": frozenset(("optgroup", "hr")),
    "td": frozenset(("td", "th", "tr", "tbody", "tfoot")),
    "th": frozenset(("td", "th", "tr", "tbody", "tfoot")),
    "tr": frozenset(("tr", "tbody", "tfoot")),
    "thead": frozenset(("tbody", "tfoot")),
    "tbody": frozenset(("tbody", "tfoot")),
    "rt": frozenset(("rt", "rp")),
    "rp": frozenset(("rt", "rp")),
}
_LONGEST_NOTE = 8  # tokens
_KEPT_BLOCKS = frozenset(("pre", *RAW_ELEMENTS))
# The readings of ruby characters are no words of their sentence either.
_READINGS = frozenset(("rp", "rt", "rtc"))
_UNREAD = frozenset(("math", "svg")) | _READINGS
_KEPT = frozenset(("code", "kbd", "samp", "var")) | _UNREAD | _KEPT_BLOCKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The treatment of tags; names are in lower case for HTML.

    Attributes:
        is_xml: whether case matters and malformed input is refused.
        ignored: elements that are kept unchanged.
        splitting: elements that separate texts.
        joining: elements that never do.
        blanks: empty elements that stand for white space.
        nested: elements such as notes, which stand among the words of a text, and have texts of
            their own. One within another separates texts.
        has_outline: for XML, detect the elements that separate texts: those that mostly stand next
            to other elements, not next to text.
    """

    is_xml: bool
    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    joining: frozenset[str] = frozenset()
    blanks: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    has_outline: bool = False


@dataclass(slots=True)
class Structure:
    """Tokens and their effects.

    Attributes:
        tokens: the tokens of the page; a kept element is one token.
        partner: the end tag of each start tag, and the start tag of each end tag, by number.
        apart: numbers of the tokens that separate texts.
        nested: the structure inside each token that has texts of its own, by its number.
    """

    tokens: list[Token]
    partner: dict[int, int] = field(default_factory=dict)
    apart: set[int] = field(default_factory=set)
    nested: dict[int, "Structure"] = field(default_factory=dict)


def structure(source: str, tokens: list[Token], rules: Rules) -> Structure:
    """Find the effect of each token of a page.

    Raises:
        DataError: the tags of XML do not match.
    """
    tokens = [_with_blank(token, rules.blanks) for token in tokens]
    kept = _with_kept(source, tokens, matched(source, tokens, is_xml=rules.is_xml), rules)
    found = Structure(kept, matched(source, kept, is_xml=rules.is_xml))
    outline = _outline(found) if rules.is_xml and rules.has_outline else frozenset()
    found.apart = {
        number
        for number, token in enumerate(kept)
        if token.kind == "declaration"
        or (token.kind in ("open", "close") and number not in found.partner)
        or (token.name and _is_apart(token, rules, outline))
    }
    found.apart |= _paragraph_breaks(kept)
    _break_pairs(found)
    inner = replace(rules, nested=frozenset(), splitting=rules.splitting | rules.nested)
    for number, token in enumerate(kept):
        if token.inside:
            found.nested[number] = structure(source, [*token.inside], inner)
    return found


def _with_blank(token: Token, blanks: frozenset[str]) -> Token:
    """A text instead of an element that stands for white space."""
    is_blank = token.kind == "empty" and token.name in blanks
    return replace(token, kind="text", name="", text=" ") if is_blank else token


def matched(source: str, tokens: list[Token], *, is_xml: bool) -> dict[int, int]:
    """The partner of each tag that has one, such that pairs are well nested.

    Raises:
        DataError: the tags of XML do not match.
    """
    partner: dict[int, int] = {}
    opened: list[int] = []
    n_open: Counter[str] = Counter()
    for number, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(number)
            n_open[token.name] += 1
        elif token.kind == "close":
            if is_xml and (not opened or tokens[opened[-1]].name != token.name):
                raise _crossed(source, token, tokens[opened[-1]] if opened else None)
            if not n_open[token.name]:
                continue
            while True:
                latest = opened.pop()
                n_open[tokens[latest].name] -= 1
                if tokens[latest].name == token.name:
                    break
            partner[latest], partner[number] = number, latest
    if is_xml and opened:
        token = tokens[opened[-1]]
        raise DataError(
            f"The XML is malformed: <{token.name}> at {position(source, token.start)} is never "
            f"closed. Add </{token.name}>."
        )
    return partner


def _crossed(source: str, token: Token, latest: Token | None) -> DataError:
    where = position(source, token.start)
    if latest is None:
        return DataError(
            f"The XML is malformed at {where}: {token.raw} closes no tag. Remove it, or add "
            f"<{token.name}> before it."
        )
    return DataError(
        f"The XML is malformed at {where}: {token.raw} comes before <{latest.name}> at "
        f"{position(source, latest.start)} is closed."
    )


def _with_kept(
    source: str, tokens: list[Token], partner: dict[int, int], rules: Rules
) -> list[Token]:
    """The tokens, with each kept element merged into one token."""
    names = rules.ignored if rules.is_xml else rules.ignored | _KEPT
    kept: list[Token] = []
    number = 0
    while number < len(tokens):
        token = tokens[number]
        end = partner.get(number, -1)
        is_open = token.kind == "open" and end < 0 and not rules.is_xml
        if is_open and (token.name in _READINGS or forbids_translation(token.raw)):
            end = _implied_end(tokens, partner, number)
        if token.kind == "open" and end > 0 and _is_kept(tokens, number, end, names):
            last = tokens[end]
            raw = source[token.start : last.start + len(last.raw)]
            text = "" if token.name in _UNREAD else _text(tokens, number, end)
            kept.append(Token("kept", raw, token.start, token.name, text, token.raw))
            number = end
        elif token.kind == "open" and token.name in rules.nested:
            inside = tokens[number : end + 1]
            raw = "".join(each.raw for each in inside)
            kept.append(Token("kept", raw, token.start, token.name, inside=(*inside,)))
            number = end
        elif token.kind == "empty" and (token.name in names or forbids_translation(token.raw)):
            kept.append(Token("kept", token.raw, token.start, token.name))
        else:
            kept.append(token)
        number += 1
    return [_sealed(token, rules) if token.opening else token for token in kept]


def _sealed(token: Token, rules: Rules) -> Token:
    """A kept element; its attributes are kept, too, if the user asks to keep the element."""
    is_all_kept = rules.is_xml or token.name in rules.ignored or forbids_translation(token.opening)
    return replace(token, opening="") if is_all_kept else token


def _implied_end(tokens: list[Token], partner: dict[int, int], number: int) -> int:
    """The last token of an HTML element whose end tag is missing."""
    ends = _ENDED_BY.get(tokens[number].name, frozenset())
    latest = number
    while latest + 1 < len(tokens):
        token = tokens[latest + 1]
        closes_parent = token.kind == "close" and latest + 1 in partner
        if closes_parent or (token.kind in ("open", "empty") and token.name in ends):
            break
        latest = partner.get(latest + 1, latest + 1)
    return latest


def _is_kept(tokens: list[Token], number: int, end: int, names: Collection[str]) -> bool:
    """Whether an element is kept unchanged."""
    token = tokens[number]
    if token.name == "sup" and end - number <= _LONGEST_NOTE:
        # A footnote mark has no meaning for a model, and must not be replaced.
        return not has_words(_text(tokens, number, end))
    return token.name in names or forbids_translation(token.raw)


def _text(tokens: list[Token], number: int, end: int) -> str:
    return "".join(token.text for token in tokens[number + 1 : end])


def _is_apart(token: Token, rules: Rules, outline: Collection[str]) -> bool:
    if token.name in rules.joining:
        return False
    if token.name in rules.splitting or token.name in outline:
        return True
    return not rules.is_xml and (token.name in _BLOCKS or token.name in _KEPT_BLOCKS)


def _outline(found: Structure) -> frozenset[str]:
    """Names of the XML elements that mostly stand without text next to them."""
    parents: list[int] = []
    parent_of: list[tuple[str, int]] = []
    has_text: set[int] = set()
    for number, token in enumerate(found.tokens):
        parent = parents[-1] if parents else -1
        if token.kind == "text" and not token.text.isspace():
            has_text.add(parent)
        elif token.kind == "close":
            parents.pop()
        elif token.name:
            parent_of.append((token.name, parent))
            if token.kind == "open":
                parents.append(number)
    beside: Counter[str] = Counter()
    for name, parent in parent_of:
        beside[name] += 1 if parent in has_text else -1
    return frozenset(name for name, count in beside.items() if count < 0)


def _paragraph_breaks(tokens: list[Token]) -> set[int]:
    """Two or more consecutive HTML line breaks."""
    found: set[int] = set()
    latest = -1
    for number, token in enumerate(tokens):
        if token.name == "br":
            if latest >= 0:
                found |= {latest, number}
            latest = number
        elif token.kind != "text" or not token.text.isspace():
            latest = -1
    return found


def _break_pairs(found: Structure) -> None:
    """Let pairs that contain a separating token separate texts, too."""
    opened: list[tuple[int, int]] = []
    n_apart = 0
    for number, token in enumerate(found.tokens):
        if number in found.apart:
            n_apart += 1
        elif token.kind == "open":
            opened.append((number, n_apart))
        elif token.kind == "close":
            start, n_before = opened.pop()
            if n_apart > n_before:
                found.apart |= {start, number}
                n_apart += 1


def names(given: Iterable[str], *, is_xml: bool) -> frozenset[str]:
    """Names of elements as given by a user, without blanks and `<>` around them."""
    plain = (re.sub(r"[<>/\s]", "", name) for name in given)
    return frozenset(name if is_xml else name.lower() for name in plain if name)
