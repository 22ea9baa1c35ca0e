"""Numbers of another language: separators, percents, currencies; what is ambiguous stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.numbers import _STYLES, localize
from heed.text.protected import Rules, find_spans

NBSP, NARROW = "\u00a0", "\u202f"


@pytest.mark.parametrize(
    ("number", "source", "target", "expected"),
    [
        ("1,234.50", "en", "de", "1.234,50"),
        ("1.234,50", "de", "en", "1,234.50"),
        ("1,234.50", "en", "fr", f"1{NARROW}234,50"),
        ("1 234,50", "fr", "en", "1,234.50"),
        (f"12{NBSP}345", "ru", "de", "12.345"),
        ("1,234", "en", "es", "1234"),
        ("12,345", "en", "es", "12.345"),
        ("1,234,567.5", "en", "de-CH", "1’234’567.5"),
        ("0.5", "en_US", "de-LU", "0,5"),
        ("-3.5", "en", "de", "-3,5"),
        (".5", "en", "de", ",5"),
        ("-,5", "de", "en", "-.5"),
        ("1.5-2.5", "en", "de", "1,5-2,5"),
        ("25%", "en", "de", f"25{NBSP}%"),
        ("25 %", "en", "de", "25 %"),
        ("25 %", "de", "en", "25%"),
        ("12.5%", "en", "tr", "%12,5"),
        ("$5.20", "en", "de", f"5,20{NBSP}$"),
        ("$50", "en", "de", f"50{NBSP}$"),
        ("-$1,234.50", "en", "de", f"-1.234,50{NBSP}$"),
        ("1,234.50 €", "en", "de", "1.234,50 €"),
        ("5 €", "de", "en", "€5"),
        ("$50", "en", "ja", "$50"),
        ("3.5 km", "en", "de", "3,5 km"),
        ("2.4GHz", "en", "fr", "2,4GHz"),
        ("EUR 1,000", "en", "de", "EUR 1.000"),
        ("1.2e-5 m", "en", "de", "1,2e-5 m"),
        ("1.5E+10", "en", "fr", "1,5E+10"),
        ("1,234.5e3", "en", "de", "1.234,5e3"),
        ("1,5e3-2,5e3", "de", "en", "1.5e3-2.5e3"),
        ("6.02×10²³", "en", "de", "6,02×10²³"),
        ("1.5x10^-5", "en", "de", "1,5x10^-5"),
        ("1,234² m", "en", "de", "1.234² m"),
        ("3.5⁻² m²", "en", "de", "3,5⁻² m²"),
    ],
)
def test_a_number_in_another_language(number: str, source: str, target: str, expected: str) -> None:
    assert localize(number, source, target) == expected


@pytest.mark.parametrize(
    ("number", "source", "target"),
    [
        ("1.234,5", "en", "de"),
        ("1,5", "en", "de"),
        (",5", "en", "de"),
        ("0,123", "en", "de"),
        ("3.10.1", "en", "de"),
        ("24.12.2025", "de", "en"),
        ("3.10", "en", "zh"),
        ("12/30/1899", "en", "de"),
        ("2024-01-02", "en", "de"),
        ("12:30", "en", "de"),
        ("1920x1080", "en", "de"),
        ("2025", "en", "de"),
        ("٣٫٥", "ar", "de"),
        ("$5", "en", "de"),
        ("1,234.50", "en", "xx"),
        ("1,234.50", "", "de"),
        ("1,234.50", "en", "en-GB"),
        ("1e5", "en", "de"),
        ("10²", "en", "de"),
        ("2½", "en", "de"),
        ("1e5.3e2", "en", "de"),
        ("no number", "en", "de"),
    ],
)
def test_what_has_no_other_spelling_or_no_clear_one_stays(
    number: str, source: str, target: str
) -> None:
    assert localize(number, source, target) == number


@pytest.mark.parametrize("lang", sorted(_STYLES))
def test_signs_are_those_of_cldr(lang: str) -> None:
    babel = pytest.importorskip("babel")
    locale = babel.Locale.parse(lang, sep="-")
    symbols = locale.number_symbols["latn"]
    style = _STYLES[lang]
    assert (style.decimal, style.group) == (symbols["decimal"], symbols["group"])
    percent, currency = (
        formats.pattern.split(";")[0].replace("\u200f", "")
        for formats in (locale.percent_formats[None], locale.currency_formats["standard"])
    )
    digits = ("#,##,##0.00", "#,##0.00", "#,##,##0", "#,##0")
    for pattern, own in ((percent, style.percent), (currency, style.currency)):
        shape = next(pattern.replace(each, "0") for each in digits if each in pattern)
        assert own == shape


@given(
    st.decimals(0, 10**9, places=2, allow_nan=False),
    st.sampled_from(["de", "fr", "nl", "it", "ru", "pt", "ja", "de-ch", "sv"]),
    st.sampled_from(["", " €", " km", "%"]),
)
def test_there_and_back_is_the_same_number(number: object, lang: str, unit: str) -> None:
    text = f"{number:,}"
    there = localize(text + unit.strip() if unit == "%" else text + unit, "en", lang)
    digits = there.replace(f"{NBSP}%", "").replace(unit, "").replace("€", "").strip()
    assert localize(digits, lang, "en") == text


@given(st.text(alphabet="0123456789²½eE^.,-+$€%kmx/: \u00a0", min_size=1, max_size=15))
def test_no_digit_is_lost(number: str) -> None:
    there = localize(number, "en", "fr")
    assert [sign for sign in there if sign.isdigit()] == [sign for sign in number if sign.isdigit()]


def test_spans_of_numbers_are_localized_whole() -> None:
    text = "It costs $1,234.50 or 25%."
    for span in reversed(find_spans(text, Rules.default())):
        number = localize(text[span.start : span.end], "en", "de")
        text = text[: span.start] + number + text[span.end :]
    assert text == f"It costs 1.234,50{NBSP}$ or 25{NBSP}%."
