"""Whatever stands in a line, its protected spans stand in the translation: in 10,000 sentences.

Unlike `test_protect.py` nothing here asks heed what a span is. Each line is built from parts, so it
is known which spans it has and what is inside which tags, and the answer is read by looking for
just these strings.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.translate.test_protect import make_translator

from heed.text.extend import with_controls
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.translator import Translator, load

SENTENCES = [
    "A man reads 12 books in the house, and 3 dogs run <b>away</b>.",
    "Ein Mann liest %s Bücher {name} und 1.234,50 € & Co.",
    "הכלב ישן ליד הבית, רץ",
    "الكلب ينام في البيت، نعم",
    "狗在睡觉，人在读书。",
]
WORDS = {
    "latin": ["a", "man", "reads", "the", "Straße", "books", "o'clock", "twenty-one", "HOUSE"],
    "hebrew": ["הכלב", "ישן", "ליד", "הבית", "רץ", "של"],
    "arabic": ["الكلب", "ينام", "في", "البيت", "نعم"],
    "han": ["狗", "在睡觉", "人", "读书"],
}
MARKS = [".", ",", "!", "?", ":", ";", "،", "。", "-", "(", ")", '"', "“", "”", "…"]

# `*` becomes the number of the span in its line, so that no two are equal or part of one another.
UNIQUE = [
    "%(field*)s",
    "%*$s",
    "{name*}",
    "{{place*}}",
    "${key*}",
    "https://example.com/page*?a=1&b=two",
    "www.example*.org/index.html",
    "someone*@example.com",
    "9*,234.50",
    "7*.*",
    "20*1-03-04",
    "&#80*;",
    '<img src="*.png"/>',
    '<br id="*"/>',
]
EQUAL = ["%s", "%d", "{}", "{0}", "&amp;", "<br/>", "%%", "🚀", "45"]
PAIRS = ["<b>", "<i>", "<span>", '<a href="page*.html">', '<g id="*">']


@dataclass(frozen=True)
class Pair:
    """Two tags and what is between them."""

    opening: str
    closing: str
    inside: tuple["Part", ...]


@dataclass(frozen=True)
class Word:
    """Text to be translated, blanks included."""

    text: str


Part = Pair | Word | str
"""A string is a span."""


@st.composite
def parts(
    draw: st.DrawFn, counter: list[int], script: str, depth: int = 0, without: str = ""
) -> tuple[Part, ...]:
    """Words of one script with spans at any place: beside blanks, marks, words and each other."""
    unique, equal, pairs = (
        [span for span in spans if not without or not re.search(without, span)]
        for spans in (UNIQUE, EQUAL, PAIRS)
    )
    found: list[Part] = []
    for _ in range(draw(st.integers(0 if depth else 1, 6))):
        kind = draw(st.sampled_from(["word", "word", "word", "unique", "equal", "pair", "mark"]))
        counter[0] += 1
        number = str(counter[0])
        if kind == "word":
            found.append(Word(draw(st.sampled_from(WORDS[script]))))
        elif kind == "mark":
            found.append(Word(draw(st.sampled_from(MARKS))))
        elif kind == "pair" and depth < 4:
            opening = draw(st.sampled_from(pairs)).replace("*", number)
            closing = f"</{re.findall('[a-z]+', opening)[0]}>"
            found.append(Pair(opening, closing, draw(parts(counter, script, depth + 1, without))))
        else:
            spans = unique if kind == "unique" else equal
            found.append(draw(st.sampled_from(spans)).replace("*", number))
        found.append(Word(draw(st.sampled_from([" ", " ", " ", ""]))))
    return tuple(_parted(found))


def _parted(found: list[Part]) -> list[Part]:
    """With a blank wherever two letters or digits would make one word, or a span would change."""
    whole: list[Part] = []
    for part in found:
        text, before = written((part,)), written(tuple(whole))
        # Two spans side by side are told apart only if they do not run together.
        ends = (before[-1:] or " ") + (text[:1] or " ")
        if " " not in ends and any(map(is_open, ends)):
            whole.append(Word(" "))
        whole.append(part)
    return whole


def is_open(character: str) -> bool:
    """Whether a neighbor may belong to the same span as this character."""
    return character.isalnum() or character in "%$&#@/\\.,:;-_=?!'\"()…“”،。"


def written(tree: tuple[Part, ...]) -> str:
    """The line."""
    return "".join(
        part
        if isinstance(part, str)
        else part.text
        if isinstance(part, Word)
        else part.opening + written(part.inside) + part.closing
        for part in tree
    )


Shape = tuple[Any, ...]


def shape_of(tree: tuple[Part, ...]) -> Shape:
    """The spans with what is inside them; those side by side in any order."""
    found: list[Any] = []
    for part in tree:
        if isinstance(part, str):
            found.append((part,))
        elif isinstance(part, Pair):
            found.append((part.opening, part.closing, shape_of(part.inside)))
    return tuple(sorted(found, key=repr))


def spans_of(tree: tuple[Part, ...]) -> list[str]:
    """All spans and tags, each as often as it stands there."""
    found: list[str] = []
    for part in tree:
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, Pair):
            found += [part.opening, part.closing, *spans_of(part.inside)]
    return found


def shape_read(answer: str, spans: list[str]) -> Shape:
    """The shape of an answer, read by looking for the spans of its source."""
    longest = sorted(set(spans), key=len, reverse=True)
    expressions = [bounded(span) for span in longest]
    stack: list[list[Any]] = [[]]
    opened: list[str] = []
    for match in re.finditer("|".join(expressions) or "(?!)", answer):
        span = match[0]
        if span.startswith("</"):
            assert opened, f"{span} closes nothing in {answer}"
            opening, inside = opened.pop(), stack.pop()
            assert opening.startswith(span.replace("</", "<")[:-1]), f"not nested: {answer}"
            stack[-1].append((opening, span, tuple(sorted(inside, key=repr))))
        elif f"</{re.split('[ >]', span[1:])[0]}>" in spans:
            opened.append(span)
            stack.append([])
        else:
            stack[-1].append((span,))
    assert not opened, f"{opened} is not closed in {answer}"
    return tuple(sorted(stack[0], key=repr))


def bounded(span: str) -> str:
    """Finds a span; a number only where it is not a part of a longer one."""
    before = r"(?<!\d)(?<!\d[.,:/-])" if span[0].isdigit() else ""
    behind = r"(?!\d)(?![.,:/-]\d)" if span[-1].isdigit() else ""
    return before + re.escape(span) + behind


def require_guarantee(tree: tuple[Part, ...], answer: str) -> None:
    """The guarantee of the documentation, word for word."""
    spans = spans_of(tree)
    assert shape_read(answer, spans) == shape_of(tree), (written(tree), answer)
    assert "\n" not in answer
    for span, count in Counter(spans).items():
        assert len(re.findall(bounded(span), answer)) == count, (span, written(tree), answer)


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[Part, ...]]:
    """Lines that are translated together."""
    size = draw(st.integers(1, 8))
    scripts = [draw(st.sampled_from(sorted(WORDS))) for _ in range(size)]
    return [draw(parts([0], script)) for script in scripts]


SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4},
    {"beam_size": 3, "alternatives": 2},
    {"sample": True, "temperature": 2.0, "seed": 3},
    {"beam_size": 2, "no_repeat_ngram_size": 2},
]


@pytest.fixture(scope="module")
def translators(slots_model: Path) -> list[Translator]:
    """Random models: one that knows no slots, and two that do; and a trained one, in the engine."""
    vocab: Vocab = train_vocab(SENTENCES * 5, size=360)
    slots = with_controls(vocab, SLOT_PIECES)
    random = [make_translator(vocab, 1), make_translator(slots, 2), make_translator(slots, 3)]
    return [*random, load(slots_model, threads=1)]


def require_kept(
    translators: list[Translator], batch: list[tuple[Part, ...]], search: dict[str, Any]
) -> None:
    for translator in translators:
        answers = translator.translate([written(tree) for tree in batch], **search)
        for tree, answer in zip(batch, answers, strict=True):
            for one in (answer, *answer.alternatives):
                require_guarantee(tree, one.text)


def test_the_check_sees_what_is_wrong() -> None:
    tree = (Pair("<b>", "</b>", ("%s", Word(" x"))), Word(" y "), "%s", Word(" "), "12")
    assert written(tree) == "<b>%s x</b> y %s 12"
    require_guarantee(tree, "12 %s z <b>q %s</b>")
    for wrong in (
        "12 <b>q %s</b>",
        "12 %s z %s <b>q %s</b>",
        "12 %s %s <b>q</b>",
        "12 %s z </b>q %s<b>",
        "12,5 %s z <b>q %s</b>",
        "<b>12 %s z q %s</b>",
    ):
        with pytest.raises(AssertionError):
            require_guarantee(tree, wrong)


@dataclass(frozen=True)
class Message:
    """An ICU message: its texts are translated, and nothing else of it."""

    head: str
    branches: tuple[tuple[str, tuple[Part, ...]], ...]

    def written(self) -> str:
        texts = (f"{key} {{{written(tree)}}}" for key, tree in self.branches)
        return f"{{{self.head}, {' '.join(texts)}}}"


BRANCHES = [
    ("plural", ("one", "other")),
    ("plural", ("=0", "=1", "few", "other")),
    ("select", ("male", "female", "other")),
    ("selectordinal", ("two", "other")),
]


@st.composite
def messages(draw: st.DrawFn) -> tuple[tuple[Part, ...], Message, tuple[Part, ...]]:
    """A message between words."""
    counter, script = [0], draw(st.sampled_from(sorted(WORDS)))
    before, after = (draw(parts(counter, script)) for _ in range(2))
    kind, keys = draw(st.sampled_from(BRANCHES))
    branches = []
    for key in keys:
        # What ICU itself would read in another way.
        tree = draw(parts(counter, script, without=r"#|\{\{|\$|\{\}"))
        if kind != "select":
            tree = ("#", Word(" "), *tree)
        branches.append((key, tuple(tree)))
    return before, Message(f"n, {kind}", tuple(branches)), after


def require_message(message: Message, answer: str) -> str:
    """The rest of an answer that holds the message once, with what must stand in its texts."""
    beginning = f"{{{message.head}, "
    assert answer.count(beginning) == 1, (message.written(), answer)
    start = answer.index(beginning)
    place = start + len(beginning)
    for number, (key, tree) in enumerate(message.branches):
        opening = f"{' ' if number else ''}{key} {{"
        assert answer.startswith(opening, place), (message.written(), answer)
        end = closing_brace(answer, place + len(opening))
        require_guarantee(tree, answer[place + len(opening) : end])
        place = end + 1
    assert answer[place] == "}", (message.written(), answer)
    return f"{answer[:start]} {answer[place + 1 :]}"


def closing_brace(text: str, place: int) -> int:
    """Where the brace closes that was opened just before `place`."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        place += 1
    return place - 1


