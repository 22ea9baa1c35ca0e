"""What the first load of each screen takes: bytes as they are sent, requests, time until it paints.

Serves a model and opens each screen in a browser without a cache, with a sentence. Written: kB sent
for files of the page (compressed, with headers), requests to other hosts, milliseconds until the
first paint (of several loads the shortest, for other programs only add time), and milliseconds
until the screen shows the numbers of the sentence, which the server traces meanwhile, and of these
the processor time of the page's thread and of the server.

    python benchmarks/page_load.py MODEL "A man is riding a bike."
    python benchmarks/page_load.py MODEL SENTENCE --translation OTHER --repeat 32
"""

import json
import sys
import time
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page

from page_frames import arguments, look, measured, served, spent

SCREENS = {
    "attention": ".drawn canvas.cells",
    "attention?view=lines": ".drawn svg",
    "steps?node=encoder.0.self_attention.weights": ".worked .sum",
    "decoding": ".tree svg",
    "causes?view=layers": ".guess",
    "positions": "canvas.plane",
}
"""By address, what shows the numbers."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


def opened(page: Page, address: str, screen: str, shown: str) -> dict[str, Any]:
    """One load, without a cache."""
    session = measured(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    ours = urlsplit(address).netloc
    files: dict[str, bool] = {}
    found: dict[str, Any] = {"kb": 0.0, "elsewhere": 0}

    def asked(event: Any) -> None:
        url = urlsplit(event["request"]["url"])
        files[event["requestId"]] = not url.path.startswith("/api/")
        found["elsewhere"] += url.scheme.startswith("http") and url.netloc != ours

    def came(event: Any) -> None:
        if files.get(event["requestId"]):
            found["kb"] += event["encodedDataLength"] / 1000

    session.on("Network.requestWillBeSent", asked)
    session.on("Network.loadingFinished", came)
    page.goto(f"{address}#/{screen}")  # the address differs in its fragment alone
    found["kb"] = 0.0
    begun = 1000 * time.monotonic(), 1000 * time.process_time(), *spent(session, "Task")
    page.reload()
    page.locator(shown).first.wait_for()
    ended = 1000 * time.monotonic(), 1000 * time.process_time(), *spent(session, "Task")
    names = ("ms_shown", "cpu_ms_server", "cpu_ms_page")
    for name, start, end in zip(names, begun, ended, strict=True):
        found[name] = end - start
    page.wait_for_load_state("networkidle")
    found["ms_paint"] = page.evaluate(PAINT)
    session.detach()
    return found


def main() -> None:
    """Serve, open, print a line of JSON for each screen."""
    parser = arguments(__doc__.partition("\n")[0], "screens")
    parser.add_argument("--loads", type=int, default=5)
    asked = parser.parse_args()
    with served(asked.model) as (page, address):
        look(page, address, asked)
        for screen, shown in SCREENS.items():
            if not screen.startswith(asked.only):
                continue
            loads = [opened(page, address, screen, shown) for _ in range(asked.loads)]
            found = {
                "screen": screen,
                "kb_compressed": round(max(load["kb"] for load in loads), 1),
                "requests_elsewhere": sum(load["elsewhere"] for load in loads),
                "ms_first_paint": round(min(load["ms_paint"] for load in loads)),
                **{
                    name: round(min(load[name] for load in loads))
                    for name in ("ms_shown", "cpu_ms_page", "cpu_ms_server")
                },
            }
            sys.stdout.write(f"{json.dumps(found)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
