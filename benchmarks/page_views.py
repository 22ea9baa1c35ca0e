"""How long the frames of the page take while a person moves through a view.

Serves a model, opens each view in Chromium with a sentence, and moves a slider or the pointer on in
every frame. Written: milliseconds between frames (16.7 at 60 a second), how much of a frame scripts
and layout take (from the animation frame to the next task), and the processor time of the page's
thread for a frame, to which other programs add nothing.

    python benchmarks/page_views.py MODEL "A man is riding a bike."
    python benchmarks/page_views.py MODEL SENTENCE --repeat 25 --only steps
"""

import json
import statistics
import sys

from playwright.sync_api import Page

from page_frames import arguments, frame_times, look, measured, served, spent

WEIGHTS = "encoder.0.self_attention.weights"
VIEWS = {
    "attention": "#inside .main-card input[type=range]",
    "attention?": "#inside canvas.cells",
    "attention?view=lines": "#inside .main-card input[type=range]",
    "attention?mix=rollout": "#inside canvas.cells",
    "steps": "#inside input[data-key=slider]",
    f"steps?node={WEIGHTS}": "#inside canvas.cells",
    "steps?node=decoder.0.self_attention.key": "#inside input[data-key=growth]",
    "decoding": "#inside .tree-card input[type=range]",
    "decoding?": "#inside .bars-card input[type=range]",
    "causes": "#inside .stack .part",
    "causes?view=attribution": "#inside canvas.cells",
    "positions": "#inside input[type=range]",
    "positions?": "#inside canvas.plane",
    "positions?view=pieces": "#inside canvas.map",
}
"""By address, what is moved: a slider goes through its values, elsewhere the pointer moves."""
CPU = ("Task", "Script", "RecalcStyle", "Layout")

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
      const event = { ...place, buttons: 1, bubbles: true };
      element.dispatchEvent(new PointerEvent("pointermove", event));
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
    session = measured(page)
    before = spent(session, *CPU)
    found = page.evaluate(SCRIPT, [selector, n_frames])
    took = [after - begun for begun, after in zip(before, spent(session, *CPU), strict=True)]
    work = sorted(found["work"])
    return {
        **frame_times(found["frames"]),
        "ms_work_median": round(statistics.median(work), 2),
        "ms_work_95th": round(work[int(0.95 * len(work))], 2),
        **{f"cpu_ms_{n.lower()}": round(ms / n_frames, 2) for n, ms in zip(CPU, took, strict=True)},
    }


def main() -> None:
    """Serve, open, move, print a line of JSON for each view."""
    parser = arguments(__doc__.partition("\n")[0], "views")
    parser.add_argument("--frames", type=int, default=300)
    asked = parser.parse_args()
    with served(asked.model) as (page, address):
        look(page, address, asked)
        for view, selector in VIEWS.items():
            if not view.startswith(asked.only):
                continue
            page.goto(f"{address}#/{view}")
            page.locator(selector).first.wait_for()
            page.wait_for_load_state("networkidle")
            found = measure(page, selector, asked.frames)
            sys.stdout.write(f"{json.dumps({'view': view, 'moved': selector, **found})}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
