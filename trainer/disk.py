"""Writing into a run's folder: `biobench.core.files`, with what helps in a pretraining run."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

from biobench.core.files import Remedy, remove_stale, write_atomic
from biobench.core.files import writing as _writing

REMEDY = Remedy(
    full="free space and continue with --resume; the last checkpoint is whole",
    denied="choose another with --out DIR",
    other="check the path, then continue with --resume",
)

writing = partial(_writing, remedy=REMEDY)


def make_folder(path: Path) -> Path:
    """Create a folder with its parents. Raises StoreError when it cannot be made or written."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    return path


_CLEANED: set[Path] = set()
"""Files beside which this process has looked for what killed ones left."""


def write_text(path: Path, text: str) -> None:
    """Replace a text file in one step; what killed processes left of it is removed. Raises StoreError."""
    if path not in _CLEANED and path.parent.is_dir():
        remove_stale(path.parent, path.name)
        _CLEANED.add(path)
    write_atomic(path, text.encode(), REMEDY)


def write_json(path: Path, value: Any) -> None:
    """`write_text` of indented JSON."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")
