"""A first task spec from data files: format, columns and labels are looked up in them (`biobench.data.sniff`)."""

from __future__ import annotations

import re
import tempfile
import unicodedata
from pathlib import Path
from typing import NamedTuple

from biobench.data.catalog import LoadedTask, list_tasks, load_task
from biobench.data.load import read_counted
from biobench.data.sniff import NOTHING_NAMED, Sniffed, Wanted, flow, looks_like_ids, sniff, sniff_brat
from biobench.data.verify import audit
from biobench.errors import BioBenchError, DataFormatError, UsageError
from biobench.schema.task import SPLITS

_SPLIT_NAMES = {"train": "train", "training": "train", "test": "test"} | dict.fromkeys(
    ("dev", "devel", "development", "val", "valid", "validation"), "validation"
)
_ENDINGS = (".tsv", ".csv", ".txt", ".conll", ".iob", ".iob2", ".bio", ".jsonl", ".ndjson", ".parquet")
"""Of data files in a folder that stands for a split."""
TYPES = ("token_ner", "span_ner", "single_label", "multi_label")
"""Types of tasks of which a first spec can be made from data files."""


class _Part(NamedTuple):
    """The files of a split: their name or pattern below the task's folder, and the files themselves."""

    pattern: str
    paths: list[Path]


class Scaffold(str):
    """The YAML. detected: what the data was taken for, one line each. data_dir: for the next commands."""

    detected: tuple[str, ...]
    data_dir: Path


def scaffold(
    path: str | Path,
    task_id: str | None = None,
    type_: str | None = None,
    *,
    language: str = "en",
    wanted: Wanted = NOTHING_NAMED,
) -> Scaffold:
    """YAML of a task for the data file, or the folder, at `path`, with the counts and findings of a first reading.

    Known: token files with IOB or IOBES tags; delimited rows, JSON lines or a parquet table with a text and a label;
    parquet tables of tokens and tags; BRAT, where one text or .ann stands for its folder and sub-folders are read too.
    Files or folders called train, dev and test are taken as splits; without a dev part, validation is cut from the end
    of train; a single file is split 80/10/10. type_: what the task is; wanted: its columns, not to be guessed. Raises
    UsageError when there is no such file, `task_id` is none, or a spec of the type cannot be made, DataFormatError
    when the files' format is not recognised or is not that of the type.
    """
    path = Path(path)
    if type_ is not None and type_ not in TYPES:
        hint = f"known here: {', '.join(TYPES)}; docs/tasks.md shows how a spec of another type is written"
        raise UsageError(f"--type '{type_}' cannot be read from data files", hint=hint)
    if task_id is not None:
        check_task_id(task_id)
    if not path.exists():
        raise UsageError(f"there is no file '{path}'", hint="give a data file or a folder with train, dev and test")
    folder, parts = _parts(path)
    sniffed = _sniffed([file for part in parts.values() for file in part.paths], wanted)
    shown = sorted(sniffed.labels)[:5]
    words = f"{len(sniffed.labels)}: {', '.join(shown)}{', …' if len(sniffed.labels) > len(shown) else ''}"
    if type_ == "multi_label" and sniffed.type == "single_label":
        sniffed.type = type_
    if type_ is not None and sniffed.type != type_:
        what = f"looks like {sniffed.type} ({words}), not {type_}"
        raise DataFormatError(what, hint=f"give --type {sniffed.type}, or write the spec by hand", file=path)
    task = task_id or _as_task_id(folder.resolve().name)
    remarks = [sniffed.remark] if sniffed.remark else []
    if sniffed.head != "sequence" and not remarks and looks_like_ids(sniffed.labels):
        remarks.append(f"{len(sniffed.labels)} labels that look like concept ids")
    data_dir = folder.resolve().parent
    text = _filled_in(task, language, folder.resolve(), parts, sniffed, remarks)
    facts, text = _facts(text, task, data_dir, sniffed)
    merged = {p.name for part in parts.values() for file in part.paths for p in file.relative_to(folder).parents}
    merged = {name for name in merged if _SPLIT_NAMES.get(name.lower())} if set(parts) == {"all"} else set()
    if merged:
        remarks.append(f"the folders {', '.join(sorted(merged))} are read as one; `files` can name them as splits")
    for other in list_tasks():
        same = isinstance(other.spec.labels, list) and set(other.spec.labels) == sniffed.labels
        if same and (other.spec.language, other.spec.type) == (language, sniffed.type):
            remarks.append(f"the shipped task {other.id} has the same labels: is it the same corpus?")
    draft = Scaffold(text + facts)
    lines = [f"type: {sniffed.type}", f"reader: {flow(sniffed.reader)}", f"labels: {words}"]
    lines += [f"splits: {', '.join(f'{name} = {part.pattern}' for name, part in parts.items())}"]
    lines += [f"columns: {', '.join(sniffed.columns)}"] if sniffed.columns else []
    lines += [f"not read: {', '.join(sniffed.unused)}"] if sniffed.unused else []
    draft.detected, draft.data_dir = (*lines, *(f"check: {remark}" for remark in remarks)), data_dir
    return draft


