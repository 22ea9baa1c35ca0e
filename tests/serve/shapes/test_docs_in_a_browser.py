"""The page of the APIs, used in Chromium: nothing is complained about, nobody else is asked."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def page(program: str, browser: Browser) -> Iterator[Page]:
    """The page, whose every complaint is a failure."""
    complaints: list[str] = []
    page = browser.new_page()
    page.set_default_timeout(10_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto(f"{program}/docs")
    page.wait_for_selector("details")
    yield page
    page.close()
    assert hosts == {urlsplit(program).netloc}
    # Chromium itself notes each answer that is an error; one test asks for one.
    assert all("status of 400" in complaint for complaint in complaints), complaints


def section(page: Page, path: str, method: str = "POST") -> str:
    """Selects the endpoint of a path, and opens it."""
    found = f'details[data-find^="{method.lower()} {path} "]'
    if page.locator(found).get_attribute("open") is None:
        page.click(f"{found} > summary")
    return found


def test_an_endpoint_is_asked_with_its_example(page: Page) -> None:
    found = section(page, "/translate")
    page.click(f"{found} button")
    page.wait_for_function(
        "found => document.querySelector(found + ' .status').textContent.startsWith('200')",
        arg=found,
    )
    command, answer = page.locator(f"{found} pre").all_inner_texts()
    assert command.startswith("curl -s -X POST 'http://127.0.0.1:")
    assert '"translatedText"' in answer


def test_a_text_is_never_taken_for_markup(page: Page) -> None:
    found = section(page, "/translate")
    page.fill(f"{found} textarea", "<img src=x onerror=alert(1)>")
    page.fill(f"{found} input >> nth=0", "<b>zz</b>")
    page.click(f"{found} button")
    page.wait_for_selector(f"{found} .status.bad")
    assert "<b>zz</b> is not supported" in page.locator(f"{found} pre >> nth=1").inner_text()
    assert page.locator(f"{found} pre b, {found} pre img").count() == 0


def test_other_endpoints_are_hidden_by_a_search(page: Page) -> None:
    page.fill("#filter", "glossaries")
    shown = page.locator("details:visible .path").all_inner_texts()
    assert shown
    assert all("glossar" in path for path in shown)
    page.fill("#filter", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    section(page, "/v2/translate")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
