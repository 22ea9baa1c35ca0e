"""The screens that look into a sentence: their addresses, the sentence, and one map of numbers."""

import re

import pytest
from playwright.sync_api import Page, Route, expect
from tests.serve.page.conftest import (
    SENTENCE,
    TRANSLATION,
    Open,
    copied,
    rows_of,
    wait_until,
)

from heed.translate.translator import load


def look(page: Page, sentence: str = SENTENCE) -> None:
    page.get_by_label("Sentence to look into").fill(sentence)
    page.get_by_role("button", name="Look").click()
    expect(page.locator("canvas").first).to_be_visible()


def test_a_screen_has_an_address_without_the_text(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("link", name="Attention").click()
    look(page)
    page.get_by_role("button", name="Layer 0, head 1").click()
    expect(page).to_have_url(re.compile(r"#/attention\?layer=0&head=1$"))
    page.get_by_role("link", name="Translate").click()
    expect(page.get_by_label("Text to translate")).to_be_visible()
    page.go_back()
    expect(page.locator("canvas").first).to_be_visible()
    expect(page).to_have_title("Attention · heed")


def test_the_sentence_of_the_translator_is_looked_into(open_page: Open) -> None:
    page = open_page()
    page.get_by_label("Text to translate").fill(SENTENCE)
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    page.get_by_role("link", name="Attention").click()
    expect(page.locator("canvas").first).to_be_visible()
    expect(page.get_by_label("Sentence to look into")).to_have_value(SENTENCE)


def test_what_is_typed_before_the_languages_come_stays(open_page: Open) -> None:
    held: list[Route] = []
    page = open_page("#/attention")
    page.route("**/languages", lambda route: held.append(route))
    page.reload()
    sentence = page.get_by_label("Sentence to look into")
    sentence.fill(SENTENCE)
    wait_until(page, lambda: held)
    held.pop().continue_()
    expect(page.get_by_role("combobox", name="Languages")).to_have_value("en de")
    expect(sentence).to_have_value(SENTENCE)


def test_the_numbers_of_a_map_are_those_of_a_trace(
    open_page: Open, models: tuple[str, str]
) -> None:
    page = open_page("#/attention")
    look(page)
    cells = [cell for row in rows_of(page.locator(".twin").first) for cell in row[1:]]
    weights = load(models[0]).trace(SENTENCE)["decoder.0.cross_attention.weights"][0]
    # Three digits of numbers that came in 16 bits.
    assert [float(cell) for cell in cells] == pytest.approx(weights.ravel(), rel=6e-3, abs=1e-6)


def test_a_screen_whose_files_do_not_come_says_so(open_page: Open, complaints: list[str]) -> None:
    page = open_page()
    page.route("**/steps.js", lambda route: route.abort())
    page.get_by_role("link", name="Steps").click()
    expect(page.get_by_role("alert").last).to_contain_text("The files of this screen did not come")
    page.unroute("**/steps.js")
    page.get_by_role("button", name="Load again").click()
    expect(page.get_by_label("Sentence to look into")).to_be_visible()
    complaints.clear()


def test_a_screen_comes_by_itself_when_the_server_is_back(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    page.fill("#source", SENTENCE)
    page.clock.install()
    gone = "**/{ready,steps.js,attention.js}"
    page.route(gone, lambda route: route.abort())
    page.get_by_role("link", name="Attention").click()
    expect(page.get_by_role("alert").last).to_contain_text("The files of this screen did not come")
    page.get_by_role("link", name="Steps").click()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/ready")):
        page.clock.run_for(6000)
    page.unroute(gone)
    page.clock.run_for(6000)
    expect(page.get_by_label("Sentence to look into")).to_be_visible()
    page.get_by_role("link", name="Translate").click()
    expect(page.locator("#source")).to_have_value(SENTENCE)
    complaints.clear()


def test_styles_of_a_screen_are_in_force_on_that_screen_only(open_page: Open) -> None:
    page = open_page("#/steps")
    enabled = """() => [...document.head.querySelectorAll("[data-name]")]
        .filter(({ sheet }) => sheet && !sheet.disabled)
        .map(({ dataset }) => dataset.name).sort()"""
    expect(page.get_by_label("Sentence to look into")).to_be_visible()
    wait_until(page, lambda: page.evaluate(enabled) == ["inside", "steps"])
    page.get_by_role("link", name="Attention").click()
    expect(page.locator(".attention")).to_be_visible()
    wait_until(page, lambda: page.evaluate(enabled) == ["attention", "inside"])
    page.get_by_role("link", name="Translate").click()
    expect(page.get_by_label("Text to translate")).to_be_visible()
    wait_until(page, lambda: page.evaluate(enabled) == ["inside"])


def test_a_link_with_the_sentence_is_copied_on_request_only(open_page: Open) -> None:
    page = open_page("#/steps?node=memory")
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_label("Translation to force").fill("Ein Kind.")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".step-why")).to_be_visible()
    assert "text" not in page.url
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy a link with the sentence").click()
    link = copied(page)
    other = open_page(link[link.index("#") :])
    expect(other.get_by_label("Sentence to look into")).to_have_value(SENTENCE)
    expect(other.locator(".step-tensor h2")).to_have_text("memory")
    expect(other.get_by_label("Translation to force")).to_have_value("Ein Kind.")
    expect(other).to_have_url(re.compile(r"#/steps\?node=memory$"))
