"""The screen of positions and embeddings: its numbers, its controls, and what it makes of names."""

import base64
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect
from tests.serve.page.conftest import SENTENCE, Open, two_frames, wait_until, wait_until_it_fits
from tests.serve.page.test_translate import assert_accessible

from heed.bundle.bundle import load_bundle
from heed.explain.embeddings import ranked_analogy, trajectories
from heed.explain.positions import model_positions, position_table, similarity
from heed.translate.translator import load
from heed.vectors.pieces import piece_tables
from heed.vectors.table import WordVectors, nearest

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "\u202eabc",
    "▁<script>alert(1)</script>",
    "مدينة",
    "&amp;",
]


def vectors(folder: str) -> WordVectors:
    return piece_tables(load_bundle(folder))[0].vectors


def words(folder: str, count: int) -> list[str]:
    """Pieces of whole words, as a person types them."""
    found = [piece[1:] for piece in vectors(folder).words if re.fullmatch("▁[a-z]{3,}", piece)]
    return found[:count]


def sees(page: Page) -> None:
    """The canvas has more than one color.

    A function, as an expression is evaluated anew each time, which the page's policy forbids.
    """
    colors = """canvas => {
        const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
    }"""
    expect(page.locator(".view canvas").first).to_be_visible()
    page.wait_for_function(f"() => ({colors})(document.querySelector('.view canvas')) > 3")


def test_the_table_of_positions_is_that_of_python(open_page: Open, models: tuple[str, str]) -> None:
    """Claims 39 and 41."""
    page = open_page("#/positions?pos=5&dim=3")
    sees(page)
    table = model_positions(load_bundle(models[0]))
    expect(page.get_by_label("Position", exact=True)).to_have_value("5")
    page.get_by_text("One position, term by term").click()
    expect(page.locator(".twin tbody td").first).to_be_visible()
    cells = page.locator(".twin tbody td:last-child").all_text_contents()
    assert [float(cell) for cell in cells] == pytest.approx(table.values[5], abs=6e-5)
    lengths = page.locator(".twin tbody td:nth-child(3)").all_text_contents()
    numbers = [float(length.replace(",", "")) for length in lengths]
    assert numbers == pytest.approx([wave.wavelength for wave in table.waves], rel=1e-4)
    angle = 5 / 10000 ** (2 / table.values.shape[1])
    expect(page.locator(".term math")).to_have_text(
        f"PE(5,3)=cos(510000{2}/{table.values.shape[1]})=cos({angle:.4g})={np.cos(angle):.4g}"
    )


def test_alibi_is_a_table_of_distances_and_its_pairs_are_of_positions(open_page: Open) -> None:
    table = position_table("alibi", 9, 4)
    body: dict[str, Any] = {
        "model": "en-de", "kind": "alibi", "formula": table.formula, "shape": [9, 4], "first": 0,
        "trained_len": None, "is_normalized": False, "waves": [],
        "values": base64.b64encode(table.values.tobytes()).decode(),
        "similarity": base64.b64encode(similarity(table).tobytes()).decode(),
    }  # fmt: skip
    page = open_page()
    page.route("**/api/v1/positions**", lambda route: route.fulfill(json=body))
    page.goto(page.url.split("#")[0] + "#/positions?pos=6&dim=1")
    sees(page)
    assert table.values[6, 1] == -0.375
    expect(page.locator(".term math")).to_have_text("−m1·6=−0.0625·6=-0.375")
    expect(page.get_by_text("is added to its scores of every position")).to_be_visible()
    bars = page.get_by_role("img", name="The numbers of distance 6")
    across = bars.locator("text.tick:not([text-anchor=end])")
    expect(across).to_have_text(["0", "1", "2", "3", "head"])
    page.get_by_text("One distance, term by term").click()
    expect(page.locator(".twin tbody td:nth-child(4)").first).to_have_text("−m · 6")


