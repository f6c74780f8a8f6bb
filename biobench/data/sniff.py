"""What a data file is: its format, which columns hold text, label and group, and which labels there are."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from biobench.core.text import first_line
from biobench.data.readers.files import missing
from biobench.data.triplets import triplets
from biobench.errors import DataFormatError

_TAG = re.compile(r"O|[BIESUL]-\S+")
_LABEL_NAME = re.compile(r"(gold_?)?(labels?|class(es)?|categor(y|ies)|targets?|codes?)(_id|_name)?", re.IGNORECASE)
_GROUP_NAME = re.compile(
    r"(patient|subject|group|pmid|article|document|doc|report|note|hadm|case)(_?id|_?name)?", re.IGNORECASE
)
_PAIRS = (
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("text1", "text2"),
    ("text_1", "text_2"),
    ("text_a", "text_b"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "answer"),
    ("query", "passage"),
)
"""Names of columns that hold two texts to be read together, the first before the second."""
SAMPLE = 200_000
"""Lines or rows that are looked at in each file."""
_FILLED, _MOSTLY_FILLED = 0.5, 0.9
"""A column counts where this share of its cells holds a value; as a label, a mostly filled one comes first."""


@dataclass(slots=True)
class Sniffed:
    """type: of the task; reader: its options as YAML; units: rows, sentences or files that were looked at."""

    type: str
    reader: str
    labels: set[str] = field(default_factory=set)
    head: str = "sequence"
    units: int = 0
    unused: list[str] = field(default_factory=list)
    """Columns of the file that the reader does not read."""
    grouped: bool = False
    """Whether the reader has a column that says what belongs together."""
    remark: str = ""
    """What is to be known of the labels."""
    doubt: str = ""
    """Why the data may be something else than `type`."""


def sniff(path: Path, *, tokens: bool = False) -> Sniffed:
    """Format and contents of one data file. Raises DataFormatError where it is not recognised.

    tokens: the file belongs to token files, so it is one too where all its tags are O.
    """
    if path.suffix == ".parquet":
        return _sniff_parquet(path)
    if path.suffix in (".jsonl", ".ndjson"):
        items = _json_lines(path)
        return (
            _sniff_mentions(items)
            or _sniff_tagged(items, path, "json_tokens")
            or _sniff_objects(items, path, "json, layout: lines", "label")
        )
    lines = [line for _, line in lines_of(path)]
    sniffed = _sniff_tokens(lines, outside=tokens) or _sniff_rows(lines)
    if sniffed is None:
        raise DataFormatError(
            "is neither a token file with IOB or IOBES tags nor rows with a text and a label",
            hint="see the formats in the documentation and write the spec by hand",
            file=path,
            line=1,
        )
    return sniffed


def _sniff_parquet(path: Path) -> Sniffed:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path).slice(0, SAMPLE)
    except (pa.ArrowException, OSError) as error:
        reason = first_line(error)
        raise DataFormatError(f"is not a parquet file ({reason})", hint="download it again", file=path) from None
    items: list[dict[str, Any]] = table.to_pylist()
    names = _class_names(table.schema.metadata or {})
    return _sniff_tagged(items, path, "parquet", names) or _sniff_objects(items, path, "parquet", "labels", names)


def _sniff_tagged(
    items: list[dict[str, Any]], path: Path, format: str, names: Mapping[str, list[str]] | None = None
) -> Sniffed | None:
    """Rows with a list of words and one of tags. names: column to what its integers stand for."""
    pair = _tokens_and_tags(items)
    if pair is None:
        return None
    words, tags = pair
    tag_names = (names or {}).get(tags, [])
    fields = f"tokens: {json.dumps(words)}, tags: {json.dumps(tags)}"
    fields = f"columns: {{{fields}}}" if format == "parquet" else fields
    seen = {tag for item in items for tag in item.get(tags) or ()}
    if any(isinstance(tag, int) for tag in seen) and not tag_names:
        reader = f"{{format: {format}, {fields}, names: [O, B-..., I-..., ...]}}"
        raise DataFormatError(
            f"has numbers in its column of tags, '{tags}', and does not name them",
            hint=f"write the spec by hand with `reader: {reader}`",
            file=path,
        )
    known = set(tag_names) if tag_names else {str(tag) for tag in seen}
    if not all(_TAG.fullmatch(tag) for tag in known):
        raise DataFormatError(
            f"has tags in '{tags}' that are not O, B- or I- (or E- and S-)", hint="rewrite them as IOB2", file=path
        )
    option = f", names: {_listed(tag_names)}" if tag_names else ""
    scheme = ", scheme: IOBES" if any(tag[0] in "ESUL" for tag in known) else ""
    unused = list(dict.fromkeys(name for item in items for name in item if name not in pair))
    reader = f"{{format: {format}, {fields}{option}{scheme}}}"
    return Sniffed("token_ner", reader, {t[2:] for t in known if t != "O"}, "token", len(items), unused)


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Column to what its integers stand for, as the hub's tables say it in their metadata."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    by_column: dict[str, list[str]] = {}
    for column, feature in features.items() if isinstance(features, dict) else ():
        inner = feature.get("feature", feature) if isinstance(feature, dict) else {}
        names = inner.get("names") if isinstance(inner, dict) else None
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            by_column[column] = names
    return by_column


def _tokens_and_tags(items: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The columns that hold lists of the same lengths, texts in one and tags in the other."""
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
            if tags not in texts or all(_TAG.fullmatch(x) for row in rows for x in row):
                return words, tags
    return None


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """(1-based number, line without its end) of the sample, by the rules of the readers: strict UTF-8, a byte
    order mark dropped, LF and CRLF as line ends. Raises DataFormatError."""
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(islice(stream, SAMPLE), start=1):
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
    for number, line in lines_of(path):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataFormatError(
                f"not valid JSON: {error.msg}", hint="one object a line", file=path, line=number
            ) from None
        except (ValueError, RecursionError):
            what = "JSON with a number of thousands of digits, or nested too deeply"
            raise DataFormatError(what, hint="one object a line", file=path, line=number) from None
        if isinstance(item, dict):
            items.append(item)
    return items


