"""Split HTML and XML for translation: tags never reach a model, and all of them are kept.

`structure.py` decides which tags separate texts, `inline.py` where inline tags go among words.

- Kept unchanged: comments, declarations, CDATA, `pre`, `textarea`, `script`, `style` and the
  like, `code`, `kbd`, `samp`, `var`, `svg`, `math`, the readings of ruby (`rt`), and elements with
  `translate="no"` or the class `notranslate`.
- Translated in HTML, too: attributes that a browser shows or speaks (`attributes.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from heed.documents.flow import Part, flow
from heed.documents.namespaces import with_usual_prefixes
from heed.documents.passages import MODES, parts_of, sentences
from heed.documents.segment import Segment, require_one_each
from heed.documents.structure import Rules, names, structure
from heed.documents.tags import NO_XML_CHARACTER, read_tokens
from heed.errors import UsageError
from heed.translate.result import Translation

KINDS = ("html", "xml")


@dataclass(frozen=True, slots=True)
class Markup:
    """A page or a fragment, split.

    Attributes:
        segments: the segments to translate, in order.
        parts: the page in order: original text, and references to segments.
    """

    segments: list[Segment]
    parts: list[Part]

    def join(self, translations: Sequence[Translation]) -> str:
        """The page with each segment replaced by its translation.

        Raises:
            UsageError: there are not as many translations as segments.
        """
        require_one_each(self.segments, translations)
        return "".join(
            part if isinstance(part, str) else part.render(translations) for part in self.parts
        )


def parse_markup(
    text: str,
    kind: str = "html",
    ignore_tags: Collection[str] = (),
    splitting_tags: Collection[str] = (),
    non_splitting_tags: Collection[str] = (),
    blank_tags: Collection[str] = (),
    outline_detection: bool = True,
    split_sentences: str = "nonewlines",
    *,
    nested_tags: Collection[str] = (),
    has_namespaces: bool = False,
) -> Markup:
    """Split a page or a fragment into segments; joining them unchanged restores the text.

    The arguments are those of DeepL's API, except for `blank_tags` and those by name only.

    Args:
        text: HTML, however malformed, or XML.
        kind: one of `KINDS`.
        ignore_tags: names of elements that are kept unchanged.
        splitting_tags: names of elements that separate texts.
        non_splitting_tags: names of elements that do not.
        blank_tags: names of empty elements that stand for white space.
        outline_detection: for XML, detect which elements separate texts.
        split_sentences: one of `heed.documents.passages.MODES`. Line breaks have no meaning in
            markup, unless this is `1`.
        nested_tags: names of elements among the words of a text that have texts of their own.
        has_namespaces: whether names given here have the usual prefixes, where the XML may not.

    Raises:
        DataError: the XML is malformed.
        UsageError: the kind or mode is unknown.
    """
    for name, value, known in (
        ("kind", kind, KINDS),
        ("split_sentences", split_sentences, MODES),
    ):
        if value not in known:
            raise UsageError(f"{name} must be one of {', '.join(known)}, but is {value!r}.")
    is_xml = kind == "xml"
    rules = Rules(
        is_xml=is_xml,
        ignored=names(ignore_tags, is_xml=is_xml),
        splitting=names(splitting_tags, is_xml=is_xml),
        joining=names(non_splitting_tags, is_xml=is_xml),
        blanks=names(blank_tags, is_xml=is_xml),
        nested=names(nested_tags, is_xml=is_xml),
        has_outline=outline_detection,
    )
    tokens = read_tokens(text, is_xml=is_xml)
    segments, parts = flow(
        structure(text, with_usual_prefixes(text, tokens) if has_namespaces else tokens, rules),
        is_html=not is_xml,
        split=_SPLITTERS[split_sentences],
        escape=escape_xml if is_xml else escape,
    )
    return Markup(segments, parts)


_SPLITTERS = {
    "1": lambda text: parts_of(text, "1"),
    "0": lambda text: [text],
    "nonewlines": sentences,
}


def escape_xml(text: str) -> str:
    """Escape a text between tags of XML, without the characters that XML forbids."""
    return escape(NO_XML_CHARACTER.sub("", text))


def escape(text: str) -> str:
    """Escape a text between tags, so that no part of it is a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
