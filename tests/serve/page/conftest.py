"""A server with two taught models, and a browser whose every complaint is a failure."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.serve.page.taught import teach

from heed.serve.app import make_app
from heed.serve.run import make_service
from heed.serve.settings import Limits, ServeSettings, Work

CHAR_LIMIT = 2000
SENTENCE = "A child sleeps in the park."
TRANSLATION = "Ein Kind schläft im Park."


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The folders of two models, English to German and back."""
    folder = tmp_path_factory.mktemp("taught")
    return teach(folder / "en-de", "en", "de"), teach(folder / "de-en", "de", "en")


@pytest.fixture(scope="session")
def address(models: tuple[str, str]) -> Iterator[str]:
    """The address of a server for English and German."""
    patient = Work(timeout_s=2 * PATIENCE_S)
    service = make_service(
        ServeSettings(models=models, limits=Limits(chars=CHAR_LIMIT), work=patient)
    )
    server = uvicorn.Server(uvicorn.Config(make_app(service), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join()
    service.close()


PATIENCE_S = 60  # a machine may be busy
expect.set_options(timeout=1000 * PATIENCE_S)

SETTLED = """() => !document.querySelector(".is-busy, [aria-busy=true]")
    && document.getAnimations().every(({ playState, effect }) =>
        playState !== "running" || effect.getComputedTiming().iterations === Infinity)"""
OPENED = """twin => {
    if (!twin.open) twin.querySelector("summary").click();
    return [...twin.querySelectorAll("tbody tr")].map(({ cells }) =>
        [...cells].map((cell) => cell.textContent));
}"""


# A script of a context runs at each reload, too.
LEFT = """if (!sessionStorage.length) {
    for (const [name, text] of Object.entries(TEXTS)) sessionStorage.setItem(name, text);
}"""


def wait_until(page: Page, is_so: Callable[[], object]) -> None:
    """Wait for what no `expect` can say: the page works on meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        page.wait_for_timeout(50)


def wait_until_settled(page: Page) -> None:
    """Wait until nothing is computed and nothing moves."""
    page.wait_for_function(SETTLED)


def wait_until_it_fits(page: Page) -> None:
    """Wait until nothing is wider than the window.

    A function, as an expression is evaluated anew each time, which the page's policy forbids.
    """
    page.wait_for_function("() => document.documentElement.scrollWidth <= screen.width")


def two_frames(page: Page) -> None:
    """Wait until what the last event asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def rows_of(twin: Locator) -> list[list[str]]:
    """The rows of the table in a `details`, which is opened.

    A map that was being drawn may take the place of the one whose table opened: then once more.
    """
    found: list[list[str]] = []

    def has_rows() -> bool:
        found[:] = twin.evaluate(OPENED)
        return bool(found)

    wait_until(twin.page, has_rows)
    return found


def require_key(page: Page, path: str) -> None:
    """Requests of this path are answered with 401 unless they have the key `secret`."""

    def answer(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer secret":
            route.fallback()
        else:
            error = {"code": "invalid_key", "sentence": "Invalid API key"}
            route.fulfill(status=401, json={"error": error})

    page.route(path, answer)


def copied(page: Page) -> str:
    """The text in the clipboard, once a button has said that it is there."""
    expect(page.locator("#status")).to_have_text("Copied.")
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


Open = Callable[..., Page]


@pytest.fixture
def complaints() -> list[str]:
    """What the browser logged, and which other hosts the page asked; must be empty in the end."""
    return []


@pytest.fixture
def open_page(browser: Browser, address: str, complaints: list[str]) -> Iterator[Open]:
    """`open_page(color_scheme="dark", …)`: the page in a new context; options of `new_context`.

    `left` is what the session holds from before, by name.

    Afterwards nothing may have been logged, nor another host been asked. A test that makes the
    server fail clears `complaints` itself.
    """
    contexts = []

    def open_(path: str = "", left: dict[str, str] | None = None, **options: Any) -> Page:
        context = browser.new_context(locale="en-US", **options)
        context.set_default_timeout(1000 * PATIENCE_S)
        contexts.append(context)
        if left is not None:
            context.add_init_script(LEFT.replace("TEXTS", json.dumps(left)))
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend(_elsewhere(request.url, address)))
        page.goto(address + path)
        return page

    yield open_
    # Before handlers are removed: the server may refuse what was meant for them.
    found = [*complaints]
    for context in contexts:
        # A handler that is still fetching an answer would fail the next test.
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    assert found == []


def _elsewhere(url: str, address: str) -> list[str]:
    parts = urlsplit(url)
    is_ours = parts.scheme in ("data", "blob") or parts.netloc == urlsplit(address).netloc
    return [] if is_ours else [f"asked {url}"]
