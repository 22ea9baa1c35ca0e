"""The page in every form: narrow, dark, right to left, long texts, files, dialogs.

What a person does first is in `test_translate.py`.
"""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Page, Request, Route, expect
from tests.serve.page.conftest import (
    SENTENCE,
    TRANSLATION,
    Open,
    copied,
    require_key,
    wait_until,
    wait_until_it_fits,
    wait_until_settled,
)
from tests.serve.page.taught import PAIRS
from tests.serve.page.test_translate import assert_accessible, translated, word

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

PHONE = {"width": 360, "height": 740}
LONG = " ".join(en for en, _ in PAIRS)
LONG_TRANSLATION = " ".join(de for _, de in PAIRS)


def fulfill(page: Page, path: str, **change: Any) -> None:
    """Answer `path` as the server does, with something changed in the first translation."""

    def answer(route: Route) -> None:
        reply = route.fetch().json()
        reply["translations"][0].update(change)
        route.fulfill(json=reply)

    page.route(f"**/api/v1/{path}", answer)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_both_themes_and_all_dialogs(open_page: Open, theme: str) -> None:
    page = translated(open_page(color_scheme=theme))
    assert_accessible(page)
    for name in ("models", "help", "request"):
        page.click(f"#show-{name}")
        expect(page.locator(f"#{name}")).to_be_visible()
        assert_accessible(page)
        page.keyboard.press("Escape")
        expect(page.locator(f"#{name}")).to_be_hidden()
        expect(page.locator(f"#show-{name}")).to_be_focused()


