"""XML names by their namespaces: a file may use any prefix for a namespace, or none.

Source: Namespaces in XML 1.0, sections 3 to 6.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from heed.documents.structure import matched
from heed.documents.tags import Token

_OASIS = "urn:oasis:names:tc:"
_MICROSOFT, _STRICT = "http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml"
_ODF = {"drawing": "draw", "datastyle": "number", "svg-compatible": "svg"}
_ODF |= {name: name for name in ("meta", "office", "style", "table", "text")}
_PREFIXES = {
    f"{_MICROSOFT}/wordprocessingml/2006/main": "w",
    f"{_STRICT}/wordprocessingml/main": "w",
    f"{_MICROSOFT}/drawingml/2006/main": "a",
    f"{_STRICT}/drawingml/main": "a",
    f"{_MICROSOFT}/officeDocument/2006/math": "m",
    f"{_STRICT}/officeDocument/math": "m",
    **{f"{_OASIS}opendocument:xmlns:{name}:1.0": prefix for name, prefix in _ODF.items()},
    "http://purl.org/dc/elements/1.1/": "dc",
    f"{_OASIS}xliff:document:1.2": "xliff",
}
"""The usual prefix of each namespace whose elements heed knows."""

_ATTRIBUTE = re.compile(r"\s([^\s=<>\"']++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')")


def with_usual_prefixes(source: str, tokens: list[Token]) -> list[Token]:
    """Tokens whose names have the usual prefixes of their namespaces.

    An element of another namespace keeps its name, unless its prefix is a usual one of those: then
    it is named by its namespace.

    Raises:
        DataError: the tags do not match.
    """
    declared = {pair for token in tokens for pair in _declared(token)}
    if all(_usual(*pair) == pair[0] for pair in declared):
        return tokens
    matched(source, tokens, is_xml=True)
    return [*_renamed(tokens)]


def _declared(token: Token) -> Iterator[tuple[str, str]]:
    """The prefixes that a tag declares, "" for names without one, and their namespaces."""
    if token.kind in ("open", "empty") and "xmlns" in token.raw:
        for name, double, single in _ATTRIBUTE.findall(token.raw):
            if name == "xmlns" or name.startswith("xmlns:"):
                yield name[len("xmlns:") :], double or single


def _usual(prefix: str, namespace: str) -> str:
    """The prefix of a namespace's names here."""
    return _PREFIXES.get(namespace, namespace if prefix in _PREFIXES.values() else prefix)


def _renamed(tokens: list[Token]) -> Iterator[Token]:
    # The prefixes in use now, the latest last, and for each open element those that it declares.
    usual: dict[str, list[str]] = {}
    opened: list[list[str]] = []
    for token in tokens:
        declared = [*_declared(token)]
        for prefix, namespace in declared:
            usual.setdefault(prefix, []).append(_usual(prefix, namespace))
        prefix, _, name = token.name.rpartition(":")
        if token.name and usual.get(prefix):
            wanted = usual[prefix][-1]
            yield replace(token, name=f"{wanted}:{name}" if wanted else name)
        else:
            yield token
        if token.kind == "open":
            opened.append([prefix for prefix, _ in declared])
        elif token.kind in ("empty", "close"):
            ended = [prefix for prefix, _ in declared] if token.kind == "empty" else opened.pop()
            for prefix in ended:
                usual[prefix].pop()
