"""The flags on protected spans, and what a person reads who gives them something wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from heed.errors import ConfigError
from heed.text.vocab import train_vocab
from heed.translate.lines import Line, LineReader

LINE = "open the file %s and ACME-7 of 1,500.50"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def translate(call: Call, slots_model: Path) -> Call:
    """`translate(*flags, line=LINE)`: the exit code, the answer, and what was said beside it."""

    def run(*flags: str, line: str = LINE) -> tuple[int, str, str]:
        stdin = f"{line}\n".encode()
        return call("translate", "-m", str(slots_model), "--threads", "1", *flags, stdin=stdin)

    return run


def test_flags_say_what_is_protected(translate: Call, tmp_path: Path) -> None:
    code, answer, _ = translate()
    assert code == 0
    assert answer.count("%s") == answer.count("1,500.50") == 1
    assert translate("--protect", r"ACME-\d")[1].count("ACME-7") == 1
    terms = tmp_path / "terms.txt"
    terms.write_text("the file\n", encoding="utf-8")
    assert translate("--protect-terms", str(terms))[1].count("the file") == 1
    assert "1.500,50" in translate("--localize-numbers")[1]
    only = translate("--protect", "none", "--protect", "the file")[1]
    assert only.count("the file") == 1
    assert "1.500,50" not in translate("--localize-numbers", "--protect", "-number")[1]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "heed: the protected pattern '(' is not a valid regular expression: missing )"),
        (
            "x*",
            "heed: the protected pattern 'x*' matches an empty text. Write one that needs a char",
        ),
        (
            "-numbers",
            "heed: the protected pattern '-numbers' is not a rule of heed. Did you mean -num",
        ),
        ("(a|aa)+$", "heed: the protected pattern '(a|aa)+$' takes too long for some texts. Avoid"),
    ],
)
def test_a_wrong_pattern_is_told(translate: Call, pattern: str, message: str) -> None:
    code, answer, said = translate("--protect", pattern)
    assert (code, answer) == (1, "")
    assert said.startswith(message)
    assert said.count("\n") == 1


def test_a_pattern_that_takes_too_long_is_told_with_the_line(translate: Call) -> None:
    code, _, said = translate("--protect", "(x|xx)+$", line="open the file\n" + "x" * 60 + "b")
    assert code == 1
    assert said.startswith("heed: Line 2: the protected pattern '(x|xx)+$' takes too long for")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no term. Write one a line, such as the name of a product."),
        (b"\n \n", "has no term. Write one a line, such as the name of a product."),
        (b"ACME\n\xdf\xff\n", "line 2: must be UTF-8, but byte 1 of the line is 0xDF."),
        (b"word " * 900, "line 1: a term must have at most 500 characters, but has 4,499."),
    ],
)
def test_a_wrong_file_of_terms_is_told_with_its_name_and_line(
    translate: Call, tmp_path: Path, content: bytes, message: str
) -> None:
    terms = tmp_path / "terms.txt"
    terms.write_bytes(content)
    code, answer, said = translate("--protect-terms", str(terms))
    assert (code, answer) == (1, "")
    assert said.startswith(f"heed: {terms} {message}") and said.count("\n") == 1


def test_a_missing_file_of_terms_is_told(translate: Call, tmp_path: Path) -> None:
    code, _, said = translate("--protect-terms", str(tmp_path / "no.txt"))
    assert (code, said) == (1, f"heed: {tmp_path / 'no.txt'} does not exist.\n")
    code, _, said = translate("--protect-terms", str(tmp_path))
    assert (code, said) == (1, f"heed: {tmp_path} must be a file, but is a folder.\n")


def test_a_term_longer_than_the_line_harms_nothing(translate: Call, tmp_path: Path) -> None:
    terms = tmp_path / "terms.txt"
    terms.write_text("open the file " * 20 + "\n", encoding="utf-8")
    assert translate("--protect-terms", str(terms)) == translate()


def test_numbers_of_an_unknown_language_are_refused() -> None:
    vocab = train_vocab(["a b"] * 9, size=280)
    reader = LineReader(vocab, vocab, source_lang="en", target_lang="xx")
    with pytest.raises(ConfigError, match="does not know the number format of xx"):
        reader.parts(Line("1,500", localize_numbers=True), 0, [])


def test_numbers_are_read_in_the_only_language_of_their_direction() -> None:
    langs = ("de", "en", "fr")
    vocab = train_vocab(["a 1.500,50"] * 9, size=300, languages=langs)
    reader = LineReader(vocab, vocab, target_langs=langs)
    reader.directions = (("fr", "de"), ("de", "en"), ("de", "fr"), ("en", "fr"))
    line = Line("1.500,50", target_lang="en", localize_numbers=True)
    (part,) = reader.parts(line, 0, [])
    assert part.source is not None
    assert [span.text for span in part.source.spans] == ["1,500.50"]
    with pytest.raises(ConfigError, match="the number format of this model's languages"):
        reader.parts(Line("1.500,50", target_lang="fr", localize_numbers=True), 0, [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"file\tDatei\nfile\tAkte\n",
            "Line 2 of the glossary repeats the source term 'file' of l",
        ),
        (b"file\tDatei\nfile\t!Datei\n", "Line 2 of the glossary contradicts line 1: one asks for"),
        (b"\tDatei\n", "The source term in line 1 of the glossary must hold a letter or a digit"),
        (b"", "The glossary must have at least one entry, but is empty."),
        (b"file\t\xdf\xff\n", "line 1: the glossary must be UTF-8, but byte 0xdf does not fit."),
        (b"word " * 900 + b"\tWort\n", "The source term in line 1 of the glossary must have at m"),
    ],
)
def test_a_wrong_glossary_is_told(
    translate: Call, tmp_path: Path, content: bytes, message: str
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_bytes(content)
    code, answer, said = translate("--glossary", str(terms))
    assert (code, answer) == (1, "")
    assert said.startswith("heed: ") and message in said and said.count("\n") == 1


def test_a_small_model_with_a_shortlist_keeps_spans(
    call: Call, slots_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "small"
    code, _, said = call("quantize", str(slots_model), "--out", str(out), "--shortlist")
    assert code == 0, said
    lines = b"open the file %s.\n<i>save</i> {name} and the page 1,500.\n"
    code, answer, _ = call("translate", "-m", str(out), "--threads", "1", stdin=lines)
    first, second = answer.splitlines()
    assert (code, first.count("%s")) == (0, 1)
    assert [second.count(span) for span in ("<i>", "</i>", "{name}", "1,500")] == [1] * 4
