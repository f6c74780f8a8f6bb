"""The static site: pages by themselves, in two languages, sorted and filtered in the browser, an archive a day."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from biobench.report.table import build
from biobench.site.build import slug
from biobench.site.figures import STEPS, strip
from biobench.site.write import write_site
from tests.helpers.report_make import save_runs
from tests.helpers.server_make import CHROMIUM

HOSTILE = "<script>window.hacked=1</script></body>\"' onerror=x"
DAY = date(2026, 1, 2)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "results"
    for task in ("bc5cdr", "anatem"):
        save_runs(folder, "org/low", task, {42: 0.50, 43: 0.52, 44: 0.51})
        save_runs(folder, "org/high", task, {42: 0.60, 43: 0.64, 44: 0.62})
    save_runs(folder, HOSTILE, "bc5cdr", {42: 0.1, 43: 0.2, 44: 0.3})
    return folder


@pytest.fixture(scope="module")
def out(results):
    folder = results.parent / "site"
    write_site(results, folder, average="macro", pairs=[("org/low", "org/high")], day=DAY)
    return folder


class Links(HTMLParser):
    """The addresses of a page, and the tags that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.scripts = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs), attrs
        self.scripts += tag == "script"
        self.addresses += [value for name, value in attrs if name == "href"]


def pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


def test_every_link_inside_leads_to_a_file_and_no_page_loads_another(out):
    assert {page.parent.name for page in pages(out)} >= {"models", "tasks", "compare", out.name, "2026-01-02"}
    for page in pages(out):
        text = page.read_text()
        links = Links(text)
        assert links.scripts == 1
        assert "default-src 'none'" in text
        for address in links.addresses:
            if not address.startswith(("https://", "http://")):
                assert not address.startswith("/")
                assert (page.parent / address).resolve().is_file(), f"{page}: {address}"


def test_pages_hold_no_folder_of_the_machine(out, results):
    whole = "".join(path.read_text() for path in out.rglob("*") if path.suffix in (".html", ".json", ".csv"))
    assert "org/high" in whole
    assert str(results.parent) not in whole
    assert str(Path.cwd()) not in whole
    assert str(Path.home()) + "/" not in whole


def test_a_damaged_record_is_named_without_where_it_lies(tmp_path):
    save_runs(tmp_path / "results", "org/low", "bc5cdr", {42: 0.5})
    record = next((tmp_path / "results" / "runs" / "bc5cdr").glob("*.json"))
    record.write_text("{")
    write_site(tmp_path / "results", tmp_path / "site", day=DAY)
    page = (tmp_path / "site" / "index.html").read_text()
    assert record.name in page
    assert str(tmp_path) not in page


def test_a_hostile_name_is_text_everywhere(out):
    for page in pages(out):
        assert "<script>window" not in page.read_text()
    page = out / "models" / f"{slug((HOSTILE, '', 'run'))}.html"
    assert re.fullmatch(r"[a-z0-9-]+", page.stem)
    assert "&lt;script&gt;window" in page.read_text()


def test_numbers_of_pages_and_files_are_those_of_the_report(out, results):
    report = build(results, "macro")
    tables = json.loads((out / "results.json").read_text())
    for name, rows in (("averages", report.averages), ("tasks", report.rows)):
        columns = tables[name]["columns"]
        cells = [dict(zip(columns, line, strict=True)) for line in tables[name]["data"]]
        assert [c["mean"] for c in cells] == [pytest.approx(r.mean, abs=1e-5) for r in rows]
        assert [(c["model"], c["task"]) for c in cells] == [(r.model, r.task) for r in rows]
    ran = next(c for c in cells if c["model"] == "org/high")
    assert ran["n_seeds"] == 3
    lines = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
    assert len(lines) == len(report.rows) + len(report.averages)
    index = (out / "suite-1.html" if (out / "suite-1.html").exists() else out / "index.html").read_text()
    mean = next(row for row in build(results, "macro").rows if row.model == "org/high" and row.task == "bc5cdr")
    assert f"<td>{100 * mean.mean:.1f} ±{100 * mean.margin:.1f}" in index
    page = (out / "models" / f"{slug(('org/high', '', 'run'))}.html").read_text()
    assert f"<td>{100 * mean.mean:.1f} ±{100 * mean.margin:.1f}" in page


