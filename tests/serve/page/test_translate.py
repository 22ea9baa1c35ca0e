"""What a person does on the page, in a browser, against a real server."""

import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.serve.page.conftest import SENTENCE, TRANSLATION, Open, wait_until_settled


def word(page: Page, text: str) -> Any:
    return page.locator("#translation [data-word]", has_text=text).first


def translated(page: Page, text: str = SENTENCE, translation: str = TRANSLATION) -> Page:
    page.fill("#source", text)
    expect(page.locator("#translation")).to_have_text(translation)
    return page


def assert_accessible(page: Page) -> None:
    wait_until_settled(page)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_text_is_translated_while_it_is_typed(open_page: Open) -> None:
    page = open_page()
    page.locator("#source").press_sequentially(SENTENCE)
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    expect(page.locator("#count")).to_have_text(f"{len(SENTENCE)} / 2,000")
    expect(page.locator("#timing")).to_have_text(re.compile(r"^\d+ tokens · [\d.]+ m?s · \w+$"))
    expect(page.locator("#detected")).to_have_text(re.compile(r"^English\??\d+(\.\d+)?%$"))


def test_other_translations_stand_below_with_their_differences(open_page: Open) -> None:
    page = translated(open_page())
    rows = page.locator("#alternatives-list li")
    expect(rows.first).to_contain_text(TRANSLATION)
    expect(page.locator("#alternatives-list mark").first).to_be_visible()
    other = rows.nth(1).locator(".words").inner_text()
    assert other != TRANSLATION
    rows.nth(1).locator("button").click()
    expect(page.locator("#translation")).to_have_text(other)
    # What was first is offered again.
    expect(page.locator("#alternatives-list button", has_text=TRANSLATION)).to_have_count(1)


def test_another_word_keeps_what_is_before_it_and_can_be_undone(open_page: Open) -> None:
    page = translated(open_page())
    word(page, "schläft").click()
    options = page.locator("#choices [role=option]")
    expect(options.first).to_be_focused()
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(options.first.locator(".number")).to_have_text(re.compile("%$"))
    chosen = options.nth(1).locator(".word").inner_text()
    options.nth(1).click()
    pattern = re.compile(f"^Ein Kind ?{re.escape(chosen)}")
    expect(page.locator("#translation")).to_have_text(pattern)
    expect(page.locator("#choices")).to_be_hidden()
    wait_until_settled(page)
    other = page.locator("#translation").inner_text()
    page.click("#undo")
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    page.click("#redo")
    expect(page.locator("#translation")).to_have_text(other)
    expect(page.locator("#redo")).to_be_disabled()


def test_a_word_shows_where_it_comes_from_and_a_source_word_where_it_went(
    open_page: Open,
) -> None:
    page = translated(open_page())
    word(page, "Kind").hover()
    expect(page.locator("#mirror .tinted", has_text="child")).to_have_count(1)
    box = page.locator("#mirror [data-word]", has_text="child").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2)
    expect(page.locator("#translation .tinted", has_text="Kind")).to_have_count(1)
    page.mouse.move(1, 1)
    expect(page.locator(".tinted")).to_have_count(0)


def test_everything_is_reached_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Alt+Shift+E")
    page.keyboard.type(SENTENCE)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    page.keyboard.press("Alt+Shift+T")
    expect(word(page, "Ein")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(word(page, "schläft")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(word(page, "schläft")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#translation")).not_to_have_text(TRANSLATION)
    page.keyboard.press("Control+z")
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    page.keyboard.press("Alt+Shift+S")
    expect(page.locator("#source")).to_have_value(TRANSLATION)
    page.keyboard.press("Alt+Shift+T")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_tab_visits_each_control_once_and_comes_back(open_page: Open) -> None:
    page = translated(open_page())
    page.locator(".skip").focus()
    visited: list[str] = []
    while len(visited) < 40 and "BODY" not in visited:
        page.keyboard.press("Tab")
        visited.append(
            page.evaluate("(e => e.id || e.dataset.word || e.tagName)(document.activeElement)")
        )
    wanted = ["show-models", "show-help", "theme", "from", "swap", "to", "source", "clear"]
    wanted += ["choose-file", "0", "copy", "show-request"]
    assert [name for name in visited if name in wanted] == wanted


def test_axe_finds_nothing_to_mend(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    assert_accessible(page)
    translated(page)
    word(page, "schläft").click()
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    assert_accessible(page)


def test_the_text_is_in_no_address_no_history_and_no_lasting_store(open_page: Open) -> None:
    page = open_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    translated(page)
    word(page, "Kind").click()
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    assert len(asked) >= 2
    stored = page.evaluate("JSON.stringify({...localStorage})")
    title = page.evaluate("document.title")
    state = page.evaluate("JSON.stringify(history.state)")
    for place in (*asked, page.url, stored, title, state):
        assert not re.search("child|Kind", place)
    page.reload()
    expect(page.locator("#source")).to_have_value(SENTENCE)  # this tab still has it
    page.context.new_page().goto(page.url)
    expect(page.context.pages[-1].locator("#source")).to_have_value("")


def test_an_error_shows_the_servers_sentence_and_a_way_on(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    sentence = "The server has too much to do. Try again in 3 seconds."
    body = {"error": {"code": "busy", "sentence": sentence, "field": "", "request_id": "1"}}
    page.route("**/api/v1/translate", lambda route: route.fulfill(status=503, json=body))
    page.fill("#source", SENTENCE)
    expect(page.locator("#banner")).to_contain_text(sentence)
    assert_accessible(page)
    page.unroute("**/api/v1/translate")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    assert len(complaints) == 1  # the browser's own line about the 503
    complaints.clear()


def test_a_server_that_is_back_is_asked_again_and_the_focus_stays(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    page.clock.install()
    page.route("**/api/v1/translate", lambda route: route.abort())
    page.fill("#source", SENTENCE)
    page.clock.run_for(1000)
    expect(page.locator("#banner")).to_contain_text("The server does not answer.")
    button = page.get_by_role("button", name="Try again")
    button.focus()
    with page.expect_event("requestfailed"):
        page.keyboard.press("Enter")
    wait_until_settled(page)
    expect(button).to_be_focused()
    page.unroute("**/api/v1/translate")
    page.clock.run_for(10_000)
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    expect(page.locator("#banner")).to_be_hidden()
    expect(page.locator("#source")).to_be_focused()
    complaints.clear()
