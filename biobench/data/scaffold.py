"""A first task spec from data files: format, columns and labels are looked up in them
(`biobench.data.sniff`).
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from biobench.data.catalog import LoadedTask, list_tasks, load_task
from biobench.data.load import read_counted
from biobench.data.sniff import Sniffed, Wanted, flow, sniff, sniff_brat
from biobench.data.verify import audit
from biobench.errors import BioBenchError, UsageError
from biobench.schema.task import SPLITS

_SPLIT_NAMES = {"train": "train", "training": "train", "test": "test"} | dict.fromkeys(
    ("dev", "devel", "development", "val", "valid", "validation"), "validation"
)
_ENDINGS = (
    ".tsv",
    ".csv",
    ".txt",
    ".conll",
    ".iob",
    ".iob2",
    ".bio",
    ".jsonl",
    ".ndjson",
    ".parquet",
)
"""Of data files in a folder that stands for a split."""
_Part = tuple[str, list[Path]]
"""The files of a split: their name or pattern below the task's folder, and the files themselves."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A first spec. detected: what the data was taken for, one line each. data_dir: for the next
    commands.
    """

    text: str
    detected: tuple[str, ...]
    data_dir: Path


def scaffold(
    path: str | Path, task_id: str, *, language: str = "en", wanted: Wanted | None = None
) -> Draft:
    """A task for the data file, or the folder, at `path`, with the counts and findings of a first
    reading.

    Known: token files with IOB or IOBES tags; delimited rows, JSON lines or a parquet table with a
    text and a label; JSON lines with mentions; lists of tokens and tags; BRAT, where one text or
    .ann stands for its folder and sub-folders are read too. Files or folders called train, dev and
    test are taken as splits; without a dev part, validation is cut from the end of train; a single
    file is split 80/10/10. wanted: columns, not to be guessed. Raises UsageError when there is no
    such file or `task_id` is none, DataFormatError when the format is not recognised.
    """
    path = Path(path)
    if not re.fullmatch(r"[a-z0-9_]+", task_id):
        hint = "use lower-case letters, digits and underscores, such as my_task"
        raise UsageError(f"'{task_id}' is not a task id", hint=hint)
    if not path.exists():
        raise UsageError(
            f"there is no file '{path}'",
            hint="give a data file or a folder with train, dev and test",
        )
    folder, parts = _parts(path)
    every = [file for _, files in parts.values() for file in files]
    is_brat = any(file.suffix == ".txt" and file.with_suffix(".ann").is_file() for file in every)
    sniffed = sniff_brat(every) if is_brat else sniff(every, wanted or Wanted())
    data_dir = folder.resolve().parent
    if "validation" in parts:
        splits = "official"
    elif "train" in parts:
        tail = max(1, sum(sniffed.units[file] for file in parts["train"][1]) // 10)
        splits = f"{{validation_from_train_tail: {tail}}}  # check: the end of train, about a tenth"
    else:
        grouped = "group" in sniffed.reader or "group" in sniffed.reader.get("columns", ())
        splits = (
            f"{{ratios: [0.8, 0.1, 0.1], seed: 42, method: "
            f"datasets{', by: group' if grouped else ''}}}"
        )
    files = {name: pattern for name, (pattern, _) in parts.items()}
    text, facts_ = _facts(
        _filled_in(task_id, language, folder.resolve(), files, sniffed, splits),
        task_id,
        data_dir,
        sniffed,
    )
    shown = sorted(sniffed.labels)[:5]
    lines = [f"type: {sniffed.type}", f"reader: {flow(sniffed.reader)}"]
    lines += [
        f"labels: {len(sniffed.labels)}: "
        f"{', '.join(shown)}{', …' if len(sniffed.labels) > len(shown) else ''}"
    ]
    lines += [f"splits: {', '.join(f'{name} = {pattern}' for name, pattern in files.items())}"]
    lines += [f"columns: {', '.join(sniffed.columns)}"] if sniffed.columns else []
    lines += [f"not read: {', '.join(sniffed.unused)}"] if sniffed.unused else []
    if set(parts) == {"all"}:
        above = {p.name for file in parts["all"][1] for p in file.relative_to(folder).parents}
        if merged := sorted(name for name in above if name.lower() in _SPLIT_NAMES):
            lines.append(
                f"check: the folders {', '.join(merged)} are read as one; `files` can name them "
                f"as splits"
            )
    for other in list_tasks():
        same = isinstance(other.spec.labels, list) and set(other.spec.labels) == sniffed.labels
        if same and (other.spec.language, other.spec.type) == (language, sniffed.type):
            lines.append(
                f"check: the shipped task {other.id} has the same labels: is it the same corpus?"
            )
    return Draft(text + facts_, tuple(lines), data_dir)


def _filled_in(
    task: str, language: str, folder: Path, files: dict[str, str], sniffed: Sniffed, splits: str
) -> str:
    """The template, without counts."""
    head = {"token_ner": "token", "span_ner": "span"}.get(sniffed.type, "sequence")
    ner = head != "sequence"
    unused = f"; not read: {', '.join(sniffed.unused)}" if sniffed.unused else ""
    return f"""# Made by `biobench tasks new`; run it with --data-dir {folder.parent}
