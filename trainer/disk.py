"""Writing into a run's folder: `biobench.core.files`, with what helps in a pretraining run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from biobench.core.files import make_folder as _make_folder
from biobench.core.files import write_atomic
from biobench.core.files import writing as _writing
from biobench.core.text import first_line
from biobench.errors import StoreError

M = TypeVar("M", bound=BaseModel)

PLACE = "--out DIR; --resume continues from the last whole checkpoint"

writing = partial(_writing, place=PLACE)
make_folder = partial(_make_folder, place=PLACE)


def write_text(path: Path, text: str) -> None:
    """Replace a text file in one step. Raises StoreError."""
    write_atomic(path, text.encode(), PLACE)


def write_json(path: Path, value: Any) -> None:
    """`write_text` of indented JSON."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(kind: type[M], file: Path, complaint: str, hint: str) -> M:
    """What a JSON file holds. Raises StoreError, which begins with `complaint`, where it is missing
    or damaged.
    """
    try:
        return kind.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(f"{complaint}: {first_line(error)}", hint=hint, file=file) from error