def test_sliders_and_presses_choose_a_cell(open_page: Open) -> None:
    page = open_page("#/positions")
    sees(page)
    page.get_by_label("Position", exact=True).fill("7")
    page.get_by_label("Dimension", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"pos=7.*dim=5"))
    expect(page.locator("figcaption").first).to_contain_text("Dimension 5: a cosine that repeats")
    page.locator(".plane").first.click(position={"x": 47, "y": 11})
    expect(page).to_have_url(re.compile(r"pos=0.*dim=0"))


def test_the_city_has_index_4(open_page: Open) -> None:
    """Claim 131: counted from 0; the tokens of the sentence lead to their positions."""
    page = open_page("#/positions?view=states")
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    sees(page)
    page.get_by_role("tab", name="Positions").click()
    expect(page.locator(".place").first).to_be_visible()
    tokens = page.locator(".place").all_text_contents()
    assert [int(re.sub(r"\D", "", token)) for token in tokens] == [*range(len(tokens))]
    page.locator(".place").nth(4).click()
    expect(page).to_have_url(re.compile("pos=4"))
    expect(page.locator(".place").nth(4)).to_have_attribute("aria-pressed", "true")


COUNT_DRAWS = """() => {
    const replace = Element.prototype.replaceChildren;
    window.draws = 0;
    Element.prototype.replaceChildren = function (...children) {
        if (this.className === "places") window.draws += 1;
        replace.apply(this, children);
    };
}"""


def test_a_table_that_is_no_longer_shown_is_not_drawn_again(open_page: Open) -> None:
    page = open_page("#/positions")
    for model in ("de-en", "en-de"):
        with page.expect_response(f"**/api/v1/positions?model={model}"):
            page.get_by_role("combobox", name="Model").select_option(model)
        two_frames(page)
    page.get_by_role("tab", name="States of a sentence").click()
    page.evaluate(COUNT_DRAWS)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    sees(page)
    assert page.evaluate("window.draws") == 1


def test_neighbors_and_arithmetic_are_those_of_python(
    open_page: Open, models: tuple[str, str]
) -> None:
    """Claims 14 and 27."""
    page = open_page("#/positions?view=pieces")
    sees(page)
    first, second, third = words(models[0], 3)
    page.get_by_label("Search a piece").fill(first)
    page.keyboard.press("Enter")
    expect(page.locator(".ranking li")).to_have_count(15)
    shown = page.locator(".ranking .link").all_text_contents()
    found = nearest(vectors(models[0]), f"▁{first}", 15)
    assert [piece.replace("␣", "▁") for piece in shown] == [one.word for one in found]
    cosines = page.locator(".ranking .number").all_text_contents()
    assert [float(each.replace("-", "-")) for each in cosines] == pytest.approx(
        [one.cosine for one in found], abs=6e-4
    )
    for label, word in (("start at", first), ("take away", second), ("add", third)):
        page.get_by_label(f"The word to {label}").fill(word)
    page.get_by_role("button", name="Compute").click()
    rows = page.locator(".ranks tbody tr")
    expect(rows).to_have_count(13)
    expected = ranked_analogy(vectors(models[0]), f"▁{first}", f"▁{second}", f"▁{third}", 10)
    shown = page.locator(".ranks tbody th").all_text_contents()
    assert [piece.replace("␣", "▁") for piece in shown] == [one.word for one in expected]
    expect(page.get_by_text("a word of the query: left out")).to_have_count(3)


@pytest.mark.parametrize(("view", "path"), [("positions", "positions"), ("pieces", "embeddings")])
def test_a_view_says_that_it_is_being_read(open_page: Open, view: str, path: str) -> None:
    held: list[Route] = []
    page = open_page()
    page.route(f"**/api/v1/{path}?*", lambda route: held.append(route))
    page.route(f"**/api/v1/{path}", lambda route: held.append(route))
    page.evaluate(f"location.hash = '#/positions?view={view}'")
    expect(page.locator("#positions-view").get_by_role("status")).to_have_text("Reading …")
    wait_until(page, lambda: held)
    held.pop().continue_()
    sees(page)


