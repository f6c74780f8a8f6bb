"""What a data file is: its format, which columns hold text, label and group, and which labels there are.

Columns that are named are taken; of the others a name decides (`label`, `patient_id`, `premise`), then the simplest
rule: the longest texts are the text, and the fewest different values are the label.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast

from biobench.core.text import first_line
from biobench.data.readers.base import FileLine, ReaderOptions, Request
from biobench.data.readers.brat import note_of
from biobench.data.readers.files import delimited, json_rows, missing, read_lines
from biobench.errors import DataFormatError
from biobench.schema.strict import suggest
from biobench.schema.task import TaskSpec

_TAG = re.compile(r"O|[BIESUL]-\S+")
_NAMES = {
    "label": r"(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?",
    "group": r"(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?",
}
_PAIRS = (
    *(("sentence1", "sentence2"), ("sentence_1", "sentence_2"), ("text1", "text2"), ("text_1", "text_2")),
    *(("text_a", "text_b"), ("premise", "hypothesis"), ("question1", "question2"), ("question", "answer")),
    ("query", "passage"),
)
"""Names of columns that hold two texts to be read together, the first before the second."""
SAMPLE = 200_000
"""Rows that are looked at in each file."""
_FILLED, _MOSTLY_FILLED = 0.5, 0.9
"""A column counts where this share of its cells holds a value; as a label, a mostly filled one comes first."""
_MANY = 100
"""So many types are no classes, whatever they are called."""
_ID = re.compile(r"[A-Za-z]{0,5}[:_-]?[A-Za-z]?\d[\d./:-]{2,}\w*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns, and what parts several labels of a cell, as the user named them; None: to be found."""

    text: str | None = None
    label: str | None = None
    group: str | None = None
    separator: str | None = None


NOTHING_NAMED = Wanted()


@dataclass(slots=True)
class Sniffed:
    """type: of the task; reader: its options; units: rows, sentences or files that were looked at."""

    type: str
    reader: dict[str, Any]
    labels: set[str] = field(default_factory=set)
    units: int = 0
    columns: list[str] = field(default_factory=list)
    """Of the file, all of them."""
    unused: list[str] = field(default_factory=list)
    """Columns that the reader does not read."""
    remark: str = ""
    """What is to be known of the labels."""

    @property
    def head(self) -> str:
        """`head.kind` of the task."""
        return {"token_ner": "token", "span_ner": "span"}.get(self.type, "sequence")


def sniff(path: Path, wanted: Wanted, *, tokens: bool = False) -> Sniffed:
    """Format and contents of one data file. Raises DataFormatError where it is not recognised.

    tokens: the file belongs to token files, so it is one too where all its tags are O.
    """
    names: dict[str, list[str]] = {}
    place = FileLine(Request(ReaderOptions(format="sniffed"), {"all": [path]}, cast(TaskSpec, None)), "", path)
    if path.suffix == ".parquet":
        items, names = _parquet(path)
        reader: dict[str, Any] = {"format": "parquet"}
    elif path.suffix in (".jsonl", ".ndjson"):
        items = [row.values for row in islice(json_rows(place.request, "lines"), SAMPLE)]
        reader = {"format": "json", "layout": "lines"}
    else:
        lines = [line for _, line in islice(read_lines(path), SAMPLE)]
        tagged = _token_lines(lines, outside=tokens)
        if tagged is not None:
            return tagged
        items, reader = _delimited(place)
    spans_or_tags = _mentions(items) or _tagged_items(items, path, reader, names)
    return spans_or_tags or _labelled(items, path, reader, names, wanted)


