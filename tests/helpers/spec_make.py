"""The YAML of a task spec, with what a test does not care about filled in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DEFAULTS = {
    "version": 1,
    "name": "Made by a test",
    "language": "en",
    "labels": ["Disease"],
    "unit": "sentence",
    "training": {"epochs": 1, "learning_rate": 5e-5},
    "metric": {"primary": "macro_f1", "paper": "micro_f1"},
    "access": "open",
    "licence": "none",
    "homepage": "https://example.org",
    "citation": "none",
}
HEADS = {"token_ner": "token", "span_ner": "span"}
AGREEMENT = "agreement\nobtain: {needs: a signature, steps: [sign], pages: ['https://example.org']}"
"""For `access`."""


def spec_text(id: str, *, type: str = "token_ner", **fields: Any) -> str:
    """A spec of these fields: strings are YAML, other values become it."""
    whole = {
        "id": id,
        "type": type,
        **DEFAULTS,
        "head": {"kind": HEADS.get(type, "sequence")},
        **fields,
    }
    values = (
        (name, value if isinstance(value, str) else json.dumps(value))
        for name, value in whole.items()
    )
    return "".join(f"{name}: {value}\n" for name, value in values)


def write_spec(path: Path, more: str = "", *, id: str | None = None, **fields: Any) -> Path:
    """The spec at `path`; its id is the file's name. fields: see `spec_text`; more: whole lines of
    YAML.
    """
    path.write_text(spec_text(id or path.stem, **fields) + more + "\n", encoding="utf-8")
    return path


def local(folder: str, files: str, more: str = "") -> str:
    """The value of `source`: files of a folder, and further lines with their indent."""
    return f"\n  id: local\n  folder: {folder}\n  files: {files}\n{more}"
