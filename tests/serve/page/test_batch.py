"""Several sentences on the page are one batch: its axis is chosen, and its padding is shown."""

import re
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.serve.page.conftest import (
    SENTENCE,
    TRANSLATION,
    Open,
    copied,
    rows_of,
    wait_until_it_fits,
    wait_until_settled,
)

from heed.translate.trace import BatchTrace
from heed.translate.translator import load

LINES = [SENTENCE, "A man"]
SHORT = "Ein Mann"
CROSS = "decoder.0.cross_attention"


@pytest.fixture(scope="module")
def batch(models: tuple[str, str]) -> BatchTrace:
    found = load(models[0], threads=1).trace(LINES, [None, SHORT])
    assert found.sentences[1].n_src_padding
    assert found.sentences[1].n_tgt_padding
    return found


def opened(open_page: Open, address: str, **options: Any) -> Page:
    """The screen at this address, with both sentences."""
    left = {"heed.looked": "\n".join(LINES), "heed.forced": f"\n{SHORT}"}
    page = open_page(address, left=left, **options)
    expect(page.get_by_label("Sentence 1 of the batch", exact=True)).to_have_value(LINES[1])
    expect(page.locator(".padded")).to_contain_text("One batch: 2 ×")
    return page


def cells_of(page: Page) -> list[list[str]]:
    """The table beside the map, without the labels of its rows."""
    return [row[1:] for row in rows_of(page.locator(".twin").first)]


def test_a_second_sentence_makes_a_batch(open_page: Open, models: tuple[str, str]) -> None:
    batch = load(models[0], threads=1).trace(LINES)
    page = open_page("#/attention")
    page.get_by_label("Sentence to look into").fill(LINES[0])
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".thumb").first).to_be_visible()
    page.get_by_role("button", name="Add a sentence").click()
    expect(page.get_by_label("Sentence 1 of the batch", exact=True)).to_be_focused()
    page.keyboard.type(LINES[1])
    page.keyboard.press("Enter")
    n_src, n_tgt = (len(batch.sentences[0].source_tokens), len(batch.sentences[0].target_tokens))
    expect(page.locator(".padded")).to_contain_text(f"2 × {n_src} source and 2 × {n_tgt} target")
    expect(page.get_by_label("Translation of sentence 1")).to_have_attribute(
        "placeholder", batch.sentences[1].translation
    )
    expect(page).to_have_url(re.compile(r"batch=0"))
    assert LINES[1].split()[1] not in page.url
    page.get_by_role("button", name="Show sentence 1").press("Enter")
    expect(page).to_have_url(re.compile(r"batch=1"))
    expect(page.locator(".heads .padding").first).to_have_text("<pad>")
    page.get_by_role("button", name="Leave out sentence 0").click()
    expect(page.get_by_label("Sentence to look into")).to_have_value(LINES[1])
    expect(page.locator(".heads .padding")).to_have_count(0)
    expect(page).not_to_have_url(re.compile(r"batch="))


def test_the_sentences_of_the_translator_are_a_batch(open_page: Open) -> None:
    """So each is decoded as it is translated."""
    page = open_page()
    page.get_by_label("Text to translate").fill(f"{SENTENCE} A man plays at home.")
    expect(page.locator("#translation")).to_contain_text(TRANSLATION)
    expect(page.locator("#translation")).to_contain_text("Ein Mann")
    page.get_by_role("link", name="Decoding").click()
    expect(page.get_by_label("Sentence 0 of the batch", exact=True)).to_have_value(SENTENCE)
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    page.get_by_role("button", name="Show sentence 1").click()
    expect(page.locator(".translation-found")).to_have_text("Ein Mann spielt zu Hause.")


def test_sentences_that_are_read_as_one_are_split_on_request(open_page: Open) -> None:
    page = open_page("#/decoding")
    page.get_by_label("Sentence to look into").fill(f"{SENTENCE} A man plays at home.")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".several")).to_contain_text("2 sentences, read as one.")
    assert not Axe().run(page).response["violations"]
    page.get_by_role("button", name="Split them").click()
    expect(page.get_by_label("Sentence 0 of the batch", exact=True)).to_have_value(SENTENCE)
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    expect(page.locator(".several")).to_be_hidden()


