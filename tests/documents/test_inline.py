"""Places of elements among the words of a translation."""

from hypothesis import given
from hypothesis import strategies as st

from heed.documents.inline import Node, place_nodes
from heed.translate.result import Translation


def place(text: str, nodes: list[Node], translation: Translation) -> str:
    return place_nodes(
        text, nodes, translation, translations=[translation], escape=lambda part: part.upper()
    )


def aligned(text: str, source: str, pairs: dict[int, int]) -> Translation:
    """Words of `text` that each read one word of `source`: target number → source number."""
    tokens, source_tokens = text.split(), source.split()
    return Translation(
        text=text,
        tokens=tokens,
        source_tokens=source_tokens,
        alignment=[
            [float(pairs.get(i) == j) for j in range(len(source_tokens))]
            for i in range(len(tokens))
        ],
    )


def test_a_pair_goes_around_the_stretch_that_belongs_most_to_its_words() -> None:
    translation = aligned("u v w x y", "a b c d e", {0: 4, 1: 1, 2: 0, 3: 2, 4: 3})
    # b c → v … x, with w of `a` between them: one stretch has to be chosen.
    done = place("a b c d e", [Node(2, 5, ["<b>"], ["</b>"])], translation)
    assert done in ("U <b>V</b> W X Y", "U V W <b>X</b> Y", "U <b>V W X</b> Y")


def test_children_stay_within_their_parents() -> None:
    child = Node(2, 3, ["<i>"], ["</i>"])
    parent = Node(0, 3, ["<b>"], ["</b>"], [child])
    # The word of the child went away from its parent's other word.
    translation = aligned("y z w x", "a b c d", {0: 1, 1: 2, 2: 3, 3: 0})
    done = place("a b c d", [parent], translation)
    assert done.index("<b>") < done.index("<i>") < done.index("</i>") < done.index("</b>")


def test_siblings_never_overlap() -> None:
    nodes = [Node(0, 1, ["<b>"], ["</b>"]), Node(2, 3, ["<i>"], ["</i>"])]
    done = place("a b", nodes, aligned("x", "a b", {0: 0}))
    assert done in ("<b>X</b><i></i>", "<i>X</i><b></b>", "<i></i><b>X</b>", "<b></b><i>X</i>")


def test_an_element_between_two_words_follows_the_word_before() -> None:
    translation = aligned("z y x", "a b c", {0: 2, 1: 1, 2: 0})
    assert place("a b c", [Node(3, 3, ["<br>"], is_break=True)], translation) == "Z Y<br> X"


def test_an_element_that_touches_the_next_word_goes_before_it() -> None:
    translation = aligned("z y x", "a b c", {0: 2, 1: 1, 2: 0})
    assert place("a b c", [Node(2, 2, ["<img>"])], translation) == "Z <img>Y X"


def test_what_a_kept_element_says_is_not_said_twice() -> None:
    node = Node(2, 3, ["<code>b</code>"], is_kept=True)
    translation = aligned("z B x", "a b c", {0: 2, 1: 1, 2: 0})
    assert place("a b c", [node], translation) == "Z <code>b</code> X"


FIELDS = [
    "%(user)s",
    "{name}",
    "{{x}}",
    "12:30",
    "#48213",
    "a@b.de",
    "https://a.b/c?d=1",
    "1,234.5",
]


@given(st.data())
def test_no_tag_stands_inside_a_field_a_number_or_an_address(data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from([*FIELDS, "a", "dog", "runs"]), min_size=2))
    text = " ".join(words)
    starts = [place for place in range(len(text)) if not place or text[place - 1] == " "]
    start = data.draw(st.sampled_from(starts))
    ends = [place for place in range(start + 1, len(text) + 1) if text[place : place + 1] in " "]
    node = Node(start, data.draw(st.sampled_from(ends)), ["<b>"], ["</b>"])
    order = data.draw(st.permutations(range(len(words))))
    translation = aligned(" ".join(words[i] for i in order), text, dict(enumerate(order)))
    found = place_nodes(
        text, [node], translation, translations=[translation], escape=lambda part: part
    )
    for field in FIELDS:
        assert found.count(field) == words.count(field)
