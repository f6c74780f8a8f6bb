"""Small corpora as people have them, and the tasks that are drafted from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.data.scaffold import Draft, scaffold

Rows = list[dict[str, Any]]
SPLITS = ("train", "dev", "test")


def rows(count: int, **columns: str | Sequence[Any]) -> Rows:
    """Rows whose columns go round their values; in a text `{i}` is the row's number."""
    made: Rows = []
    for i in range(count):
        row: dict[str, Any] = {}
        for name, values in columns.items():
            is_text = isinstance(values, str)
            row[name] = values.replace("{i}", str(i)) if is_text else values[i % len(values)]
        made.append(row)
    return made


def content_of(ending: str, items: Rows) -> str:
    """The rows as a file of this ending holds them."""
    if ending == ".jsonl":
        return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    sign = {".csv": ",", ".tsv": "\t"}[ending]
    lines = [sign.join(items[0]), *(sign.join(map(str, item.values())) for item in items)]
    return "\n".join(lines) + "\n"


def write(path: Path, content: Rows | str) -> Path:
    """The text, or the rows in the format of the path's ending, as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(content), path)
    else:
        path.write_text(content_of(path.suffix, content), encoding="utf-8")
    return path


def in_splits(folder: Path, name: str, content: str) -> Path:
    """The content, with the split's name in place of @, as a file of each split."""
    for split in SPLITS:
        write(folder / name.format(split), content.replace("@", split))
    return folder


def brat(folder: Path, name: str, text: str = "gout here", ann: str = "T1\tD 0 4\tgout\n") -> None:
    """A text with its annotations."""
    write(folder / f"{name}.txt", f"{text}\n")
    write(folder / f"{name}.ann", ann)


def written(draft: Draft) -> LoadedTask:
    """The drafted task, loaded; its data is read as it stands."""
    task = load_task(write(draft.data_dir / "made.yaml", draft.text))
    load_data(task, draft.data_dir)
    return task


def drafted(path: Path) -> LoadedTask:
    """The task that is drafted from a file or folder."""
    return written(scaffold(path, "made"))


def mentions_of(task: LoadedTask) -> list[str]:
    """Surfaces with labels of the test split."""
    mentions: list[str] = []
    for document in load_data(task, task.folder).test:
        for start, end, label in document.spans:
            mentions.append(f"{document.text[start:end]}/{label}")
    return mentions