def _filled_in(
    task: str, language: str, folder: Path, parts: dict[str, _Part], sniffed: Sniffed, remarks: list[str]
) -> str:
    """The template, without counts."""
    ner = sniffed.head != "sequence"
    unused = f"; not read: {', '.join(sniffed.unused)}" if sniffed.unused else ""
    remark = f"  # check: {'; '.join(remarks)}" if remarks else ""
    if "validation" in parts:
        splits = "official"
    elif "train" in parts:
        each = (sniff(path, NOTHING_NAMED, tokens=ner).units for path in parts["train"].paths)
        size = len(parts["train"].paths) if sniffed.reader["format"] == "brat" else sum(each)
        splits = f"{{validation_from_train_tail: {max(1, size // 10)}}}"
        splits += "  # check: the end of train, about a tenth"
    else:
        grouped = "group" in sniffed.reader or "group" in sniffed.reader.get("columns", ())
        by = ", by: group" if grouped else ""
        splits = f"{{ratios: [0.8, 0.1, 0.1], seed: 42, method: datasets{by}}}"
    return f"""# Made by `biobench tasks new`; run it with --data-dir {folder.parent}
id: {task}
version: 1
name: {task.replace("_", " ")}
language: {language}            # check
type: {sniffed.type}
source:
  folder: {flow(folder.name)}
  files: {flow({name: part.pattern for name, part in parts.items()})}
reader: {flow(sniffed.reader)}  # check{unused}
labels: {flow(sorted(sniffed.labels))}{remark}
splits: {splits}
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


def _facts(text: str, task_id: str, data_dir: Path, sniffed: Sniffed) -> tuple[str, str]:
    """(counts and findings, the spec with `ids` where its ids repeat); a comment where the data cannot be read."""
    reader, error = f"reader: {flow(sniffed.reader)}", None
    with tempfile.TemporaryDirectory() as aside:
        spec = Path(aside) / f"{task_id}.yaml"
        for ids in ({}, {"ids": "split_and_name"}, {"ids": "repeated"}):
            draft = text.replace(reader, f"reader: {flow(sniffed.reader | ids)}")
            spec.write_text(draft, encoding="utf-8")
            try:
                counted = facts(load_task(spec), data_dir)
            except BioBenchError as caught:
                error = caught
                if "reader.ids" not in error.hint:
                    break
            else:
                sniffed.reader |= ids
                return counted, draft
    message = str(error).replace(f"{spec}:", "line ").replace("\n", " ")
    hint = "" if error is None else error.hint
    return f"# counts and findings: not made, the data cannot be read so: {message}; {hint}\n", text


def facts(task: LoadedTask, data_dir: Path) -> str:
    """The `counts` and `findings` of a task's data, as YAML. Raises what reading raises."""
    read = read_counted(task, data_dir)
    lines = ["counts:                 # check: against the corpus's documentation"]
    lines += [f"  {split}: {flow({name: n for name, n in read.counts[split].items() if n})}" for split in SPLITS]
    numbers = {finding.name: finding.number for finding in audit(task.spec, read.documents, read.labels, {})}
    look = "  # check: look at each, `biobench data verify`" if numbers else ""
    return "\n".join([*lines, f"findings: {flow(numbers)}{look}"]) + "\n"


def recounted(task: LoadedTask, data_dir: Path) -> str:
    """The spec's text with the counts and findings of its data, in place of what it has of them."""
    kept: list[str] = []
    skipping = False
    for line in task.path.read_text(encoding="utf-8").splitlines(keepends=True):
        if re.match(r"[\w#\"']", line):
            skipping = re.match(r"(counts|findings):|# counts and findings:", line) is not None
        kept += [] if skipping else [line]
    return "".join(kept).rstrip("\n") + "\n" + facts(task, data_dir)


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
            texts = _brat_texts(entry)
            files = sorted(p for p in entry.iterdir() if p.is_file() and p.suffix in _ENDINGS and p.name[0] != ".")
            if texts is not None:
                parts[split] = _Part(f"{entry.name}/{texts.pattern}", texts.paths)
            elif files:
                kind = files[0].suffix
                parts[split] = _Part(f"{entry.name}/*{kind}", [p for p in files if p.suffix == kind])
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


def _sniffed(paths: list[Path], wanted: Wanted) -> Sniffed:
    """What the files are, judged by the largest, with the labels of all that are the same."""
    largest = max(paths, key=lambda p: p.stat().st_size)
    for path in paths:
        if path.suffix != largest.suffix:
            what = f"ends otherwise than {largest.name}"
            raise DataFormatError(what, hint="bring all splits into one format", file=path)
    if any(path.suffix == ".txt" and path.with_suffix(".ann").is_file() for path in paths):
        return sniff_brat(paths)
    whole = sniff(largest, wanted)
    for path in paths:
        more = sniff(path, wanted, tokens=whole.type == "token_ner") if path != largest else whole
        if {more.type, whole.type} == {"single_label", "multi_label"}:
            whole.type, whole.reader = "multi_label", (more if more.type == "multi_label" else whole).reader
        elif more.type != whole.type:
            what = f"looks like {more.type}, {largest.name} like {whole.type}"
            raise DataFormatError(what, hint="give one data file, or write the spec by hand", file=path)
        whole.labels |= more.labels
        if more.reader.get("scheme") == "IOBES":
            whole.reader["scheme"] = "IOBES"
    return whole
