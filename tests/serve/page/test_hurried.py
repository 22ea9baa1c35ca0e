"""The page under haste and in bad conditions: a person acts before an answer has come, the browser
keeps nothing, the connection breaks, a file is dropped in the wrong place."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.serve.page.conftest import (
    SENTENCE,
    TRANSLATION,
    Open,
    require_key,
    wait_until,
    wait_until_settled,
)
from tests.serve.page.taught import PAIRS
from tests.serve.page.test_translate import translated
from tests.serve.page.test_words import call

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

FRENCH = {"code": "fr", "name": "French", "targets": ["de", "en"]}
BLOCKED = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, {
        get() { throw new DOMException("The operation is insecure.", "SecurityError"); },
    });"""
FULL = """Storage.prototype.setItem = () => {
    throw new DOMException("There is no room.", "QuotaExceededError");
};"""
TEXT_FILE = {"name": "notes.txt", "mimeType": "text/plain", "buffer": SENTENCE.encode()}


def with_french(page: Page) -> Page:
    """The page of a server that also lists French, from and into the other languages."""

    def add(route: Route) -> None:
        languages = [{**one, "targets": [*one["targets"], "fr"]} for one in route.fetch().json()]
        route.fulfill(json=[*languages, FRENCH])

    page.route("**/api/v1/languages", add)
    page.reload()
    expect(page.locator("#from option")).to_have_count(4)
    return page


def held_translations(page: Page) -> list[Route]:
    """The requests for translations from now on, which get no answer until they are continued."""
    held: list[Route] = []
    page.route("**/api/v1/translate", lambda route: held.append(route))
    return held


def test_a_text_that_was_just_typed_is_not_lost_when_the_languages_are_swapped(
    open_page: Open,
) -> None:
    page = translated(open_page())
    held_translations(page)
    typed = "A woman runs at home."
    page.fill("#source", typed)
    page.keyboard.press("Alt+Shift+S")
    expect(page.locator("#from")).to_have_value("de")
    expect(page.locator("#source")).to_have_value(typed)


def test_a_translation_into_the_language_before_is_not_swapped(open_page: Open) -> None:
    page = translated(with_french(open_page()))
    held = held_translations(page)
    page.select_option("#from", "en")
    page.select_option("#to", "fr")
    wait_until(page, lambda: held)
    page.click("#swap")
    expect(page.locator("#from")).to_have_value("fr")
    expect(page.locator("#source")).to_have_value(SENTENCE)  # not the German one


def test_an_alternative_in_the_language_before_does_not_stop_the_new_translation(
    open_page: Open,
) -> None:
    page = translated(with_french(open_page()))
    held = held_translations(page)
    page.select_option("#to", "fr")
    wait_until(page, lambda: held)
    page.locator("#alternatives-list button").first.click()
    page.wait_for_timeout(100)
    assert len(held) == 1
    segment = {"source": SENTENCE, "text": "Un enfant dort.", "score": -1.0, "status": "ok"}
    reply = {"text": segment["text"], "source": "en", "confidence": 1.0, "model": "en-fr"}
    reply |= {"alternatives": [], "doubts": [], "segments": [segment]}
    held[0].fulfill(json={"translations": [reply], "seconds": 0.1, "n_tokens": 4})
    expect(page.locator("#translation")).to_have_text("Un enfant dort.")


def test_a_term_typed_just_before_the_languages_change_is_kept(open_page: Open) -> None:
    page = translated(open_page())
    page.select_option("#from", "en")
    page.get_by_label("Term", exact=True).fill("park")
    page.get_by_label("Its translation").first.fill("Garten")
    page.select_option("#from", "de")
    expect(page.get_by_label("Term", exact=True)).to_have_value("")
    stored = json.loads(page.evaluate("localStorage.getItem('heed.glossary')"))
    assert stored == {"en-de": [["park", "Garten"]]}


@pytest.mark.parametrize("condition", [BLOCKED, FULL], ids=["blocked", "full"])
def test_the_page_works_where_the_browser_keeps_nothing(open_page: Open, condition: str) -> None:
    page = open_page()
    page.add_init_script(condition)
    page.reload()
    translated(page)
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.click("#swap")
    expect(page.locator("#source")).to_have_value(TRANSLATION)
    page.get_by_label("Term", exact=True).fill("Park")
    page.get_by_label("Its translation").first.fill("garden")
    page.click("#swap")
    expect(page.locator("#from")).to_have_value("en")
    page.click("#swap")  # its terms stay as long as the page
    expect(page.get_by_label("Term", exact=True).first).to_have_value("Park")


