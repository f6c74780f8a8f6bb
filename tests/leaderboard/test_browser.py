"""The app in a real browser: open, filter, sort, compare, follow a link, download; nothing hostile runs."""

from __future__ import annotations

import csv
import io
import time
import zipfile
from collections.abc import Callable

import pytest

from biobench.report.render import render
from biobench.report.table import build
from biobench.submission.pack import submit
from tests.helpers.report_make import save_runs
from tests.helpers.server_make import CHROMIUM, drawn, served, settle
from tests.helpers.submission_make import honest_run
from tests.helpers.view_make import save_needle, save_pretraining

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
WAIT = 60_000
"""Milliseconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    for task, gap in (("bc5cdr", 0.1), ("anatem", 0.12), ("gad", 0.08)):
        save_runs(results, "tiny", task, {42: 0.5, 43: 0.52, 44: 0.51})
        save_runs(results, "better", task, {42: 0.5 + gap, 43: 0.52 + gap, 44: 0.515 + gap})
    save_runs(results, HOSTILE, "bc5cdr", {42: 0.7}, windows={"truncated_documents": 1})
    save_needle(results, "better", 1024, 0.9)
    save_needle(results, HOSTILE, 512, 0.9)
    save_pretraining(results / "pretraining", steps=40)
    return results


@pytest.fixture(scope="module")
def address(folder):
    with served(folder) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1200}, accept_downloads=True)
    page.set_default_timeout(WAIT)
    yield page
    assert page.evaluate("window.hacked") is None
    page.close()


def english(page) -> list[list[str]]:
    """The cells of the English board, read in one call, for the app may draw it anew at any time."""
    table = page.locator("table.bb[aria-label=English]")
    table.wait_for()
    return table.evaluate("table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText))")


def rows_become(page, met: Callable[[list[list[str]]], bool]) -> None:
    """Wait until the rows of the English board, without its header, meet a condition: the app may be in a run."""
    give_up = time.monotonic() + WAIT / 1000
    while not met(english(page)[1:]):
        assert time.monotonic() < give_up, f"the board stayed at {english(page)}"
        page.wait_for_timeout(100)


def test_open_filter_and_sort(page, address):
    page.goto(address)
    rows = english(page)
    assert {"tiny", "better"} <= {row[0] for row in rows}
    assert any(row[0].startswith("<img") for row in rows)
    page.get_by_label("Search models").fill("tin")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=tin**")
    rows_become(page, lambda rows: [row[0] for row in rows] == ["tiny"])


def test_a_link_shows_what_its_sender_saw(page, address):
    page.goto(f"{address}/?average=weighted&suites=en&sources=run&search=better")
    rows = english(page)
    assert [row[0] for row in rows[1:]] == ["better"]
    column = rows[0].index("bc5cdr")
    assert rows[1][column].startswith("30.6")


def test_comparing_two_models(page, address):
    page.goto(f"{address}/?view=compare_view&models=better%1Ftiny")
    page.get_by_text("better is better than tiny").first.wait_for()
    page.locator("[data-testid=stVegaLiteChart]").first.wait_for()


def test_the_download_is_the_report(page, address, folder):
    page.goto(f"{address}/?sources=run")
    english(page)
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="csv", exact=True).click()
    with open(waiting.value.path(), encoding="utf-8", newline="") as stream:
        text = stream.read()
    assert text == render(build(folder, "macro", sources=["run"]), "csv")
    assert {row["model"] for row in csv.DictReader(io.StringIO(text))} == {"tiny", "better", HOSTILE}


def test_sorting_in_the_browser(page, address):
    page.goto(f"{address}/?suites=en&sources=run")
    names = [row[0] for row in english(page)[1:]]
    assert names[:2] == ["better", "tiny"]
    assert names[2].startswith("<img"), "one task of three gives no average"
    page.get_by_label("Sort by").click()
    page.get_by_role("option", name="bc5cdr").click()
    rows_become(page, lambda rows: [row[0][:4] for row in rows] == ["<img", "bett", "tiny"])


def test_a_pack_is_uploaded_and_checked(page, address, tmp_path):
    honest_run(tmp_path / "results")
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path in sorted(p for p in pack.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(pack).as_posix())
    page.goto(f"{address}/?view=submit_view")
    page.locator("input[type=file]").set_input_files(
        {"name": "pack.zip", "mimeType": "application/zip", "buffer": held.getvalue()}
    )
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("org/tiny: accepted").wait_for()
    page.get_by_text("1 / 1").wait_for()


VIEWS = (
    "board",
    "model_view",
    "task_view",
    "compare_view",
    "errors_view",
    "needle_view",
    "pretraining_view",
    "published_view",
    "efficiency_view",
    "submit_view",
)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_opens_without_an_error(browser, address, view, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.set_default_timeout(WAIT)
    page.goto(f"{address}/?view={view}")
    page.locator("[data-testid=stMain] :is(h1, [data-testid=stAlert], [data-testid=stDataFrame])").first.wait_for(
        state="attached"
    )
    settle(page)
    drawn(page)
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").count() == 0
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "the page scrolls sideways on a phone"
    assert contrast(page) >= 4.5, "the text is hard to read"
    assert page.evaluate("window.hacked") is None
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_stay_in_sight_when_a_wide_table_is_scrolled(browser, address, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.set_default_timeout(WAIT)
    page.goto(f"{address}/?suites=en")
    english(page)
    settle(page)
    table = page.locator("table.bb[aria-label=English]")
    before, after, ground, moved = table.evaluate(
        """table => {
            const name = [...table.rows].at(-1).cells[0];
            let box = table;
            while (box.scrollWidth <= box.clientWidth || getComputedStyle(box).overflowX === "visible")
                box = box.parentElement;
            const before = name.getBoundingClientRect().left;
            box.scrollLeft = 200;
            return [before, name.getBoundingClientRect().left, getComputedStyle(name).backgroundColor, box.scrollLeft];
        }"""
    )
    assert moved > 40, "the table is not wide enough to show anything"
    assert abs(after - before) <= 1
    numbers = [float(x) for x in ground[ground.index("(") + 1 : -1].split(",")]
    assert len(numbers) == 3 or numbers[3] == 1, f"scores show through the names: {ground}"
    page.close()


def contrast(page) -> float:
    """Of the page's text on its ground, as WCAG 2 defines it."""
    colours = page.evaluate(
        "() => { const s = getComputedStyle(document.querySelector('[data-testid=stApp]'));"
        " return [s.color, s.backgroundColor] }"
    )
    shades = []
    for colour in colours:
        parts = [float(x) / 255 for x in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        shades.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(shades) + 0.05) / (min(shades) + 0.05)
