"""What the first load of each screen takes: bytes as they are sent, requests, time until it paints.

Serves a model and opens each screen in a browser without a cache, with a sentence. Written: kB sent
for files of the page (compressed, with headers), requests to other hosts, milliseconds until the
first paint (of several loads the shortest, for other programs only add time), and milliseconds
until the screen shows the numbers of the sentence, which the server traces meanwhile, and of these
the processor time of the page's thread and of the server.

    python benchmarks/page_load.py MODEL "A man is riding a bike."
    python benchmarks/page_load.py MODEL SENTENCE --translation OTHER --repeat 32
"""

import argparse
import json
import sys
import time
from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import CDPSession, Page

from page_frames import served

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


def spent(session: CDPSession) -> float:
    """Seconds of processor time that the thread of the page has taken."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def opened(page: Page, address: str, screen: str, shown: str) -> dict[str, Any]:
    """One load, without a cache."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
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
    begun = time.monotonic(), time.process_time(), spent(session)
    page.reload()
    page.locator(shown).first.wait_for()
    ended = time.monotonic(), time.process_time(), spent(session)
    names = ("ms_shown", "cpu_ms_server", "cpu_ms_page")
    for name, start, end in zip(names, begun, ended, strict=True):
        found[name] = 1000 * (end - start)
    page.wait_for_load_state("networkidle")
    found["ms_paint"] = page.evaluate(PAINT)
    session.detach()
    return found


def main() -> None:
    """Serve, open, print a line of JSON for each screen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="model folder")
    parser.add_argument("sentence", help="that the screens show")
    parser.add_argument("--translation", default="", help="of it; default: the model's own")
    parser.add_argument("--repeat", type=int, default=1, help="of the texts, for long ones")
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--only", default="", help="screens whose addresses begin so")
    asked = parser.parse_args()
    text, translation = (
        " ".join([part] * asked.repeat).strip() for part in (asked.sentence, asked.translation)
    )
    given = f"&translation={quote(translation)}" if translation else ""
    with served(asked.model) as (page, address):
        page.set_default_timeout(600_000)
        page.goto(f"{address}#/attention?text={quote(text)}{given}")
        page.locator(".thumb canvas").first.wait_for()
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