def test_damaged_values_of_the_browser_are_as_good_as_none(open_page: Open) -> None:
    page = open_page()
    page.evaluate("""() => {
        for (const name of ["languages", "glossary", "theme"])
            localStorage.setItem(`heed.${name}`, '{"en');
    }""")
    page.reload()
    translated(page)


def test_a_connection_that_breaks_within_an_answer_is_told_in_words(open_page: Open) -> None:
    page = translated(open_page())
    page.evaluate("""() => {
        const broken = (control) => control.error(new TypeError("network error"));
        window.fetch = async () => new Response(new ReadableStream({ start: broken }));
    }""")
    for text in (PAIRS[0][0], " ".join(en for en, _ in PAIRS)):  # at once, and as a stream
        page.fill("#source", text)
        expect(page.locator("#banner")).to_contain_text("The server does not answer.")
        page.get_by_role("button", name="Close").click()
        expect(page.locator("#banner")).to_be_hidden()


def test_a_file_keeps_the_letters_of_its_name(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    page.select_option("#from", "en")
    page.set_input_files("#file", files=[{**TEXT_FILE, "name": "Отчёт 1.txt"}])
    link = page.get_by_role("link", name="Download Отчёт_1.de.txt")
    with page.expect_download() as download:
        link.click()
    assert download.value.suggested_filename == "Отчёт_1.de.txt"


def test_a_file_for_a_server_with_keys_asks_for_the_key(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    require_key(page, "**/api/v1/files")
    page.set_input_files("#file", files=[TEXT_FILE])
    page.get_by_label("Key", exact=True).fill("secret")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("link", name=re.compile("^Download notes"))).to_be_visible()
    complaints.clear()


@pytest.mark.parametrize("screen", ["attention", "steps", "decoding", "causes", "positions"])
def test_a_screen_of_a_server_with_keys_asks_for_the_key(
    open_page: Open, complaints: list[str], screen: str
) -> None:
    page = open_page(f"#/{screen}")
    expect(page.locator("#inside .screen")).to_be_visible()
    require_key(page, "**/api/v1/**")
    if screen == "positions":
        page.evaluate("location.hash = '#/positions?view=pieces'")
    else:
        page.get_by_label("Sentence to look into").fill(SENTENCE)
        page.get_by_role("button", name="Look").click()
    page.get_by_label("Key", exact=True).fill("secret")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Key", exact=True)).to_have_count(0)
    expect(page.locator("#inside .screen")).to_be_visible()
    wait_until_settled(page)
    expect(page.locator("#inside")).not_to_contain_text("Invalid API key")
    complaints.clear()


def dropped(page: Page) -> Any:
    """What a person drops: one file."""
    return page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["A child sleeps."], "notes.txt"));
            return transfer;
        }"""
    )


def test_files_and_keys_of_the_translator_do_nothing_on_another_screen(open_page: Open) -> None:
    page = translated(open_page())
    page.evaluate("location.hash = '#/attention'")
    expect(page.locator("#translator")).to_be_hidden()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    transfer = dropped(page)
    page.dispatch_event("body", "dragover", {"dataTransfer": transfer})
    expect(page.locator("#drop")).to_be_hidden()
    page.dispatch_event("body", "drop", {"dataTransfer": transfer})
    page.keyboard.press("Alt+Shift+S")
    page.wait_for_timeout(300)
    assert not [url for url in asked if url.endswith(("/files", "/translate"))]
    page.evaluate("location.hash = '#/translate'")
    expect(page.locator("#document")).to_be_hidden()
    expect(page.locator("#source")).to_have_value(SENTENCE)


def test_keys_of_the_browser_keep_their_meaning_on_a_word(open_page: Open) -> None:
    page = translated(open_page())
    page.keyboard.press("Alt+Shift+T")
    page.evaluate("""() => {
        window.taken = [];
        addEventListener("keydown", (event) => {
            if (event.defaultPrevented) taken.push(event.key);
            event.preventDefault(); // the test stays on this page
        });
    }""")
    for keys in ("Alt+ArrowLeft", "Control+Home", "Control+End", "ArrowRight"):
        page.keyboard.press(keys)
    assert page.evaluate("taken") == ["ArrowRight"]
    with page.expect_request("**/api/v1/translate"):
        page.keyboard.press("Control+Enter")
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    expect(page.locator("#translation .open")).to_have_count(0)


def test_very_long_texts_are_not_compared_word_by_word(open_page: Open) -> None:
    page = open_page()
    base, text = "a " * 20_000, "b " * 20_000
    assert call(page, "words.js", "differences", base, text, "en") == [
        {"text": text, "isChanged": False}
    ]
