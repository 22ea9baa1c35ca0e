"""What `page_maps.py`, `page_views.py` and `page_load.py` share: a page in Chromium, its times."""

import argparse
import shutil
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import uvicorn
from playwright.sync_api import CDPSession, Page, sync_playwright

from heed.serve.app import make_app
from heed.serve.run import make_service
from heed.serve.settings import ServeSettings, Work


@contextmanager
def served(model: str) -> Iterator[tuple[Page, str]]:
    """A page of Chromium, and the address at which a model is served meanwhile."""
    settings = ServeSettings(models=(model,), work=Work(timeout_s=600))  # a machine may be busy
    service = make_service(settings)
    server = uvicorn.Server(uvicorn.Config(make_app(service), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            yield page, f"http://127.0.0.1:{port}/"
            browser.close()
    finally:
        server.should_exit = True
        thread.join()
        service.close()


def arguments(description: str, shown: str) -> argparse.ArgumentParser:
    """A command line with a model and a sentence; `shown` names what is measured."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("model", help="model folder")
    parser.add_argument("sentence", help=f"that the {shown} show")
    parser.add_argument("--translation", default="", help="of it; default: the model's own")
    parser.add_argument("--repeat", type=int, default=1, help="of the texts, for long ones")
    parser.add_argument("--only", default="", help=f"{shown} whose addresses begin so")
    return parser


def look(page: Page, address: str, asked: argparse.Namespace) -> None:
    """Open the page with the texts of the command line, and wait until they are traced."""
    text, translation = (
        quote(" ".join([part] * asked.repeat).strip())
        for part in (asked.sentence, asked.translation)
    )
    given = f"&translation={translation}" if translation else ""
    page.set_default_timeout(600_000)
    page.goto(f"{address}#/attention?text={text}{given}")
    page.locator(".thumb canvas").first.wait_for()


def measured(page: Page) -> CDPSession:
    """A session in which `spent` can be asked."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def spent(session: CDPSession, *kinds: str) -> list[float]:
    """Milliseconds of processor time of the page's thread, by kind: `Task` is all of it."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    values = {metric["name"]: metric["value"] for metric in metrics}
    return [1000 * values[f"{kind}Duration"] for kind in kinds]


def frame_times(frames: Sequence[float]) -> dict[str, float]:
    """Milliseconds between frames, summed up; late is more than 25, at 60 frames a second."""
    frames = sorted(frames)
    return {
        "ms_between_frames_median": round(statistics.median(frames), 2),
        "ms_between_frames_95th": round(frames[int(0.95 * len(frames))], 2),
        "frames_late": sum(frame > 25 for frame in frames),
        "frames": len(frames),
    }
