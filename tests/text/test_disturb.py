"""Disturbances change words and marks as people do, and leave alone what must be copied."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.disturb import KINDS, disturb, find_kept, title
from heed.text.invent import SPANS, invent_name, invent_span, invent_tags
from heed.text.letter_case import has_case, lower, upper
from heed.text.normalize import normalize
from heed.text.scripts import SPELLED, main_script, neighbors, script_of

SENTENCES = [
    "A man is riding a bike, and his dog runs.",
    "Straße und Fußgänger, schöne Grüße!",
    "Привет, мир!",
    "Καλημέρα, κόσμε.",
    "一个人在骑自行车。",
    "男の人が自転車に乗っている。",
    "나는 학교에 간다.",
    "مرحبا بالعالم، كيف حالك؟",
    "שלום עולם.",
    "यह एक किताब है।",
]
SEEDS = st.integers(0, 2**32 - 1)
KIND = st.sampled_from(sorted(KINDS))


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def distance(a: str, b: str) -> int:
    """Letters inserted, deleted, replaced or swapped with the next (optimal string alignment)."""
    rows = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = a[i - 1] != b[j - 1]
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + cost)
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])).map(normalize), KIND, SEEDS)
def test_any_text_can_be_disturbed_and_the_seed_decides(text: str, kind: str, seed: int) -> None:
    once, again = (disturb(text, kind, random(seed)) for _ in range(2))
    assert once == again
    assert normalize(once) == normalize(normalize(once))


@pytest.mark.parametrize(
    ("text", "large"),
    [
        ("a bike", "A BIKE"),
        ("Straße", "STRASSE"),
        ("ﬁne", "FINE"),
        ("ılık bir gün", "ILIK BİR GÜN"),
        ("Καλημέρα, προϊόν, ταΐζω", "ΚΑΛΗΜΕΡΑ, ΠΡΟΪΟΝ, ΤΑΪΖΩ"),
        ("й ё", "Й Ё"),
        ("გამარჯობა ok", "გამარჯობა OK"),
        ("一个人", "一个人"),
    ],
)
def test_capitals_are_those_of_the_script(text: str, large: str) -> None:
    assert upper(text) == large


@pytest.mark.parametrize(
    ("text", "small"),
    [("STRASSE", "strasse"), ("ΚΟΣΜΟΣ", "κοσμος"), ("ILIK BİR", "ılık bir"), ("Ä Й", "ä й")],
)
def test_small_letters_are_those_of_the_script(text: str, small: str) -> None:
    assert lower(text) == small


def test_a_title_has_one_capital_a_word() -> None:
    assert title("the dog doesn't run in NASA") == "The Dog Doesn't Run In NASA"
    assert title("ǆep и мир") == "ǅep И Мир"
    assert title("ılık için") == "Ilık İçin"
    assert title("ọ̀rọ̀ ẹ̀ka") == "Ọ̀rọ̀ Ẹ̀ka"  # accents without a letter of their own


@pytest.mark.parametrize("text", SENTENCES)
@given(seed=SEEDS)
def test_a_typing_error_is_one_error_in_one_word(text: str, seed: int) -> None:
    wrong = disturb(text, "typo", random(seed))
    assert wrong != text
    # Two letters that swap keep a capital in front.
    assert distance(wrong.lower(), text.lower()) == 1
    assert {script_of(c) for c in wrong} == {script_of(c) for c in text}


def test_typing_errors_are_of_every_kind() -> None:
    text = "A man is riding a bike"
    found = {len(disturb(text, "typo", random(seed))) - len(text) for seed in range(50)}
    assert found == {-1, 0, 1}
    assert "w" in neighbors("latin")["q"]
    assert "z" in neighbors("latin-qwertz")["t"]
    assert "ц" in neighbors("cyrillic")["й"]


@pytest.mark.parametrize("text", SENTENCES)
@given(seed=SEEDS)
def test_marks_at_the_end_are_lost_or_repeated(text: str, seed: int) -> None:
    assert disturb(text, "no_end", random(seed)) == text[:-1]
    more = disturb(text, "double_end", random(seed))
    assert more.startswith(text)
    assert 1 <= len(more) - len(text) <= 2


def test_a_text_without_a_final_mark_stays() -> None:
    for kind in ("no_end", "double_end"):
        assert disturb("Save as", kind, random(0)) == "Save as"
    assert disturb("He said: “Stop!”", "no_end", random(0)) == "He said: “Stop”"


@pytest.mark.parametrize("text", SENTENCES)
@given(seed=SEEDS)
def test_odd_blanks_change_nothing_else(text: str, seed: int) -> None:
    odd = disturb(text, "spaces", random(seed))
    assert odd != text
    assert "".join(odd.split()) == "".join(text.split())


def test_quotes_and_dashes_are_exchanged_in_pairs() -> None:
    text = '"Yes" - it\'s "no" ...'
    found = {disturb(text, "quotes", random(seed)) for seed in range(60)}
    assert "„Yes“ – it’s „no“ …" in found
    assert "«Yes» — it’s «no» …" in found
    assert all("Yes" in each and " - " not in each for each in found)


@given(st.sampled_from(SENTENCES), st.sampled_from(sorted(SPANS)), KIND, SEEDS)
def test_what_must_be_copied_is_never_touched(text: str, made: str, kind: str, seed: int) -> None:
    span = invent_span(made, random(seed))
    first, _, rest = text.partition(" ")
    for whole in (f"{first} {span} {rest}", f"{span} {text}", f"{text} {span}"):
        assert span in disturb(whole, kind, random(seed))


@given(KIND, SEEDS)
def test_tags_and_fields_stay_beside_changed_words(kind: str, seed: int) -> None:
    opening, closing = invent_tags(random(seed))
    text = f"Please press {opening}Start{closing}, then wait for %1$s in {{name}}."
    changed = disturb(text, kind, random(seed))
    for span in (opening, closing, "%1$s", "{name}"):
        assert changed.count(span) == 1


@given(st.sampled_from(sorted(KINDS)), SEEDS)
def test_numbers_with_an_exponent_or_raised_digits_are_not_disturbed(kind: str, seed: int) -> None:
    spans = ("1.2e-5", "10²", "x²", "2½")
    changed = disturb(f"The man has {' balls and '.join(spans)} of them.", kind, random(seed))
    assert [changed.count(span) for span in spans] == [1, 1, 1, 1]


@given(st.sampled_from(sorted(SPANS)), SEEDS)
def test_an_invented_span_is_in_normal_form_and_found(kind: str, seed: int) -> None:
    span = invent_span(kind, random(seed))
    assert normalize(span) == span
    if kind != "emoji":  # its characters have no case, no keys and no blanks to be changed
        assert find_kept(f"a {span} b")


@pytest.mark.parametrize("script", sorted(SPELLED))
@given(seed=SEEDS)
def test_an_invented_name_is_a_word_of_its_script(script: str, seed: int) -> None:
    name = invent_name(random(seed), script)
    assert main_script(name) == script
    assert unicodedata.is_normalized("NFC", name)
    assert not name.split()[1:]
    assert name[0].isupper() == has_case(name)


def test_invented_names_differ() -> None:
    generator = random(0)
    assert len({invent_name(generator) for _ in range(1000)}) > 980


SCRIPTS = ["latin", "latin", "cyrillic", "greek", "han", "kana", "hangul", "arabic", "hebrew"]


@pytest.mark.parametrize(
    ("text", "script"),
    [
        *zip(SENTENCES, [*SCRIPTS, "devanagari"], strict=True),
        ("123 !", "other"),
        ("😀", "other"),
        ("Hallo мир und mehr", "latin"),
    ],
)
def test_the_script_of_a_text_is_that_of_most_letters(text: str, script: str) -> None:
    assert main_script(text) == script
