"""How long the frames of the page take while a person moves through a view.

Serves a model, opens each view in Chromium with a sentence, and moves the first slider or the
pointer on in every frame. Written: milliseconds between frames (16.7 at 60 a second), how much of
a frame scripts and layout take (from the animation frame to the next task).

    python benchmarks/page_views.py MODEL "A man is riding a bike."
"""

import argparse
import json
import statistics
import sys
from urllib.parse import quote

from playwright.sync_api import Page

from page_frames import frame_times, served

VIEWS = {
    "attention": "#inside .main-card input[type=range]",
    "attention?view=lines": "#inside .main-card input[type=range]",
    "attention?view=map&mix=rollout": "#inside .main-card canvas",
    "steps": "#inside input[data-key=slider]",
    "decoding": "#inside .tree-card input[type=range]",
    "causes": "#inside .stack .part",
    "causes?view=attribution": "#inside canvas",
    "positions": "#inside input[type=range]",
    "positions?view=pieces": "#inside canvas",
}
"""By address, what is moved: a slider goes through its values, elsewhere the pointer moves."""

SCRIPT = """async ([selector, nFrames]) => {
  const element = document.querySelector(selector);
  const isSlider = element.matches("input");
  const values = isSlider ? Number(element.max) - Number(element.min) + 1 : 0;
  const box = element.getBoundingClientRect();
  const channel = new MessageChannel();
  const task = () => new Promise((resolve) => {
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  });
  const [frames, work] = [[], []];
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < nFrames; frame += 1) {
    const begun = performance.now();
    if (isSlider) {
      element.value = Number(element.min) + (frame % values);
      element.dispatchEvent(new Event("input", { bubbles: true }));
    } else {
      const [x, y] = [((frame * 7) % 97) / 97, ((frame * 3) % 89) / 89];
      const place = { clientX: box.left + x * box.width, clientY: box.top + y * box.height };
      element.dispatchEvent(new PointerEvent("pointermove", { ...place, bubbles: true }));
    }
    const now = await new Promise(requestAnimationFrame);
    await task(); // style, layout and paint are done
    work.push(performance.now() - Math.max(now, begun));
    frames.push(now - last);
    last = now;
  }
  return { frames, work };
}"""


def measure(page: Page, selector: str, n_frames: int) -> dict[str, float]:
    """Frame times of the view that is open."""
    found = page.evaluate(SCRIPT, [selector, n_frames])
    work = sorted(found["work"])
    return {
        **frame_times(found["frames"]),
        "ms_work_median": round(statistics.median(work), 2),
        "ms_work_95th": round(work[int(0.95 * len(work))], 2),
    }


def main() -> None:
    """Serve, open, move, print a line of JSON for each view."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="model folder")
    parser.add_argument("sentence", help="that the views show")
    parser.add_argument("--frames", type=int, default=300)
    asked = parser.parse_args()
    with served(asked.model) as (page, address):
        page.set_default_timeout(120_000)
        page.goto(f"{address}#/attention?text={quote(asked.sentence)}")
        page.locator(".thumb canvas").first.wait_for()
        for view, selector in VIEWS.items():
            page.goto(f"{address}#/{view}")
            page.locator(selector).first.wait_for()
            page.wait_for_load_state("networkidle")
            found = measure(page, selector, asked.frames)
            sys.stdout.write(f"{json.dumps({'view': view, **found})}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
