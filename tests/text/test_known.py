"""`KnownWords`: names that a model cannot know, and words that it can."""

import json
import math
import os
import re
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.errors import FormatError
from heed.text.known import KnownWords, has_inner_capital, has_word
from heed.text.protected import Rules, find_spans, with_things

WORDS = [
    "the",
    "a",
    "man",
    "woman",
    "with",
    "dog",
    "sees",
    "file",
    "warning",
    "select",
    "previous",
    "street",
    "and",
    "in",
    "house",
]
PAIRS = [(f"The {one} {two}", f"Ein {one} {two}") for one in WORDS for two in WORDS] + [
    (f"A man sees {name} in the house.", f"Ein Mann sieht {name} im Haus.")
    for name in ("Marika", "Obeto", "Quilloz", "Serrapin")
]


@pytest.fixture(scope="module")
def known() -> KnownWords:
    return KnownWords.learn(lambda: PAIRS)


def names(known: KnownWords, text: str) -> list[str]:
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    return [text[start:end] for start, end in known.names(text, spans)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The man sees Trondheim.", ["Trondheim"]),
        ("The man sees Tron-Vandar and Olgrip's dog.", ["Tron-Vandar", "Olgrip"]),
        ("Trondheim: the man sees the dog.", ["Trondheim"]),
        ("The man (Trondheim) sees.", ["Trondheim"]),
        ("The man sees Ad\u00e9\u1ecd\u0300la.", ["Ad\u00e9\u1ecd\u0300la"]),
        ("The man sees नमस्ते in the house.", ["नमस्ते"]),
        ("The man sees ที่นี่.", ["ที่นี่"]),
        ("The man sees the dog, Trondheim.", ["Trondheim"]),
        ("Seeing the dog.", []),
        ("The dog. Walking in the street.", []),
        ("The man sees the trondheim.", []),
        ("The man sees the Stret.", []),
        ("The Mna sees the dog.", []),
        ("Stereet: the file", []),
        ("Showing Every Kind Of Thing", []),
        ("The man sees https://Trondheim.example/ now", []),
        ("The man sees Пример и Слово in the house.", ["Пример и Слово"]),
        ("Пример, слово.", ["Пример, слово"]),
    ],
)
def test_words_with_a_capital_or_in_another_script_are_names(
    known: KnownWords, text: str, found: list[str]
) -> None:
    assert known.has_names
    assert names(known, text) == found


def test_a_name_of_any_length_takes_no_more_memory(known: KnownWords) -> None:
    word = "A" + "b" * 20_000
    tracemalloc.start()
    assert names(known, f"The man sees {word}.") == [word]
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 20 * 1024 * 1024


def test_a_word_counts_as_known_from_its_second_time_on(known: KnownWords) -> None:
    assert "house" in known
    assert "HOUSE" in known
    assert "Marika" not in known
    assert known.place_of("Marika") >= 0
    assert known.place_of("Trondheim") < 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("एक आदमी, कमीज़ है।", ["एक", "आदमी", "कमीज़", "है"]),
        (
            "Ad\u00e9\u1ecd\u0300la \u1ecdj\u1ecd\u0301.",
            ["Ad\u00e9\u1ecd\u0300la", "\u1ecdj\u1ecd\u0301"],
        ),
        ("שָׁלוֹם בית־ספר", ["שָׁלוֹם", "בית", "ספר"]),
        ("ผู้ชายที่นี่ Tom狗ที่", ["ผู้ชายที่นี่", "Tom", "狗ที่"]),
        ("هٰذا", ["هٰذا"]),
        ("ދިވެހި", ["ދިވެހި"]),
        ("it's 2nd_one", ["it", "s", "nd", "one"]),
    ],
)
def test_marks_are_parts_of_words(text: str, words: list[str]) -> None:
    """As people write them; runs of scripts without blanks are words, too."""
    known = KnownWords.learn(lambda: [(text, "x")] * 2)
    assert [text[start:end] for start, end in known.word_places(text)] == words
    assert all(word in known for word in words)
    assert known.has_seen_all(text)
    assert "".join(words[0][:-1]) not in known


def test_words_counted_by_an_earlier_version_are_looked_up_as_they_were_counted() -> None:
    head, _, arrays = KnownWords.learn(lambda: [("नमस ते", "x")] * 2).to_bytes().partition(b"\n")
    facts = json.loads(head)
    assert facts.pop("has_marks")
    earlier = KnownWords.from_bytes(json.dumps(facts).encode() + b"\n" + arrays, "words.dat")
    assert [*earlier.word_places("नमस्ते")] == [(0, 3), (4, 5)]
    assert not earlier.has_marks
    assert KnownWords.from_bytes(earlier.to_bytes(), "words.dat").has_marks is False


