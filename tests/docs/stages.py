"""The table of tensors in docs/inside-trace.md: `python tests/docs/stages.py` writes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heed.model.families import FAMILIES
from heed.model.stages import Row, Stages

PAGE = Path(__file__).resolve().parents[2] / "docs" / "inside-trace.md"
BEGIN, END = "<!-- stages -->\n", "<!-- end of stages -->"
SIZES = {"src_vocab_size": 8, "tgt_vocab_size": 8}
TITLES = {
    "transformer": "Transformer, and what may stand in the place of its self-attention",
    "decoder": "One stack (`family = decoder`), where it differs",
    "encoder": "A text alone (`family = encoder`), where it differs",
    "conv": "Convolutions (`family = conv`), where they differ",
    "rnn": "Recurrent (`family = rnn`)",
    "bag": "A bag of n-grams (`family = bag`)",
}


def table() -> str:
    """Markdown: a table for each family, of the rows that no table before has."""
    seen: dict[str, Row] = {}
    parts = []
    for family, title in TITLES.items():
        settings: dict[str, Any] = {"norm": "post"} if family in ("decoder", "encoder") else {}
        rows = Stages(FAMILIES[family].config(**SIZES, **settings)).rows
        new = {kind: row for kind, row in rows.items() if seen.get(kind) != row}
        seen = {**new, **seen}
        parts.append(f"\n### {title}\n\n" + "".join(_lines(new)))
    return "".join(parts) + "\n"


def renewed(page: str) -> str:
    """The page with its table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def _lines(rows: dict[str, Row]) -> Iterator[str]:
    yield "| tensor | axes | operation | formula |\n|---|---|---|---|\n"
    for kind, (operation, formula, axes) in rows.items():
        shown = axes.format(q="q", k="k").replace(" ", " × ")
        # A bar would end the cell.
        written = (formula or "none").replace("|", r"\|")
        yield f"| `{kind}` | {shown} | {operation} | {written} |\n"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
