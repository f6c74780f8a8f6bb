"""axe-core over the pages of the static site, light and dark, both languages, wide and on a phone."""

from __future__ import annotations

import pytest

from biobench.site.write import write_site
from tests.helpers.axe_make import WHY_NOT, barriers
from tests.helpers.server_make import CHROMIUM
from tests.helpers.view_make import save_needle, save_suites

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    save_suites(folder / "results", {"example/base-encoder": 0.69, "example/small-encoder": 0.61})
    save_needle(folder / "results", "example/base-encoder", 1024, 0.9)
    write_site(folder / "results", folder / "out")
    return folder / "out"


@pytest.mark.parametrize(
    ("scheme", "language", "width"), [("light", "en", 1440), ("dark", "fr", 1440), ("dark", "en", 390)]
)
def test_pages_of_every_kind(out, scheme, language, width):
    kinds = ["index.html", "suite-2.html", "more.html", "tasks/bc5cdr.html"]
    kinds += [next((out / kind).glob("*example*.html")).relative_to(out).as_posix() for kind in ("models", "compare")]
    kinds.append(next(out.glob("archive/*/index.html")).relative_to(out).as_posix())
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = {}
        for kind in kinds:
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.goto(f"{(out / kind).as_uri()}#lang={language}")
            assert page.evaluate("document.documentElement.lang") == language
            # what is folded is read too
            page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            found[kind] = barriers(page)
            page.close()
        browser.close()
    assert found == {kind: [] for kind in kinds}