def test_the_comparison_that_was_asked_for_has_a_page_csv_and_json(out, results):
    page = next(p for p in (out / "compare").glob("*.html") if p.name.startswith("org-low-org-high"))
    said = compare("org/low", "org/high", results_dir=results, average="macro")
    assert said.verdict[0] in page.read_text()
    assert '<span data-fr="Macro-F1">Macro F1</span>' in page.read_text()
    assert "macro_f1" not in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text())["models"] == ["org/low", "org/high"]
    rows = list(csv.DictReader(io.StringIO(page.with_suffix(".csv").read_text())))
    expected = {line.task: 100 * line.difference for line in said.pairs[0].tasks}
    assert {row["task"]: pytest.approx(float(row["difference"])) for row in rows} == expected


def test_an_unknown_model_of_a_pair_is_refused(results, tmp_path):
    with pytest.raises(UsageError, match="org/none"):
        write_site(results, tmp_path / "site", pairs=[("org/low", "org/none")])
    assert not (tmp_path / "site").exists()


def test_archives_of_other_days_stay_and_pages_that_are_no_more_go(tmp_path):
    save_runs(tmp_path / "results", "org/low", "bc5cdr", {42: 0.5, 43: 0.52, 44: 0.51})
    site = tmp_path / "site"
    write_site(tmp_path / "results", site, day=DAY)
    (site / "models" / "mine.html").write_text("not of the site")
    gone = site / "models" / f"{slug(('org/low', '', 'run'))}.html"
    assert gone.is_file()
    for path in (tmp_path / "results" / "runs" / "bc5cdr").iterdir():
        path.unlink()
    written = write_site(tmp_path / "results", site, day=date(2026, 1, 3))
    assert [d.name for d in sorted((site / "archive").iterdir())] == ["2026-01-02", "2026-01-03"]
    assert not gone.exists()
    assert (site / "models" / "mine.html").is_file()
    assert 'href="archive/2026-01-02/index.html"' in written.index.read_text()
    with zipfile.ZipFile(site / "archive" / "2026-01-02" / "site.zip") as archive:
        assert f"models/{gone.name}" in archive.namelist()
        assert "results.json" in archive.namelist()


def test_a_list_of_files_that_points_elsewhere_removes_nothing(tmp_path):
    save_runs(tmp_path / "results", "org/low", "bc5cdr", {42: 0.5})
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "kept.html").write_text("")
    (site / "files.json").write_text(
        json.dumps(["../kept.html", "models/../../kept.html", str(tmp_path / "kept.html")])
    )
    write_site(tmp_path / "results", site, day=DAY)
    assert (tmp_path / "kept.html").is_file()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, results):
    (tmp_path / "site").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        write_site(results, tmp_path / "site")


def test_an_empty_folder_gives_the_published_scores(tmp_path):
    written = write_site(tmp_path / "none", tmp_path / "site", day=DAY)
    assert "Of the printed scores" in written.index.read_text()
    assert list((tmp_path / "site" / "models").glob("*.html"))


def test_a_strip_goes_from_the_lowest_score_to_the_highest():
    assert 'class=b d="M0 0' in strip(10.0, [20.0, 30.0], None)
    assert f'class=b d="M{STEPS - 1} 0' in strip(40.0, [20.0, 30.0], 10.0)
    assert strip(50.0, list(range(101)), None).count("h") == strip(50.0, [25.0, 50.0], None).count("h") - 1
    assert 'class=b d="M30 0' in strip(5.0, [], None)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_a_browser_sorts_filters_and_speaks_french_from_disk_under_the_pages_own_policy(out):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((out / "index.html").as_uri())
        names = page.locator(".board tbody tr:visible th")
        page.get_by_role("button", name="mean", exact=True).click()
        assert names.all_inner_texts()[:2] == ["org/high", "org/low"]
        page.get_by_role("button", name="mean", exact=True).click()
        assert names.all_inner_texts()[:2] == ["org/low", "org/high"]
        page.get_by_label("Models whose name contains").fill("HIGH")
        assert names.all_inner_texts() == ["org/high"]
        # the link that holds the choice shows it again
        page.goto("about:blank")
        page.go_back()
        assert names.all_inner_texts() == ["org/high"]
        page.get_by_role("button", name="Français").click()
        assert page.evaluate("document.documentElement.lang") == "fr"
        assert page.title() == "Classement des encodeurs biomédicaux · BioBench"
        assert page.get_by_text("est en tête avec 62,0").count() == 1
        names.get_by_role("link").click()
        page.wait_for_url("**/models/**")
        assert page.get_by_role("columnheader", name="écart au meilleur").count() == 1
        assert page.evaluate("window.hacked") is None
        assert not problems
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [1440, 768, 390])
def test_no_page_scrolls_sideways(out, width):
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        for path in pages(out):
            if path.parent.name != "models" or "org-" in path.name:
                page.goto(path.as_uri())
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        browser.close()
