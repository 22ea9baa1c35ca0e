"""The training screen shows what the log says: live, finished, overlaid and hostile runs."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn
from playwright.sync_api import Page, expect
from tests.explain.training.made import epoch, start, step, validation, write
from tests.serve.page.conftest import Open, wait_until_it_fits
from tests.serve.page.test_translate import assert_accessible

from heed.disk.files import cut_json_lines, lock
from heed.serve.app import make_app
from heed.serve.run import make_service
from heed.serve.settings import Inside, ServeSettings
from heed.serve.shapes import training
from heed.train.step.control import CONTROL_FILE

pytestmark = [pytest.mark.slow, pytest.mark.reliability]

HOSTILE = "<img src=x onerror=alert(1)>&'\" \u202ename"
ARABIC = "كلبان يلعبان في الثلج."
ALARM = {
    "kind": "alarm",
    "step": 40,
    "text": "the rate is <b>high</b>",
    "remedy": "halve <i>it</i>",
}
FORECAST = {"bleu": {"low": 20.0, "middle": 25.4, "high": 31.0}}
RECIPE = "[training]\nlearning_rate = {}\n[model]\nname = '<script>'\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs: one to be continued, a finished one, and a hostile one."""
    folder = tmp_path_factory.mktemp("runs")
    begin = [start(), epoch(0, 0), step(20, 4.25), validation(20, 5.5, "Zwei Katzen.", ARABIC)]
    more = [step(40, 3.5), ALARM, validation(40, 12.5, "Zwei Hunde.", ARABIC, forecast=FORECAST)]
    write(folder / "going", [*begin, *more], RECIPE.format(0.002))
    ended = [step(60, 2.0), {"kind": "end", "step": 60, "elapsed_s": 30.0}]
    write(folder / "done", [*begin, *ended], RECIPE.format(0.004))
    evil = {"kind": "note", "step": 20, "text": HOSTILE}
    write(folder / HOSTILE, [*begin, evil, validation(40, 1.0, HOSTILE, "</td>")])
    with open(folder / HOSTILE / "metrics.jsonl", "ab") as file:
        file.write(b"{broken\n")
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a server that shows the three runs."""
    before, training.LOOK_S = training.LOOK_S, 0.1
    runs = tuple(str(folder / name) for name in ("going", "done", HOSTILE, "again"))
    service = make_service(ServeSettings(inside=Inside(runs=runs, token="a secret")))
    server = uvicorn.Server(uvicorn.Config(make_app(service), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    service.close()
    training.LOOK_S = before


def opened(open_page: Open, query: str = "runs=going", **options: object) -> Page:
    page = open_page(f"#/training?{query}", **options)
    expect(page.locator("[data-curve=loss] svg")).to_be_visible()
    return page


def assert_shows(page: Page, curve: str, *rows: list[str]) -> None:
    """The last rows of the table of a chart are these."""
    chart = page.locator(f"[data-curve={curve}]")
    chart.locator("details").evaluate("twin => { twin.open = true }")
    for place, row in enumerate(reversed(rows), start=1):
        cells = chart.locator("tbody tr").nth(-place).locator("th, td")
        expect(cells).to_have_text(row)


def test_curves_and_headline_say_what_the_log_says(open_page: Open) -> None:
    page = opened(open_page, "runs=going&smooth=0")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile("^Ended at step 40 without saving: BLEU 12.5.")
    )
    assert_shows(page, "loss", ["step 20", "4.250", "2.725"], ["step 40", "3.500", "2.375"])
    assert_shows(page, "score", ["step 20", "5.5"], ["step 40", "12.5"])
    assert_shows(page, "learning_rate", ["step 20", "0.001"], ["step 40", "0.001"])
    chart = page.locator("[data-curve=score]")
    expect(chart.locator(".readout")).to_have_text("BLEU 12.5 (11.5–14.0)")
    expect(chart.locator(".note")).to_contain_text("nrefs:1|case:mixed")
    expect(chart.locator(".expected")).to_have_count(1)
    expect(page.locator("div.alarm")).to_contain_text("The rate is <b>high</b>.")
    expect(page.locator("div.alarm .remedy")).to_have_text("halve <i>it</i>")


def test_the_axis_the_score_and_the_loss_are_chosen_and_stand_in_the_address(
    open_page: Open,
) -> None:
    page = opened(open_page)
    page.get_by_role("button", name="Epochs").click()
    expect(page).to_have_url(re.compile("x=epoch"))
    assert_shows(page, "gradient_norm", ["epoch 0.4", "1.5"], ["epoch 0.8", "1.5"])
    page.get_by_role("button", name="Time").click()
    page.get_by_label("Perplexity").check()
    page.get_by_label("Smoothing").fill("0")
    page.get_by_role("combobox", name="Score").select_option("chrF")
    assert_shows(page, "loss", ["20s", "33.12", "10.75"])  # e to the 3.5, to the 2.375
    assert_shows(page, "score", ["20s", "32.5"])
    page.get_by_label("Log scale").check()
    expect(page).to_have_url(re.compile("x=seconds&perplexity=1&smooth=0&score=chrf&log=1"))
    page.reload()
    expect(page.get_by_label("Log scale")).to_be_checked()


def test_the_crosshair_of_all_charts_moves_together_by_mouse_and_by_keys(open_page: Open) -> None:
    page = opened(open_page)
    plot = page.locator("[data-curve=loss] .plot")
    plot.focus()
    page.keyboard.press("Home")
    expect(page.locator("[data-curve=gradient_norm] .at")).to_have_text("step 20")
    expect(page.locator("[data-curve=loss] .readout")).to_contain_text("training 4.250")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-curve=loss] .at")).to_have_text("step 40")
    expect(page.locator("#status")).to_contain_text("Loss: step 40")
    page.keyboard.press("Escape")
    expect(page.locator(".at")).to_have_count(0)
    width = plot.evaluate("plot => plot.clientWidth")
    plot.hover(position={"x": width - 20, "y": 50})
    expect(page.locator("[data-curve=score] .at")).to_have_text("step 40")


def test_samples_show_what_changed_and_the_slider_goes_back(open_page: Open) -> None:
    page = opened(open_page)
    first = page.locator(".sentences tbody tr").first
    expect(page.locator(".scrub output")).to_have_text("step 40 · epoch 0.8 · best so far")
    expect(first.locator("del")).to_have_text("Katzen.")
    expect(first.locator("ins")).to_have_text("Hunde.")
    page.get_by_label("Mark changes").uncheck()
    expect(first.locator("del")).to_have_count(0)
    page.get_by_label("Validation").press("ArrowLeft")
    expect(first.locator(".hyp")).to_have_text("Zwei Katzen.")
    expect(page.get_by_label("Validation")).to_have_attribute(
        "aria-valuetext", "step 20 · epoch 0.4 · best so far"
    )
    expect(page.get_by_role("cell", name=ARABIC)).to_have_css("direction", "rtl")


def test_several_runs_lie_over_each_other_with_the_settings_that_differ(open_page: Open) -> None:
    page = opened(open_page)
    page.get_by_role("button", name="done").click()
    expect(page).to_have_url(re.compile("runs=going%2Cdone"))
    expect(page.locator("[data-curve=loss] .line.run-1.points")).to_have_count(1)
    expect(page.locator("[data-curve=loss] .readout")).to_contain_text("done development")
    page.get_by_text("Settings that differ").click()
    table = page.get_by_role("region", name="Settings that differ")
    cells = table.locator("tbody tr").locator("th, td")
    expect(cells).to_have_text(["training.learning_rate", "0.002", "0.004"])
    page.get_by_role("button", name="going").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Finished after 30 seconds: BLEU 5.5."
    )


def test_all_numbers_are_saved_as_csv(open_page: Open) -> None:
    page = opened(open_page)
    with page.expect_download() as download:
        page.locator(".controls").get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "training.csv"
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("run,kind,step,epoch,seconds,loss")
    assert lines[1].startswith("going,step,20,0.4,10,4.25,0.001")
    assert lines[4].startswith("going,validation,20,0.4,10,2.725,1.9,,5.5,4.5,7")


def test_a_chart_is_saved_as_a_drawing_and_a_table_of_its_own(open_page: Open) -> None:
    page = opened(open_page, "runs=going&smooth=0")
    page.locator("[data-curve=loss] summary").click()
    chart = page.locator("[data-curve=loss]")
    with page.expect_download() as download:
        chart.get_by_role("button", name="Save as SVG").click()
    svg = Path(download.value.path()).read_text(encoding="utf-8")
    assert ">Loss</text>" in svg and "class=" in svg and 'stroke="rgb(12, 107, 102)"' in svg
    page.goto(f"data:text/html,{quote(svg)}")  # well formed, and drawn without the page's styles
    expect(page.locator("svg path").first).to_be_visible()
    page.go_back()
    page.locator("[data-curve=loss] summary").click()
    with page.expect_download() as download:
        chart.get_by_role("button", name="Save as CSV").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").splitlines() == [
        "step,training,development",
        "20,4.25,2.725",
        "40,3.5,2.375",
    ]
    with page.expect_download() as download:
        chart.get_by_role("button", name="Save as PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("title", "rows"),
    [
        ("Events", ["Event,Step,Time,What happened"]),
        ("Settings", ["Setting,Value", "training.learning_rate,0.002"]),
    ],
)
def test_the_tables_of_events_and_settings_are_saved(
    open_page: Open, title: str, rows: list[str]
) -> None:
    page = opened(open_page)
    card = page.locator("details.more", has=page.locator("summary", has_text=title))
    card.locator("summary").click()
    expect(card.locator("td").first).to_be_visible()
    saved = {}
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as download:
            card.get_by_role("button", name=f"Save as {kind}").click()
        assert download.value.suggested_filename == f"{title.lower()}.{kind.lower()}"
        saved[kind] = Path(download.value.path()).read_bytes()
    assert f">{rows[0].split(',')[0]}</text>".encode() in saved["SVG"]
    assert saved["PNG"].startswith(b"\x89PNG")
    assert set(rows) <= set(saved["CSV"].decode().splitlines())


def test_names_and_translations_of_a_hostile_run_are_text(open_page: Open) -> None:
    page = opened(open_page, "runs=" + json.dumps(HOSTILE))  # unknown, so the first is shown
    page.locator(".chip", has_text="name").click()
    page.locator(".chip", has_text="going").click()
    expect(page.locator(".sentences .hyp").first).to_contain_text(HOSTILE)
    expect(page.locator(".sentences .hyp").nth(1)).to_contain_text("</td>")
    page.locator("summary", has_text="Events").click()
    expect(page.get_by_role("region", name="Events")).to_contain_text(HOSTILE)
    expect(page.locator("dl")).to_contain_text("Damaged lines")
    expect(page.locator("img")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Open, folder: Path, theme: str) -> None:
    with lock(folder / "going"):  # a run that trains has all charts
        page = opened(open_page, "runs=going,done", color_scheme=theme)
        for summary in page.locator(".training summary").all():
            summary.click()
        assert_accessible(page)


def test_nothing_is_cut_off_on_a_phone(open_page: Open) -> None:
    page = opened(open_page, viewport={"width": 360, "height": 740})
    wait_until_it_fits(page)


def test_a_run_that_trains_is_followed_saved_and_stopped(open_page: Open, folder: Path) -> None:
    run = folder / "going"
    with lock(run):
        page = opened(open_page, "runs=going&token=a+secret")
        expect(page).to_have_url(re.compile(r"#/training\?runs=going$"))
        expect(page.get_by_role("heading", level=1)).to_have_text(
            re.compile("^BLEU 12.5, .*, ends near 25 ")
        )
        write(run, [step(60, 2.75)])
        expect(page.locator("[data-curve=gradient_norm] svg")).to_have_attribute(
            "aria-label", re.compile("3 values")
        )
        assert_shows(page, "memory_mb", ["step 60", "512"])
        with page.expect_response("**/runs/going/save"):  # the file is written before the answer
            page.get_by_role("button", name="Save now").click()
        expect(page.get_by_text("Saving after this step …")).to_be_visible()
        assert json.loads((run / CONTROL_FILE).read_bytes()) == {"request": "save"}
        (run / CONTROL_FILE).unlink()
        (run / "checkpoints" / "step-000060").mkdir(parents=True)
        write(run, [{"kind": "checkpoint", "step": 60}])
        expect(page.get_by_text("Saved at step 60.")).to_be_visible()
        page.get_by_role("button", name="Save and stop").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Go on training").click()
        assert not (run / CONTROL_FILE).exists()
        page.get_by_role("button", name="Save and stop").click()
        assert_accessible(page)
        with page.expect_response("**/runs/going/stop"):
            dialog.get_by_role("button", name="Save and stop").click()
        expect(page.get_by_text("Saving and stopping after this step …")).to_be_visible()
        assert json.loads((run / CONTROL_FILE).read_bytes()) == {"request": "stop"}
        write(run, [{"kind": "pause", "step": 60}])
    expect(page.get_by_role("heading", level=1)).to_have_text(
        re.compile("^Stopped and saved at step 60: BLEU 12.5.")
    )
    expect(page.get_by_role("button", name="Save now")).to_be_hidden()


def test_the_time_left_is_shown_until_a_run_ends(open_page: Open, folder: Path) -> None:
    with lock(folder / "going"):
        page = opened(open_page)
        chart = page.locator("[data-curve=left_s]")
        expect(chart.locator("svg")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^(Ended|Stopped) "))
    expect(chart).to_be_hidden()
    page.goto(page.url.replace("going", "done"))
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^Finished"))
    expect(chart).to_be_hidden()


def test_a_run_that_was_stopped_is_followed_again_when_it_goes_on(
    open_page: Open, folder: Path
) -> None:
    run = write(folder / "again", [start(), epoch(0, 0), step(20, 4.0), step(40, 3.0)])
    page = opened(open_page, "runs=again")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Ended at step 40")
    with lock(run):  # it goes on from step 20, and the log is cut
        cut_json_lines(run / "metrics.jsonl", lambda event: event.get("step", 0) <= 20)
        write(run, [start(20), epoch(0, 20, batch=20), step(40, 2.5)])
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^No score yet, "))
        expect(page.locator("[data-curve=loss] .mark.resumed")).to_have_count(1)
        assert_shows(page, "gradient_norm", ["step 20", "1.5"], ["step 40", "1.5"])
        write(run, [step(60, 2.25)])
        assert_shows(page, "gradient_norm", ["step 60", "1.5"])


def test_without_the_token_there_are_no_buttons(open_page: Open, folder: Path) -> None:
    with lock(folder / "done"):
        write(folder / "done", [start(60)])
        page = opened(open_page, "runs=done")
        expect(page.get_by_role("button", name="Save now")).to_be_hidden()
    write(folder / "done", [{"kind": "end", "step": 60, "elapsed_s": 30.0}])
