"""The app in a real browser: open, filter, sort, compare, follow a link, download; nothing hostile runs."""

from __future__ import annotations

import csv
import io
import time
import zipfile
from collections.abc import Callable

import pytest

from biobench.report.frame import build
from biobench.report.printers import render
from biobench.submission.pack import submit
from tests.helpers.app_make import PATHS
from tests.helpers.report_make import save_runs
from tests.helpers.server_make import CHROMIUM, drawn, served, settle
from tests.helpers.submission_make import honest_run
from tests.helpers.view_make import fill, save_needle, save_pretraining

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


def cells(page) -> list[list[str]]:
    """The rows of page one's table as its accessibility tree has them."""
    grid = page.locator("[class*=st-key-bb_table] [data-testid=stDataFrame] table").first
    grid.wait_for(state="attached")
    return grid.evaluate("table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText))")


def names_become(page, met: Callable[[list[str]], bool]) -> None:
    """Wait until the names of the table meet a condition: the app may be in a run."""
    give_up = time.monotonic() + WAIT / 1000
    while True:
        head, *rows = cells(page) or [[]]
        names = [row[head.index("model")] for row in rows] if "model" in head else []
        if met(names):
            return
        assert time.monotonic() < give_up, f"the table stayed at {names}"
        page.wait_for_timeout(100)


def test_open_and_filter(page, address):
    page.goto(address)
    names_become(page, lambda names: {"tiny", "better"} <= set(names) and any(n.startswith("<img") for n in names))
    page.get_by_label("Search models").fill("tin")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=tin**")
    names_become(page, lambda names: names == ["tiny"])


def test_a_link_shows_what_its_sender_saw(page, address):
    page.goto(f"{address}/?average=weighted&suite=en&sources=run&search=better")
    names_become(page, lambda names: names == ["better"])
    head, row = cells(page)
    assert float(row[head.index("anatem")]) == pytest.approx(31.583, abs=1e-3)


def test_back_takes_each_choice_and_each_view_back(page, address):
    page.goto(f"{address}/?search=tin")
    names_become(page, lambda names: names == ["tiny"])
    page.get_by_label("Search models").fill("better")
    page.keyboard.press("Enter")
    names_become(page, lambda names: names == ["better"])
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("heading", name="Compare", exact=True).wait_for()
    assert page.title() == "Compare · BioBench"
    page.go_back()
    names_become(page, lambda names: names == ["better"])
    page.go_back()
    names_become(page, lambda names: names == ["tiny"])
    assert page.url.endswith("/?search=tin")


def test_charts_beside_the_open_side_bar_have_room(browser, address):
    page = browser.new_page(viewport={"width": 820, "height": 900})
    page.set_default_timeout(WAIT)
    page.goto(address)
    page.locator("[data-testid=stVegaLiteChart]").nth(1).wait_for()
    settle(page)
    drawn(page)
    widths = [chart.bounding_box()["width"] for chart in page.locator("[data-testid=stVegaLiteChart]").all()]
    assert min(widths) >= 380, "no room for the scale beside the names"
    page.close()


def test_comparing_two_models(page, address):
    page.goto(f"{address}/compare?models=better%1Ftiny")
    page.get_by_text("better scores higher than tiny").first.wait_for()
    page.locator("[data-testid=stVegaLiteChart]").first.wait_for()


def downloaded(page):
    """The file that the button gives; a click that fell between two drawings of a slow page is repeated once."""

    def press(patience):
        with page.expect_download(timeout=patience) as waiting:
            page.get_by_role("button", name="csv", exact=True).click()
        return waiting.value.path()

    try:
        return press(30_000)
    except playwright.TimeoutError:
        return press(60_000)


def test_the_download_is_the_report(page, address, folder):
    page.goto(f"{address}/?sources=run&suite=en")
    names_become(page, bool)
    settle(page)
    with open(downloaded(page), encoding="utf-8", newline="") as stream:
        text = stream.read()
    assert text == render(build(folder, "macro", sources=["run"], suites=["en"]), "csv")
    assert {row["model"] for row in csv.DictReader(io.StringIO(text))} == {"tiny", "better", HOSTILE}


def test_a_pack_is_uploaded_and_checked(page, address, tmp_path):
    honest_run(tmp_path / "results")
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path in sorted(p for p in pack.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(pack).as_posix())
    page.goto(f"{address}/submit")
    page.locator("input[type=file]").set_input_files(
        {"name": "pack.zip", "mimeType": "application/zip", "buffer": held.getvalue()}
    )
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("org/tiny: verified").wait_for()
    page.get_by_text("1 / 1").wait_for()


@pytest.mark.parametrize("view", PATHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_opens_without_an_error(browser, address, view, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.set_default_timeout(WAIT)
    page.goto(f"{address}/{PATHS[view]}")
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
def test_a_phone_shows_cards(browser, tmp_path_factory, scheme):
    results = tmp_path_factory.mktemp("phone")
    fill(results, results / "pretraining")
    with served(results) as address:
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
        page.set_default_timeout(WAIT)
        page.goto(address)
        page.locator(".bb-cards li").first.wait_for()
        settle(page)
        drawn(page)
        assert not page.locator(".st-key-bb_table").is_visible()
        assert page.locator(".bb-cards li").first.inner_text().split() == ["1–3", "example/long-encoder", "75.2"]
        charts = page.locator("[data-testid=stVegaLiteChart]")
        assert charts.count() == 2
        assert all(chart.locator("[aria-label]").count() for chart in charts.all()), "a chart says nothing to a reader"
        page.close()


def test_a_phone_shows_the_table_where_no_line_has_a_mean(browser, tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.5, 43: 0.52}, limit=16)
    with served(tmp_path) as address:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(WAIT)
        page.goto(address)
        page.locator("[data-testid=stDataFrame]").first.wait_for()
        settle(page)
        assert page.locator(".bb-cards").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
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