def test_the_batch_axis_of_each_tensor_is_chosen_in_steps(
    open_page: Open, batch: BatchTrace
) -> None:
    page = opened(open_page, f"#/steps?node={CROSS}.weights&head=1")
    expect(page.locator(".step-tensor h2")).to_have_text(f"{CROSS}.weights")
    shape = " × ".join(str(length) for length in batch[f"{CROSS}.weights"].shape)
    for number in (0, 1):
        chips = page.get_by_role("group", name="Batch")
        chips.get_by_role("button", name=str(number), exact=True).click()
        expect(chips.get_by_role("button", name=str(number), exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
        expect(page.locator(".heatmap .heads .padding")).to_have_count(
            batch.sentences[number].n_src_padding
        )
        found = re.sub(r"[a-z+]+ ", "", page.locator(".shape").text_content() or "")
        assert found == shape
        cells = np.array([[float(cell) for cell in row] for row in cells_of(page)])
        expected = batch[f"{CROSS}.weights"][number, 1]
        np.testing.assert_allclose(cells, expected, rtol=6e-3, atol=1e-6)
    expect(page).to_have_url(re.compile(r"batch=1"))
    page.reload()  # the link keeps the choice
    expect(page.get_by_role("button", name="Show sentence 1")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator(".heatmap .heads .padding").first).to_be_visible()


def test_numbers_of_a_batch_are_worked_out(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/steps?batch=1")
    part = batch.sentences[1]
    for name in (
        "encoder.0.self_attention.masked",
        f"{CROSS}.context",
        "encoder.0.feed_forward.out",
    ):
        page.evaluate("hash => { location.hash = hash }", f"#/steps?node={name}&row=1&column=0")
        expect(page.locator(".step-tensor h2")).to_have_text(name)
        expect(page.locator(".worked .agreed")).to_be_visible()
        value = part[name][0, 1, 0] if part[name].ndim == 3 else part[name][1, 0]
        text = page.locator(".worked .sum").text_content() or ""
        assert float(text.rpartition("= ")[2].replace("−", "-")) == pytest.approx(value, abs=2e-3)


def test_no_loss_is_taken_at_padding(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/steps?node=log_probs&batch=1")
    page.locator("details.forced summary").click()
    part = batch.sentences[1].without_padding()
    expect(page.locator(".forced tbody tr")).to_have_count(len(part.expected_tokens))
    loss = -sum(part["log_probs"][i, id_] for i, id_ in enumerate(part.expected_ids))
    total = page.locator(".forced tfoot td").text_content() or ""
    assert float(total) == pytest.approx(float(loss), abs=2e-3)


def test_masks_hide_padding(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/steps?node=masks&batch=1")
    expect(page.locator(".step-tensor h2")).to_have_text("Who may read whom")
    expect(page.get_by_role("heading", name="and padding never")).to_be_visible()
    first = rows_of(page.locator(".twin").nth(1))[0][1:]
    n_padding = batch.sentences[1].n_src_padding
    assert first == ["1"] * (len(first) - n_padding) + ["−∞"] * n_padding


def test_columns_of_padding_are_hatched_and_exactly_0(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/attention?batch=1&layer=0&head=0")
    part = batch.sentences[1]
    n_src, n_tgt = part.n_src_padding, part.n_tgt_padding
    expect(page.locator(".heads .padding")).to_have_count(n_src)
    expect(page.locator(".labels .padding")).to_have_count(n_tgt)
    expect(page.locator(".mark-padding")).to_have_count(2)
    expect(page.locator(".legend")).to_contain_text("padding")
    rows = cells_of(page)
    assert all(set(row[-n_src:]) == {"0"} for row in rows)
    # By keyboard: a cell of padding says what it is.
    page.locator("canvas.cells").focus()
    page.keyboard.press("Home")
    page.keyboard.press("End")
    expect(page.locator(".readout")).to_have_text(re.compile("<pad>: 0, padding$"))
    head = page.get_by_role("button", name=re.compile("^Layer 0, head 0, .* bits$"))
    entropy = head.get_attribute("aria-label") or ""
    weights = part.without_padding()[f"{CROSS}.weights"][0]
    bits = -(weights * np.log2(np.maximum(weights, 1e-30))).sum(axis=1).mean()
    assert float(re.findall(r"[\d.]+(?= bits)", entropy)[0]) == pytest.approx(bits, abs=0.02)


def test_padding_is_switched_off_and_the_link_says_so(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/attention?batch=1&layer=0&head=1")
    page.get_by_label("Padding").uncheck()
    expect(page).to_have_url(re.compile(r"padding=0"))
    expect(page.locator(".labels .padding")).to_have_count(0)
    expect(page.locator(".mark-padding")).to_have_count(0)
    cells = np.array([[float(cell) for cell in row] for row in cells_of(page)])
    expected = batch.sentences[1].without_padding()[f"{CROSS}.weights"][1]
    np.testing.assert_allclose(cells, expected, rtol=6e-3, atol=1e-6)
    page.reload()
    expect(page.get_by_label("Padding")).not_to_be_checked()
    # Without padding there is nothing to switch.
    page.get_by_role("button", name="Show sentence 0").click()
    expect(page.get_by_label("Padding")).to_be_hidden()


def test_behind_the_mask_padding_is_minus_infinity(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/attention?use=encoder&batch=1&stage=masked")
    n_src = batch.sentences[1].n_src_padding
    expect(page.locator(".heads .padding")).to_have_count(n_src)
    assert all(set(row[-n_src:]) == {"−∞"} for row in cells_of(page))


def test_other_views_leave_padding_out_or_gray(open_page: Open, batch: BatchTrace) -> None:
    page = opened(open_page, "#/attention?batch=1&view=lines")
    expect(page.locator(".lines .token.padding").first).to_be_visible()
    page.evaluate("location.hash = '#/attention?batch=1&view=links'")
    expect(page.locator(".alignment .token").first).to_be_visible()
    expect(page.locator(".alignment .token", has_text="<pad>")).to_have_count(0)


def test_screens_of_one_sentence_get_the_chosen_one_alone(
    open_page: Open, batch: BatchTrace
) -> None:
    page = opened(open_page, "#/attention?batch=1")
    page.get_by_role("link", name="Causes").click()
    expect(page.locator(".causes .token").first).to_be_visible()
    expect(page.locator(".causes .token", has_text="<pad>")).to_have_count(0)
    page.get_by_role("link", name="Attention").click()
    expect(page.locator(".heads .padding")).to_have_count(batch.sentences[1].n_src_padding)


def test_a_link_with_the_sentences_brings_the_batch(open_page: Open) -> None:
    page = opened(open_page, "#/attention?batch=1")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy a link with the sentence").click()
    link = copied(page)
    other = open_page(link[link.index("#") :])
    for number, line in enumerate(LINES):
        label = f"Sentence {number} of the batch"
        expect(other.get_by_label(label, exact=True)).to_have_value(line)
    expect(other.locator(".heads .padding").first).to_be_visible()
    expect(other).to_have_url(re.compile(r"#/attention\?batch=1$"))


def test_given_and_own_translations_stand_side_by_side(open_page: Open) -> None:
    page = opened(open_page, "#/steps?node=logits&batch=1")
    page.get_by_label("Translation of sentence 1").fill("Ein Kind")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".step-tensor .tokens")).to_contain_text("Kind")
    expect(page.get_by_label("Translation of sentence 0")).to_have_attribute(
        "placeholder", TRANSLATION
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_batch_is_accessible(open_page: Open, scheme: str, width: int) -> None:
    view = {"width": width, "height": 900}
    page = opened(open_page, "#/attention?batch=1", color_scheme=scheme, viewport=view)
    expect(page.locator(".heads .padding").first).to_be_visible()
    expect(page.locator(".drawn > *")).to_be_visible()
    wait_until_settled(page)
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    wait_until_it_fits(page)
