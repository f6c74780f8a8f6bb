"""docs/terminal.md shows what the command line prints, and nothing there is wider than it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.captures import MOMENTS, PAGE, WIDTHS, Moment, block, blocks_of, prepare
from tests.helpers.cli_make import Said

BLOCKS = {(title, width): text for title, width, text in blocks_of(PAGE.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("moment", [m for m in MOMENTS if m.checked], ids=lambda m: m.title)
def test_the_page_shows_what_is_printed_now(
    moment: Moment, width: int, biobench: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))

    def run(arguments: list[str]) -> str:
        said = biobench(*arguments)
        return said.out + (said.err if said.status == 2 else "")

    again = "python -m tests.benchmarks.captures"
    assert block(moment, run) == BLOCKS[moment.title, width], f"`{again}` writes the page anew"


def test_every_moment_stands_at_both_widths_and_fits() -> None:
    assert set(BLOCKS) >= {(m.title, width) for m in MOMENTS for width in WIDTHS}
    for (title, width), text in BLOCKS.items():
        tables = [line for line in text.splitlines() if "  " in line.strip() or "─" in line]
        assert all(len(line) <= width for line in tables), (title, width)
        assert len(text.splitlines()) > 3
