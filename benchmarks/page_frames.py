"""What `page_maps.py` and `page_views.py` share: the page of a model in Chromium, frame times."""

import shutil
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Page, sync_playwright

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


def frame_times(frames: Sequence[float]) -> dict[str, float]:
    """Milliseconds between frames, summed up; late is more than 25, at 60 frames a second."""
    frames = sorted(frames)
    return {
        "ms_between_frames_median": round(statistics.median(frames), 2),
        "ms_between_frames_95th": round(frames[int(0.95 * len(frames))], 2),
        "frames_late": sum(frame > 25 for frame in frames),
        "frames": len(frames),
    }
