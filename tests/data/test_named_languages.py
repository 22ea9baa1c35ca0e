"""A file of several languages says which it has, and what to give, in both directions."""

from pathlib import Path

import pytest

from heed.data import named_languages as module
from heed.data.named_languages import languages_asked, named_languages
from heed.data.readers import ParallelFiles, read_part
from heed.errors import ConfigError

BOTH = "--source-lang en --target-lang de, or --source-lang de --target-lang en"


def memory(path: Path, *units: str) -> Path:
    """A TMX file with a unit for each string of codes."""
    variants = [
        "".join(f'<tuv xml:lang="{code}"><seg>x</seg></tuv>' for code in unit.split())
        for unit in units
    ]
    body = "".join(f"<tu>{each}</tu>" for each in variants)
    path.write_text(f"<tmx><body>{body}</body></tmx>", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("units", "source", "target", "said"),
    [
        (("en de",), "", "", f"has en and de: say which is the source. Add {BOTH}."),
        (
            ("en-US de-DE", "en-GB de"),
            "",
            "",
            f"has en and de: say which is the source. Add {BOTH}.",
        ),
        (("en de",), "en", "", "has en and de: say which is the source. Add --target-lang de."),
        (("en de",), "", "en-US", "has en and de: say which is the source. Add --source-lang de."),
        (
            ("pt-PT pt-BR",),
            "",
            "",
            "has pt-PT and pt-BR: say which is the source. Add --source-lang pt-PT --target-lang "
            "pt-BR, or --source-lang pt-BR --target-lang pt-PT.",
        ),
        (
            ("en de", "fr"),
            "",
            "",
            "may hold many languages: say which, with --source-lang and --target-lang. "
            "It has de, en and fr.",
        ),
        (
            ("en de",),
            "fr",
            "",
            "may hold many languages: say which, with --target-lang. It has de and en.",
        ),
        (
            ("en",),
            "",
            "de",
            "may hold many languages: say which, with --source-lang. It has only en.",
        ),
        (
            ("en <",),
            "",
            "",
            "may hold many languages: say which, with --source-lang and --target-lang. "
            "It has only en.",
        ),
    ],
)
def test_a_memory_says_which_languages_to_give(
    tmp_path: Path, units: tuple[str, ...], source: str, target: str, said: str
) -> None:
    path = memory(tmp_path / "m.tmx", *units)
    with pytest.raises(ConfigError) as refused:
        read_part(ParallelFiles(files=(str(path),), source_lang=source, target_lang=target))
    assert str(refused.value) == f"{path} {said}"


@pytest.mark.parametrize(
    "text",
    [
        '<xliff version="1.2"><file source-language="en" target-language="de-AT"/></xliff>',
        '<xliff version="2.0" srcLang="en" trgLang="de"><file id="1"/></xliff>',
        '<x:xliff xmlns:x="x" srcLang="EN" trgLang="de_DE"><x:file id="1"/></x:xliff>',
    ],
)
def test_an_xliff_file_names_its_languages(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.xlf"
    path.write_text(text, encoding="utf-8")
    assert languages_asked(path, "", "").endswith(
        f"has en and de: say which is the source. Add {BOTH}."
    )


def test_many_languages_are_not_all_listed(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", " ".join(f"x{number:03}" for number in range(40)))
    assert languages_asked(path, "", "").endswith("x023, x024 and 15 more.")


def test_a_long_file_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = memory(tmp_path / "m.tmx", *["en de"] * 5000, "fr")
    assert named_languages(path) == ["en", "de", "fr"]
    monkeypatch.setattr(module, "_MOST_BYTES", 1000)
    assert named_languages(path) == ["en", "de"]


def test_a_code_that_cannot_be_given_is_not_offered(tmp_path: Path) -> None:
    path = memory(tmp_path / "m.tmx", "en 12 \u65e5")
    assert named_languages(path) == ["en"]
