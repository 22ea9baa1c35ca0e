"""How long the frames of the page take while a cursor moves over a large heat map.

Serves a model, opens the page in Chromium, draws maps of random numbers, and moves over one cell in
every frame. Written: milliseconds until a map is drawn and between frames (16.7 at 60 a second).

    python benchmarks/page_maps.py MODEL --sides 50,200,512
"""

import argparse
import json
import sys

from playwright.sync_api import Page

from page_frames import frame_times, served

SCRIPT = """async ([side, nFrames]) => {
  const script = document.querySelector("script[type=module]").src;
  const { heatmap } = await import(new URL("heatmap.js", script));
  const labels = Array.from({ length: side }, (_, index) => `▁token${index}`);
  const values = Float32Array.from({ length: side * side }, () => Math.random());
  const begun = performance.now();
  const sides = { rows: { side: "tgt" }, columns: { side: "src" } };
  const map = heatmap({ label: "random", rows: labels, columns: labels, values, sides });
  document.querySelector("#inside").replaceChildren(map);
  await new Promise(requestAnimationFrame);
  const made = performance.now() - begun;
  const canvas = map.querySelector("canvas");
  const box = canvas.getBoundingClientRect();
  const frames = [];
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < nFrames; frame += 1) {
    const [x, y] = [(frame * 7) % side, (frame * 3) % side];
    const place = (start, length, cell) => start + ((cell + 0.5) / side) * length;
    const [clientX, clientY] = [place(box.left, box.width, x), place(box.top, box.height, y)];
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY }));
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  return { made, frames };
}"""


def measure(page: Page, side: int, n_frames: int) -> dict[str, float]:
    """Frame times of a map of this many rows and columns."""
    found = page.evaluate(SCRIPT, [side, n_frames])
    return {
        "side": side,
        "ms_until_drawn": round(found["made"], 1),
        **frame_times(found["frames"]),
    }


def main() -> None:
    """Serve, open, measure, print a line of JSON for each side."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="model folder")
    parser.add_argument("--sides", default="50,200,512", help="rows and columns of the maps")
    parser.add_argument("--frames", type=int, default=300)
    arguments = parser.parse_args()
    with served(arguments.model) as (page, address):
        page.goto(f"{address}#/attention")
        page.wait_for_selector(".textbar")
        for side in map(int, arguments.sides.split(",")):
            sys.stdout.write(f"{json.dumps(measure(page, side, arguments.frames))}\n")


if __name__ == "__main__":
    main()