def test_where_targets_do_not_repeat_such_words_they_are_no_names() -> None:
    pairs = [(f"das alte H{a}{b}us", "the house") for a in "abcdef" for b in "ghijkl"] * 1
    known = KnownWords.learn(lambda: pairs)
    assert not known.has_names
    assert names(known, "das alte Trondheim") == []
    assert names(known, "das alte Слово") == ["Слово"]


def test_latin_letters_among_chinese_ones_are_copied_unless_they_are_known() -> None:
    pairs = [("Tom昨天看了电视", "Tom watched TV yesterday")] * 3
    known = KnownWords.learn(lambda: pairs)
    assert known.scripts == ("han",)
    assert names(known, "Tom昨天看了Trondheim") == ["Trondheim"]


def test_of_equally_frequent_letters_the_same_ones_are_kept_in_every_process() -> None:
    """Chinese has far more letters than are kept, and Python's sets differ by process."""
    code = (
        "from heed.text.known import KnownWords;"
        "lines = ['the ' + ''.join(map(chr, range(n, n + 7))) for n in range(0x4e00, 0x4f00, 7)];"
        "print(KnownWords.learn(lambda: zip(lines, lines)).letters.encode())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_it_is_written_and_read(known: KnownWords) -> None:
    again = KnownWords.from_bytes(known.to_bytes(), "words.dat")
    for name in ("hashes", "levels", "capitals", "larges"):
        assert np.array_equal(getattr(again, name), getattr(known, name))
    for name in ("letters", "has_names", "scripts", "begins_large", "limits", "has_marks"):
        assert getattr(again, name) == getattr(known, name)
    for broken in (b"", b"{}\n1234", known.to_bytes()[:-1], b"\xff\n"):
        with pytest.raises(FormatError, match=r"words\.dat is not in heed's format"):
            KnownWords.from_bytes(broken, "words.dat")


@pytest.mark.parametrize(
    ("facts", "body"),
    [
        ({"n_words": -1}, b""),
        ({"n_words": 1 << 70}, b""),
        ({"n_words": 1}, bytes(7)),
        ({"n_words": 1}, bytes(9)),
        ({"n_words": math.inf}, b""),
        ({"limits": {"least": math.inf, "ratio": 1}}, bytes(8)),
    ],
    ids=str,
)
def test_numbers_that_do_not_fit_are_refused(
    known: KnownWords, facts: dict[str, Any], body: bytes
) -> None:
    right = {**json.loads(known.to_bytes().partition(b"\n")[0]), "n_words": 1}
    assert len(KnownWords.from_bytes(_file_of(right, bytes(8)), "words.dat").hashes) == 1
    with pytest.raises(FormatError, match=r"words\.dat is not in heed's format"):
        KnownWords.from_bytes(_file_of(right | facts, body), "words.dat")


def _file_of(facts: dict[str, Any], body: bytes) -> bytes:
    return json.dumps(facts).encode() + b"\n" + body


def test_a_header_nested_too_deeply_is_refused() -> None:
    with pytest.raises(FormatError, match=r"words\.dat is not in heed's format"):
        KnownWords.from_bytes(b"[" * 100_000 + b"\n", "words.dat")


@given(st.text())
def test_names_of_any_text_are_disjoint_and_inside(known: KnownWords, text: str) -> None:
    spans = find_spans(text, Rules.default())
    places = known.names(text, [(span.start, span.end) for span in spans])
    every = with_things(spans, places, "name")
    ends = [place for span in every for place in (span.start, span.end)]
    assert ends == sorted(ends)
    for index, span in enumerate(every):
        assert span.partner is None or every[span.partner].partner == index


@given(st.lists(st.sampled_from([*WORDS, "Marika", "xyzzy", "a", "狗", "see狗", ".", "’s"])))
def test_all_words_are_seen_if_each_is(known: KnownWords, words: list[str]) -> None:
    text = " ".join(words)
    places = list(known.word_places(text))
    assert known.has_seen_all(text) == all(known.place_of(text[a:b]) >= 0 for a, b in places)


@given(st.text(alphabet="aB É狗:"))
def test_a_text_without_inner_capitals_has_no_names(known: KnownWords, text: str) -> None:
    is_found = re.search(r"(?<=.)[^\W\d_a-zäöüß]", text) is not None
    assert has_inner_capital(text) == is_found


def test_a_part_of_a_word_is_not_the_word() -> None:
    assert has_word("Ein Tom-Boy.", "Tom")
    assert not has_word("Atom Tomate", "Tom")
    assert not has_word("", "Tom")


def test_a_model_of_several_languages_reads_all_their_scripts() -> None:
    pairs = [("New York is a city", "纽约是一座城市"), ("纽约是一座城市", "New York is a city")]
    known = KnownWords.learn(lambda: pairs * 5)
    assert known.scripts == ("han", "latin")
    assert known.names("他想在公园里唱歌", ()) == []
    assert known.names("Москва is a city", ()) == [(0, 6)]
