"""The screen that steps through the computation shows the numbers of a trace, worked out."""

import json
import math
import re

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.serve.page.conftest import (
    CHAR_LIMIT,
    SENTENCE,
    TRANSLATION,
    Open,
    rows_of,
    wait_until_it_fits,
    wait_until_settled,
)
from tests.serve.page.test_words import call

from heed.model.build import build_model
from heed.model.config import AnyConfig, ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.one_stack.config import DecoderConfig
from heed.model.recurrent.config import RecurrentConfig
from heed.model.stages import Stages
from heed.model.trace import recording
from heed.serve.page.files import read_page
from heed.translate.trace import Trace
from heed.translate.translator import Translator, load


@pytest.fixture(scope="module")
def translator(models: tuple[str, str]) -> Translator:
    return load(models[0], threads=1)


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(SENTENCE)


def opened(open_page: Open, sentence: str = SENTENCE) -> Page:
    page = open_page("#/steps")
    page.get_by_label("Sentence to look into").fill(sentence)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".step-why")).to_be_visible()
    return page


def go(page: Page, node: str, **params: int) -> None:
    query = "".join(f"&{name}={value}" for name, value in params.items())
    page.evaluate("hash => { location.hash = hash }", f"#/steps?node={node}{query}")
    expect(page.locator(".step-tensor h2")).to_have_text(node)


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_every_number_worked_out_is_the_models(open_page: Open, trace: Trace) -> None:
    page = opened(open_page)
    for node in trace.nodes:
        go(page, node.name)
        result = page.locator(".worked .sum").text_content() or ""
        place = (0,) * len(node.shape)
        if node.axes[-1] == "piece":
            continue  # the piece that should follow is shown: another test
        expect(page.locator(".worked .agreed")).to_be_visible()
        assert number(result.rpartition("= ")[2]) == pytest.approx(
            float(trace[node.name][place]), abs=2e-3, rel=2e-3
        )


def test_a_deep_link_opens_a_cell_of_a_node(open_page: Open, trace: Trace) -> None:
    page = opened(open_page)
    name = "decoder.0.cross_attention.weights"
    go(page, name, head=1, row=2, column=3)
    value = trace[name][1, 2, 3]
    expect(page.locator(".worked .sum")).to_have_text(re.compile(f"= {value:.3f}$"))
    expect(page.get_by_role("button", name="1", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )


def test_pieces_have_the_numbers_that_the_model_reads(open_page: Open, trace: Trace) -> None:
    page = opened(open_page)
    tables = page.locator(".step-tensor table")
    expect(tables).to_have_count(2)
    found = [tables.nth(side).locator("tbody td:nth-of-type(1)") for side in range(2)]
    numbers = [[int(cell) for cell in cells.all_text_contents()] for cells in found]
    assert numbers[0] == trace.source_ids
    assert numbers[1][1:] == trace.expected_ids[: len(trace.target_tokens) - 1]


def test_numbers_of_one_sentence_never_stand_under_another(
    open_page: Open, complaints: list[str]
) -> None:
    page = opened(open_page)
    error = {"error": {"code": "x", "sentence": "The model is gone."}}
    page.route("**/api/v1/trace", lambda route: route.fulfill(status=503, json=error))
    page.get_by_label("Sentence to look into").fill("Another one.")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_role("alert")).to_have_text("The model is gone.")
    expect(page.locator(".steps-view")).to_be_hidden()
    expect(page.get_by_label("Translation to force")).to_have_attribute(
        "placeholder", "Its translation"
    )
    complaints.clear()


def test_nonsense_in_the_address_shows_what_is_usual(open_page: Open) -> None:
    page = opened(open_page)
    name = "encoder.0.self_attention.weights"
    address = f"#/steps?node={name}&row=1.7&column=x&head=abc&depth=constructor"
    page.evaluate("hash => { location.hash = hash }", address)
    expect(page.locator(".step-tensor h2")).to_have_text(name)
    expect(page.locator(".worked .agreed")).to_be_visible()


