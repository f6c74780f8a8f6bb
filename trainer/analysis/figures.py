"""Writing figures: a Vega-Lite chart as SVG or PNG, as an interactive page, or as JSON. Free of torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biobench.errors import StoreError, UsageError

ENDINGS = (".svg", ".png", ".html", ".json")


def check_ending(path: str | Path) -> Path:
    """The path itself. Raises UsageError unless a figure can be written under that name."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise UsageError(f"no figure can be written as '{file.name}'", hint="end the name in " + ", ".join(ENDINGS))
    return file


def save(chart: Any, path: str | Path) -> Path:
    """Write an Altair chart; SVG and PNG are drawn without a browser. Raises UsageError, StoreError."""
    file = check_ending(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        chart.save(str(file), **({"scale_factor": 2} if file.suffix.lower() == ".png" else {}))
    except OSError as error:
        raise StoreError(f"the figure cannot be written: {error}", hint="give another place", file=file) from error
    return file
