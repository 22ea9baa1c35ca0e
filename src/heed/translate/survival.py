"""A test set with unusual input: one changed copy of it for each kind of disturbance.

A seed decides all changes, so that two systems, or two versions of one, get the same lines.
`evaluate/survival.py` scores the translations.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heed.evaluate.survival import PAIR, Trial, View
from heed.machine.seeds import derived_random
from heed.text.disturb import KINDS, find_kept
from heed.text.foreign import SENTENCES
from heed.text.invent import SPANS, invent_name, invent_span, invent_tags
from heed.text.letter_case import has_case
from heed.text.scripts import main_script

CASE_KINDS = ("upper", "title", "lower")
_CHANGES: dict[str, tuple[str, View, str]] = {
    "upper": ("UPPER CASE, scored without case", "without case", "have no capitals"),
    "title": ("Title Case, scored without case", "without case", "have no capitals"),
    "lower": ("lower case, scored without case", "without case", "have no capitals"),
    "typo": ("one typing error a line", "as it is", "have no words"),
    "no_end": ("final mark missing", "without final marks", "have no final marks"),
    "double_end": ("final mark doubled", "without final marks", "have no final marks"),
    "spaces": ("odd blanks", "as it is", "have no blanks or marks"),
    "quotes": (
        "other quotes and dashes",
        "with plain marks",
        "have no quotes, apostrophes or dashes",
    ),
}
"""Of each kind of disturbance its label, what is compared, and why a copy may be empty."""

_END = re.compile(r"[.!?…。！？؟।]*\s*$")
_CAPITALIZED = re.compile(r"(?<=[\w,;] )[A-ZÀ-Þ][\w-]+(?!\w)")
_OWN = re.compile(
    r"%\([^()\s]*\)[a-zA-Z]|%(?:\d+\$)?(?:ld|l?u|[sd@])|\$?\{+[\w.:]*\}+|</?[A-Za-z][^<>]*>|&\w+;"
    r"|https?://[^\s<>\"')]*[\w/]"
)
_TRIES = 20
MAX_WRAPPED = 3
"""Words inside an inserted pair of tags, at most."""


@dataclass(frozen=True, slots=True)
class _Changed:
    """A line that has been changed.

    Attributes:
        source: the line now.
        number: number of the line, from 0.
        references: its references now.
        spans: the texts that a translation must keep.
        kind: of the spans.
    """

    source: str
    number: int
    references: tuple[str, ...]
    spans: tuple[str, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Original:
    """Lines and their references.

    Attributes:
        sources: the lines.
        references: one set or more, as many lines each.
        source_lang: code; "" if unknown.
        target_lang: code; "" if unknown.
        seed: decides all that is random.
    """

    sources: Sequence[str]
    references: Sequence[Sequence[str]]
    source_lang: str = ""
    target_lang: str = ""
    seed: int = 1

    def of(self, number: int) -> tuple[str, ...]:
        """The references of a line."""
        return tuple(lines[number] for lines in self.references)

    def random(self, purpose: str, number: int) -> np.random.Generator:
        """A generator for one line and purpose."""
        return derived_random(self.seed, "survival", purpose, number)


def make_trials(test: Original) -> list[Trial]:
    """A test set and its changed copies, the unchanged one first."""
    clean = Trial(
        key="clean",
        label="unchanged",
        sources=test.sources,
        numbers=range(len(test.sources)),
        references=test.references,
    )
    return [
        clean,
        *(_disturbed(test, kind) for kind in KINDS),
        _with_spans(test),
        _with_own_spans(test),
        _with_names(test),
        _foreign(test),
    ]


def _disturbed(test: Original, kind: str) -> Trial:
    label, view, missing = _CHANGES[kind]
    lines = [
        _Changed(changed, number, test.of(number))
        for number, source in enumerate(test.sources)
        if (changed := KINDS[kind](source, test.random(kind, number))) != source
    ]
    if kind in CASE_KINDS and not any(map(has_case, test.sources)):
        lines = []
    return _trial(kind, label, lines, view=view, reason=f"the lines {missing}")


def _trial(
    key: str,
    label: str,
    lines: Sequence[_Changed],
    *,
    reason: str,
    view: View = "as it is",
    is_rest: bool = False,
) -> Trial:
    if not lines:
        return Trial(key=key, label=label, reason=reason)
    has_spans = any(line.spans for line in lines)
    return Trial(
        key=key,
        label=label,
        sources=[line.source for line in lines],
        numbers=[line.number for line in lines],
        references=list(zip(*(line.references for line in lines), strict=True)),
        view=view,
        spans=[line.spans for line in lines] if has_spans else (),
        kinds=[line.kind for line in lines] if has_spans else (),
        is_rest=is_rest,
    )


def _with_spans(test: Original) -> Trial:
    """One made-up span in each line, of each kind in turn."""
    kinds = [*SPANS, PAIR]
    lines = []
    for number, source in enumerate(test.sources):
        kind = kinds[number % len(kinds)]
        generator = test.random("spans", number)
        if found := _span_into(source, kind, generator):
            changed, spans = found
            lines.append(_Changed(changed, number, test.of(number), spans, kind))
    label = "fields, tags, numbers, URLs, … inserted"
    return _trial("spans", label, lines, reason="the lines have no words", is_rest=True)


def _span_into(
    source: str, kind: str, generator: np.random.Generator
) -> tuple[str, tuple[str, ...]] | None:
    """The line with a span of the kind inserted, and the span; None if it has no room.

    A span that is already in the line is not inserted: it could not be counted.
    """
    spans: tuple[str, ...]
    for _ in range(_TRIES):
        if kind == PAIR:
            spans = pair = invent_tags(generator)
            changed = _wrapped(source, pair, generator)
        else:
            spans = (span,) = (invent_span(kind, generator),)
            changed = _inserted(source, span, generator)
        if changed and all(changed.count(span) == 1 for span in spans):
            return changed, spans
    return None


def _gaps(source: str) -> list[int]:
    """Places for words: after blanks, or between letters if the script has no blanks."""
    kept = find_kept(source)
    if main_script(source) in ("han", "kana", "thai") and " " not in source.strip():
        gaps = [i for i in range(1, len(source)) if source[i - 1 : i + 1].isalpha()]
    else:
        gaps = [match.end() for match in re.finditer(r"(?<=\S) (?=\S)", source)]
    return [gap for gap in gaps if not any(start < gap < end for start, end in kept)]


def _inserted(source: str, span: str, generator: np.random.Generator) -> str:
    """The line with a span at its beginning, at its end before the final mark, or between words."""
    end = _END.search(source)
    places = [0, end.start() if end else len(source), *_gaps(source)]
    place = places[_below(len(places), generator)]
    before, after = source[:place].rstrip(), source[place:].lstrip()
    parts = [before, span] if _END.fullmatch(after) else [before, span, after]
    text = " ".join(part for part in parts if part)
    return text + after if len(parts) == 2 else text


def _wrapped(source: str, tags: tuple[str, str], generator: np.random.Generator) -> str:
    """The line with a pair of tags around some of its words."""
    end = _END.search(source)
    # A blank before the final mark, as in French, is both a gap and the end of the words.
    bounds = sorted({0, *_gaps(source), end.start() if end else len(source)})
    if len(bounds) < 2 or bounds[-1] == 0:
        return ""
    first = _below(len(bounds) - 1, generator)
    last = min(len(bounds) - 1, first + 1 + _below(MAX_WRAPPED, generator))
    start, stop = bounds[first], bounds[last]
    inside = source[start:stop].rstrip()
    after = source[start + len(inside) :]
    return f"{source[:start]}{tags[0]}{inside}{tags[1]}{after}"


def _with_own_spans(test: Original) -> Trial:
    """The lines that already have fields, tags or addresses."""
    lines = [
        _Changed(source, number, test.of(number), tuple(spans), "own")
        for number, source in enumerate(test.sources)
        if (spans := _OWN.findall(source))
    ]
    label = "fields and tags of the test set itself"
    return _trial("own_spans", label, lines, reason="the lines have no fields, tags or addresses")


def _with_names(test: Original) -> Trial:
    """An invented name in each line, in place of an existing one or added."""
    scripts = [main_script(" ".join(lines)) for lines in (test.sources, *test.references)]
    script = scripts[0] if len(set(scripts)) == 1 else "latin"
    known = "\n".join((*test.sources, *(line for lines in test.references for line in lines)))
    lines = []
    for number, source in enumerate(test.sources):
        generator = test.random("names", number)
        name = next(
            (
                made
                for made in (invent_name(generator, script) for _ in range(_TRIES))
                if made not in known
            ),
            "",
        )
        if name and source.strip():
            lines.append(_named(test, number, name, generator))
    label = "names never seen"
    return _trial("names", label, lines, reason="the lines are empty")


def _named(test: Original, number: int, name: str, generator: np.random.Generator) -> _Changed:
    source, references = test.sources[number], test.of(number)
    for match in _CAPITALIZED.finditer(source):
        known = match[0]
        if source.count(known) == 1 and all(line.count(known) == 1 for line in references):
            new = tuple(line.replace(known, name) for line in references)
            return _Changed(source.replace(known, name), number, new, (name,), "name")
    form = _NAMED[_below(len(_NAMED), generator)]
    return _Changed(
        form(source, name), number, tuple(form(line, name) for line in references), (name,), "name"
    )


def _before(line: str, name: str) -> str:
    return f"{name}: {line}"


def _in_brackets(line: str, name: str) -> str:
    end = _END.search(line)
    place = end.start() if end else len(line)
    return f"{line[:place]} ({name}){line[place:]}"


def _addressed(line: str, name: str) -> str:
    end = _END.search(line)
    place = end.start() if end else len(line)
    return f"{line[:place]}, {name}{line[place:]}"


_NAMED: tuple[Callable[[str, str], str], ...] = (_before, _in_brackets, _addressed)
"""Ways to address somebody that are the same in most languages, so they fit references too."""


def _foreign(test: Original) -> Trial:
    """Sentences in languages that are not the source's, the target's among them."""
    own = re.split("[-_]", test.source_lang)[0].lower()
    label = "other languages and scripts: copied or doubted"
    if not own:
        reason = "the language of the sources is not known; say it with -s"
        return Trial(key="foreign", label=label, reason=reason)
    known = [(lang, line) for lang, lines in SENTENCES.items() for line in lines if lang != own]
    return Trial(
        key="foreign",
        label=label,
        sources=[line for _, line in known],
        kinds=[lang for lang, _ in known],
        must_copy=True,
    )


def _below(n: int, generator: np.random.Generator) -> int:
    return int(generator.random() * n)
