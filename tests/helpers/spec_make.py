"""The YAML of a task spec, with what a test does not care about filled in."""

from __future__ import annotations

from pathlib import Path

DEFAULTS = {
    "version": "1",
    "name": "Made by a test",
    "language": "en",
    "unit": "sentence",
    "training": "{epochs: 1, learning_rate: 5e-5}",
    "metric": "{primary: macro_f1, paper: micro_f1}",
    "access": "open",
    "licence": "none",
    "homepage": "https://example.org",
    "citation": "none",
}
HEADS = {"token_ner": "token", "span_ner": "span"}
AGREEMENT = "agreement\nobtain: {needs: a signature, steps: [sign], pages: ['https://example.org']}"
"""For `access`."""


def write_spec(path: Path, more: str = "", *, id: str | None = None, type: str, **fields: str) -> Path:
    """The spec at `path`; its id is the file's name. fields, more: YAML, a value each and whole lines."""
    whole = {"id": id or path.stem, "type": type, **DEFAULTS, "head": f"{{kind: {HEADS.get(type, 'sequence')}}}"}
    path.write_text(
        "".join(f"{name}: {value}\n" for name, value in (whole | fields).items()) + more + "\n", encoding="utf-8"
    )
    return path


def local(folder: str, files: str, more: str = "") -> str:
    """The value of `source`: files of a folder, and further lines with their indent."""
    return f"\n  id: local\n  folder: {folder}\n  files: {files}\n{more}"
