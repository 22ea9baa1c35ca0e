"""Readings of lines: what was meant by misspelled words, and the case that words usually have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.known import KnownWords
from heed.text.protected import Rules, find_spans
from heed.text.readings import corrections, in_usual_case, with_usual_capitals

LINES = [
    "The man sees the street with Berlin in it.",
    "People of Berlin open the file of GIMP and OpenGL with a dog.",
    "A dog sees people in the house of the old man in Berlin.",
    "The file is in the house with a dog and GIMP and OpenGL.",
]
TITLES = ["Open File", "Save File", "Image File Type", "Close Image"]


def learned(lines: list[str]) -> KnownWords:
    return KnownWords.learn(lambda: [(line, "x") for line in lines])


@pytest.fixture(scope="module")
def known() -> KnownWords:
    return learned(LINES * 60)


def read(known: KnownWords, text: str) -> list[tuple[str, str]]:
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    return [(one.word, one.meant) for one in corrections(known, text, spans)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The amn sees hte street.", [("amn", "man"), ("hte", "the")]),
        ("Pepole in the house.", [("Pepole", "People")]),
        ("The house of Berlni.", [("Berlni", "Berlin")]),
        ("The house of Hosue.", []),  # a name, for all one knows
        ("The man sees {pepole} in /usr/pepole", []),
        ("The <b>amn</b> sees **hte** street.", [("amn", "man"), ("hte", "the")]),
        ("S<u>ees</u> the man, <b>H</b>ouse, h<b>ouse</b>, [L]iv", []),
        ("The man sees the pepole2 with a dog.", []),
        ("hte peopel fo teh amn", []),  # nothing in it is known
        ("Der Hund sieht die Leute im Haus", []),
        ("The man sees the street.", []),
        ("", []),
    ],
)
def test_misspelled_words_of_a_line(
    known: KnownWords, text: str, found: list[tuple[str, str]]
) -> None:
    assert read(known, text) == found


def test_words_seen_once_are_not_misspelled() -> None:
    known = learned([*LINES * 60, "The peple of old."])
    assert read(known, "The peple of the street.") == []


def test_where_right_words_look_misspelled_none_is_corrected() -> None:
    # Endings that one letter tells apart, as in languages of many forms.
    stems = [a + b + c + d for a in "bdgk" for b in "aeio" for c in "lmnr" for d in "stvz"]
    frequent = [f"{stem}aaren" for stem in stems] * 200
    rare = [f"{stem}aare" for stem in stems]
    lines = [" ".join(frequent[n : n + 8]) for n in range(0, len(frequent), 8)]
    assert learned(lines + rare[:40]).limits is not None  # 40 lines of 6,440
    known = learned(lines + rare)  # 256 lines of 6,656
    assert known.limits is None
    assert read(known, "besaaren balsaaern balsaaren") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "The Man Sees {Name} In The Street With Dogs",
            "The man sees {Name} in the street with dogs",
        ),
        ("The Old Man In Berlin", "The old man in Berlin"),
        ("a man in berlin with gimp and opengl", "A man in Berlin with GIMP and OpenGL"),
        ("The man sees Every Dog", None),
        ("The Man", None),
        ("Berlin", None),
    ],
)
def test_odd_case_is_read_as_usual(known: KnownWords, text: str, found: str | None) -> None:
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    assert in_usual_case(known, text, spans) == found


def test_titles_that_a_model_knows_stay() -> None:
    known = learned([*LINES * 60, *TITLES * 60])
    assert in_usual_case(known, "Close Image File", []) is None
    assert in_usual_case(known, "Close The Image File", []) == "Close the image file"


def test_a_model_of_small_letters_reads_them() -> None:
    known = learned([line.lower() for line in LINES * 60])
    assert in_usual_case(known, "a man in berlin", []) is None


@given(st.text())
def test_usual_case_changes_case_only(known: KnownWords, text: str) -> None:
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    for found in (in_usual_case(known, text, spans), with_usual_capitals(known, text, spans)):
        if found is not None:
            assert len(found) == len(text)
            assert all(found[a:b] == text[a:b] for a, b in spans)


@given(
    st.lists(
        st.sampled_from(
            ["the", "teh", "man", "amn", "street", "Berlni", "{x}", "%s", ",", ".", "Haus"]
        )
    )
)
def test_corrections_stand_where_they_say(known: KnownWords, words: list[str]) -> None:
    text = " ".join(words)
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    for one in corrections(known, text, spans):
        start, end = one.place
        assert text[start:end] == one.word
        assert not any(start < stop and begin < end for begin, stop in spans)


def test_a_line_of_many_fields_takes_one_pass(known: KnownWords) -> None:
    text = "hte man sees {x} " * 5000
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    assert len(corrections(known, text, spans)) == 5000
    small = in_usual_case(known, text, spans)
    assert small is not None
    assert with_usual_capitals(known, small, spans) == small