def test_the_position_that_was_picked_is_marked(open_page: Open) -> None:
    page = opened(open_page)
    go(page, "log_probs", row=2)
    chosen = page.locator('.step-tensor .tokens [aria-pressed="true"]')
    expect(chosen).to_have_count(1)
    page.locator(".step-tensor .tokens button").first.click()
    expect(page.locator(".step-tensor .tokens button").first).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(chosen).to_have_count(1)


@pytest.mark.parametrize(
    ("positions", "sentence"),
    [("sinusoidal", "The vector of each position is added"), ("rotary", "Nothing is added here")],
)
def test_a_sum_without_positions_is_not_said_to_add_any(
    open_page: Open, positions: str, sentence: str
) -> None:
    config = ModelConfig(src_vocab_size=10, tgt_vocab_size=10, positions=positions)
    stage = Stages(config).of("embed_src.sum")
    node = {"kind": "embedding.sum", "operation": stage.operation}
    assert call(open_page(), "steps-words.js", "sentenceOf", node).startswith(sentence)


def test_without_a_sentence_it_says_what_to_do(open_page: Open) -> None:
    page = open_page("#/steps")
    for screen in ("steps", "causes", "decoding"):
        page.evaluate("hash => { location.hash = hash }", f"#/{screen}")
        expect(page.locator(".empty:visible")).to_contain_text("Type a sentence:")


def test_steps_go_forward_and_back_with_buttons_and_keys(open_page: Open) -> None:
    page = opened(open_page)
    title = page.locator(".step-tensor h2")
    expect(title).to_have_text("Text → pieces → ids")
    page.get_by_role("button", name="Next").click()
    expect(title).to_have_text("embed_src.tokens")
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text("embed_src.sum")
    page.keyboard.press("ArrowLeft")
    expect(title).to_have_text("embed_src.tokens")
    page.get_by_role("combobox", name="Depth").select_option(label="Overview")
    page.get_by_label("Step", exact=True).press("End")
    expect(title).to_have_text("Each choice is the next input")
    page.get_by_role("button", name="Layer 0").last.click()
    expect(title).to_have_text("decoder.0.self_attention.query")
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Pause").click()


def test_the_link_that_skips_to_the_text_keeps_the_screen(open_page: Open) -> None:
    page = opened(open_page)
    address = page.url
    page.keyboard.press("Control+Home")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "inside"
    assert page.url == address
    page.evaluate("location.hash = '#/translate'")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "source"


def test_masks_and_choices_are_steps_too(open_page: Open, trace: Trace) -> None:
    """Claims 80, 84, 112."""
    page = opened(open_page)
    page.evaluate("location.hash = '#/steps?node=masks'")
    expect(page.locator(".step-tensor h2")).to_have_text("Who may read whom")
    third = rows_of(page.locator(".twin").first)[2][1:]
    assert third == ["1", "1", "1"] + ["−∞"] * (len(trace.target_tokens) - 3)
    page.evaluate("location.hash = '#/steps?node=choice'")
    rows = page.locator(".likeliest tbody tr")
    expect(rows).to_have_count(len(trace.target_tokens))
    written = [row.locator("td").last.text_content() for row in rows.all()]
    assert [one.replace("␣", "▁") for one in written if one] == trace.expected_tokens


def test_an_example_is_looked_into(open_page: Open) -> None:
    page = opened(open_page)
    page.get_by_role("combobox", name="Examples").select_option(label="I am a student")
    expect(page.get_by_label("Sentence to look into")).to_have_value("I am a student")
    expect(page.locator(".step-tensor table").first).to_contain_text(
        "<0x49>"
    )  # the model knows its own words only


def test_pieces_are_shown_with_their_numbers(open_page: Open, translator: Translator) -> None:
    page = opened(open_page)
    rows = page.locator(".step-tensor table").first.locator("tbody tr")
    ids = translator.reader.src_ids(SENTENCE, [])
    assert [int(one) for one in rows.locator("td:nth-child(2)").all_text_contents()] == ids


