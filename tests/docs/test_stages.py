"""The page of traces lists the tensors that models have."""

from tests.docs.stages import PAGE, TITLES, renewed, table

from heed.model.families import FAMILIES


def test_the_page_has_every_tensor_with_its_formula() -> None:
    """`python tests/docs/stages.py` writes the table again."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page)
    assert TITLES.keys() == FAMILIES.keys()


def test_a_row_has_axes_and_a_formula() -> None:
    row = "| `attention.scores` | head × q × k | scale | S = Q Kᵀ / √d_k |"
    assert row in table().splitlines()
