"""The table of claims is written as `claims.py` says; that it is up to date, test_names.py asks."""

from pathlib import Path

import pytest
from tests.docs.claims import HEAD, N_CLAIMS, cited_tests, numbers, renewed

CITING = '''
"""Claim 4 is of the whole file."""

@pytest.mark.parametrize("a", [1])
def test_one(a):  # claims 1, 2 and 3
    def inner():
        """Claims 5 to 7."""

def helper():
    """Claim 8."""

@pytest.mark.slow
def test_two():
    """Claim 1, and claim 2."""
'''


def page(cells: dict[int, str]) -> str:
    numbers = range(1, N_CLAIMS + 1)
    return HEAD + "".join(f"| {n} | says {n} | {cells.get(n, 'not yet: why')} |\n" for n in numbers)


def test_a_number_is_found_with_its_line() -> None:
    text = "Claims 8, 70 and 71\nclaim 85–87, fault R2"
    assert numbers(text, "claim", r"\d+") == {
        "8": [1], "70": [1], "71": [1], "85": [2], "86": [2], "87": [2],
    }  # fmt: skip
    assert numbers(text, "fault", r"R\d+") == {"R2": [2]}


def test_a_claim_belongs_to_the_test_that_cites_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "test_claims.py").write_text("# Claim 1.")
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "test_any.py").write_text(CITING)
    file, one, two = (
        f"`room/test_any.py{rest}" for rest in ("`", "::test_one`", "::test_two` (slow)")
    )
    assert cited_tests(tmp_path) == {
        1: [one, two], 2: [one, two], 3: [one], 4: [file], 5: [one], 6: [one], 7: [one], 8: [file],
    }  # fmt: skip


def test_a_file_of_slow_tests_is_slow(tmp_path: Path) -> None:
    text = "pytestmark = [pytest.mark.slow]\ndef test_a():\n    '''Claim 1.'''\n"
    (tmp_path / "test_a.py").write_text(text)
    assert cited_tests(tmp_path) == {1: ["`test_a.py::test_a` (slow)"]}


def test_a_test_takes_the_place_of_the_reason_why_there_was_none() -> None:
    before = page({2: "`old`", 128: "out of scope: why"})
    after = renewed(before, {1: ["`a`", "`b`"], 2: ["`new`"]})
    assert after == page({1: "`a`<br>`b`", 2: "`new`", 128: "out of scope: why"})
    assert renewed(after, {1: ["`a`", "`b`"], 2: ["`new`"]}) == after


def test_a_claim_that_lost_its_last_test_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"Claim 2 \(says 2\) had a test, `a`, but now no test"):
        renewed(page({2: "`a`"}), {})


def test_rows_that_a_merge_has_doubled_are_written_once() -> None:
    doubled = "| 5 | says 5 | `a` |\n| 6 | says 6 | not yet: why |\n| 7 | says 7 |\n| 5 |"
    merged = f"{HEAD}what was there{page({})}".replace("| 5 |", doubled)
    assert renewed(merged, {5: ["`b`"]}) == page({5: "`b`"})
    with pytest.raises(ValueError, match="Claim 5 .* had a test, `a`"):
        renewed(merged, {})
    doubled = "| 5 | also says 5 | `a` |\n| 5 |"
    with pytest.raises(ValueError, match='two rows of claim 5. Delete .* "also says 5" or "says'):
        renewed(page({}).replace("| 5 |", doubled), {})


def test_every_claim_has_a_row_and_no_other_number_is_cited() -> None:
    with pytest.raises(ValueError, match=r"must have the claims 1 to 134: see \[5\]"):
        renewed(page({}).replace("| 5 |", "| five |"), {})
    with pytest.raises(ValueError, match="There is no claim 135, but `a` cites it"):
        renewed(page({}), {135: ["`a`"]})
