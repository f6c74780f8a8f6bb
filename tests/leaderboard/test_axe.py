"""Nothing on a page stops people who read it otherwise: axe-core over every view, light and dark."""

from __future__ import annotations

import pytest

from tests.helpers.app_make import PATHS
from tests.helpers.axe_make import WHY_NOT, barriers
from tests.helpers.report_make import save_runs
from tests.helpers.server_make import CHROMIUM, drawn, served, settle
from tests.helpers.view_make import fill

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

# Streamlit's own menu of pages on a phone: its groups stand as headers in a list. Not ours to draw.
MENU = ("[data-testid=stSidebarNavItems]",)
VIEWS = ("board", "model_view", "task_view", "compare_view")
"""Those that a folder without needle, pretraining and predictions fills."""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def look(browser, address, view, scheme, width):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(60_000)
    page.goto(f"{address}/{PATHS[view]}")
    page.locator("[data-testid=stMain] :is(h1, [data-testid=stAlert], [data-testid=stDataFrame])").first.wait_for(
        state="attached"
    )
    settle(page)
    drawn(page)
    found = barriers(page, MENU)
    page.close()
    return found


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    results = tmp_path_factory.mktemp("full")
    fill(results, results / "pretraining")
    with served(results) as address:
        yield address


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 390)])
@pytest.mark.parametrize("view", PATHS)
def test_every_view_of_a_full_folder(browser, full, view, scheme, width):
    assert look(browser, full, view, scheme, width) == []


@pytest.fixture(scope="module", params=["published", "demo", "limited"])
def small(request, tmp_path_factory):
    results = tmp_path_factory.mktemp(request.param)
    if request.param == "demo":
        for task in ("demo_topic", "demo_ner"):
            save_runs(results, "tiny", task, {42: 0.5, 43: 0.52, 44: 0.51})
    if request.param == "limited":
        for model, score in (("tiny", 0.5), ("other", 0.6)):
            save_runs(results, model, "bc5cdr", {42: score, 43: score + 0.02}, limit=16)
    with served(results) as address:
        yield address


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("view", VIEWS)
def test_folders_of_published_demo_and_limited_runs(browser, small, view, scheme):
    assert look(browser, small, view, scheme, 1440) == []
