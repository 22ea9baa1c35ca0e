import re
from collections.abc import Callable
from typing import Any

import pytest

from heed.explain.render import (
    ansi256,
    choose_palette,
    digits,
    heatmap,
    shades,
    truecolor,
    width_of,
)

WEIGHTS = [[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def test_a_row_per_target_piece_and_a_head_line() -> None:
    lines = heatmap(WEIGHTS, ["▁New", "▁York"], ["纽", "约", "."], palette=digits, max_width=40)
    assert lines == [
        "      纽 约 .",
        " ▁New  9  1  .",
        "▁York  .  5  5",
    ]


def test_shades_grow_with_the_weight() -> None:
    """Claim 65."""
    cells = [shades(weight, 1) for weight in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert cells == list(" ░▒▓█")


@pytest.mark.parametrize("palette", [truecolor, ansi256, shades, digits])
@pytest.mark.parametrize("weight", [-1.0, 0.0, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_cell_takes_exactly_its_width(
    palette: Callable[..., Any], weight: float, width: int
) -> None:
    assert width_of(ESCAPE.sub("", palette(weight, width))) == width


@pytest.mark.parametrize("max_width", [30, 60, 200])
def test_lines_stay_within_the_terminal(max_width: int) -> None:
    columns = ["▁internationalization", "一座", "é", "👍🏽", "\x1b", "\t"]
    rows = ["▁x" * 20, "城市"]
    lines = heatmap([[0.5] * 6] * 2, rows, columns, palette=shades, max_width=max_width)
    assert len(lines) == 3
    assert all(width_of(line) <= max_width for line in lines)
    assert not any("\x1b" in line or "\t" in line for line in lines)


def test_many_columns_stay_within_the_terminal_without_blanks_between_them() -> None:
    columns, rows = ["▁a"] * 45, ["▁riding", "▁a"]
    lines = heatmap([[0.5] * 45] * 2, rows, columns, palette=digits, max_width=80)
    assert lines[1:] == ["▁riding " + "5" * 45, "     ▁a " + "5" * 45]
    lines = heatmap([[0.5] * 70] * 2, rows, ["b"] * 70, palette=shades, max_width=80)
    assert max(map(width_of, lines)) == 78


def test_wide_characters_count_two_columns_and_marks_none() -> None:
    assert width_of("纽约") == 4
    assert width_of("e\u0301") == 1
    assert width_of("▁a") == 2


@pytest.mark.parametrize(
    ("environ", "is_terminal", "encoding", "palette"),
    [
        ({"COLORTERM": "truecolor"}, True, "utf-8", truecolor),
        ({"TERM": "xterm"}, True, "utf-8", ansi256),
        ({"COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "utf-8", shades),
        ({"COLORTERM": "truecolor"}, False, "utf-8", shades),
        ({"TERM": "dumb"}, True, "utf-8", shades),
        ({}, False, "ascii", digits),
        ({}, False, None, digits),
    ],
)
def test_the_palette_fits_the_terminal(
    environ: dict[str, str], is_terminal: bool, encoding: str | None, palette: Callable[..., Any]
) -> None:
    assert choose_palette(environ, is_terminal=is_terminal, encoding=encoding) is palette


def test_an_empty_sentence_draws_no_rows() -> None:
    assert heatmap([], [], [], palette=digits, max_width=20) == [""]