def test_the_table_of_keys_grows_by_a_row_at_each_step(open_page: Open, trace: Trace) -> None:
    """Claims 95, 96."""
    page = opened(open_page)
    go(page, "decoder.0.self_attention.key", step=1)
    expect(page.locator(".growth")).to_contain_text("2 rows")
    assert set(rows_of(page.locator(".twin"))[2][1:]) == {"−∞"}


def test_probabilities_of_the_next_piece_are_those_of_the_model(
    open_page: Open, translator: Translator, trace: Trace
) -> None:
    page = opened(open_page)
    go(page, "logits", row=1)
    first = page.locator(".likeliest tbody tr").first
    probabilities = np.exp(trace["log_probs"][1])
    best = int(probabilities.argmax())
    piece = translator.tgt_vocab.pieces([best])[0].replace("▁", "␣")
    expect(first.locator("th")).to_have_text(piece)
    shown = number(first.locator("td").nth(1).text_content() or "")
    assert shown == pytest.approx(float(probabilities[best]), abs=1e-3)
    page.locator(".step-tensor .token").nth(2).click()
    expect(page).to_have_url(re.compile(r"row=2"))


def test_the_losses_of_teacher_forcing_sum_to_the_score(
    open_page: Open, translator: Translator
) -> None:
    """Claims 83, 105, 107: a given translation, all positions at once."""
    page = open_page("#/steps")
    page.get_by_label("Translation to force").fill(TRANSLATION)
    look_at_steps(page)
    go(page, "log_probs")
    total = number(page.locator(".forced tfoot td").text_content() or "")
    (score,) = translator.score([SENTENCE], [TRANSLATION])
    assert total == pytest.approx(-score.log_prob, abs=5e-3)
    page.get_by_label("Label smoothing").press("End")
    expect(page.locator(".forced")).to_contain_text("Label smoothing 0.30")
    assert number(page.locator(".forced tfoot td").text_content() or "") > total


def look_at_steps(page: Page) -> None:
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".step-why")).to_be_visible()


def test_a_smoothed_loss_by_hand(open_page: Open) -> None:
    log_probs = [math.log(p) for p in (0.5, 0.25, 0.25, 0.1, 0.1, 0.8)]
    plain = call(open_page(), "steps-forced.js", "lossesOf", log_probs, [0, 2], 0)
    assert plain == pytest.approx([-math.log(0.5), -math.log(0.8)])
    smoothed = call(open_page(), "steps-forced.js", "lossesOf", log_probs, [0, 2], 0.3)
    spread = -(math.log(0.5) + 2 * math.log(0.25)) / 3
    assert smoothed[0] == pytest.approx(0.7 * -math.log(0.5) + 0.3 * spread)


def test_formulas_become_mathml(open_page: Open) -> None:
    page = open_page()
    page.wait_for_load_state("networkidle")
    found = page.evaluate(
        """async (path) => {
            const { mathOf } = await import(new URL(path, document.baseURI).href);
            return mathOf("S = Q Kᵀ / √d_k").innerHTML;
        }""",
        page.evaluate("document.querySelector('script[type=module]').getAttribute('src')").replace(
            "main.js", "formula.js"
        ),
    )
    assert "<msup><mi>K</mi><mo>⊤</mo></msup>" in found
    assert "<msqrt><msub><mi>d</mi><mi>k</mi></msub></msqrt>" in found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(open_page: Open, theme: str) -> None:
    page = open_page("#/steps", color_scheme=theme)
    look_at_steps(page)
    for node in ("decoder.0.self_attention.key", "logits"):
        go(page, node)
        wait_until_settled(page)
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()


def test_markup_in_a_sentence_stays_text(open_page: Open) -> None:
    page = opened(open_page, "<img src=x onerror=alert(1)> <b>snow</b>")
    expect(page.locator(".step-tensor")).to_contain_text("<")
    expect(page.locator(".step-tensor img, .step-tensor b")).to_have_count(0)