def _parquet(path: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """The rows, and column to what its integers stand for, as the hub's tables say it in their metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path).slice(0, SAMPLE)
    except (pa.ArrowException, OSError) as error:
        what = f"is not a parquet file ({first_line(error)})"
        raise DataFormatError(what, hint="download it again", file=path) from None
    try:
        features = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        features = None
    by_column: dict[str, list[str]] = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        names = inner.get("names") if isinstance(inner, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            by_column[column] = names
    return table.to_pylist(), by_column


def _delimited(place: FileLine) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows as items with the header's names, or numbers from 0 where no cell of the first row is a name.

    A first row is a header where none of its cells stands again in its column.
    """
    for name in ("tab", "semicolon", "comma"):
        try:
            rows = [row for _, row in islice(delimited(place, name, strict=False), SAMPLE)]
        except DataFormatError as error:
            if "UTF" in error.what or "NUL" in error.what:
                raise
            continue
        if len(rows) < 3 or len({len(row) for row in rows}) != 1 or len(rows[0]) < 2:
            continue
        first, body = rows[0], rows[1:]
        header = all(cell.strip() and cell not in {row[c] for row in body} for c, cell in enumerate(first))
        keys = first if header and len(set(first)) == len(first) else [str(c) for c in range(len(first))]
        items = [dict(zip(keys, row, strict=True)) for row in (body if header else rows)]
        return items, {"format": "tsv", "separator": name, "header": header}
    raise DataFormatError(
        "is neither a token file with IOB or IOBES tags nor rows with a text and a label",
        hint="see the formats in docs/tasks.md and write the spec by hand",
        file=place.path,
        line=1,
    )


def _token_lines(lines: list[str], *, outside: bool) -> Sniffed | None:
    rows = [line for line in lines if line.strip() and not line.startswith(("-DOCSTART-", "###MEDLINE:"))]
    for name, separator in (("tab", "\t"), ("space", " "), ("whitespace", None)):
        fields = [row.split(separator) for row in rows]
        tags = [f[-1] for f in fields]
        if len({len(f) for f in fields}) != 1 or len(fields[0]) < 2 or not all(map(_TAG.fullmatch, tags)):
            continue
        if not outside and set(tags) == {"O"}:
            continue
        columns = ["token", *(f"skip{i}" for i in range(1, len(fields[0]) - 1)), "tag"]
        column = [line.split(separator)[-1] if line.strip() else "O" for line in lines]
        first = {tag[0] for previous, tag in zip(["O", *column], column, strict=False) if previous == "O"}
        scheme = (
            "IOBES" if any(t[0] in "ESUL" for t in tags) else "IOB1" if "I" in first and "B" not in first else "IOB2"
        )
        reader = {"format": "iob", "columns": columns, "separator": name, "scheme": scheme, "decode": "strict"}
        sentences = sum(1 for a, b in zip(["", *lines], lines, strict=False) if b.strip() and not a.strip())
        return Sniffed("token_ner", reader, {t[2:] for t in tags if t != "O"}, sentences, columns)
    return None


def _filled(items: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Field name to its values that are not null, for the fields that enough of the objects fill."""
    columns: dict[str, list[Any]] = {}
    for item in items:
        for name, value in item.items():
            cells = columns.setdefault(name, [])
            if not missing(value):
                cells.append(value)
    return {name: cells for name, cells in columns.items() if len(cells) > _FILLED * len(items)}


def _mentions(items: list[dict[str, Any]]) -> Sniffed | None:
    """Objects with a text and a list of mentions, each with start, end and label."""
    columns = _filled(items)
    texts = [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]
    for name, cells in columns.items() if texts else ():
        mentions = [m for cell in cells if isinstance(cell, list) for m in cell]
        parts = [[m.get(k) for k in ("start", "end", "label")] if isinstance(m, dict) else m for m in mentions]
        whole = all(isinstance(p, list) and [type(x) for x in p] == [int, int, str] for p in parts)
        if mentions and whole and all(isinstance(cell, list) for cell in cells):
            text = max(texts, key=lambda n: sum(map(len, columns[n])))
            reader = {"format": "json_spans", "text": text, "spans": name}
            unused = [n for n in columns if n not in (text, name)]
            return Sniffed("span_ner", reader, {str(p[2]) for p in parts}, len(items), list(columns), unused)
    return None


def _tagged_items(
    items: list[dict[str, Any]], path: Path, reader: dict[str, Any], names: Mapping[str, list[str]]
) -> Sniffed | None:
    """Rows with a list of words and one of as many tags. names: column to what its integers stand for."""
    lists = {
        name: [item[name] for item in items if item.get(name)]
        for name in (items[0] if items else ())
        if all(isinstance(item.get(name), list) or item.get(name) is None for item in items)
    }
    texts = [n for n, rows in lists.items() if rows and all(isinstance(x, str) for row in rows for x in row)]
    for words in texts:
        for tags, rows in lists.items():
            if tags == words or [len(row) for row in rows] != [len(row) for row in lists[words]]:
                continue
            seen = {x for row in rows for x in row}
            known = set(names.get(tags) or map(str, seen))
            if tags in texts and not all(map(_TAG.fullmatch, known)):
                continue
            fields: dict[str, Any] = {"tokens": words, "tags": tags}
            parquet = reader["format"] == "parquet"
            options = {"format": "parquet", "columns": fields} if parquet else {"format": "json_tokens", **fields}
            if tags not in texts and tags not in names:
                what = f"has numbers in its column of tags, '{tags}', and does not name them"
                example = flow(options | {"names": ["O", "B-...", "I-...", "..."]})
                hint = f"write the spec by hand with `reader: {example}`"
                raise DataFormatError(what, hint=hint, file=path)
            options |= {"names": names[tags]} if tags in names else {}
            options |= {"scheme": "IOBES"} if any(tag[0] in "ESUL" for tag in known) else {}
            columns = list(dict.fromkeys(name for item in items for name in item))
            unused = [name for name in columns if name not in (words, tags)]
            return Sniffed("token_ner", options, {t[2:] for t in known if t != "O"}, len(items), columns, unused)
    return None


def _labelled(
    items: list[dict[str, Any]], path: Path, reader: dict[str, Any], names: Mapping[str, list[str]], wanted: Wanted
) -> Sniffed:
    columns = _filled(items)
    for name in filter(None, (wanted.text, wanted.label, wanted.group)):
        if name not in columns:
            raise DataFormatError(f"has no column '{name}'", hint=suggest(name, list(columns)), file=path, line=1)
    texts = [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]
    lower = {name.strip().lower(): name for name in texts}
    pairs = [(lower[a], lower[b]) for a, b in _PAIRS if a in lower and b in lower]
    first, text = pairs[0] if pairs and wanted.text in (None, pairs[0][1]) else (None, wanted.text)
    text = text or max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    labels: dict[str, set[str]] = {}
    separators: dict[str, str | None] = {}
    for name, cells in columns.items():
        if name not in (first, text) and not any(isinstance(v, (dict, float)) for v in cells):
            values = [str(x).strip() for v in cells for x in (v if isinstance(v, list) else [v]) if not missing(x)]
            separators[name] = wanted.separator if name == wanted.label else None
            if wanted.separator is None and name in texts:
                separators[name] = _separator(values)
            part = separators[name]
            labels[name] = {p for v in values for p in (v.split(part) if part else [v])}
            labels[name] = {p.strip() for p in labels[name]} - ({""} if part else set())
    few = {n for n, values_of_label in labels.items() if 2 <= len(values_of_label) <= max(2, min(200, len(items) // 2))}
    few = {wanted.label} if wanted.label in labels else few
    if text is None or not few:
        hint = f"name them with --text and --label; its columns: {', '.join(columns)}"
        if any(isinstance(v, float) for cells in columns.values() for v in cells):
            hint += "; a label is a class, and a task that predicts a decimal number is written by hand"
        raise DataFormatError("has no text field with a label field", hint=hint, file=path, line=1)
    sparse = {n for n in few if len(columns[n]) < _MOSTLY_FILLED * len(items)}
    lists = {n for n in few if any(isinstance(v, list) and len(v) != 1 for v in columns[n])}
    label = min(few, key=lambda n: (n in sparse, not _called("label", n), n not in lists, len(labels[n])))
    group = wanted.group
    for name, cells in columns.items():
        if group is None and name not in (first, text, label) and _called("group", name):
            group = name if 1 < len({str(v) for v in cells}) < len(cells) else None
    fields = {"text": text, "labels" if reader["format"] == "parquet" else "label": label}
    fields |= ({"group": group} if group else {}) | ({"first": first} if first else {})
    if reader["format"] == "json":
        reader = reader | fields
    else:
        numbered = reader.get("header") is False
        reader = reader | {"columns": {k: int(v) if numbered else v for k, v in fields.items()}}
    reader |= {"names": names[label]} if names.get(label) else {}
    reader |= {"label_separator": separators[label]} if separators[label] else {}
    kind = "multi_label" if label in lists or separators[label] else "single_label"
    unused = [n for n in columns if n not in fields.values()]
    values_of_label = set(names.get(label) or labels[label])
    return Sniffed(kind, reader, values_of_label, len(items), list(columns), unused)


def _called(role: str, name: str) -> bool:
    return re.fullmatch(_NAMES[role], name.strip(), re.IGNORECASE) is not None


def _separator(values: Sequence[str]) -> str | None:
    """What parts several labels of a cell: a sign whose parts stand in other cells too, and are fewer than the cells'
    different values."""
    whole = set(values)
    for sign in ("|", ";"):
        parts = {part.strip() for value in whole for part in value.split(sign)}
        if any(sign in value for value in whole) and len(parts) < len(whole) and parts & whole:
            return sign
    return None


def sniff_brat(texts: Sequence[Path]) -> Sniffed:
    """Labels and reader options of these texts with the .ann beside them. Raises DataFormatError for a bad line."""
    types: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    reader: dict[str, Any] = {"format": "brat"}
    for text in texts:
        ann = text.with_suffix(".ann")
        if not ann.is_file():
            reader["missing_ann"] = "skip"
            continue
        for number, line in read_lines(ann):
            fields = line.split("\t", 2)
            if line.startswith("T"):
                if len(fields) < 2 or " " not in fields[1]:
                    what = "is not a text-bound line: T<n>, tab, TYPE START END, tab, text"
                    raise DataFormatError(what, hint="repair the line", file=ann, line=number)
                types[fields[1].split(" ", 1)[0]] += 1
                if ";" in fields[1]:
                    reader["discontinuous"] = "hull"
            elif line[:1] in ("#", "N") and (note := note_of(fields)) is not None:
                notes[note[0]] += 1
    remark = ""
    if looks_like_ids(types):
        remark = f"{len(types)} types that look like concept ids: map them by reader.types"
        if notes:
            remark += f", or take the label from a note ({', '.join(notes)}) by reader.label_note and label_match"
    return Sniffed("span_ner", reader, set(types), len(texts), remark=remark)


def looks_like_ids(labels: Sequence[str] | set[str] | Counter[str]) -> bool:
    """Whether most of the labels are made like concept ids (C0018787, D003920, 8500/3), or they are too many."""
    return len(labels) >= _MANY or 2 * sum(_ID.fullmatch(label) is not None for label in labels) > len(labels)


_PLAIN = re.compile(r"(?!(?i:true|false|null)\Z)[A-Za-z_][\w.-]*")


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
