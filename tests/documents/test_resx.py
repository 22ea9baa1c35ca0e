"""Resources of .NET."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import shouted, unchanged

from heed.documents.resx import split_resx
from heed.errors import DataError

PARTS = [
    "a b",
    " ",
    "&amp;",
    "&lt;b&gt;x&lt;/b&gt;",
    "{0}",
    "\n",
    "<!-- c -->",
    "<![CDATA[d]]>",
    ".",
]
VALUE = st.lists(st.sampled_from(PARTS)).map("".join)

FILE = """<?xml version="1.0" encoding="utf-8"?>
<root>
  <resheader name="reader"><value>System.Resources.ResXResourceReader</value></resheader>
  <data name="Hello" xml:space="preserve"><value>Hello &lt;b&gt;{0}&lt;/b&gt; &amp; you.
Two</value><comment>greeting</comment></data>
  <data name=">>button.Name"><value>button</value></data>
  <data name="button.Size" type="System.Drawing.Size"><value>one, two</value></data>
  <data name="icon" mimetype="x"><value>abc</value></data>
  <data name="Empty"><value /></data>
  <metadata name="m"><value>True</value></metadata>
</root>
"""


@given(st.lists(VALUE))
def test_a_file_that_does_not_change_keeps_its_bytes(values: list[str]) -> None:
    data = "".join(f'<data name="n"><value>{value}</value></data>' for value in values)
    text = f"<root>{data}</root>"
    assembly = split_resx(text)
    assert assembly.join(unchanged(assembly.segments)) == text


def test_only_strings_are_translated() -> None:
    assembly = split_resx(FILE)
    assert [segment.text for segment in assembly.segments] == ["Hello  & you.", "Two"]
    assert assembly.join(shouted(assembly.segments)) == FILE.replace("Hello &", "HELLO &").replace(
        "you.\nTwo", "YOU.\nTWO"
    )


@pytest.mark.parametrize("text", ["<a/>", "<resources/>", ""])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="must begin with <root>, but does not, at line 1"):
        split_resx(text)


@pytest.mark.timeout(60)
def test_values_in_values_are_read_once() -> None:
    """It takes 3 s; reading them once for each value around them took 13 s for 30,000."""
    text = f"<root>{'<data><value>' * 80_000}a{'</value></data>' * 80_000}</root>"
    assembly = split_resx(text)
    assert (assembly.segments, assembly.join([])) == ([], text)
