"""What data files are: their format, which columns hold text, label and group, and which labels
there are.

Columns that are named are taken; of the others a name decides (`label`, `patient_id`, `premise`),
then the simplest
rule: the longest texts are the text, and the fewest different values are the label.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, cast

from biobench.data.readers.base import FileLine, ReaderOptions, Request
from biobench.data.readers.brat import parse_brat
from biobench.data.readers.files import delimited, json_rows, missing, parquet_rows, read_lines
from biobench.errors import DataFormatError
from biobench.schema.strict import suggest
from biobench.schema.task import TaskSpec

_TAG = re.compile(r"O|[BIESUL]-\S+")
_LABEL = re.compile(
    r"\s*(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?\s*", re.IGNORECASE
)
_GROUP = re.compile(
    r"\s*(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?\s*",
    re.IGNORECASE,
)
_PAIRS = (
    *(
        ("sentence1", "sentence2"),
        ("text1", "text2"),
        ("text_a", "text_b"),
        ("premise", "hypothesis"),
    ),
    *(("question1", "question2"), ("question", "answer"), ("query", "passage")),
)
"""Names of columns that hold two texts to be read together, the first before the second."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns, and what parts several labels of a cell, as the user named them; None: to be
    detected.
    """

    text: str | None = None
    label: str | None = None
    group: str | None = None
    separator: str | None = None


@dataclass(slots=True)
class Sniffed:
    """type: of the task; reader: its options; units: rows, sentences or texts of each file."""

    type: str
    reader: dict[str, Any]
    labels: set[str]
    units: Counter[Path]
    columns: list[str] = field(default_factory=list)
    """Of the files, all of them."""
    read: Collection[str] = ()
    """Those that the reader reads."""

    @property
    def unused(self) -> list[str]:
        """Columns that the reader does not read."""
        return [name for name in self.columns if self.read and name not in self.read]


Rows = list[tuple[Path, dict[str, Any]]]
"""Column to cell, and the file that the row stands in."""


def sniff(paths: Sequence[Path], wanted: Wanted) -> Sniffed:
    """Format and contents of data files, one or one a split. Raises DataFormatError where they are
    not recognised.
    """
    request = Request(ReaderOptions(format="sniffed"), {"all": list(paths)}, cast(TaskSpec, None))
    for path in paths:
        if path.suffix != paths[0].suffix:
            what = f"is no {paths[0].suffix} file, as {paths[0].name} is"
            raise DataFormatError(
                what, hint="bring all splits into one format, or give one data file", file=path
            )
    if paths[0].suffix == ".parquet":
        rows = [(row.place.path, row.values) for row in parquet_rows(request, ())]
        return _table({"format": "parquet"}, rows, wanted, _class_names(paths[0]))
    if paths[0].suffix in (".jsonl", ".ndjson"):
        rows = [(row.place.path, row.values) for row in json_rows(request, "lines")]
        return _table({"format": "json", "layout": "lines"}, rows, wanted, {})
    tagged = _token_lines({path: [line for _, line in read_lines(path)] for path in paths})
    return tagged or _table(*_delimited(list(request.places())), wanted, {})


def _class_names(path: Path) -> dict[str, list[str]]:
    """Column to what its integers stand for, as the hub's tables say it in their metadata."""
    import pyarrow.parquet as pq

    try:
        features = json.loads((pq.read_schema(path).metadata or {})[b"huggingface"])["info"][
            "features"
        ]
        inner = {column: feature.get("feature", feature) for column, feature in features.items()}
        return {
            column: list(feature["names"])
            for column, feature in inner.items()
            if "names" in feature
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _delimited(places: Sequence[FileLine]) -> tuple[dict[str, Any], Rows]:
    """(reader, rows) with the header's names, or numbers where some cell of the first row stands
    again below it.
    """
    for name in ("tab", "semicolon", "comma"):
        try:
            files = [[row for _, row in delimited(place, name, strict=False)] for place in places]
        except DataFormatError:
            continue
        every = [row for rows in files for row in rows]
        if len(every) < 3 or len({len(row) for row in every}) != 1 or len(every[0]) < 2:
            continue
        first, below = (
            every[0],
            [
                set(cells)
                for cells in zip(*(row for rows in files for row in rows[1:]), strict=True)
            ],
        )
        header = all(
            cell.strip() and cell not in cells for cell, cells in zip(first, below, strict=True)
        )
        header = header and all(rows[:1] == [first] for rows in files)
        keys = (
            first
            if header and len(set(first)) == len(first)
            else [str(c) for c in range(len(first))]
        )
        rows = [
            (place.path, dict(zip(keys, row, strict=True)))
            for place, rows in zip(places, files, strict=True)
            for row in rows[header:]
        ]
        return {"format": "tsv", "separator": name, "header": header}, rows
    what = "is neither a token file with IOB or IOBES tags nor rows with a text and a label"
    raise places[0].bad(what, "see the formats in docs/tasks.md and write the spec by hand")


def _token_lines(files: Mapping[Path, list[str]]) -> Sniffed | None:
    lines = [line for content in files.values() for line in ["", *content]]
    rows = [
        line
        for line in lines
        if line.strip() and not line.startswith(("-DOCSTART-", "###MEDLINE:"))
    ]
    for name, separator in (("tab", "\t"), ("space", " "), ("whitespace", None)):
        fields = [row.split(separator) for row in rows]
        tags = {f[-1] for f in fields}
        if (
            len({len(f) for f in fields}) != 1
            or len(fields[0]) < 2
            or not all(map(_TAG.fullmatch, tags))
        ):
            continue
        columns = ["token", *(f"skip{i}" for i in range(1, len(fields[0]) - 1)), "tag"]
        column = [line.split(separator)[-1] if line.strip() else "O" for line in lines]
        begins = {tag[0] for previous, tag in pairwise(column) if previous == "O"}
        scheme = "IOB1" if "I" in begins and "B" not in begins else _scheme(tags)
        reader = {
            "format": "iob",
            "columns": columns,
            "separator": name,
            "scheme": scheme,
            "decode": "strict",
        }
        units = {
            path: sum(
                bool(line.strip() and not before.strip())
                for before, line in pairwise(["", *content])
            )
            for path, content in files.items()
        }
        return Sniffed(
            "token_ner", reader, {t[2:] for t in tags if t != "O"}, Counter(units), columns
        )
    return None


def _scheme(tags: Collection[str]) -> str:
    return "IOBES" if any(tag[0] in "ESUL" for tag in tags) else "IOB2"


def _table(
    reader: dict[str, Any], rows: Rows, wanted: Wanted, names: Mapping[str, list[str]]
) -> Sniffed:
    """Rows of texts with mentions, of words with tags, or of texts with labels. names: what
    integers mean.
    """
    items, units = [item for _, item in rows], Counter(path for path, _ in rows)
    path = next(iter(units), None)
    every = list(dict.fromkeys(name for item in items for name in item))
    filled: dict[str, list[Any]] = {
        n: [v for item in items if not missing(v := item.get(n))] for n in every
    }
    columns = {name: values for name, values in filled.items() if 2 * len(values) > len(items)}
    texts = [n for n, values in columns.items() if all(isinstance(v, str) for v in values)]
    text = wanted.text or max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    lists = {n: values for n, values in columns.items() if all(isinstance(v, list) for v in values)}
    for name, values in lists.items() if text and reader["format"] == "json" else ():
        mentions = [m for cell in values for m in cell]
        parts = [
            [m.get(k) for k in ("start", "end", "label")] if isinstance(m, dict) else m
            for m in mentions
        ]
        if parts and all(
            isinstance(p, list) and [type(x) for x in p] == [int, int, str] for p in parts
        ):
            spans = {"format": "json_spans", "text": text, "spans": name}
            return Sniffed(
                "span_ner", spans, {str(p[2]) for p in parts}, units, every, [str(text), name]
            )
    for words, tags in permutations(lists, 2):
        known = names.get(tags) or list(dict.fromkeys(x for row in lists[tags] for x in row))
        aligned = list(map(len, lists[words])) == list(map(len, lists[tags]))
        if aligned and known and all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in known):
            both: dict[str, Any] = {"tokens": words, "tags": tags}
            parquet = reader["format"] == "parquet"
            options = (
                {"format": "parquet", "columns": both}
                if parquet
                else {"format": "json_tokens", **both}
            )
            options |= {"scheme": _scheme(known)} | (
                {"names": names[tags]} if tags in names else {}
            )
            types = {tag[2:] for tag in known if tag != "O"}
            return Sniffed("token_ner", options, types, units, every, [words, tags])
    for name in filter(None, (wanted.text, wanted.label, wanted.group)):
        if name not in columns:
            raise DataFormatError(
                f"has no column '{name}'", hint=suggest(name, list(columns)), file=path, line=1
            )
    pairs = [(a, b) for a, b in _PAIRS if a in texts and b in texts and wanted.text in (None, b)]
    first, text = pairs[0] if pairs else (None, text)
    labels: dict[
        str, tuple[str | None, set[str]]
    ] = {}  # what parts the labels of a cell, and the labels
    for name, cells in columns.items():
        if name not in (first, text) and not any(isinstance(v, (dict, float)) for v in cells):
            values = [
                str(x).strip()
                for v in cells
                for x in (v if isinstance(v, list) else [v])
                if not missing(x)
            ]
            part = wanted.separator if wanted.label in (None, name) else None
            part = part or (
                _separator(values) if wanted.separator is None and name in texts else None
            )
            each = {p.strip() for v in values for p in (v.split(part) if part else [v])} - {""}
            if name == wanted.label or 2 <= len(each) <= max(2, min(200, len(items) // 2)):
                labels[name] = part, each
    if text is None or not labels:
        hint = (
            f"name them with --text and --label; its columns: {', '.join(columns)}; a label is "
            f"a class, no number"
        )
        raise DataFormatError("has no text field with a label field", hint=hint, file=path, line=1)
    label = wanted.label or min(labels, key=lambda n: (not _LABEL.fullmatch(n), len(labels[n][1])))
    groups = [n for n in columns if n not in (first, text, label) and _GROUP.fullmatch(n)]
    group = wanted.group or next(
        (n for n in groups if 1 < len(set(map(str, columns[n]))) < len(columns[n])), None
    )
    separator, distinct = labels[label]
    role = "labels" if reader["format"] == "parquet" else "label"
    named = {"text": text, role: label, "group": group, "first": first}
    fields = {role: column for role, column in named.items() if column}
    if reader["format"] == "json":
        reader = reader | fields
    else:
        numbered = reader.get("header") is False
        reader = reader | {"columns": {k: int(v) if numbered else v for k, v in fields.items()}}
    reader |= {"names": names[label]} if label in names else {}
    reader |= {"label_separator": separator} if separator else {}
    several = bool(separator) or any(isinstance(v, list) and len(v) != 1 for v in columns[label])
    kind = "multi_label" if several else "single_label"
    return Sniffed(
        kind, reader, set(names.get(label) or distinct), units, every, list(fields.values())
    )


def _separator(values: Sequence[str]) -> str | None:
    """What parts several labels of a cell: a sign whose parts are labels of other cells too, and no
    more than the different cells.
    """
    whole = set(values)
    for sign in ("|", ";"):
        parts = {part.strip() for value in whole for part in value.split(sign)}
        if any(sign in value for value in whole) and len(parts) <= len(whole) and parts & whole:
            return sign
    return None


def sniff_brat(texts: Sequence[Path]) -> Sniffed:
    """Types of these texts with the .ann beside them. Raises DataFormatError for a bad line."""
    reader: dict[str, Any] = {"format": "brat"}
    types = set[str]()
    for place in Request(
        ReaderOptions(format="sniffed"), {"all": list(texts)}, cast(TaskSpec, None)
    ).places():
        raw = parse_brat(place, "skip")
        if raw is None:
            reader["missing_ann"] = "skip"
        for mention in () if raw is None else raw.mentions:
            types.add(mention.label)
            if len(mention.fragments) > 1:
                reader["discontinuous"] = "hull"
    return Sniffed("span_ner", reader, types, Counter(texts))


_PLAIN = re.compile(r"(?!(?i:true|false|null)\Z)[A-Za-z_][\w.-]*")


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    return (
        value
        if isinstance(value, str) and _PLAIN.fullmatch(value)
        else json.dumps(value, ensure_ascii=False)
    )
