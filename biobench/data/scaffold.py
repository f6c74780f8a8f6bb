"""A first task spec from data files: format, columns and labels are looked up in them (`biobench.data.sniff`)."""

from __future__ import annotations

import json
import re
import tempfile
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.counts import count
from biobench.data.load import read_source
from biobench.data.locate import choose
from biobench.data.sniff import Sniffed, sniff
from biobench.data.sniff_brat import looks_like_ids, sniff_brat
from biobench.data.verify import audit
from biobench.errors import BioBenchError, DataFormatError, UsageError
from biobench.schema.task import SPLITS

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


TYPES = ("token_ner", "span_ner", "single_label", "multi_label")
"""Types of tasks of which a first spec can be made from data files."""


class Scaffold(str):
    """The YAML. detected: what the data was taken for, one line each. data_dir: for the next commands."""

    detected: tuple[str, ...]
    data_dir: Path


def scaffold(path: str | Path, task_id: str | None = None, type_: str | None = None) -> Scaffold:
    """YAML of a task for the data file, or the folder, at `path`, with the counts and findings of a first reading.

    Known: token files with IOB or IOBES tags; delimited rows, JSON lines or a parquet table with a text and a label;
    parquet tables of tokens and tags; BRAT, where one text or .ann stands for its folder and sub-folders are read too.
    Files or folders called train, dev and test are taken as splits; without a dev part, validation is cut from the end
    of train; a single file is split 80/10/10. type_: what the task is, not to be guessed. Raises
    UsageError when there is no such file, `task_id` is none, or a spec of the type cannot be made, DataFormatError
    when the files' format is not recognised or is not that of the type.
    """
    path = Path(path)
    if type_ is not None and type_ not in TYPES:
        hint = f"known here: {', '.join(TYPES)}; docs/adding-a-task.md shows how a spec of another type is written"
        raise UsageError(f"--type '{type_}' cannot be read from data files", hint=hint)
    if task_id is not None:
        check_task_id(task_id)
    if not path.exists():
        raise UsageError(f"there is no file '{path}'", hint="give a data file or a folder with train, dev and test")
    folder, parts = _parts(path)
    sniffed = _sniffed([file for part in parts.values() for file in part.paths])
    if type_ is not None and sniffed.type != type_:
        what = f"looks like {sniffed.type} ({_words(sniffed)}), not {type_}"
        raise DataFormatError(what, hint=f"give --type {sniffed.type}, or write the spec by hand", file=path)
    if sniffed.doubt and type_ is None:
        hint = "relations are written with their sentences (docs/adding-a-task.md); if it is a classification, "
        raise DataFormatError(sniffed.doubt, hint=f"{hint}say --type {sniffed.type}", file=path)
    task = task_id or _as_task_id(folder.resolve().name)
    ner = sniffed.head != "sequence"
    listed = ", ".join(f"{name}: {json.dumps(part.pattern)}" for name, part in parts.items())
    unused = f"; not read: {', '.join(sniffed.unused)}" if sniffed.unused else ""
    if ner and not sniffed.remark and looks_like_ids(sniffed.labels):
        sniffed.remark = f"{len(sniffed.labels)} labels that look like concept ids"
    remark = f"  # check: {sniffed.remark}" if sniffed.remark else ""
    text = f"""# Made by `biobench tasks new`; run it with --data-dir {folder.resolve().parent}
id: {task}
version: 1
name: {task.replace("_", " ")}
language: en            # check
type: {sniffed.type}
source:
  folder: {json.dumps(folder.resolve().name)}
  files: {{{listed}}}
reader: {sniffed.reader}  # check{unused}
labels: [{", ".join(json.dumps(label, ensure_ascii=False) for label in sorted(sniffed.labels))}]{remark}
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
homepage: https://example.org   # fill in
citation: unknown       # fill in
"""
    detected = [f"type: {sniffed.type}", f"reader: {sniffed.reader}", f"labels: {_words(sniffed)}"]
    detected += [f"splits: {', '.join(f'{name} = {part.pattern}' for name, part in parts.items())}"]
    detected += [f"not read: {', '.join(sniffed.unused)}"] if sniffed.unused else []
    detected += [f"check: {sniffed.remark}"] if sniffed.remark else []
    data_dir = folder.resolve().parent
    draft = Scaffold(text + _facts(text, task, data_dir))
    draft.detected, draft.data_dir = tuple(detected), data_dir
    return draft


def _words(sniffed: Sniffed) -> str:
    """The number of labels and the first of them."""
    shown = sorted(sniffed.labels)[:5]
    return f"{len(sniffed.labels)}: {', '.join(shown)}{', …' if len(sniffed.labels) > len(shown) else ''}"


