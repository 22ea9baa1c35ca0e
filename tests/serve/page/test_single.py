"""The page as one file, opened from the disk by a browser without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.serve.page.conftest import SENTENCE, TRANSLATION, rows_of, wait_until_settled
from tests.serve.page.test_translate import assert_accessible

from heed.explain.causes.effects import effect_on
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Head
from heed.serve.export import SCREENS, write_page
from heed.serve.settings import Inside, ServeSettings
from heed.translate.translator import load

pytestmark = [pytest.mark.slow, pytest.mark.reliability]


@pytest.fixture(scope="module")
def file(models: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("single") / "page.html"
    settings = ServeSettings(models=models[:1], inside=Inside(enabled="on"))
    write_page(path, settings, SENTENCE)
    return path


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """The file in a browser that is offline; it may log nothing and ask for nothing."""
    yield from offline(browser, file)


@pytest.fixture
def batch_page(browser: Browser, models: tuple[str, str], tmp_path: Path) -> Iterator[Page]:
    """The same of a file about two sentences."""
    settings = ServeSettings(models=models[:1], inside=Inside(enabled="on"))
    write_page(tmp_path / "batch.html", settings, f"{SENTENCE}\nA man")
    yield from offline(browser, tmp_path / "batch.html")


def offline(browser: Browser, file: Path) -> Iterator[Page]:
    complaints: list[str] = []
    context = browser.new_context(offline=True, locale="en-US")
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: complaints.extend(
            [] if request.url.startswith(("data:", "blob:", file.as_uri())) else [request.url]
        ),
    )
    page.goto(file.as_uri())
    yield page
    context.close()
    assert complaints == []


@pytest.mark.parametrize("text", [f"\n{SENTENCE}", f"{SENTENCE}\n", f" \r\n{SENTENCE} \r\n"])
def test_a_sentence_with_line_breaks_around_it_is_shown(
    browser: Browser, models: tuple[str, str], tmp_path: Path, text: str
) -> None:
    settings = ServeSettings(models=models[:1], inside=Inside(enabled="on"))
    write_page(tmp_path / "page.html", settings, text)
    for page in offline(browser, tmp_path / "page.html"):
        page.goto(f"{(tmp_path / 'page.html').as_uri()}#/decoding")
        expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
        page.goto(f"{(tmp_path / 'page.html').as_uri()}#/attention")
        page.get_by_role("button", name="Look").locator("visible=true").click()
        wait_until_settled(page)
        expect(page.locator(".thumb").first).to_be_visible()
        expect(page.locator("#inside .textbar .message")).to_have_text("")


def test_the_search_of_the_file_is_shown_with_its_probabilities(page: Page, file: Path) -> None:
    page.goto(f"{file.as_uri()}#/decoding")
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    expect(page.locator(".distribution .facts")).to_contain_text("Entropy")
    page.goto(f"{file.as_uri()}#/decoding?strategy=greedy")
    expect(page.locator(".translation-found")).to_have_text(TRANSLATION)
    page.goto(f"{file.as_uri()}#/decoding?beam=2")
    expect(page.get_by_text("heed inspect has all").first).to_be_visible()


def test_causes_of_the_file_are_shown(page: Page, file: Path, models: tuple[str, str]) -> None:
    page.goto(f"{file.as_uri()}#/causes")
    expect(page.locator(".stack .part").first).to_be_visible()
    expect(page.locator(".result")).to_contain_text(TRANSLATION)
    part = page.get_by_role("button", name="Decoder 0, cross-attention, head 1")
    part.click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    translator = load(models[0], threads=1)
    pair = Pair.of_trace(translator, translator.trace(SENTENCE))
    effect = effect_on(pair, [Head(attention="decoder.0.cross_attention", head=1)])
    expect(page.locator(".said.new")).to_have_text(effect.new_translation)
    page.get_by_label("Source token 2").click()
    expect(page.locator(".result")).to_contain_text("heed inspect computes all changes")
    part.click()
    expect(page.locator(".probabilities .after").first).to_be_visible()
    expect(page.get_by_label("Scale of what is pressed")).to_be_disabled()
    for view in ("attribution", "layers"):
        page.goto(f"{file.as_uri()}#/causes?view={view}")
        expect(page.locator("main .causes")).to_contain_text("Park")


def test_a_file_of_a_batch_shows_each_sentence(batch_page: Page, models: tuple[str, str]) -> None:
    batch = load(models[0], threads=1).trace([SENTENCE, "A man"])
    for number, part in enumerate(batch.sentences):
        batch_page.get_by_role("button", name=f"Show sentence {number}").click()
        expect(batch_page.locator(".heads .padding")).to_have_count(part.n_src_padding)
        expect(batch_page.locator(".heatmap .labels span")).to_have_count(len(part.target_tokens))
        cells = rows_of(batch_page.locator(".twin"))[0][1:]
        weights = part["decoder.0.cross_attention.weights"][0, 0]
        assert [float(cell) for cell in cells] == pytest.approx(weights, rel=6e-3, abs=1e-6)


def test_the_file_shows_the_sentence_and_its_attention(page: Page) -> None:
    expect(page.get_by_label("Sentence to look into")).to_have_value(SENTENCE)
    expect(page.get_by_label("Translation to force")).to_have_attribute("placeholder", TRANSLATION)
    expect(page.locator("canvas").first).to_be_visible()
    assert_accessible(page)


def test_each_screen_of_the_file_opens(page: Page, file: Path) -> None:
    shown = {"steps": ".step-tensor", "decoding": ".tree svg", "causes": ".stack"}
    for screen in SCREENS:
        page.goto(f"{file.as_uri()}#/{screen}")
        expect(page.locator(f"main {shown.get(screen, 'canvas')}").first).to_be_visible()
    for node in ("encoder.0.self_attention.value", "decoder.0.feed_forward.out", "logits"):
        page.goto(f"{file.as_uri()}#/steps?node={node}")
        expect(page.locator(".step-tensor h2")).to_have_text(node)
        expect(page.get_by_text("the same as the model’s")).to_be_visible()
    page.goto(f"{file.as_uri()}#/steps?node=encoder.0.self_attention.value&column=3")
    expect(page.get_by_text("heed inspect has all")).to_be_visible()
    page.goto(f"{file.as_uri()}#/positions?view=states&side=target")
    expect(page.locator("canvas.map")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_count(2)


def test_the_numbers_of_the_file_are_those_of_the_trace(
    page: Page, models: tuple[str, str]
) -> None:
    expect(page.locator("canvas").first).to_be_visible()
    found = page.evaluate(
        """async () => {
            const { looked, tensor } = await import("heed/looked.js");
            const name = looked.trace.nodes.find((node) => node.name.endsWith("weights")).name;
            return [name, Array.from((await tensor(name)).data)];
        }"""
    )
    expected = load(models[0]).trace(SENTENCE)[found[0]].ravel()
    assert found[1] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_another_sentence_is_refused_with_a_sentence(page: Page) -> None:
    page.get_by_label("Sentence to look into").fill("Another one.")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("This file holds one sentence")).to_be_visible()
