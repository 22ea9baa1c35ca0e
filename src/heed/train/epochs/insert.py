"""Inserts slots, names and tags into a pair at the same place of both sides.

A slot is one character of a text here, see `marked.py`. Corresponding places are words that surely
translate one another (`anchors.py`), and both ends of a sentence.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from heed.text.invent import SPANS, invent_name, invent_span
from heed.text.known import SOLID
from heed.text.scripts import SPELLED, main_script
from heed.train.epochs.anchors import Anchor, Place
from heed.train.epochs.marked import MarkedPair

Texts = tuple[str, str]

_FINAL = re.compile(r"[.!?…。！？؟。۔।]+[\"'”’»“«」』)\]]*$")
_PAIRS = ("()", "[]", '""', "''", "“”", "„“", "«»")
_RAW = tuple(SPANS)
_NAMES = ("{}", "{}", "{}", "{}", "{}", "{} {}", "{} {}", "{}-{}", "{}'s", "{}{}")

P_REPLACED = 0.6
"""Share of spans and names that replace a word; the others are put beside one."""
P_NUMBER = 0.4
"""Share of numbers among the slots that stand alone."""
P_OTHER_SCRIPT = 0.12
"""Share of names in letters of another script."""


def with_name(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """Replace one or two words by invented names, or insert them."""
    return _put(pair, [(lambda: _name(pair, random), random.random() < P_REPLACED)], random)


def with_spans(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """Insert one to three slots: at the ends, beside a word, in its place, or tags around words."""
    if random.random() < 0.06:
        return _only_spans(pair, random)
    wanted = []
    texts: Texts | None = pair.src, pair.tgt
    chance = random.random()
    if chance < 0.3:
        texts = _in_tags(pair, random)
        if random.random() < 0.6 or texts is None:
            return texts
        pair = pair.changed(*texts)
        return _at_end(pair, random)
    if chance < 0.5:
        return _at_end(pair, random)
    for _ in range(1 + int(random.random() * 3)):
        wanted.append((lambda: pair.new_slot(_kind(random)), random.random() < P_REPLACED))
    return _put(pair, wanted, random) or _at_end(pair, random)


def with_raw_span(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """Insert a span as text, for spans that are not protected or get no free slot."""
    kind = _RAW[int(random.random() * len(_RAW))]
    return _put(pair, [(lambda: invent_span(kind, random), False)], random)


def copied(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """A line of invented words, which is its own translation."""
    scripts = tuple(SPELLED)
    script = "latin" if random.random() < 0.3 else scripts[int(random.random() * len(scripts))]
    words = [invent_name(random, script) for _ in range(1 + int(random.random() * 6))]
    if random.random() < 0.7:
        words[1:] = [word.lower() for word in words[1:]]
    text = ("" if script in SOLID else " ").join(words) + ("." if random.random() < 0.3 else "")
    return text, text


def _kind(random: np.random.Generator) -> str:
    return "number" if random.random() < P_NUMBER else "thing"


def _name(pair: MarkedPair, random: np.random.Generator) -> str:
    own = main_script(pair.src)
    script = own if own == main_script(pair.tgt) and own in SPELLED else "latin"
    if random.random() < P_OTHER_SCRIPT:
        scripts = tuple(SPELLED)
        script = scripts[int(random.random() * len(scripts))]
    form = _NAMES[int(random.random() * len(_NAMES))]
    name = form.format(*(invent_name(random, script) for _ in range(form.count("{}"))))
    chance = random.random()
    return name.lower() if chance < 0.12 else name.upper() if chance < 0.18 else name


def _put(
    pair: MarkedPair,
    wanted: Sequence[tuple[Callable[[], str], bool]],
    random: np.random.Generator,
) -> Texts | None:
    """Insert texts in place of words or beside them; None if there are no sure words.

    Args:
        pair: the texts and their anchors.
        wanted: the texts, each with whether it replaces a word.
        random: chooses.
    """
    anchors = _content_words(pair)
    if not anchors:
        return None
    order = random.permutation(len(anchors))[: len(wanted)]
    src_changes: list[tuple[Place, str]] = []
    tgt_changes: list[tuple[Place, str]] = []
    for number, (make, is_replaced) in zip(order.tolist(), wanted, strict=False):
        text = make()
        if not text:
            continue
        anchor = anchors[number]
        before, after = ("", "")
        if not is_replaced and random.random() < 0.35:
            before, after = _brackets(random)
        for text_of, place, changes in (
            (pair.src, anchor.src, src_changes),
            (pair.tgt, anchor.tgt, tgt_changes),
        ):
            blank = "" if main_script(text_of) in SOLID else " "
            if is_replaced:
                changes.append((place, text))
            else:
                changes.append(((place[1], place[1]), f"{blank}{before}{text}{after}"))
    return _replaced(pair.src, src_changes), _replaced(pair.tgt, tgt_changes)


def _brackets(random: np.random.Generator) -> tuple[str, str]:
    pair = _PAIRS[int(random.random() * len(_PAIRS))]
    return pair[0], pair[1]


def _content_words(pair: MarkedPair) -> list[Anchor]:
    """Anchors of longer words, if there are any: a name does not replace an article."""
    long = [a for a in pair.anchors if _width(a.src) > 3 or _width(a.tgt) > 3]
    return long or pair.anchors


def _width(place: Place) -> int:
    return place[1] - place[0]


def _replaced(text: str, changes: list[tuple[Place, str]]) -> str:
    """A text with other words at some places."""
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _in_tags(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """A pair of tags around a word, around words that stay together, or around all."""
    slots = pair.new_slot("open"), pair.new_slot("close")
    if not all(slots):
        return None
    chance, anchors = random.random(), pair.anchors
    src = tgt = None
    if chance < 0.15 or not anchors:
        src, tgt = _core(pair.src), _core(pair.tgt)
    elif chance < 0.6:
        src, tgt = anchors[int(random.random() * len(anchors))]
    else:
        src, tgt = _stretch(anchors, random)
    return tuple(  # type: ignore[return-value]
        f"{text[: place[0]]}{slots[0]}{text[place[0] : place[1]]}{slots[1]}{text[place[1] :]}"
        for text, place in ((pair.src, src), (pair.tgt, tgt))
    )


def _stretch(anchors: Sequence[Anchor], random: np.random.Generator) -> Anchor:
    """A span between two sure words whose translations enclose the same sure words."""
    first = int(random.random() * len(anchors))
    last = min(len(anchors) - 1, first + 1 + int(random.random() * 2))
    inside = anchors[first : last + 1]
    src = inside[0].src[0], inside[-1].src[1]
    tgt = min(a.tgt[0] for a in inside), max(a.tgt[1] for a in inside)
    n_enclosed = sum(tgt[0] <= a.tgt[0] < tgt[1] for a in anchors)
    return Anchor(src, tgt) if n_enclosed == len(inside) else anchors[first]


def _at_end(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """A slot at the beginning, at the end, before the final mark, or at both ends."""
    slot = pair.new_slot(_kind(random))
    if not slot:
        return None
    chance = random.random()
    if chance < 0.2:
        form, at_end = f"{slot} ", False
    elif chance < 0.4:
        form, at_end = f"{slot}: ", False
    elif chance < 0.5:
        form, at_end = f": {slot}", True
    elif chance < 0.65:
        form, at_end = f", {slot}", True
    elif chance < 0.8:
        form, at_end = f" {slot}", True
    else:
        left, right = _brackets(random)
        form, at_end = f" {left}{slot}{right}", True
    before_mark = random.random() < 0.6
    texts = []
    for text in (pair.src, pair.tgt):
        if not at_end:
            texts.append(form + text)
            continue
        end = _core(text)[1] if before_mark else len(text)
        texts.append(text[:end] + form + text[end:])
    return texts[0], texts[1]


def _core(text: str) -> Place:
    """A text without its final mark."""
    match = _FINAL.search(text)
    return 0, match.start() if match and match.start() else len(text)


def _only_spans(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    bare = pair.changed("", "")
    slots = [bare.new_slot(_kind(random)) for _ in range(1 + int(random.random() * 3))]
    between = (" ", ", ", " - ", "")[int(random.random() * 4)]
    text = between.join(slots)
    return text, text