id: {task}
version: 1
name: {task.replace("_", " ")}
language: {language}            # check
type: {sniffed.type}
source:
  folder: {flow(folder.name)}
  files: {flow(files)}
reader: {flow(sniffed.reader)}  # check{unused}
labels: {flow(sorted(sniffed.labels))}
splits: {splits}
unit: {"document" if head == "span" else "sentence"}
seeds: 42-46
protocol: {{max_length: 512, long_documents: truncate}}
training: {{epochs: {20 if ner else 10}, learning_rate: 5e-5, batch_size: 16, weight_decay: 0.01}}
head: {{kind: {head}}}
metric: {{primary: macro_f1, paper: {"micro_f1" if ner else "macro_f1"}}}
gate: {{expect: text_informative}}
access: open
licence: unknown        # fill in
homepage: https://example.org   # fill in
citation: unknown       # fill in
"""


def _facts(text: str, task_id: str, data_dir: Path, sniffed: Sniffed) -> tuple[str, str]:
    """(the spec, with `ids` where its ids repeat; counts and findings, or why the data cannot be
    read so).
    """
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
                return draft, counted
    message = str(error).replace(f"{spec}:", "line ").replace("\n", " ")
    hint = "" if error is None else error.hint
    return text, f"# counts and findings: not made, the data cannot be read so: {message}; {hint}\n"


def facts(task: LoadedTask, data_dir: Path) -> str:
    """The `counts` and `findings` of a task's data, as YAML. Raises what reading raises."""
    read = read_counted(task, data_dir)
    lines = ["counts:                 # check: against the corpus's documentation"]
    lines += [
        f"  {split}: {flow({name: n for name, n in read.counts[split].items() if n})}"
        for split in SPLITS
    ]
    numbers = {
        finding.name: finding.number
        for finding in audit(task.spec, read.documents, read.labels, {})
    }
    look = "  # check: look at each, `biobench data verify`" if numbers else ""
    return "\n".join([*lines, f"findings: {flow(numbers)}{look}"]) + "\n"


def recounted(task: LoadedTask, data_dir: Path) -> str:
    """The spec's text with the counts and findings of its data, in place of what it has of them."""
    block = r"(?m)^(counts|findings|# counts and findings):.*\n?((?![\w#\"']).*\n?)*"
    text = re.sub(block, "", task.path.read_text(encoding="utf-8"))
    return text.rstrip("\n") + "\n" + facts(task, data_dir)


def _parts(path: Path) -> tuple[Path, dict[str, _Part]]:
    """(the task's folder, its files by split)."""
    if path.with_suffix(".ann").is_file() and path.with_suffix(".txt").is_file():
        path = path.parent
    folder = path if path.is_dir() else path.parent
    parts: dict[str, _Part] = {}
    for entry in sorted(folder.iterdir()):
        split = _SPLIT_NAMES.get((entry.stem if entry.is_file() else entry.name).lower())
        if split is None or split in parts:
            continue
        if entry.is_file() and entry.suffix in (_ENDINGS if path.is_dir() else (path.suffix,)):
            parts[split] = entry.name, [entry]
        elif entry.is_dir() and path.is_dir():
            files = sorted(
                p
                for p in entry.iterdir()
                if p.is_file() and p.suffix in _ENDINGS and p.name[0] != "."
            )
            alike = [p for p in files if p.suffix == files[0].suffix]
            if (texts := _brat_texts(entry)) is not None:
                parts[split] = f"{entry.name}/{texts[0]}", texts[1]
            elif alike:
                parts[split] = f"{entry.name}/*{alike[0].suffix}", alike
    if {"train", "test"} <= set(parts) and (
        path.is_dir() or any(path in files for _, files in parts.values())
    ):
        return folder, {name: parts[name] for name in SPLITS if name in parts}
    whole = _brat_texts(path) if path.is_dir() else (path.name, [path])
    if whole is None:
        raise UsageError(f"'{path}' holds no train and test files", hint="give one data file")
    return folder, {"all": whole}


def _brat_texts(folder: Path) -> _Part | None:
    """The texts in the folder and below it, in folders where some has an .ann beside it; None where
    none has.
    """
    every = sorted(folder.rglob("*.txt"))
    every = [
        p
        for p in every
        if not any(part.startswith((".", "__")) for part in p.relative_to(folder).parts)
    ]
    inside = {p.parent for p in every if p.with_suffix(".ann").is_file()}
    texts = [p for p in every if p.parent in inside]
    depths = {len(p.relative_to(folder).parts) - 1 for p in texts}
    return (
        ("*/" * depths.pop() + "*.txt" if len(depths) == 1 else "**/*.txt", texts)
        if texts
        else None
    )
