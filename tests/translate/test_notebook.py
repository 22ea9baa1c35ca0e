"""Results in notebooks: the numbers are there, and no text becomes a tag."""

import html.parser
import math
from typing import Any

import numpy as np

from heed.translate import notebook
from heed.translate.result import Alignment, Translation
from heed.translate.trace import Node, Trace

HOSTILE = "<script>alert(1)</script>\u202e'\"&"


class Tags(html.parser.HTMLParser):
    """Collects the tags and the text of HTML, and fails at an unbalanced tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._open.append(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


KNOWN = {"p", "bdi", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


def test_a_translation_shows_tokens_chances_alignment_and_alternatives() -> None:
    translation = Translation(
        text=HOSTILE,
        score=-0.5,
        log_prob=math.log(0.25),
        tokens=["▁a", HOSTILE],
        token_scores=[math.log(0.5), math.log(0.5), 0.0],
        source_tokens=["▁x", "</s>"],
        alignment=[[0.75, 0.25], [0.0, 1.0]],
        alternatives=(Translation(text="b", score=-0.9),),
    )
    found = Tags(translation._repr_html_())
    assert found.tags <= KNOWN
    assert {HOSTILE, "50.0%", "100.0%", "<eos>", "0.75", "b", "-0.900"} <= set(found.texts)
    assert Tags(Translation(text="", status="empty")._repr_html_()).tags == {"p", "bdi"}


def test_an_alignment_is_a_matrix_with_a_row_for_each_target_token() -> None:
    alignment = Alignment(
        source_tokens=[HOSTILE, "b"], target_tokens=["c"], weights=[[0.125, 0.875]]
    )
    found = Tags(alignment._repr_html_())
    assert found.tags <= KNOWN
    assert found.texts == [HOSTILE, "b", "c", "0.12", "0.88"]


def test_a_trace_lists_its_tensors() -> None:
    node = Node(
        name="encoder.0.out",
        shape=(2, 16),
        axes=("src", "d_model"),
        kind="layer.out",
        operation="output",
        formula="X",
        inputs=(),
    )
    trace = Trace(
        source=HOSTILE,
        translation="b",
        source_tokens=[],
        target_tokens=[],
        expected_tokens=[],
        nodes=[node],
        tensors={node.name: np.zeros(node.shape, np.float32)},
    )
    found = Tags(trace._repr_html_())
    assert found.tags <= KNOWN
    assert {HOSTILE, "encoder.0.out", "src 2 × d_model 16", "output"} <= set(found.texts)


def test_a_long_table_says_how_much_is_left_out() -> None:
    found = Tags(notebook.table(["n"], ([str(i)] for i in range(notebook.MOST_ROWS + 2))))
    assert found.texts[-1] == "… and 2 more"
