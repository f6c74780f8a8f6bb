"""What a data file is: its format, which columns hold text, label and group, and which labels there are.

Columns that are named are taken; of the others a name decides (`label`, `patient_id`, `premise`), then the simplest
rule: the longest texts are the text, and the fewest different values are the label.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, cast

from biobench.data.readers.base import FileLine, ReaderOptions, Request
from biobench.data.readers.brat import note_of
from biobench.data.readers.files import delimited, json_rows, missing, parquet_table, read_lines
from biobench.errors import DataFormatError
from biobench.schema.strict import suggest
from biobench.schema.task import TaskSpec

_TAG = re.compile(r"O|[BIESUL]-\S+")
_LABEL = re.compile(r"\s*(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?\s*", re.IGNORECASE)
_GROUP = re.compile(
    r"\s*(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?\s*", re.IGNORECASE
)
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
    labels: set[str]
    units: int
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


@dataclass(slots=True)
class _Table:
    """Rows of a file. names: column to what its integers stand for."""

    path: Path
    reader: dict[str, Any]
    items: list[dict[str, Any]]
    names: dict[str, list[str]]

    @property
    def every(self) -> list[str]:
        """Names of all columns."""
        return list(dict.fromkeys(name for item in self.items for name in item))

    def columns(self) -> dict[str, list[Any]]:
        """Name to values that are not null, of the columns that enough rows fill."""
        cells = {name: [v for item in self.items if not missing(v := item.get(name))] for name in self.every}
        return {name: values for name, values in cells.items() if len(values) > _FILLED * len(self.items)}

    def sniffed(self, type_: str, reader: dict[str, Any], labels: Collection[str], read: Collection[str]) -> Sniffed:
        """As a task of this type, of which the columns `read` are read."""
        unused = [name for name in self.every if name not in read]
        return Sniffed(type_, reader, set(labels), len(self.items), self.every, unused)


def sniff(path: Path, wanted: Wanted, *, tokens: bool = False) -> Sniffed:
    """Format and contents of one data file. Raises DataFormatError where it is not recognised.

    tokens: the file belongs to token files, so it is one too where all its tags are O.
    """
    place = FileLine(Request(ReaderOptions(format="sniffed"), {"all": [path]}, cast(TaskSpec, None)), "", path)
    if path.suffix == ".parquet":
        rows = parquet_table(place)
        table = _Table(path, {"format": "parquet"}, rows.slice(0, SAMPLE).to_pylist(), _class_names(rows.schema))
    elif path.suffix in (".jsonl", ".ndjson"):
        items = [row.values for row in islice(json_rows(place.request, "lines"), SAMPLE)]
        table = _Table(path, {"format": "json", "layout": "lines"}, items, {})
    else:
        tagged = _token_lines([line for _, line in islice(read_lines(path), SAMPLE)], outside=tokens)
        if tagged is not None:
            return tagged
        table = _delimited(place)
    return _mentions(table) or _tagged(table) or _labelled(table, wanted)


def _class_names(schema: Any) -> dict[str, list[str]]:
    """Column to what its integers stand for, as the hub's tables say it in their metadata."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        inner = {column: feature.get("feature", feature) for column, feature in features.items()}
        return {column: list(feature["names"]) for column, feature in inner.items() if "names" in feature}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _delimited(place: FileLine) -> _Table:
    """The rows with the header's names, or numbers from 0 where some cell of the first row stands again below it."""
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
        return _Table(place.path, {"format": "tsv", "separator": name, "header": header}, items, {})
    what = "is neither a token file with IOB or IOBES tags nor rows with a text and a label"
    raise place.bad(what, "see the formats in docs/tasks.md and write the spec by hand")


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
        scheme = "IOBES" if _has_ends(tags) else "IOB1" if "I" in first and "B" not in first else "IOB2"
        reader = {"format": "iob", "columns": columns, "separator": name, "scheme": scheme, "decode": "strict"}
        sentences = sum(1 for a, b in zip(["", *lines], lines, strict=False) if b.strip() and not a.strip())
        return Sniffed("token_ner", reader, {t[2:] for t in tags if t != "O"}, sentences, columns)
    return None


def _has_ends(tags: Collection[str]) -> bool:
    """Whether the tags are of scheme IOBES."""
    return any(tag[0] in "ESUL" for tag in tags)


def _texts(columns: Mapping[str, list[Any]]) -> list[str]:
    return [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]


def _mentions(table: _Table) -> Sniffed | None:
    """Objects with a text and a list of mentions, each with start, end and label."""
    columns = table.columns()
    text = max(_texts(columns), key=lambda n: sum(map(len, columns[n])), default=None)
    for name, cells in columns.items() if text else ():
        mentions = [m for cell in cells if isinstance(cell, list) for m in cell]
        parts = [[m.get(k) for k in ("start", "end", "label")] if isinstance(m, dict) else m for m in mentions]
        whole = all(isinstance(p, list) and [type(x) for x in p] == [int, int, str] for p in parts)
        if mentions and whole and all(isinstance(cell, list) for cell in cells):
            reader = {"format": "json_spans", "text": text, "spans": name}
            return table.sniffed("span_ner", reader, [str(p[2]) for p in parts], [str(text), name])
    return None


