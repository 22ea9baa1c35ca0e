"""The screen of attention: every control, and numbers that are those of a trace in Python."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, Route, expect
from tests.serve.page.conftest import SENTENCE, Open, rows_of, wait_until, wait_until_it_fits
from tests.serve.page.test_translate import assert_accessible

from heed.explain.attention.links import pharaoh, strongest
from heed.explain.attention.maps import entropy, maps, mean_of_heads, softmax, without_columns
from heed.explain.attention.rollout import rollout_of
from heed.explain.attention.words import between_words
from heed.text.piece_words import words_of
from heed.translate.trace import Trace
from heed.translate.translator import load

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

Matrix = NDArray[np.float64]
Show = Callable[..., Page]


@pytest.fixture(scope="module")
def trace(models: tuple[str, str]) -> Trace:
    return load(models[0]).trace(SENTENCE)


@pytest.fixture
def show(open_page: Open) -> Show:
    """`show("#/attention?use=encoder")`: the screen at this address, with the sentence."""

    def show_(address: str = "#/attention", **options: Any) -> Page:
        page = open_page(address, left={"heed.looked": SENTENCE}, **options)
        expect(page.locator(".thumb").first).to_be_visible()
        expect(page.locator(".drawn > *")).to_be_visible()
        return page

    return show_


def numbers(page: Page) -> Matrix:
    """The map that is shown, read from its table; −∞ where it is masked."""
    signs = str.maketrans({"−": "-", "∞": "inf"})
    rows = rows_of(page.locator(".twin"))
    return np.array([[float(cell.translate(signs)) for cell in row[1:]] for row in rows])


def assert_shown(page: Page, expected: NDArray[Any]) -> None:
    """Three digits of numbers that came in 16 bits, as soon as they are drawn."""
    shown = np.zeros(0)
    for _ in range(50):
        shown = numbers(page)
        if shown.shape == expected.shape and np.allclose(shown, expected, rtol=7e-3, atol=2e-4):
            return
        page.wait_for_timeout(100)
    np.testing.assert_allclose(shown, expected, rtol=7e-3, atol=2e-4)


def press(page: Page, name: str) -> Locator:
    button = page.locator(".main-card").get_by_role("button", name=name, exact=True)
    button.click()
    return button


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_each_use_and_head_shows_its_weights(show: Show, trace: Trace, use: str) -> None:
    """Claim 67."""
    page = show(f"#/attention?use={use}&layer=0&head=1")
    expect(page.get_by_role("tab", selected=True)).to_have_id(f"tab-{use}")
    assert_shown(page, maps(trace, use)[0][1])
    # The thumbnails say the entropy of each head.
    for head, bits in enumerate(entropy(maps(trace, use)[0]).mean(axis=1)):
        label = f"Layer 0, head {head}, {bits:.2f} bits"
        expect(page.get_by_role("button", name=label)).to_be_visible()


def test_tabs_and_heads_are_chosen_by_mouse_and_keys(show: Show, trace: Trace) -> None:
    page = show()
    page.get_by_role("tab", name="Cross").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Decoder (masked)")
    expect(page).to_have_url(re.compile("use=decoder"))
    page.locator(".thumb").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("head=1"))
    expect(page.locator(".main-card h2")).to_have_text("Decoder (masked): layer 0, head 1")
    assert_shown(page, maps(trace, "decoder")[0][1])


def test_stages_go_from_products_to_weights(show: Show, trace: Trace) -> None:
    """Claims 45 and 46; masked cells are −∞, and then exactly 0."""
    page = show("#/attention?use=decoder&head=0")
    names = {"Raw": "products", "Scaled": "scores", "Masked": "masked", "Softmax": "weights"}
    for button, stage in names.items():
        expect(press(page, button)).to_have_attribute("aria-pressed", "true")
        assert_shown(page, maps(trace, "decoder", stage)[0][0])
    shown = numbers(page)
    assert (shown[np.triu_indices(len(shown), k=1)] == 0).all()


def test_without_the_square_root_the_softmax_is_computed_anew(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=decoder&head=1")
    page.get_by_label("Without √dₖ").check()
    masked = maps(trace, "decoder", "masked")[0][1]
    products = np.where(np.isneginf(masked), -np.inf, maps(trace, "decoder", "products")[0][1])
    expect(page.get_by_text("rows are sharper")).to_be_visible()
    assert_shown(page, softmax(products))


def test_heads_are_averaged_with_shares(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=cross&head=0")
    page.locator(".thumb").nth(1).click(modifiers=["Shift"])
    weights = maps(trace, "cross")[0]
    expect(page.locator(".chip")).to_have_count(2)
    assert_shown(page, weights.mean(axis=0))
    share = page.get_by_label("Share of layer 0, head 1")
    share.fill("3")
    share.press("Enter")
    expect(page).to_have_url(re.compile(r"heads=0\.0%2C0\.1\*3"))
    assert_shown(page, mean_of_heads(weights, {0: 1, 1: 3}))
    page.get_by_label("Leave out layer 0, head 0").click()
    assert_shown(page, weights[1])
    press(page, "Mean of the layer")
    assert_shown(page, weights.mean(axis=0))
    press(page, "All layers")
    expect(page.locator(".main-card h2")).to_have_text("Cross: mean of all layers")
    assert_shown(page, weights.mean(axis=0))


@pytest.mark.parametrize("use", ["encoder", "decoder", "cross"])
def test_rollout_is_that_of_python(show: Show, trace: Trace, use: str) -> None:
    page = show(f"#/attention?use={use}")
    press(page, "Rollout")
    expect(page.get_by_text("residual connection")).to_be_visible()
    assert_shown(page, rollout_of(trace, use)[-1])


def test_sinks_are_hidden_and_the_rest_is_divided_by_its_sum(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=cross&head=0")
    page.get_by_label("Hide </s>").check()
    page.get_by_label("Hide punctuation").check()
    weights = maps(trace, "cross")[0][0]
    columns = [i for i, piece in enumerate(trace.source_tokens) if piece in ("</s>", "▁.", ".")]
    assert columns
    hidden = weights[:, columns].sum(axis=1).mean()
    expect(
        page.get_by_text(f"{100 * hidden:.1f}% of the attention goes to what is hidden")
    ).to_be_visible()
    assert_shown(page, without_columns(weights, columns))


def test_pieces_become_words(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=cross&head=1")
    page.get_by_label("Words").check()
    rows, columns = words_of(trace.target_tokens), words_of(trace.source_tokens)
    expect(page.get_by_text("the sum over pieces that are read")).to_be_visible()
    assert_shown(page, between_words(maps(trace, "cross")[0][1], rows, columns))
    expect(page.locator(".twin thead th")).to_have_text([word.text for word in columns])


def test_words_are_those_of_python(show: Show) -> None:
    page = show()
    pieces = [
        "<s>",
        "▁Don",
        "'",
        "t",
        "▁(",
        "run",
        ")",
        "▁",
        "纽",
        "约",
        "▁x",
        "-",
        "▁",
        "▁a",
        "ب",
        ".",
    ]
    script = """async pieces => {
      const url = document.querySelector('script[type=module]').src;
      const { wordsOf } = await import(new URL('pieces.js', url));
      return wordsOf(pieces).map(({ text, first, end }) => [text, first, end]);
    }"""
    found = page.evaluate(script, pieces)
    assert [tuple(word) for word in found] == [
        (word.text, word.first, word.end) for word in words_of(pieces)
    ]


def test_a_step_says_what_is_read_and_written(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=cross&head=0&row=2")
    step = page.locator(".step")
    bits = entropy(maps(trace, "cross")[0][0])[2]
    read, written = (
        tokens[2].replace("▁", "") for tokens in (trace.target_tokens, trace.expected_tokens)
    )
    expect(step).to_have_text(
        f"Step 2: {read} is read, {written} is written. Entropy {bits:.2f} bits."
    )
    page.get_by_role("button", name="One step on").click()
    expect(step).to_contain_text("Step 3")
    expect(page).to_have_url(re.compile("row=3"))
    page.get_by_label("Step of the decoder").focus()
    page.keyboard.press("ArrowLeft")
    expect(step).to_contain_text("Step 2")
    weights = maps(trace, "cross")[0][0][2]
    first = page.locator(".top-read li").first
    expect(first).to_contain_text(trace.source_tokens[weights.argmax()].replace("▁", ""))
    play = page.get_by_role("button", name="Play")
    play.click()
    expect(step).to_contain_text(f"Step {len(trace.target_tokens) - 1}")
    expect(play).to_have_text("Play")


def test_two_drawings_of_the_same_leave_one(show: Show, trace: Trace) -> None:
    """The address changes while the numbers of the first drawing are on their way."""
    page = show()
    held: list[Route] = []
    address = re.compile(r"/trace/.*\?")
    page.route(address, lambda route: held.append(route))
    page.reload()
    wait_until(page, lambda: held)
    page.evaluate("location.hash = '#/attention?row=2'")
    page.wait_for_timeout(100)
    for route in held:
        route.continue_()
    expect(page.locator(".thumb").first).to_be_visible()
    expect(page.locator(".drawn canvas").first).to_be_visible()
    expect(page.locator(".thumb[aria-pressed=true]")).to_have_count(1)
    assert_shown(page, trace["decoder.0.cross_attention.weights"][0])


def test_a_cell_shows_the_products_that_made_it(show: Show, trace: Trace) -> None:
    """Claim 48: q·k, divided by √d_k, behind the softmax."""
    page = show("#/attention?use=cross&head=1&row=1&col=2")
    name = "decoder.0.cross_attention"
    query, key = trace[f"{name}.query"][1, 1], trace[f"{name}.key"][1, 2]
    formula = page.locator(".formula")
    expect(formula).to_contain_text("softmax")
    product = query @ key
    shown = [float(text.replace("−", "-")) for text in formula.locator("mn").all_text_contents()]
    expected = [
        product,
        len(query),
        product / np.sqrt(len(query)),
        trace[f"{name}.weights"][1, 1, 2],
    ]
    assert shown == pytest.approx(expected, rel=6e-3)
    strip = page.locator(".strips canvas").last.get_attribute("aria-label") or ""
    products = [float(text.replace("−", "-")) for text in strip.split(": ")[1].split(", ")]
    assert products == pytest.approx(list(query * key), rel=6e-3, abs=1e-6)


def test_the_keys_move_over_cells_and_open_one(show: Show) -> None:
    page = show("#/attention?use=cross&head=0")
    page.locator("canvas.cells").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "End", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    expect(page).to_have_url(re.compile("row=1&col=5"))
    expect(page.locator(".cell-numbers")).to_be_visible()
    expect(page.locator(".readout")).to_contain_text("→")
    canvas = page.locator("canvas.cells")
    width = "canvas => canvas.clientWidth"
    before = canvas.evaluate(width)
    canvas.focus()
    page.keyboard.press("+")
    wait_until(page, lambda: canvas.evaluate(width) > before)
    page.get_by_role("button", name="Fit the map").click()
    wait_until(page, lambda: canvas.evaluate(width) == before)


def test_lines_show_one_row_at_a_time(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=cross&head=0&view=lines")
    weights = maps(trace, "cross")[0][0]
    n_lines = int((weights.astype(np.float16) >= np.float16(0.02)).sum())
    expect(page.locator("path.line")).to_have_count(n_lines)
    page.locator(".lines .side button").nth(1).click()
    expect(page.locator("path.line:not(.away)")).to_have_count(
        int((weights[1].astype(np.float16) >= np.float16(0.02)).sum())
    )


def test_the_alignment_is_that_of_python(show: Show, trace: Trace) -> None:
    page = show("#/attention?view=links&by=layer-0&words=1")
    mean = maps(trace, "cross")[0].mean(axis=0)[:-1, :-1]
    words = words_of(trace.target_tokens[1:]), words_of(trace.source_tokens[:-1])
    expected = pharaoh(strongest(between_words(mean, *words)))
    expect(page.locator(".links-text")).to_have_text(expected)
    expect(page.locator("path.link")).to_have_count(len(expected.split()))
    page.get_by_label("Which links").select_option(label="both directions")
    fewer = page.locator(".links-text")
    expect(fewer).not_to_have_text(expected)
    assert set((fewer.text_content() or "").split()) < set(expected.split())


def test_the_stored_heads_are_the_default_of_the_alignment(
    show: Show, open_page: Open, trace: Trace
) -> None:
    page = show("#/attention?view=links")
    expect(page.get_by_text("heed choose-heads finds the heads")).to_be_visible()

    def with_heads(route: Route) -> None:
        answer = route.fetch()
        heads = {
            "layer": -1,
            "heads": [1],
            "is_shifted": True,
            "error_rate": 0.125,
            "measure": "hand",
        }
        route.fulfill(response=answer, json=answer.json() | {"alignment_heads": heads})

    page.route("**/api/v1/trace", with_heads)
    page.reload()
    expect(page.locator(".main-card h2")).to_have_text("Alignment by layer 0, head 1")
    expect(page.get_by_text("Error rate 0.125 against hand.")).to_be_visible()
    weights = maps(trace, "cross")[0][1][1:, :-1]
    expect(page.locator(".links-text")).to_have_text(pharaoh(strongest(weights)))


def test_views_are_saved(show: Show, trace: Trace, tmp_path: Path) -> None:
    page = show("#/attention?use=cross&head=0")
    saved = {}
    for kind in ("SVG", "PNG", "CSV", "JSON"):
        with page.expect_download() as found:
            # The first buttons save all heads at a glance.
            page.get_by_role("button", name=f"Save as {kind}").last.click()
        saved[kind] = tmp_path / found.value.suggested_filename
        found.value.save_as(saved[kind])
    assert saved["CSV"].name == "attention-cross-0-0.csv"
    head, *rows = csv.reader(saved["CSV"].read_text(encoding="utf-8").splitlines())
    assert head[1:] == trace.source_tokens
    weights = maps(trace, "cross")[0][0]
    read = np.array([[float(cell) for cell in row[1:]] for row in rows])
    np.testing.assert_allclose(read, weights, atol=1e-3)
    content = json.loads(saved["JSON"].read_text(encoding="utf-8"))
    np.testing.assert_allclose(content["values"], weights, atol=1e-3)
    assert saved["SVG"].read_text(encoding="utf-8").count("<rect") == weights.size + 1
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")


def test_heads_are_sorted_by_entropy(show: Show, trace: Trace) -> None:
    page = show("#/attention?use=encoder")
    page.get_by_label("Order of the heads").select_option("sharp")
    bits = entropy(maps(trace, "encoder")[0]).mean(axis=1)
    expect(page.locator(".thumb b").first).to_have_text(f"0.{bits.argmin()}")
    page.get_by_label("Order of the heads").select_option("flat")
    expect(page.locator(".thumb b").first).to_have_text(f"0.{bits.argmax()}")


def test_a_token_is_marked_in_every_panel(show: Show) -> None:
    page = show("#/attention?use=cross&head=0&row=1")
    page.locator(".detail .tokens .token").nth(2).hover()
    expect(page.locator(".scroller .heads .pointed")).to_have_count(1)
    expect(page.locator(".scroller .heads span").nth(2)).to_have_class(re.compile("pointed"))


HOSTILE = "<img src=x onerror=alert(1)> <b>A</b> man \u202esleeps\u202c in the park."


def test_hostile_pieces_are_text(show: Show) -> None:
    page = show()
    page.get_by_label("Sentence to look into").fill(HOSTILE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".scroller .heads")).to_contain_text("<")
    for view in ("Lines", "Alignment", "Heat map"):
        expect(press(page, view)).to_have_attribute("aria-pressed", "true")
        drawn = {"Lines": ".lines", "Alignment": ".alignment", "Heat map": ".heatmap"}[view]
        expect(page.locator(f".drawn > {drawn}")).to_be_visible()
        markup = ".attention img, .attention :not(.heads span) > b:has-text('A')"
        expect(page.locator(markup)).to_have_count(0)


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_page(show: Show, width: int) -> None:
    for view in ("map", "lines", "links"):
        page = show(
            f"#/attention?view={view}&row=1&col=1", viewport={"width": width, "height": 800}
        )
        wait_until_it_fits(page)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(show: Show, theme: str) -> None:
    for view in ("map", "lines", "links"):
        page = show(f"#/attention?view={view}&row=1&col=1", color_scheme=theme)
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true })")
        expect(page.locator(".thumb").first).to_be_visible()
        assert_accessible(page)


def test_a_source_from_right_to_left_stands_so(show: Show) -> None:
    page = show()

    def in_hebrew(route: Route) -> None:
        answer = route.fetch().json()
        words = ["▁שלום", "▁עולם", "▁מה", "▁נשמע"]
        n_tokens = len(answer["source_tokens"]) - 1
        answer["source_tokens"][:n_tokens] = (words * 3)[:n_tokens]
        route.fulfill(json=answer)

    page.route("**/api/v1/trace", in_hebrew)
    page.evaluate("location.hash = '#/attention?view=links&words=1'")
    page.reload()
    tokens = page.locator(".alignment .tokens")
    expect(tokens.first).to_contain_text("שלום")
    expect(tokens.first).to_have_attribute("dir", "rtl")
    expect(tokens.last).to_have_attribute("dir", "ltr")
    left = "tokens => [...tokens.children].map((token) => token.getBoundingClientRect().left)"
    places = tokens.first.evaluate(left)
    assert places == sorted(places, reverse=True)
    places = tokens.last.evaluate(left)
    assert places == sorted(places)
    path = page.locator("path.link").first
    token = tokens.first.locator(".token").nth(int(path.get_attribute("data-source") or ""))

    def begins_at_its_token() -> bool:
        first, stage = token.bounding_box(), page.locator(".stage").bounding_box()
        assert first and stage
        start = float((path.get_attribute("d") or "").removeprefix("M").split()[0])
        return abs(start - (first["x"] + first["width"] / 2 - stage["x"])) < 1

    wait_until(page, begins_at_its_token)
