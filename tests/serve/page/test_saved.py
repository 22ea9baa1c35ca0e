"""The files that each view saves: drawings, pictures and tables of what it shows."""

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.serve.page.conftest import SENTENCE, Open, wait_until_settled

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

VIEWS = {
    "attention": (".drawn canvas", ["heads-cross", "attention-cross-0-0"]),
    "attention?row=1&col=2": (
        ".cell-numbers canvas",
        ["heads-cross", "attention-cross-0-0", "cell-cross-0-0-1-2"],
    ),
    "attention?view=lines": (".drawn path", ["heads-cross", "attention-cross-0-0"]),
    "attention?view=links": (".drawn path", ["heads-cross", "attention-cross-alignment"]),
    "steps?node=encoder.0.self_attention.weights": (
        ".step-tensor canvas",
        ["encoder.0.self_attention.weights"],
    ),
    "steps?node=log_probs": (".likeliest td", ["log_probs"]),
    "decoding": (".bar-row", ["search", "next-token", "finished"]),
    "causes": (".part[aria-label*=nats]", ["parts", "changes"]),
    "causes?view=attribution": (".amounts .amount", ["attribution"]),
    "causes?view=layers": (".guess", ["lens-decoder"]),
    "causes?view=layers&side=encoder": (".guess", ["lens-encoder"]),
    "positions": ("canvas.plane", ["positions", "similarity"]),
    "positions?view=pieces&piece=▁child": (".ranking li", ["neighbors", "pieces"]),
    "positions?view=states": ("canvas.map", ["states"]),
}
"""By address, what shows that its numbers are there, and the names of the files that it saves."""


def saved(page: Page, group: Locator, kind: str, folder: Path) -> Path:
    """The file that a button writes."""
    with page.expect_download() as download:
        group.get_by_role("button", name=f"Save as {kind}").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def looking(open_page: Open, **options: object) -> Page:
    page = open_page("#/attention", **options)
    page.get_by_label("Sentence to look into").fill(SENTENCE)
    page.get_by_role("button", name="Look").click()
    expect(page.locator(".thumb canvas").first).to_be_visible()
    return page


def test_every_view_saves_a_drawing_a_picture_and_a_table(open_page: Open, tmp_path: Path) -> None:
    page = looking(open_page)
    for address, (numbers, names) in VIEWS.items():
        page.evaluate("address => { location.hash = `#/${address}` }", address)
        page.reload()  # nothing of the view before is left
        expect(page.locator(numbers).first).to_be_visible()
        groups = page.locator(".save:visible")
        expect(groups).to_have_count(len(names))
        found = set()
        for group in groups.all():
            drawing = saved(page, group, "SVG", tmp_path)
            found.add(drawing.stem)
            root = ElementTree.parse(drawing).getroot()
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert float(root.get("width") or 0) > 40
            assert any((text.text or "").strip() for text in root.iter(f"{root.tag[:-3]}text"))
            picture = saved(page, group, "PNG", tmp_path).read_bytes()
            assert picture.startswith(b"\x89PNG\r\n")
            assert len(picture) > 500
            with saved(page, group, "CSV", tmp_path).open(newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
            assert len(rows) > 1
            assert len({len(row) for row in rows}) == 1, rows[:3]
        assert found == set(names), address


def test_a_drawing_of_parts_has_each_button_and_what_is_pressed(
    open_page: Open, tmp_path: Path
) -> None:
    page = looking(open_page, color_scheme="dark")
    page.evaluate("location.hash = '#/causes'")
    page.get_by_role("button", name="Decoder 0, cross-attention, head 1").click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    expect(page.locator(".part[aria-label*=nats]").first).to_be_visible()
    wait_until_settled(page)
    group = page.locator(".parts .save")
    root = ElementTree.parse(saved(page, group, "SVG", tmp_path)).getroot()
    space = root.tag[:-3]
    texts = [text.text for text in root.iter(f"{space}text")]
    assert {"Encoder", "Decoder", "Cross-attention", "sleeps"} <= set(texts)
    assert texts.count("all") == page.locator(".stack .part", has_text="all").count()
    assert len(list(root.iter(f"{space}path"))) == 1  # the stroke of the pressed one
    # The box of what is drawn begins at the margin, however far down the page it stands.
    boxes = [float(rect.get("y") or 0) for rect in root.iter(f"{space}rect")][1:]
    shift = float((root.find(f"{space}g") or root).get("transform", "0 0)").split()[-1].rstrip(")"))
    assert 30 < min(boxes) + shift < 110
