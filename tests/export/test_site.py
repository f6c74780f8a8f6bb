"""The static site: complete by itself, sorted and filtered in the browser, one archive a day."""

from __future__ import annotations

import json
from datetime import date

import pytest

from biobench.errors import UsageError
from biobench.export.site import write_site
from biobench.report.table import build
from tests.helpers.report_make import save_runs


@pytest.fixture
def report(tmp_path):
    save_runs(tmp_path / "results", "low", "bc5cdr", {42: 0.50, 43: 0.52, 44: 0.51})
    save_runs(tmp_path / "results", "high", "bc5cdr", {42: 0.60, 43: 0.64, 44: 0.62})
    save_runs(tmp_path / "results", "<script>alert(1)</script></body>", "bc5cdr", {42: 0.1, 43: 0.2, 44: 0.3})
    return build(tmp_path / "results", "macro", sources=["run"])


def test_the_site_holds_page_csv_json_and_keeps_the_archives_of_other_days(tmp_path, report):
    out = tmp_path / "site"
    write_site(report, out, day=date(2026, 1, 2))
    written = write_site(report, out, day=date(2026, 1, 3))
    assert {r["model"] for r in json.loads((out / "results.json").read_text())} >= {"low", "high"}
    assert (out / "results.csv").read_text().startswith("model")
    assert [d.name for d in sorted((out / "archive").iterdir())] == ["2026-01-02", "2026-01-03"]
    page = written.index.read_text()
    assert 'href="archive/2026-01-02/index.html"' in page
    assert page.count("<script>") == 1
    assert "&lt;script&gt;" in page
    assert "http" not in page.split("<main>")[0].replace("http-equiv", "")


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, report):
    (tmp_path / "site").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        write_site(report, tmp_path / "site")


def test_a_browser_sorts_and_filters_from_disk_under_the_pages_own_policy(tmp_path, report):
    playwright = pytest.importorskip("playwright.sync_api")
    from tests.helpers.server_make import CHROMIUM

    if not CHROMIUM:
        pytest.skip("no Chromium on this machine")
    index = write_site(report, tmp_path / "site").index
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(index.as_uri())
        names = page.locator("main tbody th")
        page.locator("main thead button").last.click()
        assert names.all_inner_texts()[:2] == ["high", "low"]
        page.locator("main thead button").last.click()
        assert names.all_inner_texts()[1:] == ["low", "high"]
        page.locator("#filter").fill("HIGH")
        assert page.locator("main tbody tr:visible").count() == 1
        page.screenshot(path=str(tmp_path / "site.png"))
        browser.close()