def test_an_unknown_word_is_answered_with_a_sentence(
    open_page: Open, complaints: list[str]
) -> None:
    page = open_page("#/positions?view=pieces")
    sees(page)
    page.get_by_label("The word to start at").fill("zzzz")
    page.get_by_role("button", name="Compute").click()
    expect(page.locator(".found .message")).to_contain_text("has no vector of 'zzzz'")
    complaints.clear()  # the browser logs every status of 400


def test_the_map_moves_by_keys_and_a_press_chooses(open_page: Open) -> None:
    page = open_page("#/positions?view=pieces")
    sees(page)
    canvas = page.locator("canvas.map")
    before = canvas.screenshot()
    canvas.focus()
    for key in ("+", "ArrowLeft", "ArrowUp", "-"):
        page.keyboard.press(key)
    wait_until(page, lambda: canvas.screenshot() != before)
    page.keyboard.press("0")
    box = canvas.bounding_box()
    assert box is not None
    # Over a point, the mouse is told its piece.
    places = [(x / 40, y / 20) for y in range(4, 17) for x in range(4, 37)]
    for x, y in places:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        two_frames(page)
        if page.locator(".tip").is_visible():
            break
    piece = page.locator(".tip").text_content()
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("h3 bdi")).to_have_text(piece or "")
    expect(page.locator(".ranking li")).to_have_count(15)


@pytest.mark.parametrize("side", ["source", "target"])
def test_states_are_those_of_python(open_page: Open, models: tuple[str, str], side: str) -> None:
    page = open_page(f"#/positions?view=states&side={side}")
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    sees(page)
    page.get_by_text("As a table").click()
    trace = load(models[0]).trace(SENTENCE)
    tokens = trace.target_tokens if side == "target" else trace.source_tokens
    found = trajectories(trace, tokens, side="tgt" if side == "target" else "src")
    rows = page.locator(".twin tbody tr")
    expect(rows).to_have_count(len(tokens))
    for index in range(len(tokens)):
        cells = rows.nth(index).locator("td").all_text_contents()
        numbers = [[float(each) for each in cell.split(", ")] for cell in cells]
        np.testing.assert_allclose(numbers, found.points[:, index], rtol=2e-3, atol=2e-3)
    page.get_by_label("Up to").fill("0")
    expect(page.locator("output")).to_have_text("the embeddings")


def test_names_of_every_script_and_tags_are_text(open_page: Open) -> None:
    points = np.random.default_rng(1).normal(size=(len(HOSTILE), 2)).astype("<f4")

    def pieces(route: Route) -> None:
        body: dict[str, Any] = {
            "model": HOSTILE[0],
            "pieces": HOSTILE,
            "sides": [{"side": "source", "count": 3}, {"side": "target", "count": 2}],
            "points": base64.b64encode(points.tobytes()).decode(),
            "shares": [0.5, 0.25],
            "d_model": 8,
        }
        route.fulfill(json=body)

    def near(route: Route) -> None:
        listed = [{"piece": piece, "cosine": 0.5} for piece in HOSTILE]
        route.fulfill(json={"piece": HOSTILE[2], "neighbors": listed})

    page = open_page()
    page.route("**/api/v1/embeddings**", pieces)
    page.route("**/api/v1/embeddings/neighbors**", near)
    page.goto(page.url.split("#")[0] + "#/positions?view=pieces&piece=" + HOSTILE[0])
    expect(page.locator(".ranking li")).to_have_count(len(HOSTILE))
    shown = page.locator(".ranking bdi").all_text_contents()
    assert shown == [piece.replace("▁", "␣") for piece in HOSTILE]
    expect(page.locator("main img, main script")).to_have_count(0)
    page.get_by_label("Target (2)").uncheck()
    page.get_by_label("Search a piece").fill("script")
    page.keyboard.press("Enter")
    expect(page.locator("h3 bdi")).to_have_text("␣<script>alert(1)</script>")


