"""Word lists and sentence templates that stand in JSON files beside the code that fills them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def read_words(package: str, name: str) -> Any:
    """The content of the file `name` in a package."""
    return json.loads((files(package) / name).read_text(encoding="utf-8"))
