"""The pictures of docs/leaderboard.md: `python -m tests.helpers.screenshots [FOLDER]` (default
docs/images/...).
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.helpers.server_make import CHROMIUM, drawn, served, settle

PICTURES = {"results": "", "compare": "compare", "errors": "errors?task=gad"}
"""Name of a picture -> the address that it shows."""
RESULTS = Path(__file__).resolve().parents[2] / "results"
"""The shipped runs."""
MOST_BYTES = 150_000


def main(out: Path) -> None:
    """Take the pictures over the shipped runs."""
    out.mkdir(parents=True, exist_ok=True)
    # the texts of real corpora must not get into a picture
    with (
        sync_playwright() as driver,
        served(RESULTS, BIOBENCH_DATA_DIR="/corpora") as address,
    ):
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        # one page for all: the app's scripts are loaded and compiled once
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
        page.set_default_timeout(300_000)
        for name, query in PICTURES.items():
            take(page, f"{address}/{query}", out / f"{name}.png")
        browser.close()


def take(page: Any, address: str, path: Path) -> None:
    """One picture, in few colours so that it stays small."""
    page.goto(address)
    page.locator("[data-testid=stMain] h1").first.wait_for()
    settle(page)
    drawn(page)
    image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes", flush=True)
    assert size < MOST_BYTES, f"{path} is too large"


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    images = Path(__file__).resolve().parents[2] / "docs" / "images" / "leaderboard"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else images)