@pytest.mark.parametrize("view", ["positions", "pieces", "states"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(open_page: Open, view: str, theme: str) -> None:
    page = open_page(f"#/positions?view={view}&piece=a", color_scheme=theme)
    if view == "states":
        page.get_by_label("Sentence to look into").fill(SENTENCE)
        page.get_by_role("button", name="Look").click()
    sees(page)
    for summary in page.locator("summary").all():
        summary.click()
    assert_accessible(page)


def test_a_phone_needs_no_sideways_scrolling(open_page: Open) -> None:
    phone = {"width": 360, "height": 740}
    for view in ("positions", "pieces", "states"):
        page = open_page(f"#/positions?view={view}", viewport=phone, is_mobile=True)
        if view == "states":
            page.get_by_label("Sentence to look into").fill(SENTENCE)
            page.get_by_role("button", name="Look").click()
        sees(page)
        wait_until_it_fits(page)


CLIPPED = """frames => frames.flatMap(svg => [...svg.querySelectorAll("text")]
    .filter(text => text.getBoundingClientRect().left < svg.getBoundingClientRect().left)
    .map(text => text.textContent))"""


def test_the_formula_of_a_number_fits_on_a_phone(open_page: Open) -> None:
    """With the longest numbers of a usual model."""
    phone = {"width": 390, "height": 844}
    page = open_page("#/positions?pos=127&dim=10", viewport=phone, is_mobile=True)
    sees(page)
    term = page.locator(".term")
    expect(term).to_contain_text("PE(127,10)")
    width, room = term.evaluate("each => [each.scrollWidth, each.clientWidth]")
    assert width <= room


def test_no_label_of_a_curve_is_clipped_on_a_phone(open_page: Open) -> None:
    page = open_page("#/positions", viewport={"width": 360, "height": 740}, is_mobile=True)
    sees(page)
    curves = page.locator("svg.curve")
    expect(curves).not_to_have_count(0)
    assert curves.evaluate_all(CLIPPED) == []


def test_tabs_are_chosen_by_arrow_keys(open_page: Open) -> None:
    page = open_page("#/positions")
    sees(page)
    page.get_by_role("tab", name="Positions").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Pieces")).to_be_focused()
    expect(page.get_by_role("tab", name="Pieces")).to_have_attribute("aria-selected", "true")
    expect(page.locator("canvas.map")).to_be_visible()


@pytest.mark.parametrize("view", ["positions", "pieces"])
@pytest.mark.parametrize("kind", ["SVG", "PNG", "CSV"])
def test_a_view_is_saved(open_page: Open, view: str, kind: str) -> None:
    page = open_page(f"#/positions?view={view}")
    sees(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save as {kind}").first.click()
    data = download.value.path().read_bytes()
    assert data.startswith({"SVG": b"<svg", "PNG": b"\x89PNG", "CSV": b""}[kind])
    assert len(data) > 500


def test_a_map_of_32000_pieces_is_drawn_once_a_frame(open_page: Open) -> None:
    """How long that takes is measured by `benchmarks/page_views.py`."""
    n = 32_000
    points = np.random.default_rng(1).normal(size=(n, 2)).astype("<f4")
    body = {
        "model": "large",
        "pieces": [f"▁word{i}" for i in range(n)],
        "sides": [{"side": "source", "count": n // 2}, {"side": "target", "count": n // 2}],
        "points": base64.b64encode(points.tobytes()).decode(),
        "shares": [0.1, 0.1],
        "d_model": 512,
    }
    page = open_page()
    page.route("**/api/v1/embeddings**", lambda route: route.fulfill(json=body))
    page.goto(page.url.split("#")[0] + "#/positions?view=pieces")
    sees(page)
    draws = page.evaluate(
        """async () => {
            const canvas = document.querySelector("canvas.map");
            const context = canvas.getContext("2d");
            const clear = context.clearRect.bind(context);
            let draws = 0;
            context.clearRect = (...box) => { draws += 1; clear(...box); };
            for (let turn = 0; turn < 30; turn += 1)
                canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return draws;
        }"""
    )
    assert draws == 1
