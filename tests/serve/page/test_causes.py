"""The screen of causes: what is off there is off in Python, and has zeros for its weights."""

import re

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.serve.page.conftest import (
    SENTENCE,
    TRANSLATION,
    Open,
    rows_of,
    wait_until_it_fits,
    wait_until_settled,
)

from heed.explain.causes.attribution import erasure
from heed.explain.causes.effects import attention_under, effect_on, importance
from heed.explain.causes.lens import logit_lens
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Head
from heed.translate.translator import load

CROSS = "decoder.0.cross_attention"


def opened(open_page: Open, address: str = "#/causes", **options: object) -> Page:
    page = open_page(address, **options)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    return page


@pytest.fixture(scope="module")
def pair(models: tuple[str, str]) -> Pair:
    translator = load(models[0], threads=1)
    return Pair.of_trace(translator, translator.trace(SENTENCE))


def after(page: Page) -> list[float]:
    """Probabilities with the changes, as the table shows them."""
    cells = page.locator(".probabilities .after").all_text_contents()
    return [float(cell.strip("<% ")) / 100 for cell in cells]


def test_ablation_on_the_page_is_that_of_python_and_of_zeros(open_page: Open, pair: Pair) -> None:
    """Claims 63, 94: and the probabilities that follow are shown."""
    page = opened(open_page)
    page.get_by_role("button", name="Decoder 0, cross-attention, head 1").click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    python = effect_on(pair, [Head(attention=CROSS, head=1)])
    assert after(page) == pytest.approx(np.exp(python.after), abs=1.1e-3)
    expect(page.locator(".said.new")).to_have_text(python.new_translation)
    weight = pair.network.get_parameter(f"{CROSS}.project_out.weight")
    with torch.no_grad():
        before = weight.clone()
        weight[:, weight.shape[1] // 2 :] = 0
        zeroed = pair.token_log_probs()[0].exp().numpy()
        weight.copy_(before)
    assert after(page) == pytest.approx(zeroed, abs=1.1e-3)


def test_parts_are_named_with_what_is_lost_without_them(open_page: Open, pair: Pair) -> None:
    page = opened(open_page)
    lost = importance(pair).heads[CROSS][0].sum()
    button = page.get_by_role("button", name="Decoder 0, cross-attention, head 0")
    expect(button).to_have_attribute("aria-label", re.compile("nats without it"))
    shown = re.search(r": ([+−]?)([\d.]+) nats", button.get_attribute("aria-label") or "")
    assert shown
    assert float(shown[2]) * (-1 if shown[1] == "−" else 1) == pytest.approx(-lost, abs=0.02)


def test_the_scale_and_the_button_beside_it_are_on_one_line(open_page: Open) -> None:
    page = opened(open_page)
    button = page.get_by_role("button", name="As it was")
    expect(button).to_be_visible()
    boxes = [each.bounding_box() for each in (page.locator(".causes-parts .scale"), button)]
    middles = [box["y"] + box["height"] / 2 for box in boxes if box]
    assert len(middles) == 2
    assert abs(middles[0] - middles[1]) <= 1  # a pixel, for rounding


def test_a_scale_of_1_and_the_button_bring_the_translation_back(open_page: Open) -> None:
    page = opened(open_page)
    page.get_by_role("button", name="Layer Decoder 0").click()
    expect(page.locator(".said.new")).not_to_have_text(TRANSLATION)
    page.get_by_label("Scale of what is pressed").fill("1")
    expect(page.locator(".said.new")).to_have_text(TRANSLATION)
    page.get_by_role("button", name="As it was").click()
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()
    expect(page.get_by_role("button", name="As it was")).to_be_disabled()


def test_source_tokens_features_and_patches(open_page: Open, pair: Pair) -> None:
    shown: dict[str, list[float]] = {}
    page = opened(open_page)
    page.get_by_label("Source token 2").click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    page.get_by_label("feature", exact=False).last.click()
    page.get_by_role("button", name="As it was").click()
    page.get_by_text("Patch with another sentence").click()
    page.get_by_label("Another sentence", exact=True).fill("A woman runs at home.")
    page.get_by_role("button", name="Read it").click()
    page.get_by_role("button", name="Put it in").click()
    expect(page.locator(".said.new")).to_have_text(re.compile("Eine Frau"))
    # What reads the memory reads another sentence's: the maps before and after, and both numbers.
    page.get_by_text("Attention with the changes").click()
    for when in ("Before", "After", "Difference"):
        page.get_by_role("button", name=when, exact=True).click()
        expect(page.locator(".attention-change canvas.cells")).to_have_attribute(
            "aria-label", re.compile(f": {when.lower()}\\.")
        )
        rows = rows_of(page.locator(".attention-change .twin"))
        shown[when] = [float(cell.replace("−", "-")) for row in rows for cell in row[1:]]
    weights = attention_under(pair, [], CROSS).mean(axis=0)
    assert shown["Before"] == pytest.approx(weights.ravel(), rel=6e-3, abs=1e-4)
    assert max(map(abs, shown["Difference"])) > 0.01
    difference = np.subtract(shown["After"], shown["Before"])
    assert shown["Difference"] == pytest.approx(difference, abs=5e-3)
    page.get_by_label("Position in this sentence").select_option(index=2)
    page.get_by_role("button", name="Put it in").click()
    page.get_by_role("button", name="Remove Memory of").click()
    page.get_by_role("button", name="Remove Memory at").click()
    expect(page.get_by_text("Nothing is changed yet")).to_be_visible()


def test_attribution_shows_the_numbers_of_python(open_page: Open, pair: Pair) -> None:
    page = opened(open_page, "#/causes?view=attribution")
    page.get_by_role("group", name="Explain").get_by_role("button").nth(3).click()
    expect(page).to_have_url(re.compile("at=2"))
    amounts = page.locator(".amounts[data-token='2']")
    expect(amounts).to_be_visible()
    shown = amounts.locator(".tokens").first.locator(".amount").all_text_contents()
    numbers = [float(number.replace("−", "-")) for number in shown]
    assert numbers == pytest.approx(erasure(pair).source[2], abs=0.006)
    for method in ("gradient", "integrated", "masking", "deletion"):
        page.get_by_label("Method").select_option(method)
        expect(page).to_have_url(re.compile(f"method={method}"))
        expect(page.locator(".attribution [role=status]")).not_to_have_text("Computing …")


def test_layers_show_the_numbers_of_python(open_page: Open, pair: Pair) -> None:
    page = opened(open_page, "#/causes?view=layers")
    (last,) = logit_lens(pair)
    expect(page.locator(".guess").first).to_be_visible()
    shown = page.locator(".guess small").all_text_contents()
    assert [float(one.strip("<% ")) / 100 for one in shown] == pytest.approx(
        last.values[:, 0], abs=1.1e-3
    )
    page.locator(".guess").nth(2).click()
    expect(page.locator(".guesses li")).to_have_count(8)
    page.get_by_role("button", name="Encoder", exact=True).click()
    expect(page.locator(".guess")).to_have_count(len(pair.source_tokens))


def test_a_part_that_the_model_lacks_is_said_in_words(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page("#/causes")
    page.route("**/importance*", lambda route: route.fulfill(status=500, body="{}"))
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("The server answered with the status 500.")).to_be_visible()
    complaints.clear()  # the browser logs the status


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_mend_in_any_view(open_page: Open, theme: str) -> None:
    page = opened(open_page, color_scheme=theme)
    page.get_by_role("button", name="Decoder 0, cross-attention, head 1").click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    shown = {"Switch off": ".parts", "Attribution": ".attribution canvas.cells"}
    shown["Layer by layer"] = ".guess"
    for view in shown:
        page.get_by_role("button", name=view).click()
        expect(page.locator(shown[view]).first).to_be_visible()
        wait_until_settled(page)
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()


def test_a_phone_shows_it_without_a_sideways_scroll(open_page: Open) -> None:
    page = opened(open_page, viewport={"width": 390, "height": 800})
    page.get_by_role("button", name="Layer Decoder 0").click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    wait_until_it_fits(page)
