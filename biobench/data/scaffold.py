"""A first task spec from data files: format, columns and labels are looked up in them (`biobench.data.sniff`)."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from biobench.data.sniff import Sniffed, sniff
from biobench.errors import DataFormatError, UsageError

_SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "dev": "validation",
    "devel": "validation",
    "development": "validation",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
}
_ENDINGS = (".tsv", ".csv", ".txt", ".conll", ".iob", ".iob2", ".bio", ".jsonl", ".ndjson", ".parquet")
"""Of data files in a folder that stands for a split."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The files of a split: their name or pattern below the task's folder, and the files themselves."""

    pattern: str
    paths: list[Path]


def scaffold(path: str | Path, task_id: str | None = None) -> str:
    """YAML of a task for the data file, or the folder, at `path`.

    Known: token files with IOB or IOBES tags; delimited rows, JSON lines or a parquet table with a text and a label;
    parquet tables of tokens and tags; BRAT. Files or folders called train, dev and test are taken as splits; without a
    dev part, validation is cut from the end of train; a single file is split 80/10/10. Raises UsageError when there is
    no such file or `task_id` is none, DataFormatError when the files' format is not recognised.
    """
    path = Path(path)
    if task_id is not None:
        check_task_id(task_id)
    if not path.exists():
        raise UsageError(f"there is no file '{path}'", hint="give a data file or a folder with train, dev and test")
    folder, parts = _parts(path)
    sniffed = _sniffed([file for part in parts.values() for file in part.paths])
    own = task_id or _as_task_id(folder.resolve().name)
    ner = sniffed.head != "sequence"
    listed = ", ".join(f"{name}: {json.dumps(part.pattern)}" for name, part in parts.items())
    unused = f"; not read: {', '.join(sniffed.unused)}" if sniffed.unused else ""
    return f"""# Made by `biobench tasks new`; run it with --data-dir {folder.resolve().parent}
id: {own}
version: 1
name: {own.replace("_", " ")}
language: en            # check
type: {sniffed.type}
source:
  id: local
  folder: {json.dumps(folder.resolve().name)}
  files: {{{listed}}}
reader: {sniffed.reader}  # check{unused}
labels: [{", ".join(json.dumps(label, ensure_ascii=False) for label in sorted(sniffed.labels))}]
splits: {_splits(parts, sniffed)}
unit: {"document" if sniffed.head == "span" else "sentence"}
seeds: 42-46
protocol: {{max_length: 512, long_documents: truncate}}
training: {{epochs: {20 if ner else 10}, learning_rate: 5e-5, batch_size: 16, weight_decay: 0.01}}
head: {{kind: {sniffed.head}}}
metric: {{primary: macro_f1, paper: {"micro_f1" if ner else "macro_f1"}}}
gate: {{expect: text_informative}}
access: open
licence: unknown        # fill in
homepage: unknown       # fill in
citation: unknown       # fill in
"""


def check_task_id(text: str) -> None:
    """Raises UsageError, with an id that could stand instead, where `text` is no task id."""
    if not re.fullmatch(r"[a-z0-9_]+", text):
        hint = f"use lower-case letters, digits and underscores, such as {_as_task_id(text)}"
        raise UsageError(f"'{text}' is not a task id", hint=hint)


def _as_task_id(text: str) -> str:
    bare = unicodedata.normalize("NFKD", text.lower())
    bare = "".join(c for c in bare if not unicodedata.combining(c))
    return re.sub(r"[^a-z0-9]+", "_", bare).strip("_") or "my_task"


def _parts(path: Path) -> tuple[Path, dict[str, _Part]]:
    """(the task's folder, its files by split)."""
    folder, suffix = (path, None) if path.is_dir() else (path.parent, path.suffix)
    found: dict[str, _Part] = {}
    for entry in sorted(folder.iterdir()):
        name = entry.stem if entry.is_file() else entry.name
        split = _SPLIT_NAMES.get(name.lower())
        if split is None or split in found:
            continue
        if entry.is_file() and suffix in (None, entry.suffix) and entry.suffix in _ENDINGS:
            found[split] = _Part(entry.name, [entry])
        elif entry.is_dir() and path.is_dir():
            inside = _files(entry)
            if inside:
                found[split] = _Part(f"{entry.name}/*{inside[0].suffix}", inside)
    ordered: dict[str, _Part] = {name: found[name] for name in ("train", "validation", "test") if name in found}
    named = path.is_dir() or any(path in part.paths for part in ordered.values())
    if named and {"train", "test"} <= set(ordered):
        return folder, ordered
    if not path.is_dir():
        return folder, {"all": _Part(path.name, [path])}
    texts = [p for p in _files(path) if p.with_suffix(".ann").is_file()]
    if not texts:
        raise UsageError(f"'{path}' holds no train and test files", hint="give one data file")
    return folder, {"all": _Part("*.txt", texts)}


def _files(folder: Path) -> list[Path]:
    """Data files of the kind that comes first by name; of BRAT, the texts."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    kind = next((p.suffix for p in files if p.suffix in _ENDINGS), None)
    return [p for p in files if p.suffix == kind]


def _sniffed(paths: list[Path]) -> Sniffed:
    """What the files are, judged by the largest, with the labels of all that are the same."""
    largest = max(paths, key=lambda p: p.stat().st_size)
    for path in paths:
        if path.suffix != largest.suffix:
            hint = "bring all splits into one format"
            raise DataFormatError(f"ends otherwise than {largest.name}", hint=hint, file=path)
    whole = sniff(largest)
    for path in paths:
        more = sniff(path, tokens=whole.type == "token_ner") if path != largest else whole
        if {more.type, whole.type} == {"single_label", "multi_label"}:
            whole.type, whole.reader = "multi_label", (more if more.type == "multi_label" else whole).reader
        elif more.type != whole.type:
            what = f"looks like {more.type}, {largest.name} like {whole.type}"
            raise DataFormatError(what, hint="give one data file, or write the spec by hand", file=path)
        whole.labels |= more.labels
        if any(sign in more.reader and sign not in whole.reader for sign in ("IOBES", "discontinuous")):
            whole.reader = more.reader
    if "brat" in whole.reader and len({path.stem for path in paths}) < len(paths):
        whole.reader = whole.reader.removesuffix("}") + ", ids: split_and_name}"
    return whole


def _splits(parts: dict[str, _Part], sniffed: Sniffed) -> str:
    if "validation" in parts:
        return "official"
    if "train" in parts:
        units = sum(sniff(path, tokens=sniffed.type == "token_ner").units for path in parts["train"].paths)
        size = max(1, units // 10)
        return f"{{validation_from_train_tail: {size}}}  # check: the end of train, about a tenth"
    by = ", by: group" if sniffed.grouped else ""
    return f"{{ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets{by}}}"
