"""The decoding screen: its numbers are those of a record in Python, and every control is used."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, Request, Route, expect
from tests.serve.page.conftest import SENTENCE, TRANSLATION, Open, rows_of, wait_until_it_fits
from tests.serve.page.test_page_wide import PHONE
from tests.serve.page.test_translate import assert_accessible

from heed.explain.decoding.record import SearchRecord
from heed.explain.decoding.recorded import record_search
from heed.translate.translator import Translator, load

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

N_DRAWS = 100


@pytest.fixture(scope="module")
def translator(models: tuple[str, str]) -> Translator:
    return load(models[0])


def opened(open_page: Open, path: str = "", **options: Any) -> Page:
    page = open_page(f"#/decoding{path}", **options)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".tree svg")).to_be_visible()
    return page


def shown(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def slide(page: Page, label: str, key: str, times: int = 1) -> None:
    page.get_by_label(label, exact=True).focus()
    for _ in range(times):
        page.keyboard.press(key)


def assert_shows(page: Page, record: SearchRecord) -> None:
    """Answer, ranking, and every candidate of every step."""
    expect(page.locator(".translation-found")).to_have_text(record.text)
    expect(page.locator(".ranking li .formula")).to_have_text(
        [each.formula for each in record.finished]
    )
    expect(page.locator(".outcome")).to_contain_text(record.stop.sentence)
    twin = page.locator(".tree-card .twin")
    rows_of(twin)  # opens it
    for step in record.steps:
        page.get_by_label("Step", exact=True).fill(str(step.number + 1))
        words = f"Step {step.number + 1} of {len(record.steps)}"
        expect(page.locator(".scrubber .number")).to_have_text(words)
        caption = f"Candidates of step {step.number + 1}, best first"
        expect(page.locator(".tree-card caption")).to_have_text(caption)
        expected = [
            [shown(each.log_prob), shown(each.total), shown(each.score)] for each in step.candidates
        ]
        rows = rows_of(twin)
        assert [row[2:5] for row in rows] == expected
        pieces = [each.piece.replace("▁", "␣") for each in step.candidates]
        assert [row[0] for row in rows] == pieces
        kept = [each for each in step.candidates if each.fate != "pruned"]
        drawn = page.locator(f'.tree [data-id^="{step.number}."]:not(.pruned)')
        expect(drawn).to_have_count(len(kept))


@pytest.mark.parametrize(
    ("path", "options"),
    [
        (
            "?beam=3&alpha=0.8&ngram=1",
            {"beam_size": 3, "length_penalty": 0.8, "no_repeat_ngram_size": 1},
        ),
        ("?strategy=greedy", {"beam_size": 1}),
        (
            "?strategy=sample&topp=0.8&temperature=1.5&seed=3",
            {"sample": True, "top_p": 0.8, "temperature": 1.5, "seed": 3},
        ),
    ],
)
def test_the_numbers_on_the_screen_are_those_of_the_record(
    open_page: Open, translator: Translator, path: str, options: dict[str, Any]
) -> None:
    """Claim 114: the tree of the search."""
    page = opened(open_page, path)
    assert_shows(page, record_search(translator, SENTENCE, **options).record)


def test_the_distribution_after_the_filters_is_that_of_the_search(
    open_page: Open, translator: Translator
) -> None:
    """Claims 116 and 117, recomputed in the browser from the log-probabilities of the step."""
    options: dict[str, Any] = {"temperature": 1.4, "top_k": 30, "top_p": 0.85, "min_p": 0.02}
    path = "?strategy=sample&step=2&temperature=1.4&topk=30&topp=0.85&minp=0.02&seed=1"
    page = opened(open_page, path)
    expect(page.locator(".bars")).to_have_attribute("data-step", "1")
    record = record_search(translator, SENTENCE, sample=True, seed=1, **options).record
    draw = record.steps[1].draw
    assert draw is not None
    lines = rows_of(page.locator(".distribution .twin"))
    assert [row[0].replace("␣", "▁") for row in lines] == [each.piece for each in draw.likeliest]
    for row, each in zip(lines, draw.likeliest, strict=True):
        assert float(row[1]) == pytest.approx(each.probabilities[0], abs=1e-6)
        assert float(row[2]) == pytest.approx(each.probabilities[-1], abs=1e-6)
    facts = page.locator(".facts")
    expect(facts).to_contain_text(f"{draw.n_allowed} of {record.vocab_size}")
    expect(facts).to_contain_text(f"{shown(draw.stages[0].entropy, 2)} bits")
    expect(facts).to_contain_text(f"{shown(draw.stages[-1].entropy, 2)} bits")
    expect(page.locator(".bar-row.nucleus").first).to_have_class(re.compile("first"))
    expect(page.locator(".bar-row.cut")).to_have_count(
        sum(not each.probabilities[-1] for each in draw.likeliest)
    )


@pytest.mark.parametrize("path", ["&topp=0.9", "&temperature=1.6"])
def test_a_hundred_draws_are_those_of_a_hundred_samples(
    open_page: Open, translator: Translator, path: str
) -> None:
    page = opened(open_page, f"?strategy=sample&step=1&seed=7&draws=on{path}")
    expect(page.locator(".drawn")).to_have_count(20)
    name, value = path[1:].split("=")
    options: dict[str, Any] = {{"topp": "top_p"}.get(name, name): float(value)}
    [best] = translator.translate([SENTENCE], sample=True, n_best=N_DRAWS, seed=7, **options)
    first = Counter(
        (each.tokens or ["</s>"])[0].replace("▁", "␣") for each in (best, *best.alternatives)
    )
    lines = rows_of(page.locator(".distribution .twin"))
    assert {row[0]: int(row[4]) for row in lines if row[4] != "0"} == {
        piece: count for piece, count in first.items() if piece in {row[0] for row in lines}
    }


def test_every_control_searches_again(open_page: Open) -> None:
    page = opened(open_page)

    def assert_asked(change: Callable[[], Any], **wanted: Any) -> None:
        def is_it(one: Request) -> bool:
            return (
                one.url.endswith("v1/search")
                and wanted.items() <= one.post_data_json["options"].items()
            )

        with page.expect_request(is_it):
            change()

    formula = page.get_by_role("combobox", name="Length formula")
    stop = page.get_by_role("combobox", name="Stop")
    assert_asked(lambda: page.get_by_label("Beam k").fill("3"), beam_size=3)
    assert_asked(lambda: slide(page, "Beam k", "ArrowRight"), beam_size=4)
    assert_asked(lambda: slide(page, "Length penalty α", "End"), length_penalty=2)
    assert_asked(lambda: slide(page, "No n-gram twice", "End"), no_repeat_ngram_size=5)
    assert_asked(lambda: formula.select_option("power"), length_formula="power")
    assert_asked(lambda: stop.select_option("bound"), early_stopping="bound")
    page.get_by_label("Show pruned").uncheck()
    expect(page.locator(".tree .node.pruned:not(.left)")).to_have_count(0)
    page.get_by_label("Show pruned").check()
    expect(page.locator(".tree .node.pruned").first).to_be_visible()


def test_filters_are_tried_without_a_new_search(open_page: Open) -> None:
    page = opened(open_page, "?beam=2")
    expect(page.locator(".bar-row")).to_have_count(20)
    page.on("request", lambda one: pytest.fail(one.url) if "v1/search" in one.url else None)
    changes = [
        ("Temperature", "End", ""),
        ("Min-p", "ArrowRight", "min-p"),
        ("Top-p", "PageDown", "top-p"),
        ("Top-k", "ArrowRight", "top-k"),
    ]
    for label, key, reason in changes:
        page.goto(page.url.split("#")[0] + "#/decoding?beam=2")
        expect(
            page.locator(".bar-row.cut .figures .final", has_not_text="not allowed")
        ).to_have_count(0)
        before = page.locator(".facts").inner_text()
        slide(page, label, key)
        expect(page.locator(".facts")).not_to_have_text(before, use_inner_text=True)
        if reason:
            expect(page.locator(".figures .final", has_text=reason).first).to_be_visible()
        # The address follows a moment later; until then the old one would be no change.
        expect(page).not_to_have_url(re.compile(r"#/decoding\?beam=2$"))


def test_samples_are_drawn_again(open_page: Open, translator: Translator) -> None:
    page = opened(open_page)
    page.get_by_role("radio", name="Sample").check(force=True)
    slide(page, "Temperature", "End")
    expect(page).to_have_url(re.compile("temperature=2"))
    page.get_by_label("Seed").fill("11")
    page.keyboard.press("Tab")
    expect(page).to_have_url(re.compile("seed=11"))
    page.get_by_role("button", name="Sample again").click()
    expect(page).to_have_url(re.compile("seed=12"))
    again = translator.translate([SENTENCE], sample=True, temperature=2.0, seed=12)[0].text
    expect(page.locator(".translation-found")).to_have_text(again)
    page.get_by_label("Draw 100 times").check()
    expect(page.locator(".drawn").first).to_be_visible()


def test_a_candidate_is_forced_and_the_search_branches(open_page: Open) -> None:
    page = opened(open_page, "?beam=2")
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    page.locator(".scrubber").get_by_label("Step on").click()  # the second token
    expect(page.locator(".bars")).to_have_attribute("data-step", "1")
    other = page.locator(".force").nth(1)
    piece = other.locator(".piece").text_content() or ""
    other.click()
    expect(page.locator(".prefix .token")).to_have_text(["␣Ein", piece])
    words = f"Ein {piece.removeprefix('␣')}"
    expect(page.locator(".translation-found")).to_have_text(re.compile(f"^{words}"))
    # The address has no text, neither as words nor as ids.
    assert "prefix" not in page.url
    page.get_by_role("button", name="Take the last back").click()
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    expect(page.locator(".prefix .token")).to_have_text(["␣Ein"])
    page.get_by_role("button", name="Begin freely").click()
    expect(page.locator(".prefix")).to_be_hidden()
    page.locator('.tree [data-id="0.1"]').click()
    begin = page.locator(".picked-node b").inner_text()
    page.get_by_role("button", name="Force this beginning").click()
    expect(page.locator(".prefix .token")).to_have_text([begin])
    expect(page.locator(".force[disabled] .piece").first).to_have_text(re.compile("^<"))


def test_the_tree_is_walked_by_keyboard(open_page: Open) -> None:
    page = opened(open_page, "?beam=2")
    first = page.locator('.tree [data-id="0.0"]')
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator('.tree [data-id="1.0"]')).to_be_focused()
    expect(page.locator(".tree .node.way")).to_have_count(2)
    expect(page.locator(".tree .edge.way")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    expect(page.locator('.tree [data-id="1.1"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("step=2&node=1"))
    expect(page.locator('.tree [data-id="1.1"]')).to_be_focused()
    expect(page.locator('.tree [data-id="1.1"]')).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    expect(first.or_(page.locator('.tree [data-id="0.1"]')).first).to_be_visible()


def test_a_beam_of_one_says_that_it_is_greedy_and_two_is_the_example(open_page: Open) -> None:
    """Claims 114 and 115."""
    page = opened(open_page, "?beam=1")
    expect(page.locator(".badge.same")).to_have_text("k = 1 is greedy search")
    page.get_by_role("button", name="Example: k = 2").click()
    expect(page).to_have_url(re.compile("beam=2"))
    expect(page.locator(".story")).to_contain_text("2 stay")
    expect(page.locator(".tree .column:not(.later) .node.kept")).to_have_count(2)
    page.get_by_label("Step on").click()
    expect(page.locator(".story")).to_contain_text("2 hypotheses expanded")
    expect(page.locator(".slots button")).to_have_count(2)
    page.locator(".slots button").nth(1).click()
    expect(page.locator(".slots button").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".badges")).to_contain_text("greedy search writes")
    expect(page.locator(".reads .token").first).to_have_text("<s>")  # as in the vocabulary
    expect(page.locator(".tree .root")).to_have_text("<s>")
    expect(page.locator(".reads .masked").first).to_have_text("<mask>")
    page.get_by_label("Step back").click()
    expect(page.locator(".scrubber .number")).to_have_text(re.compile("^Step 1 of"))


def test_an_address_opens_a_step_of_a_strategy(open_page: Open) -> None:
    page = opened(open_page, "?strategy=beam&beam=3&step=3&node=1")
    expect(page.locator(".scrubber .number")).to_have_text(re.compile("^Step 3 of"))
    expect(page.locator('.tree [data-id="2.1"]')).to_have_attribute("aria-pressed", "true")
    page.locator(".ranking button").first.click()
    expect(page.locator(".picked-node")).to_contain_text("ended, rank 1")
    page.reload()
    expect(page.locator(".picked-node")).to_contain_text("ended, rank 1")


def test_an_unknown_strategy_is_the_usual_one(open_page: Open) -> None:
    page = opened(open_page, "?strategy=quantum")
    expect(page.locator(".scrubber .number")).to_have_text(re.compile("^Step 1 of"))
    expect(page.locator(".bar-row").first).to_be_visible()


def test_a_sentence_is_searched_where_its_search_is_shown(open_page: Open) -> None:
    page = opened(open_page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.evaluate("location.hash = '#/attention'")
    page.get_by_label("Sentence to look into").locator("visible=true").fill("A dog runs.")
    page.get_by_role("button", name="Look").locator("visible=true").click()
    expect(page.locator(".thumb").first).to_be_visible()
    assert "trace" in asked
    assert "search" not in asked
    with page.expect_response("**/api/v1/search"):
        page.evaluate("location.hash = '#/decoding'")


def test_a_sentence_that_is_cleared_leaves_no_numbers(open_page: Open) -> None:
    page = opened(open_page)
    page.get_by_label("Sentence to look into").fill("")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".record")).to_be_hidden()
    expect(page.locator(".empty:visible")).to_contain_text("Type a sentence:")


def refuse(route: Route, sentence: str) -> None:
    route.fulfill(status=503, json={"error": {"code": "x", "sentence": sentence}})


def test_an_error_is_the_sentence_of_the_server(open_page: Open, complaints: list[str]) -> None:
    page = opened(open_page)
    page.route("**/api/v1/search", lambda route: refuse(route, "The model is gone."))
    slide(page, "Beam k", "ArrowRight")
    expect(page.locator(".panel-controls .message")).to_have_text("The model is gone.")
    complaints.clear()


def test_look_repeats_a_search_that_failed(open_page: Open, complaints: list[str]) -> None:
    """Meanwhile no control shows a number that no model has."""
    page = open_page("#/decoding")
    page.route("**/api/v1/search", lambda route: refuse(route, "The server is busy."))
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".panel-controls .message")).to_have_text("The server is busy.")
    expect(page.locator(".panel-controls .slider .number")).to_have_text(["default"] * 3)
    expect(page.get_by_role("button", name="Look")).to_have_text("Look")
    page.unroute("**/api/v1/search")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    expect(page.locator(".panel-controls .message")).to_have_text("")
    complaints.clear()


def test_the_pair_that_guides_a_search_is_named_and_left_out_by_a_switch(open_page: Open) -> None:
    """Then the numbers are no longer called those of the model."""
    match = {"similarity": 0.756, "source": "A child sleeps.", "target": "Ein Kind schläft."}

    def guide(route: Route) -> None:
        is_guided = route.request.post_data_json.get("use_memory", True)
        route.fulfill(json=route.fetch().json() | {"match": match if is_guided else None})

    page = open_page("#/decoding")
    page.route("**/api/v1/search", guide)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    line = "Guided by a remembered pair, 75 % similar: A child sleeps. → Ein Kind schläft."
    expect(page.get_by_text(line)).to_be_visible()
    expect(page.locator(".bars-heads .key").first).to_have_text("with the memory")
    page.get_by_label("Follow the memory").uncheck()
    expect(page).to_have_url(re.compile(r"memory=off"))
    expect(page.get_by_text("All probabilities are those of the model alone.")).to_be_visible()
    expect(page.locator(".bars-heads .key").first).to_have_text("by the model")
    assert_accessible(page)
    page.get_by_label("Follow the memory").check()
    expect(page.get_by_text(line)).to_be_visible()


def test_a_search_is_shown_if_the_greedy_one_beside_it_fails(
    open_page: Open, complaints: list[str]
) -> None:
    def answer(route: Route) -> None:
        if route.request.post_data_json["options"].get("beam_size") == 1:
            refuse(route, "The server is busy.")
        else:
            route.continue_()

    page = open_page("#/decoding?beam=2")
    page.route("**/api/v1/search", answer)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".badges")).to_contain_text("greedy search failed: The server is busy.")
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    expect(page.locator(".tree svg")).to_be_visible()
    page.unroute("**/api/v1/search")
    slide(page, "Beam k", "ArrowRight")
    expect(page.locator(".badges")).to_contain_text("greedy search writes")
    expect(page.locator(".badges")).not_to_contain_text("failed")
    complaints.clear()


@pytest.mark.parametrize("part", ["step/0", "pieces"])
def test_numbers_that_could_not_be_read_are_asked_for_again(
    open_page: Open, complaints: list[str], part: str
) -> None:
    page = open_page("#/decoding?beam=2")
    address = re.compile(f"/api/v1/search/[^/]+/{part}$")
    page.route(address, lambda route: refuse(route, "The server is busy."))
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".distribution .facts")).to_have_text("No numbersThe server is busy.")
    expect(page.locator(".bar-row")).to_have_count(0)
    page.unroute(address)
    page.get_by_label("Step on").click()
    expect(page.locator(".bars")).to_have_attribute("data-step", "1")
    page.get_by_label("Step back").click()
    expect(page.locator(".bars")).to_have_attribute("data-step", "0")
    expect(page.locator(".distribution .facts")).to_contain_text("Entropy")
    expect(page.locator(".bar-row")).to_have_count(20)
    complaints.clear()


HOSTILE = "▁<img src=x onerror=alert(1)><script>alert(2)</script>"


def answer_with(page: Page, piece: str) -> None:
    """Every piece of the answer is this one."""

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: piece if key in ("piece", "text") else spoil(each)
                for key, each in value.items()
            }
        return [spoil(each) for each in value] if isinstance(value, list) else value

    def answer(route: Route) -> None:
        found = route.fetch().json()
        route.fulfill(json=[piece] * len(found) if isinstance(found, list) else spoil(found))

    page.route(re.compile(r"/api/v1/search($|/.*pieces)"), answer)


def test_pieces_are_text_and_never_markup(open_page: Open) -> None:
    page = open_page("#/decoding?beam=3&step=2&node=0")
    answer_with(page, HOSTILE)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".force .piece").first).to_have_text(HOSTILE.replace("▁", "␣"))
    expect(page.locator(".translation-found")).to_have_text(HOSTILE)
    expect(page.locator("#inside img, #inside script")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["?beam=3&step=2&node=1&topp=0.8", "?strategy=sample&draws=on"])
def test_axe_finds_nothing(open_page: Open, theme: str, path: str) -> None:
    page = opened(open_page, path, color_scheme=theme)
    expect(page.locator(".bar-row").first).to_be_visible()
    for summary in page.locator("#inside summary").all():
        summary.click()
    assert_accessible(page)


def test_the_views_are_saved(open_page: Open, translator: Translator) -> None:
    page = opened(open_page, "?beam=3&alpha=0.6")
    expect(page.locator(".bar-row").first).to_be_visible()

    def saved(card: str, kind: str) -> bytes:
        with page.expect_download() as download:
            page.locator(f".{card}").get_by_role("button", name=f"Save as {kind}").click()
        return Path(download.value.path()).read_bytes()

    record = record_search(translator, SENTENCE, beam_size=3, length_penalty=0.6).record
    n_candidates = sum(len(step.candidates) for step in record.steps)
    assert saved("tree-card", "CSV").count(b"\r\n") == n_candidates + 1
    assert json.loads(saved("tree-card", "JSON"))["finished"] == record.to_dict()["finished"]
    drawing = ElementTree.fromstring(saved("tree-card", "SVG"))
    names = [each.text for each in drawing.iter("{http://www.w3.org/2000/svg}title")]
    assert len(names) == n_candidates
    assert saved("tree-card", "PNG").startswith(b"\x89PNG")
    assert len(json.loads(saved("bars-card", "JSON"))) == 20
    assert saved("bars-card", "CSV").count(b"\r\n") == 21
    assert ElementTree.fromstring(saved("bars-card", "SVG")).tag.endswith("svg")


def test_a_long_search_draws_only_what_is_in_view(open_page: Open) -> None:
    page = opened(open_page, "?beam=8&stop=never&pruned=off")
    expect(page.locator(".scrubber .number")).to_have_text("Step 1 of 24")
    expect(page.locator('.tree [data-id="0.0"]')).to_have_count(1)
    expect(page.locator('.tree [data-id="23.0"]')).to_have_count(0)
    page.get_by_label("Step", exact=True).fill("24")
    expect(page.locator('.tree [data-id="23.0"]')).to_be_visible()
    page.get_by_label("Step", exact=True).fill("12")
    page.locator('.tree [data-id="11.0"]').focus()
    for _ in range(9):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".tree [data-id^='2.']:focus")).to_have_count(1)


def test_a_phone_and_a_right_to_left_script_need_no_sideways_scrolling(open_page: Open) -> None:
    page = open_page("#/decoding?beam=4&draws=on", viewport=PHONE, has_touch=True, is_mobile=True)
    answer_with(page, "▁الحديقة")
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".force .piece").first).to_have_text("␣الحديقة")
    wait_until_it_fits(page)
    heights = "numbers => new Set(numbers.map((one) => one.getBoundingClientRect().height)).size"
    assert page.locator(".figures > *").evaluate_all(heights) == 1, "a number takes two lines"
    expect(page.locator(".translation-found")).to_have_css("direction", "rtl")
    page.get_by_label("Step on").tap()
    expect(page.locator(".scrubber .number")).to_have_text(re.compile("^Step 2 of"))
    assert_accessible(page)


def test_a_given_translation_waits_for_the_other_screens(open_page: Open) -> None:
    page = open_page("#/steps")
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_label("Translation to force").fill(TRANSLATION)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".step-why")).to_be_visible()
    page.evaluate("location.hash = '#/decoding'")
    field = page.get_by_label("Translation to force")
    expect(field).to_be_disabled()
    expect(field).to_have_attribute("title", "A search writes its own translation")
    page.evaluate("location.hash = '#/steps'")
    expect(page.get_by_label("Translation to force")).to_have_value(TRANSLATION)
