"""A first task spec from a data file: format, columns, labels and counts are looked up in the file."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from biobench.data.readers.base import missing
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
_TAG = re.compile(r"O|[BI]-\S+")
_SAMPLE = 200_000
"""Lines or rows that are looked at in each file."""
_FILLED, _MOSTLY_FILLED = 0.5, 0.9
"""A column counts where this share of its cells holds a value; as a label, a mostly filled one comes first."""


@dataclass(slots=True)
class _Sniffed:
    type: str
    reader: str
    labels: set[str] = field(default_factory=set)
    head: str = "sequence"


def scaffold(path: str | Path, task_id: str | None = None) -> str:
    """YAML of a task for the data file (or folder of split files) at `path`.

    Known: token files with IOB tags; delimited rows, JSON lines or a parquet table with a text and a label.
    Files beside it that are called train, dev and test are taken as splits; a single file is split 80/10/10.
    Raises UsageError when there is no such file or `task_id` is none, DataFormatError when the file's format is
    not recognised.
    """
    path = Path(path)
    if task_id is not None:
        check_task_id(task_id)
    if not path.exists():
        raise UsageError(f"there is no file '{path}'", hint="give a data file or a folder with train, dev and test")
    files = _split_files(path)
    sniffed = _sniff(next(iter(files.values())))
    for file in files.values():
        sniffed.labels |= _sniff(file).labels
    folder = next(iter(files.values())).parent.resolve()
    own = task_id or _as_task_id(folder.name)
    ner = sniffed.type == "token_ner"
    listed = ", ".join(f"{name}: {json.dumps(file.name)}" for name, file in files.items())
    splits = "official" if len(files) == 3 else "{ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets}"
    return f"""# Made by `biobench tasks new`; run it with --data-dir {folder.parent}
id: {own}
version: 1
name: {own.replace("_", " ")}
language: en            # check
type: {sniffed.type}
source:
  id: local
  folder: {json.dumps(folder.name)}
  files: {{{listed}}}
reader: {sniffed.reader}
labels: [{", ".join(json.dumps(label, ensure_ascii=False) for label in sorted(sniffed.labels))}]
splits: {splits}
unit: sentence
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


def _split_files(path: Path) -> dict[str, Path]:
    folder, suffix = (path, None) if path.is_dir() else (path.parent, path.suffix)
    found: dict[str, Path] = {}
    for file in sorted(p for p in folder.iterdir() if p.is_file()):
        split = _SPLIT_NAMES.get(file.stem.lower())
        if split is not None and (suffix is None or file.suffix == suffix):
            found.setdefault(split, file)
    ordered: dict[str, Path] = {name: found[name] for name in ("train", "validation", "test") if name in found}
    if len(ordered) == 3 and (path.is_dir() or path in ordered.values()):
        return ordered
    if path.is_dir():
        raise UsageError(f"'{path}' holds no train, dev and test file", hint="give one data file")
    return {"all": path}


def _sniff(path: Path) -> _Sniffed:
    if path.suffix == ".parquet":
        return _sniff_objects(_parquet(path), path, "{{format: parquet, columns: {{text: {text}, labels: {label}}}}}")
    if path.suffix in (".jsonl", ".ndjson"):
        reader = "{{format: json, layout: lines, text: {text}, label: {label}}}"
        return _sniff_objects(_json_lines(path), path, reader)
    lines = [line for _, line in _lines(path)]
    found = _sniff_tokens(lines) or _sniff_rows(lines)
    if found is None:
        raise DataFormatError(
            "is neither a token file with IOB tags nor rows with a text and a label",
            hint="see the formats in the documentation and write the spec by hand",
            file=path,
            line=1,
        )
    return found


