"""The app in a real browser: open, filter, sort, compare, follow a link, download; nothing hostile runs."""

from __future__ import annotations

import csv
import io
import os
import shutil
import socket
import subprocess

import pytest
from report_make import save_runs

from biobench.report.render import render
from biobench.report.table import build
from leaderboard.launch import RESULTS_VARIABLE, command

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
WAIT = 30_000
"""Milliseconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    for task, gap in (("bc5cdr", 0.1), ("anatem", 0.12), ("gad", 0.08)):
        save_runs(results, "tiny", task, {42: 0.5, 43: 0.52, 44: 0.51})
        save_runs(results, "better", task, {42: 0.5 + gap, 43: 0.52 + gap, 44: 0.515 + gap})
    save_runs(results, HOSTILE, "bc5cdr", {42: 0.3}, windows={"truncated_documents": 1})
    return results


@pytest.fixture(scope="module")
def address(folder):
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        command(port),
        env=os.environ | {RESULTS_VARIABLE: str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert server.stdout is not None
        assert any(str(port).encode() in line for line in server.stdout), "the server ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=10)


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


def settle(page) -> None:
    """Wait until the app has finished its run."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()


def english(page) -> list[list[str]]:
    """The cells of the English board."""
    table = page.locator("table.bb[aria-label=English]")
    table.wait_for()
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tr").all()]


def test_open_filter_and_sort(page, address):
    page.goto(address)
    rows = english(page)
    assert {"tiny", "better"} <= {row[0] for row in rows}
    assert any(row[0].startswith("<img") for row in rows)
    page.get_by_label("Search models").fill("tin")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=tin**")
    page.locator("table.bb th[scope=row]", has_text="better").wait_for(state="detached")
    assert [row[0] for row in english(page)[1:]] == ["tiny"]


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


@pytest.mark.parametrize("view", ["board", "model_view", "task_view", "compare_view", "errors_view", "efficiency_view"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_opens_without_an_error(browser, address, view, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page.set_default_timeout(WAIT)
    page.goto(f"{address}/?view={view}")
    page.locator("[data-testid=stMain] :is(h1, [data-testid=stAlert], [data-testid=stDataFrame])").first.wait_for(
        state="attached"
    )
    settle(page)
    assert page.locator("[data-testid=stException]").count() == 0
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, "the page scrolls sideways on a phone"
    assert page.evaluate("window.hacked") is None
    page.close()