USUAL = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow],
)


@given(batch=batches(), search=st.sampled_from(SEARCHES))
@settings(USUAL, max_examples=30)
def test_a_hundred_sentences_keep_their_spans(
    translators: list[Translator], batch: list[tuple[Part, ...]], search: dict[str, Any]
) -> None:
    require_kept(translators, batch, search)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # minutes of work, an hour on a crowded machine
@given(batch=batches(), search=st.sampled_from(SEARCHES))
@settings(USUAL, max_examples=2500)
def test_ten_thousand_sentences_keep_their_spans(
    translators: list[Translator], batch: list[tuple[Part, ...]], search: dict[str, Any]
) -> None:
    require_kept(translators, batch, search)


def require_messages(
    translators: list[Translator],
    line: tuple[tuple[Part, ...], Message, tuple[Part, ...]],
    search: dict[str, Any],
) -> None:
    before, message, after = line
    source = f"{written(before)} {message.written()} {written(after)}"
    for translator in translators:
        for answer in translator.translate([source], **search):
            rest = require_message(message, answer.text)
            require_guarantee((*before, Word(" "), *after), rest)


@given(line=messages(), search=st.sampled_from(SEARCHES))
@settings(USUAL, max_examples=20)
def test_messages_keep_their_structure(
    translators: list[Translator],
    line: tuple[tuple[Part, ...], Message, tuple[Part, ...]],
    search: dict[str, Any],
) -> None:
    require_messages(translators, line, search)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # minutes of work, an hour on a crowded machine
@given(line=messages(), search=st.sampled_from(SEARCHES))
@settings(USUAL, max_examples=1000)
def test_a_thousand_messages_keep_their_structure(
    translators: list[Translator],
    line: tuple[tuple[Part, ...], Message, tuple[Part, ...]],
    search: dict[str, Any],
) -> None:
    require_messages(translators, line, search)