def _parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).slice(0, _SAMPLE).to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DataFormatError(f"is not a parquet file ({reason})", hint="download it again", file=path) from None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(1-based number, line without its end) of the sample, by the rules of the readers: strict UTF-8, a byte
    order mark dropped, LF and CRLF as line ends. Raises DataFormatError."""
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(islice(stream, _SAMPLE), start=1):
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                yield number, text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise DataFormatError(what, hint="save the file as UTF-8", file=path, line=number) from None
    except OSError as error:
        what = f"cannot be read: {error.strerror or error}"
        raise DataFormatError(what, hint="check the file and its permissions", file=path) from None


def _json_lines(path: Path) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataFormatError(
                f"not valid JSON: {error.msg}", hint="one object a line", file=path, line=number
            ) from None
        if isinstance(item, dict):
            items.append(item)
    return items


def _sniff_objects(items: list[dict[str, Any]], path: Path, reader: str) -> _Sniffed:
    """The longest text field is the text; the field with the fewest different values (lists too) is the label.

    Nulls are looked past: what to do with such rows is for the reader to say."""
    columns = _columns(items)
    texts = [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]
    text = max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    labels: dict[str, set[str]] = {}
    several: set[str] = set()
    for name, values in columns.items():
        if name == text or any(isinstance(v, (dict, float)) for v in values):
            continue
        if any(isinstance(v, list) and len(v) != 1 for v in values):
            several.add(name)
        each = (x for v in values for x in (v if isinstance(v, list) else [v]))
        labels[name] = {str(x) for x in each if not missing(x)}
    fitting = {n: found for n, found in labels.items() if 2 <= len(found) <= max(2, min(200, len(items) // 2))}
    if text is None or not fitting:
        raise DataFormatError("has no text field with a label field", hint="write the spec by hand", file=path, line=1)
    sparse = {n for n in fitting if len(columns[n]) < _MOSTLY_FILLED * len(items)}
    label = min(fitting, key=lambda n: (n in sparse, n not in several, len(fitting[n])))
    kind = "multi_label" if label in several else "single_label"
    return _Sniffed(kind, reader.format(text=json.dumps(text), label=json.dumps(label)), fitting[label])


def _columns(items: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Field name to its values that are not null, for the fields that enough of the objects fill."""
    found: dict[str, list[Any]] = {}
    for item in items:
        for name, value in item.items():
            cells = found.setdefault(name, [])
            if not missing(value):
                cells.append(value)
    return {name: cells for name, cells in found.items() if len(cells) > _FILLED * len(items)}


def _sniff_tokens(lines: list[str]) -> _Sniffed | None:
    rows = [line for line in lines if line.strip() and not line.startswith(("-DOCSTART-", "###MEDLINE:"))]
    for name, separator in (("tab", "\t"), ("space", " "), ("whitespace", None)):
        fields = [row.split(separator) for row in rows]
        widths = {len(f) for f in fields}
        if len(widths) != 1 or widths <= {1}:
            continue
        tags = [f[-1] for f in fields]
        if all(_TAG.fullmatch(t) for t in tags) and set(tags) != {"O"}:
            middle = [f"skip{i}" for i in range(1, widths.pop() - 1)]
            columns = ", ".join(["token", *middle, "tag"])
            scheme = "IOB1" if _looks_iob1(lines, separator) else "IOB2"
            reader = f"{{format: iob, columns: [{columns}], separator: {name}, scheme: {scheme}, decode: strict}}"
            return _Sniffed("token_ner", reader, {t[2:] for t in tags if t != "O"}, "token")
    return None


def _looks_iob1(lines: list[str], separator: str | None) -> bool:
    """Mentions begin with I- after O, and B- stands only right after another mention."""
    previous, stray = "O", 0
    for line in lines:
        tag = line.split(separator)[-1] if line.strip() else "O"
        if tag.startswith("B-") and previous == "O":
            return False
        stray += tag.startswith("I-") and previous == "O"
        previous = tag
    return stray > 0


def _sniff_rows(lines: list[str]) -> _Sniffed | None:
    for name, delimiter in (("tab", "\t"), ("semicolon", ";"), ("comma", ",")):
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if len(rows) < 3 or len({len(r) for r in rows}) != 1 or len(rows[0]) < 2:
            continue
        width = len(rows[0])
        body = rows[1:]
        lengths = [sum(len(r[c]) for r in body) / len(body) for c in range(width)]
        text = max(range(width), key=lengths.__getitem__)
        distinct = {c: {r[c].strip() for r in body} for c in range(width) if c != text}
        candidates = [c for c, values in distinct.items() if 2 <= len(values) <= max(2, min(60, len(body) // 2))]
        if not candidates:
            continue
        label = min(candidates, key=lambda c: len(distinct[c]))
        header = rows[0][label].strip() not in distinct[label]
        if header:
            columns = f"{{text: {json.dumps(rows[0][text])}, label: {json.dumps(rows[0][label])}}}"
        else:
            columns = f"{{text: {text}, label: {label}}}"
        reader = f"{{format: tsv, separator: {name}, header: {str(header).lower()}, columns: {columns}}}"
        return _Sniffed("single_label", reader, distinct[label])
    return None
