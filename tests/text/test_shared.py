"""`shared_spans`: what both sides of a pair have, and the slots that stand for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.extend import with_controls
from heed.text.protected import Rules
from heed.text.shared import marks_of, shared_spans
from heed.text.slots import SLOT_PIECES, Slots
from heed.text.vocab import train_vocab

RULES = Rules.default()


@pytest.fixture(scope="module")
def slots() -> Slots:
    found = with_controls(train_vocab(["the man"] * 9, size=280), SLOT_PIECES).slots
    assert found is not None
    return found


def spelled(src: str, tgt: str) -> list[tuple[str, str]]:
    """Kind and text of what is shared; the text is the same on both sides."""
    found = shared_spans(src, tgt, RULES)
    for span in found:
        assert src[slice(*span.src)] == tgt[slice(*span.tgt)]
    return [(span.kind, src[slice(*span.src)]) for span in found]


def test_what_stands_on_both_sides_is_shared_in_the_order_of_the_source() -> None:
    assert spelled("%s of 1,234 files", "1,234 Dateien, davon %s") == [
        ("thing", "%s"),
        ("number", "1,234"),
    ]
    assert spelled("no spans", "keine") == []


def test_what_stands_on_one_side_only_is_not() -> None:
    assert spelled("Copy %s to %d.", "%s kopieren") == [("thing", "%s")]
    assert spelled("%s and %s", "nur %s") == [("thing", "%s")]


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("1,234.50 €", "1.234,50 €"),
        ("25%", "25 %"),
        ("$50", "50 $"),
        ("2 men", "2 Männer"),
        ("1.2e-5 m", "1,2e-5 m"),
        ("10² men", "10² Männer"),
    ],
)
def test_numbers_are_shared_however_a_language_writes_them(src: str, tgt: str) -> None:
    assert [span.kind for span in shared_spans(src, tgt, RULES)] == ["number"]


def test_other_numbers_are_not_shared() -> None:
    assert shared_spans("1.5 of 2", "15 von 3", RULES) == []
    assert shared_spans("5 km", "5 mm", RULES) == []


def test_two_marks_of_a_pair_are_shared_together_or_not_at_all() -> None:
    text = "Press <b>OK</b> now"
    assert spelled(text, "Jetzt <b>OK</b> drücken") == [("open", "<b>"), ("close", "</b>")]
    assert spelled(text, "Jetzt <b>OK drücken") == []
    assert spelled(text, "Jetzt <i>OK</i> drücken") == []


def test_pairs_inside_one_another_keep_their_partners(slots: Slots) -> None:
    src = "<b>a <i>b</i></b> <i>c</i>"
    shared = shared_spans(src, "<i>c</i> <b>a <i>b</i></b>", RULES)
    assert [(span.kind, span.pair) for span in shared].count(("open", 0)) == 1
    for side, marks in enumerate(marks_of(shared, slots)):
        ids = [id for _, _, id in marks]
        assert len(ids) == len(set(ids)) == 6
        stack: list[int] = []
        for id in ids:
            if id in slots.opens:
                stack.append(id)
            else:
                assert slots.partner(id) == stack.pop(), side


def test_slots_are_numbered_in_the_order_of_the_source_until_none_is_left(slots: Slots) -> None:
    numbers = [str(number) for number in range(1001, 1013)]
    shared = shared_spans(" ".join(numbers), " ".join(reversed(numbers)), RULES)
    src_marks, tgt_marks = marks_of(shared, slots)
    assert [id for _, _, id in src_marks] == list(slots.numbers)
    assert [id for _, _, id in tgt_marks] == list(reversed(slots.numbers))
    assert tgt_marks == sorted(tgt_marks)


SPANS = st.sampled_from(["%s", "<b>", "</b>", "<br/>", "42", "https://a.example/b", "{{x}}", "😀"])
WORDS = st.sampled_from(["the", "file", "von", "."])


@given(src=st.lists(SPANS | WORDS, max_size=12), tgt=st.lists(SPANS | WORDS, max_size=12))
def test_shared_spans_are_equal_disjoint_and_have_one_slot_on_each_side(
    slots: Slots, src: list[str], tgt: list[str]
) -> None:
    one, other = " ".join(src), " ".join(tgt)
    shared = shared_spans(one, other, RULES)
    marks = marks_of(shared, slots)
    for text, of_side in zip((one, other), marks, strict=True):
        ends = [place for start, end, _ in of_side for place in (start, end)]
        assert ends == sorted(ends)
        assert len(text) >= max(ends, default=0)
    texts = [
        {id: text[start:end] for start, end, id in of_side}
        for text, of_side in zip((one, other), marks, strict=True)
    ]
    assert texts[0] == texts[1]
    assert all(slots.partner(id) in (None, *texts[0]) for id in texts[0])