def test_the_theme_follows_the_system_until_one_is_chosen(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    html = page.locator("html")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")
    expect(html).to_have_attribute("data-theme", "light")
    expect(html).not_to_have_css("background-color", dark)
    light = page.evaluate(paper)
    page.reload()
    expect(html).to_have_css("background-color", light)
    page.click("#theme")
    expect(html).to_have_css("background-color", dark)
    page.click("#theme")  # as the system
    page.emulate_media(color_scheme="light")
    expect(html).to_have_css("background-color", light)


def test_a_phone_needs_no_sideways_scrolling(open_page: Open) -> None:
    page = open_page(viewport=PHONE, has_touch=True, is_mobile=True)

    wait_until_it_fits(page)
    translated(page)
    word(page, "schläft").tap()
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    wait_until_it_fits(page)
    page.keyboard.press("Escape")
    page.fill("#source", "Donaudampfschifffahrtsgesellschaft" * 9)
    expect(page.locator("#translation [data-word]").first).to_be_visible()
    wait_until_it_fits(page)
    for name in ("models", "help", "request"):
        page.click(f"#show-{name}")
        expect(page.locator(f"#{name}")).to_be_visible()
        wait_until_it_fits(page)
        assert_accessible(page)
        page.keyboard.press("Escape")
        expect(page.locator(f"#{name}")).to_be_hidden()


def test_right_to_left_texts_run_from_the_right(open_page: Open) -> None:
    page = open_page()
    hebrew = "ילד ישן בפארק. ילד."
    fulfill(page, "translate", text="طفل ينام في الحديقة.", segments=[], doubts=[], alternatives=[])
    page.fill("#source", hebrew)
    expect(page.locator("#translation")).to_have_text("طفل ينام في الحديقة.")
    expect(page.locator("#source")).to_have_css("direction", "rtl")
    expect(page.locator("#translation")).to_have_css("direction", "rtl")


def test_words_of_a_right_to_left_translation_follow_the_arrow_that_points_at_them(
    open_page: Open,
) -> None:
    page = open_page()
    text = "طفل ينام هنا"
    segment = {"source": SENTENCE, "text": text, "score": -1.0, "status": "ok"}
    fulfill(page, "translate", text=text, segments=[segment], doubts=[], alternatives=[])
    page.fill("#source", SENTENCE)
    expect(page.locator("#translation")).to_have_text(text)
    page.keyboard.press("Alt+Shift+T")
    page.keyboard.press("ArrowLeft")
    expect(word(page, "ينام")).to_be_focused()


def test_a_long_text_arrives_sentence_by_sentence(open_page: Open) -> None:
    page = open_page()
    with page.expect_request("**/api/v1/translate/stream"):
        page.fill("#source", LONG)
    expect(page.locator("#translation")).to_have_text(LONG_TRANSLATION)
    expect(page.locator("#timing")).to_have_text(re.compile("tokens"))
    word(page, "läuft").click()
    expect(page.locator("#choices [role=option]").first).to_be_focused()
    page.keyboard.press("Escape")
    rows = page.locator("#alternatives-list li")
    expect(rows.first).to_contain_text("läuft")  # of this sentence, not of the whole text
    assert len(rows.first.locator(".words").inner_text()) < 40


def test_a_sentence_of_a_long_text_is_chosen_anew_and_the_others_stay(open_page: Open) -> None:
    page = open_page()
    page.fill("#source", f"{SENTENCE} {SENTENCE}\n\n{SENTENCE}")
    whole = f"{TRANSLATION} {TRANSLATION}\n\n{TRANSLATION}"
    expect(page.locator("#translation")).to_have_text(whole)
    page.locator("#translation [data-segment='1']", has_text="Kind").click()
    options = page.locator("#choices [role=option]")
    expect(options.first).to_be_focused()
    options.nth(1).click()
    pattern = f"^{TRANSLATION} (.+)\n\n{TRANSLATION}$"
    translation = page.locator("#translation")
    expect(translation).not_to_have_text(whole)
    wait_until(page, lambda: re.match(pattern, translation.inner_text()))


def test_a_late_answer_to_an_earlier_text_is_not_shown(open_page: Open) -> None:
    page = open_page()
    held: list[Route] = []
    page.route("**/api/v1/translate", lambda route: held.append(route))
    page.fill("#source", "A child")
    expect(page.locator("#busy")).to_be_visible()
    wait_until(page, lambda: len(held) == 1)
    page.unroute("**/api/v1/translate")
    translated(page)
    with contextlib.suppress(Error):  # the page has closed the connection
        held[0].fulfill(json={"translations": [{"text": "late", "segments": [], "doubts": []}]})
    page.wait_for_timeout(200)
    expect(page.locator("#translation")).to_have_text(TRANSLATION)


def test_an_alternative_of_the_text_before_does_not_stop_the_new_one(open_page: Open) -> None:
    page = translated(open_page())
    held: list[Route] = []
    page.route(
        "**/api/v1/translate", lambda route: route.fallback() if held else held.append(route)
    )
    text, translation = PAIRS[0]
    page.fill("#source", text)
    wait_until(page, lambda: len(held) == 1)
    page.locator("#alternatives-list button").first.click()
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    held[0].continue_()
    expect(page.locator("#translation")).to_have_text(translation)


def test_the_swap_button_swaps_languages_and_texts(open_page: Open) -> None:
    page = translated(open_page())
    page.click("#swap")
    expect(page.locator("#source")).to_have_value(TRANSLATION)
    expect(page.locator("#from")).to_have_value("de")
    expect(page.locator("#to")).to_have_value("en")
    expect(page.locator("#translation")).to_have_text(SENTENCE)


def test_a_text_in_the_target_language_is_translated_into_another(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#to")).to_have_value("de")
    page.fill("#source", TRANSLATION)
    expect(page.locator("#to")).to_have_value("en")
    expect(page.locator("#translation")).to_have_text(SENTENCE)


def test_doubts_are_underlined_and_say_why(open_page: Open) -> None:
    page = open_page()
    doubts = [
        {"kind": "low_probability", "start": 9, "end": 16, "sentence": "Only 12 % probable."},
        {"kind": "split", "start": None, "end": None, "sentence": "It was too long."},
    ]
    fulfill(page, "translate", doubts=doubts)
    translated(page)
    expect(page.locator("#translation .doubtful")).to_have_text("schläft")
    expect(page.locator("#notes")).to_have_text("It was too long.")
    expect(page.locator("#next-doubt")).to_have_text("1 doubtful word")
    word(page, "schläft").hover()
    expect(page.locator("#reason")).to_contain_text("Only 12 % probable.")
    page.mouse.move(1, 1)
    expect(page.locator("#reason")).to_be_hidden()
    page.keyboard.press("Alt+Shift+D")
    expect(word(page, "schläft")).to_be_focused()
    expect(page.locator("#reason")).to_be_visible()
    expect(word(page, "schläft")).to_have_attribute("aria-describedby", "reason")
    assert_accessible(page)


def test_the_place_of_a_doubt_is_right_behind_an_emoji(open_page: Open) -> None:
    page = open_page()
    segment = {"source": SENTENCE, "text": "😀 Ein Kind", "score": -1.0, "status": "ok"}
    doubts = [{"kind": "low_probability", "start": 6, "end": 10, "sentence": "Why."}]
    change = {"text": "😀 Ein Kind", "segments": [segment], "doubts": doubts, "alternatives": []}
    fulfill(page, "translate", **change)
    page.fill("#source", SENTENCE)
    expect(page.locator("#translation .doubtful")).to_have_text("Kind")


def test_terms_of_the_glossary_are_sent_and_stay_in_this_browser(open_page: Open) -> None:
    page = translated(open_page())
    page.get_by_label("Term", exact=True).fill("park")
    with page.expect_request("**/api/v1/translate") as request:
        page.get_by_label("Its translation").first.fill("Garten")
    assert request.value.post_data_json["glossary"] == {"park": "Garten"}
    page.reload()
    expect(page.get_by_label("Term", exact=True).first).to_have_value("park")
    stored = json.loads(page.evaluate("localStorage.getItem('heed.glossary')"))
    assert stored == {"en-de": [["park", "Garten"]]}
    page.get_by_label("Remove the term").first.click()
    wait_until(page, lambda: page.evaluate("localStorage.getItem('heed.glossary')") == "{}")


def test_terms_of_a_language_that_is_detected_are_sent_once_it_is_known(open_page: Open) -> None:
    page = open_page()
    french = {"code": "fr", "name": "French", "targets": ["de"]}  # German has two sources
    page.route(
        "**/api/v1/languages",
        lambda route: route.fulfill(json=[*route.fetch().json(), french]),
    )
    stored = json.dumps({"en-de": [["park", "Garten"]]})
    page.evaluate(f"localStorage.setItem('heed.glossary', '{stored}')")
    page.reload()
    expect(page.locator("#from option")).to_have_count(4)
    sent: list[Any] = []

    def note(request: Request) -> None:
        if request.url.endswith("/translate"):
            sent.append(request.post_data_json.get("glossary"))

    page.on("request", note)
    page.fill("#source", SENTENCE)
    wait_until(page, lambda: len(sent) == 2)
    wait_until_settled(page)
    page.fill("#source", PAIRS[0][0])
    wait_until(page, lambda: len(sent) == 3)
    wait_until_settled(page)
    terms = {"park": "Garten"}
    assert sent == [None, terms, terms]


def test_a_chosen_file_is_translated_and_offered(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    page.select_option("#from", "en")
    file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": SENTENCE.encode()}
    page.set_input_files("#file", files=[file])
    link = page.get_by_role("link", name=re.compile("^Download notes"))
    expect(link).to_be_focused()
    with page.expect_download() as download:
        link.click()
    assert re.fullmatch(r"notes\b.*\.txt", download.value.suggested_filename)
    download.value.save_as(tmp_path / "translated.txt")
    assert (tmp_path / "translated.txt").read_text(encoding="utf-8").strip() == TRANSLATION


def test_a_file_takes_the_place_of_one_that_is_being_sent(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    held: list[Route] = []
    page.route("**/api/v1/files", lambda route: held.append(route))
    for number, name in enumerate(["a.txt", "b.txt"], start=1):
        file = {"name": name, "mimeType": "text/plain", "buffer": SENTENCE.encode()}
        page.set_input_files("#file", files=[file])
        wait_until(page, lambda wanted=number: len(held) == wanted)
        expect(page.locator("#document .name")).to_have_text(name)
        expect(page.locator("#document")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#document")).to_be_hidden()


def test_a_dropped_file_that_cannot_be_read_says_why(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    transfer = page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array([0, 159, 146, 150])], "picture.png"));
            return transfer;
        }"""
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": transfer})
    expect(page.locator("#drop")).to_be_visible()
    page.dispatch_event("body", "drop", {"dataTransfer": transfer})
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.locator("#document [role=alert]")).to_have_text(re.compile(r"\w+.*\."))
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#document")).to_be_hidden()
    complaints.clear()  # the browser's own line about the refusal


def test_the_panel_of_the_models_says_what_they_are(open_page: Open) -> None:
    page = translated(open_page())
    expect(page.locator("#show-models")).to_contain_text("en-de")
    page.click("#show-models")
    panel = page.locator("#models")
    expect(panel).to_contain_text("English to German")
    expect(panel).to_contain_text("German to English")
    for fact in ("Size", "Parameters", "Numbers", "Speed"):
        expect(panel.get_by_text(fact, exact=True).first).to_be_visible()


def test_another_model_for_the_direction_is_asked_by_its_name(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()

    def add_model(route: Route) -> None:
        models = route.fetch().json()
        route.fulfill(json=[*models, {**models[0], "name": "other"}])

    page.route("**/api/v1/models", add_model)
    page.reload()
    translated(page)
    page.click("#show-models")
    with page.expect_request("**/api/v1/translate") as request:
        page.get_by_role("button", name="Translate with this one").click()
    assert request.value.post_data_json["model"] == "other"
    expect(page.locator("#banner")).to_be_visible()  # the server has no such model
    complaints.clear()


def test_a_server_that_wants_a_key_gets_the_one_that_is_typed(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page()
    require_key(page, "**/api/v1/translate")
    page.fill("#source", SENTENCE)
    expect(page.locator("#banner")).to_contain_text("Invalid API key")
    assert_accessible(page)
    page.get_by_label("Key", exact=True).fill("secret")
    page.keyboard.press("Enter")
    expect(page.locator("#translation")).to_have_text(TRANSLATION)
    expect(page.locator("#banner")).to_be_hidden()
    assert "secret" not in page.evaluate("JSON.stringify({...localStorage})")
    complaints.clear()


@pytest.mark.parametrize("kind", ["curl", "Python", "JavaScript"])
def test_the_request_is_shown_for_programs(open_page: Open, kind: str) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    translated(page)
    page.click("#show-request")
    page.get_by_text(kind, exact=True).click()
    code = page.locator("#code")
    expect(code).to_contain_text(SENTENCE)
    expect(code).to_contain_text("/api/v1/translate")
    page.locator("#request").get_by_role("button", name="Copy").click()
    assert copied(page) == code.inner_text()


def test_the_translation_is_copied_also_without_https(open_page: Open) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    translated(page)
    page.click("#copy")
    assert copied(page) == TRANSLATION
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.evaluate(
        "document.execCommand = (name) => { window.copied = [name, `${getSelection()}`]; }"
    )
    page.click("#copy")
    wait_until(page, lambda: page.evaluate("window.copied?.[0]") == "copy")


def test_a_text_beyond_the_limit_is_counted_and_not_sent(open_page: Open) -> None:
    page = open_page()
    expect(page.locator("#from option")).to_have_count(3)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.post_data else None)
    page.fill("#source", "a " * 1001)
    expect(page.locator("#count")).to_have_text("2,002 / 2,000 characters: too long to translate")
    page.wait_for_timeout(500)
    assert asked == []
    assert_accessible(page)


def test_screen_readers_hear_the_translation_when_it_has_settled(open_page: Open) -> None:
    page = translated(open_page())
    expect(page.locator("#status")).to_have_text(TRANSLATION)


def test_nothing_moves_for_those_who_do_not_want_it(open_page: Open) -> None:
    page = open_page(reduced_motion="reduce")
    moving = """() => [...document.querySelectorAll("*")].filter((element) => {
        const style = getComputedStyle(element);
        return style.transitionDuration !== "0s" || style.animationName === "run";
    }).map((element) => element.id)"""
    assert page.evaluate(moving) == []


def test_printed_are_the_two_texts_and_no_buttons(open_page: Open) -> None:
    page = translated(open_page())
    page.emulate_media(media="print")
    expect(page.locator("#translation")).to_be_visible()
    expect(page.locator("#mirror")).to_be_visible()
    for hidden in ("#copy", "#show-models", "#theme", "#swap", "#glossary"):
        expect(page.locator(hidden)).to_be_hidden()


def test_markup_in_texts_stays_text(open_page: Open) -> None:
    page = open_page()
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    segment = {"source": SENTENCE, "text": evil, "score": -1.0, "status": "ok"}
    others = [{"text": evil + "!", "score": -2.0}]
    fulfill(page, "translate", text=evil, segments=[segment], doubts=[], alternatives=others)
    page.fill("#source", evil)
    expect(page.locator("#translation")).to_have_text(evil)
    expect(page.locator("#alternatives-list li").nth(1)).to_contain_text(evil)
    expect(page.locator("main img, main script")).to_have_count(0)