def _tagged(table: _Table) -> Sniffed | None:
    """Rows with a list of words and one of as many tags."""
    lists = {name: cells for name, cells in table.columns().items() if all(isinstance(cell, list) for cell in cells)}
    texts = [n for n, rows in lists.items() if rows and all(isinstance(x, str) for row in rows for x in row)]
    pairs = [(a, b) for a in texts for b in lists if a != b and list(map(len, lists[a])) == list(map(len, lists[b]))]
    for words, tags in pairs:
        known = set(table.names.get(tags) or (str(x) for row in lists[tags] for x in row))
        if tags in texts and not all(map(_TAG.fullmatch, known)):
            continue
        fields: dict[str, Any] = {"tokens": words, "tags": tags}
        parquet = table.reader["format"] == "parquet"
        options = {"format": "parquet", "columns": fields} if parquet else {"format": "json_tokens", **fields}
        if tags not in texts and tags not in table.names:
            what = f"has numbers in its column of tags, '{tags}', and does not name them"
            example = flow(options | {"names": ["O", "B-...", "I-...", "..."]})
            hint = f"write the spec by hand with `reader: {example}`"
            raise DataFormatError(what, hint=hint, file=table.path)
        options |= {"names": table.names[tags]} if tags in table.names else {}
        options |= {"scheme": "IOBES"} if _has_ends(known) else {}
        return table.sniffed("token_ner", options, {t[2:] for t in known if t != "O"}, [words, tags])
    return None


def _labelled(table: _Table, wanted: Wanted) -> Sniffed:
    """Rows with a text and a label, or several."""
    columns, rows = table.columns(), len(table.items)
    for name in filter(None, (wanted.text, wanted.label, wanted.group)):
        if name not in columns:
            hint = suggest(name, list(columns))
            raise DataFormatError(f"has no column '{name}'", hint=hint, file=table.path, line=1)
    texts = _texts(columns)
    pairs = [(a, b) for a, b in _PAIRS if a in texts and b in texts and wanted.text in (None, b)]
    first, text = pairs[0] if pairs else (None, wanted.text)
    text = text or max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    labels: dict[str, tuple[str | None, set[str]]] = {}  # what parts the labels of a cell, and the labels
    for name, cells in columns.items():
        if name not in (first, text) and not any(isinstance(v, (dict, float)) for v in cells):
            values = [str(x).strip() for v in cells for x in (v if isinstance(v, list) else [v]) if not missing(x)]
            part = wanted.separator if name == wanted.label else None
            part = _separator(values) if wanted.separator is None and name in texts else part
            each = {p.strip() for v in values for p in (v.split(part) if part else [v])}
            if name == wanted.label or 2 <= len(each) <= max(2, min(200, rows // 2)):
                labels[name] = part, each - ({""} if part else set())
    if text is None or not labels:
        hint = f"name them with --text and --label; its columns: {', '.join(columns)}"
        if any(isinstance(v, float) for cells in columns.values() for v in cells):
            hint += "; a label is a class, and a task that predicts a decimal number is written by hand"
        raise DataFormatError("has no text field with a label field", hint=hint, file=table.path, line=1)
    lists = {n for n in labels if any(isinstance(v, list) and len(v) != 1 for v in columns[n])}
    label = wanted.label or min(
        labels,
        key=lambda n: (
            len(columns[n]) < _MOSTLY_FILLED * rows,
            not _LABEL.fullmatch(n),
            n not in lists,
            len(labels[n][1]),
        ),
    )
    groups = [n for n in columns if n not in (first, text, label) and _GROUP.fullmatch(n)]
    group = wanted.group or next((n for n in groups if 1 < len(set(map(str, columns[n]))) < len(columns[n])), None)
    reader, (separator, known) = table.reader, labels[label]
    fields = {"text": text, "labels" if reader["format"] == "parquet" else "label": label}
    fields |= ({"group": group} if group else {}) | ({"first": first} if first else {})
    if reader["format"] == "json":
        reader = reader | fields
    else:
        numbered = reader.get("header") is False
        reader = reader | {"columns": {k: int(v) if numbered else v for k, v in fields.items()}}
    reader |= {"names": table.names[label]} if label in table.names else {}
    reader |= {"label_separator": separator} if separator else {}
    kind = "multi_label" if label in lists or separator else "single_label"
    return table.sniffed(kind, reader, table.names.get(label) or known, fields.values())


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
    types, notes = set[str](), Counter[str]()
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
                types.add(fields[1].split(" ", 1)[0])
                if ";" in fields[1]:
                    reader["discontinuous"] = "hull"
            elif line[:1] in ("#", "N") and (note := note_of(fields)) is not None:
                notes[note[0]] += 1
    remark = ""
    if looks_like_ids(types):
        remark = f"{len(types)} types that look like concept ids: map them by reader.types"
        if notes:
            remark += f", or take the label from a note ({', '.join(notes)}) by reader.label_note and label_match"
    return Sniffed("span_ner", reader, types, len(texts), remark=remark)


def looks_like_ids(labels: Collection[str]) -> bool:
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