def _sniff_mentions(items: list[dict[str, Any]]) -> Sniffed | None:
    """Objects with a text and a list of mentions, each with start, end and label."""
    columns = _columns(items)
    texts = [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]
    text = max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    for name, cells in columns.items():
        if text is None or not all(isinstance(cell, list) for cell in cells):
            continue
        mentions = [mention for cell in cells for mention in cell]
        kinds = {str(kind) for mention in mentions if (kind := _kind(mention)) is not None}
        if mentions and all(_kind(mention) is not None for mention in mentions):
            reader = f"{{format: json_spans, text: {json.dumps(text)}, spans: {json.dumps(name)}}}"
            unused = [n for n in columns if n not in (text, name)]
            return Sniffed("span_ner", reader, kinds, "span", len(items), unused)
    return None


def _kind(mention: Any) -> str | None:
    """A mention's label; None for what is no mention."""
    if isinstance(mention, dict):
        mention = [mention.get(key) for key in ("start", "end", "label")]
    if not isinstance(mention, list) or len(mention) != 3:
        return None
    start, end, kind = mention
    return kind if type(start) is int and type(end) is int and isinstance(kind, str) else None


def _sniff_objects(
    items: list[dict[str, Any]], path: Path, format: str, role: str, names: Mapping[str, list[str]] | None = None
) -> Sniffed:
    """The longest text field is the text; the label is the field called so, else the one with the fewest different
    values (lists too). Nulls are looked past: what to do with such rows is for the reader to say."""
    columns = _columns(items)
    texts = [n for n, cells in columns.items() if all(isinstance(cell, str) for cell in cells)]
    before, text = _pair(texts)
    text = text or max(texts, key=lambda n: sum(map(len, columns[n])), default=None)
    labels: dict[str, set[str]] = {}
    several: set[str] = set()
    for name, values in columns.items():
        if name in (before, text) or any(isinstance(v, (dict, float)) for v in values):
            continue
        if any(isinstance(v, list) and len(v) != 1 for v in values):
            several.add(name)
        each = (x for v in values for x in (v if isinstance(v, list) else [v]))
        labels[name] = {str(x) for x in each if not missing(x)}
    fitting = {
        n: label_values
        for n, label_values in labels.items()
        if 2 <= len(label_values) <= max(2, min(200, len(items) // 2))
    }
    if text is None or not fitting:
        numbers = any(isinstance(v, float) for values in columns.values() for v in values)
        hint = "a label is a class; tasks that predict a decimal number are not supported" if numbers else ""
        raise DataFormatError(
            "has no text field with a label field", hint=hint or "write the spec by hand", file=path, line=1
        )
    sparse = {n for n in fitting if len(columns[n]) < _MOSTLY_FILLED * len(items)}
    label = min(fitting, key=lambda n: (n in sparse, not _LABEL_NAME.fullmatch(n), n not in several, len(fitting[n])))
    group = next((n for n in columns if n not in (text, label) and _groups(n, [str(v) for v in columns[n]])), None)
    fields = {"text": text, role: label} | ({"group": group} if group else {}) | ({"first": before} if before else {})
    listed = ", ".join(f"{key}: {json.dumps(value)}" for key, value in fields.items())
    class_names = (names or {}).get(label, [])
    if format == "parquet":
        listed = f"columns: {{{listed}}}" + (f", names: {_listed(class_names)}" if class_names else "")
    label_values = set(class_names) or fitting[label]
    unused = [n for n in columns if n not in fields.values()]
    kind = "multi_label" if label in several else "single_label"
    sniffed = Sniffed(
        kind, f"{{format: {format}, {listed}}}", label_values, "sequence", len(items), unused, group is not None
    )
    words = {n: [v for v in cells if isinstance(v, str)] for n, cells in columns.items()}
    if kind == "single_label" and before is None:
        sniffed.doubt = triplets({n: cells for n, cells in words.items() if cells or n == label}, text, label)
    return sniffed


def _pair(names: Sequence[str]) -> tuple[str | None, str | None]:
    """The columns of a pair of texts, first and second; None and None where no two are called like one."""
    lower = {name.strip().lower(): name for name in names}
    return next(((lower[a], lower[b]) for a, b in _PAIRS if a in lower and b in lower), (None, None))


def _groups(name: str, values: Sequence[str]) -> bool:
    """Whether a column is called like one that groups, and does group."""
    return _GROUP_NAME.fullmatch(name.strip()) is not None and 1 < len(set(values)) < len(values)


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(json.dumps(name, ensure_ascii=False) for name in names)}]"