def _facts(text: str, task_id: str, data_dir: Path) -> str:
    """The `counts` and `findings` that the spec's data has when it is read; a comment where it cannot be read."""
    with tempfile.TemporaryDirectory() as aside:
        spec = Path(aside) / f"{task_id}.yaml"
        spec.write_text(text, encoding="utf-8")
        try:
            task = load_task(spec)
            labels, documents = read_source(task, choose(task, data_dir))
        except BioBenchError as error:
            message = str(error).replace(f"{spec}:", "line ").replace("\n", " ")
            return f"# counts and findings: not made, the data cannot be read so: {message}; {error.hint}\n"
    lines = ["counts:                 # check: against the corpus's documentation"]
    for split in SPLITS:
        counted = count(documents[split], labels, task.spec.is_ner)
        lines.append(f"  {split}: {_mapping({k: n for k, n in counted.items() if n})}")
    numbers = {finding.name: finding.number for finding in audit(task.spec, documents, labels, {})}
    lines.append(
        f"findings: {_mapping(numbers)}" + ("  # check: look at each, `biobench data verify`" if numbers else "")
    )
    return "\n".join(lines) + "\n"


def _mapping(numbers: Mapping[str, int]) -> str:
    """A YAML mapping on one line."""
    plain = re.compile(r"(?!(?i:true|false|null)\Z)[A-Za-z_][\w.-]*")
    keys = (name if plain.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in numbers)
    return "{" + ", ".join(f"{key}: {number}" for key, number in zip(keys, numbers.values(), strict=True)) + "}"


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
    if path.is_file() and path.suffix in (".ann", ".txt") and path.with_suffix(".ann").is_file():
        path = path.parent
        above = path.resolve().parent
        if path.resolve().name.lower() in _SPLIT_NAMES and {"train", "test"} <= set(_named(above, None)):
            path = above
    folder = path if path.is_dir() else path.parent
    parts = _named(folder, None if path.is_dir() else path.suffix)
    ordered: dict[str, _Part] = {name: parts[name] for name in SPLITS if name in parts}
    named = path.is_dir() or any(path in part.paths for part in ordered.values())
    if named and {"train", "test"} <= set(ordered):
        return folder, ordered
    if not path.is_dir():
        return folder, {"all": _Part(path.name, [path])}
    texts = _brat_texts(path)
    if texts is None:
        raise UsageError(f"'{path}' holds no train and test files", hint="give one data file")
    return folder, {"all": texts}


def _named(folder: Path, suffix: str | None) -> dict[str, _Part]:
    """The files (of this ending; None: of any) and, where None, folders that are called like splits."""
    parts: dict[str, _Part] = {}
    for entry in sorted(folder.iterdir()):
        name = entry.stem if entry.is_file() else entry.name
        split = _SPLIT_NAMES.get(name.lower())
        if split is None or split in parts:
            continue
        if entry.is_file() and suffix in (None, entry.suffix) and entry.suffix in _ENDINGS:
            parts[split] = _Part(entry.name, [entry])
        elif entry.is_dir() and suffix is None:
            inside = _files(entry)
            texts = None if inside else _brat_texts(entry)
            if inside:
                parts[split] = _Part(f"{entry.name}/*{inside[0].suffix}", inside)
            elif texts is not None:
                parts[split] = _Part(f"{entry.name}/{texts.pattern}", texts.paths)
    return parts


def _brat_texts(folder: Path) -> _Part | None:
    """The texts in the folder and in the folders below it, of which some has an .ann beside it; None where none has.

    Of a folder below, all texts belong to it or none.
    """
    every = sorted(folder.rglob("*.txt"))
    every = [p for p in every if not any(part.startswith((".", "__")) for part in p.relative_to(folder).parts)]
    inside = {p.parent for p in every if p.with_suffix(".ann").is_file()}
    texts = [p for p in every if p.parent in inside]
    depths = {len(p.relative_to(folder).parts) - 1 for p in texts}
    if not texts:
        return None
    return _Part("*/" * depths.pop() + "*.txt" if len(depths) == 1 else "**/*.txt", texts)


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
    if _is_brat(paths):
        whole = sniff_brat(paths)
        if len({path.stem for path in paths}) < len(paths):
            whole.reader = whole.reader.removesuffix("}") + ", ids: split_and_name}"
        return whole
    whole = sniff(largest)
    for path in paths:
        more = sniff(path, tokens=whole.type == "token_ner") if path != largest else whole
        if {more.type, whole.type} == {"single_label", "multi_label"}:
            whole.type, whole.reader = "multi_label", (more if more.type == "multi_label" else whole).reader
        elif more.type != whole.type:
            what = f"looks like {more.type}, {largest.name} like {whole.type}"
            raise DataFormatError(what, hint="give one data file, or write the spec by hand", file=path)
        whole.labels |= more.labels
        whole.doubt = whole.doubt or more.doubt
        if "IOBES" in more.reader and "IOBES" not in whole.reader:
            whole.reader = more.reader
    return whole


def _is_brat(paths: Sequence[Path]) -> bool:
    return any(path.suffix == ".txt" and path.with_suffix(".ann").is_file() for path in paths)


def _splits(parts: dict[str, _Part], sniffed: Sniffed) -> str:
    if "validation" in parts:
        return "official"
    if "train" in parts:
        paths = parts["train"].paths
        brat = _is_brat(paths)
        units = len(paths) if brat else sum(sniff(p, tokens=sniffed.type == "token_ner").units for p in paths)
        size = max(1, units // 10)
        return f"{{validation_from_train_tail: {size}}}  # check: the end of train, about a tenth"
    by = ", by: group" if sniffed.grouped else ""
    return f"{{ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets{by}}}"
