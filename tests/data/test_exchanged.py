"""Exchanged pairs among others are noticed, and right ones are not."""

import random
from itertools import pairwise
from typing import Any

import pytest

from heed.data.exchanged import note_exchanged
from heed.data.readers import Pair

COLORS = {"red": "rot", "green": "grün", "blue": "blau", "white": "weiß", "black": "schwarz"}
THINGS = {"house": "Haus", "car": "Auto", "ship": "Schiff", "roof": "Dach", "dress": "Kleid"}


def sentences(n_pairs: int) -> list[tuple[str, str]]:
    chance = random.Random(1)
    drawn = ((chance.choice([*COLORS]), chance.choice([*THINGS])) for _ in range(n_pairs))
    return [
        (f"the {thing} is {color} .", f"das {THINGS[thing]} ist {COLORS[color]} .")
        for color, thing in drawn
    ]


def remarks(texts: list[tuple[str, str]], source_lang: str = "", target_lang: str = "") -> Any:
    found: list[Any] = []
    pairs = (
        Pair(src, tgt, number, "memory.tmx", source_lang, target_lang)
        for number, (src, tgt) in enumerate(texts, start=1)
    )
    note_exchanged(pairs, found.append)
    return found


@pytest.mark.parametrize("languages", [("", ""), ("en", "de")])
@pytest.mark.parametrize(("every", "share"), [(4, "25%"), (20, "5%")])
def test_exchanged_pairs_are_noticed(languages: tuple[str, str], every: int, share: str) -> None:
    texts = [pair[::-1] if n % every == 2 else pair for n, pair in enumerate(sentences(400))]
    [remark] = remarks(texts, *languages)
    assert remark["kind"] == "note"
    first = " | ".join(f'"{text}"' for text in texts[2])
    assert remark["text"].startswith(
        f"source and target seem to be exchanged in about {share} of the pairs (the first: "
        f"memory.tmx line 3: {first}). They are learned as they are: "
    )


@pytest.mark.parametrize(
    "texts",
    [
        sentences(400),
        [pair[::-1] for pair in sentences(400)],
        [(src, src) for src, _ in sentences(400)],
        [(src, other) for (src, _), (other, _) in pairwise(sentences(401))],
        [*sentences(400), *(pair[::-1] for pair in sentences(2))],
        [],
    ],
    ids=["right", "all exchanged", "copies", "one language", "a few", "none"],
)
def test_other_pairs_give_no_remark(texts: list[tuple[str, str]]) -> None:
    assert remarks(texts) == []


def test_both_directions_by_their_languages_give_no_remark() -> None:
    found: list[Any] = []
    right = sentences(400)
    forth = [Pair(src, tgt, 1, "a", "en", "de") for src, tgt in right[:200]]
    back = [Pair(tgt, src, 1, "b", "de", "en") for src, tgt in right[200:]]
    note_exchanged([*forth, *back], found.append)
    assert found == []
    wrong = [Pair(src, tgt, 1, "c", "de", "en") for src, tgt in right[:100]]
    note_exchanged([*forth, *back, *wrong], found.append)
    assert "a" not in found[0]["text"].split("the first: ")[1].split()[0]