def _columns(items: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Field name to its values that are not null, for the fields that enough of the objects fill."""
    columns: dict[str, list[Any]] = {}
    for item in items:
        for name, value in item.items():
            cells = columns.setdefault(name, [])
            if not missing(value):
                cells.append(value)
    return {name: cells for name, cells in columns.items() if len(cells) > _FILLED * len(items)}


def _sniff_tokens(lines: list[str], *, outside: bool) -> Sniffed | None:
    rows = [line for line in lines if line.strip() and not line.startswith(("-DOCSTART-", "###MEDLINE:"))]
    for name, separator in (("tab", "\t"), ("space", " "), ("whitespace", None)):
        fields = [row.split(separator) for row in rows]
        widths = {len(f) for f in fields}
        if len(widths) != 1 or widths <= {1}:
            continue
        tags = [f[-1] for f in fields]
        if all(_TAG.fullmatch(t) for t in tags) and (outside or set(tags) != {"O"}):
            middle = [f"skip{i}" for i in range(1, widths.pop() - 1)]
            columns = ", ".join(["token", *middle, "tag"])
            scheme = "IOB1" if _looks_iob1(lines, separator) else "IOB2"
            if any(t[0] in "ESUL" for t in tags):
                scheme = "IOBES"
            reader = f"{{format: iob, columns: [{columns}], separator: {name}, scheme: {scheme}, decode: strict}}"
            sentences = sum(1 for a, b in zip(["", *lines], lines, strict=False) if b.strip() and not a.strip())
            return Sniffed("token_ner", reader, {t[2:] for t in tags if t != "O"}, "token", sentences)
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


def _sniff_rows(lines: list[str]) -> Sniffed | None:
    for name, delimiter in (("tab", "\t"), ("semicolon", ";"), ("comma", ",")):
        try:
            rows = [row for row in csv.reader((line + "\n" for line in lines), delimiter=delimiter) if row]
        except csv.Error:
            continue
        if len(rows) < 3 or len({len(r) for r in rows}) != 1 or len(rows[0]) < 2:
            continue
        width, first, body = len(rows[0]), rows[0], rows[1:]
        lengths = [sum(len(r[c]) for r in body) / len(body) for c in range(width)]
        before, second = _pair(first)
        text = max(range(width), key=lengths.__getitem__) if second is None else first.index(second)
        taken = {text} | ({first.index(before)} if before is not None else set())
        distinct = {c: {r[c].strip() for r in body} for c in range(width) if c not in taken}
        candidates = [c for c, values in distinct.items() if 2 <= len(values) <= max(2, min(60, len(body) // 2))]
        if not candidates:
            continue
        label = min(candidates, key=lambda c: (not _LABEL_NAME.fullmatch(first[c].strip()), len(distinct[c])))
        header = first[label].strip() not in distinct[label]
        group = next(
            (
                c
                for c in range(width)
                if header and c not in (*taken, label) and _groups(first[c], [r[c] for r in body])
            ),
            None,
        )
        roles = {"text": text, "label": label} | ({} if group is None else {"group": group})
        roles |= {} if before is None else {"first": first.index(before)}
        columns = ", ".join(f"{role}: {json.dumps(first[c]) if header else c}" for role, c in roles.items())
        reader = f"{{format: tsv, separator: {name}, header: {str(header).lower()}, columns: {{{columns}}}}}"
        unused = [first[c] if header else str(c) for c in range(width) if c not in roles.values()]
        label_values = distinct[label]
        units = len(body) + (not header)
        sniffed = Sniffed("single_label", reader, label_values, "sequence", units, unused, group is not None)
        if before is None:
            names = [name if header else str(c) for c, name in enumerate(first)]
            sniffed.doubt = triplets({n: [r[c] for r in body] for c, n in enumerate(names)}, names[text], names[label])
        return sniffed
    return None
