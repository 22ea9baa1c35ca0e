"""Parts of a file."""

import pytest

from heed.documents.assembly import Assembly
from heed.documents.passages import split_passage
from heed.errors import UsageError
from heed.translate.result import Translation


def test_each_content_gets_the_translations_of_its_own_segments() -> None:
    assembly = Assembly()
    assembly.keep("[")
    assembly.add(split_passage("one. two."))
    assembly.keep("|")
    assembly.add(split_passage("three"))
    assert [segment.text for segment in assembly.segments] == ["one. two.", "three"]
    assert assembly.join([Translation(text="1"), Translation(text="2")]) == "[1|2"


def test_another_number_of_translations_is_refused() -> None:
    with pytest.raises(UsageError, match="0 segments and 1 translations"):
        Assembly().join([Translation(text="x")])