def test_the_screen_fits_a_phone(open_page: Open) -> None:
    page = open_page("#/steps", viewport={"width": 360, "height": 700})
    look_at_steps(page)
    go(page, "encoder.0.self_attention.weights")
    wait_until_it_fits(page)


def test_a_tensor_is_saved(open_page: Open, trace: Trace) -> None:
    page = opened(open_page)
    name = "decoder.0.cross_attention.weights"
    go(page, name, head=1)
    for kind in ("SVG", "PNG", "CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save as {kind}").click()
        assert download.value.suggested_filename == f"{name}.{kind.lower()}"
        content = download.value.path().read_bytes()
        assert content
    saved = json.loads(content)
    np.testing.assert_allclose(saved["values"], trace[name][1].ravel(), rtol=1e-6)
    go(page, "logits", row=1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + trace["logits"].shape[1]


def test_a_weight_is_a_heat_map(open_page: Open, translator: Translator) -> None:
    page = opened(open_page)
    go(page, "decoder.0.feed_forward.expanded")
    page.locator(".inputs > summary").click()
    weight = "decoder.0.feed_forward.expand.weight"
    card = page.locator(f'[data-weight="{weight}"]')
    card.locator("summary").click()
    expect(card.locator("canvas.plane")).to_be_visible()
    values = translator.traced.network.get_parameter(weight).detach().numpy()
    expect(card.locator("p")).to_have_text(" × ".join(map(str, values.shape)))
    card.locator("canvas.plane").click(position={"x": 47, "y": 11})
    expect(card.locator("p")).to_have_text(f"0, 0: {values[0, 0]:.3f}".replace("-", "−"))
    with page.expect_download() as download:
        card.get_by_role("button", name="Save as CSV").click()
    rows = download.value.path().read_text(encoding="utf-8").splitlines()
    found = np.array([[float(cell) for cell in row.split(",")[1:]] for row in rows[1:]])
    np.testing.assert_allclose(found, values, rtol=1e-6)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            DecoderConfig(src_vocab_size=9, tgt_vocab_size=9, d_model=8, n_heads=2, n_layers=1),
            {
                "Decoder": "Softmax Logits States Layer 0 Embedded target Embedded source "
                "Embedding + position",
            },
        ),
        (
            RecurrentConfig(src_vocab_size=9, tgt_vocab_size=9, d_model=8),
            {
                "Encoder": "Bridge Last states Memory Layer 0 Embedded source",
                "Decoder": "Softmax Logits States Cross-attention Layer 0 Embedded target",
            },
        ),
        (
            ModelConfig(
                src_vocab_size=9,
                tgt_vocab_size=9,
                d_model=8,
                n_heads=2,
                n_encoder_layers=1,
                n_decoder_layers=1,
                positions="rotary",
            ),
            {
                "Encoder": "Memory Layer 0 Embedding",
                "Decoder": "Softmax Logits States Layer 0 Embedding",
            },
        ),
    ],
    ids=["decoder", "rnn", "rotary"],
)
def test_the_diagram_has_the_stacks_of_the_family(
    open_page: Open, config: AnyConfig, expected: dict[str, str]
) -> None:
    network, stages = build_model(config).eval(), Stages(config)
    model = TorchDecodable(network, torch.device("cpu"))
    with recording(network) as caught:
        model.teacher_forced(np.array([[5, 6, 3]]), np.array([[2, 8]]))
    nodes = [{"name": name, "formula": stages.of(name).formula} for name in caught]
    version, _ = read_page(CHAR_LIMIT)
    found = open_page().evaluate(
        """async ([path, nodes]) => {
            const { diagram } = await import(new URL(path, document.baseURI).href);
            return [...diagram(nodes, "log_probs", () => {}).querySelectorAll(".stack")].map(
                (stack) => [...stack.children].map((child) => child.textContent));
        }""",
        [f"page/{version}/steps-diagram.js", nodes],
    )
    assert {title: " ".join(blocks) for title, *blocks in found} == expected
