"""The results folder in brief: what tables need of each record, kept in one file.

The index is only a cache. A row is valid for a record file as long as its time, size and inode are
the same (a record that is written again within one tick of the clock may keep the first two); any
other is read from its own file. Deleting the index loses nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from biobench.core.files import write_atomic
from biobench.errors import StoreError
from biobench.schema.record import RunRecord

FILE = ".index.json"
"""Below `runs/`, where the store is one's own."""
_FORMAT = "biobench.index.9"


class Brief(NamedTuple):
    """A record without its protocol, curve and labels. Seconds, bytes and fractions as in the
    record.

    weights, spec, data: the hashes of model, task spec and data; source: the id of the data's
    source.
    """

    task: str
    key: str
    model: str
    revision: str | None
    weights: str
    parameters: int
    version: int
    spec: str
    data: str
    source: str
    language: str
    type: str
    corpus: str
    paper: str
    seed: int
    track: str
    limit: int | None
    overrides: tuple[str, ...]
    engine: int
    precision: str
    started: str
    seconds: float
    peak_memory_bytes: int
    train_tokens_per_second: float
    max_length: int
    truncated_documents: int
    lost_gold: int
    test_documents: int
    scores: Mapping[str, float]
    ceiling: Mapping[str, float]
    contamination: Mapping[str, Any] | None = None
    """`schema.contamination.Contamination` as plain data."""
    unexpressed: Mapping[str, int] = {}
    """Split to mentions of the corpus that are in no score."""
    count_problems: tuple[str, ...] = ()
    origin: str = "run"
    split: str = "test"
    device: str = ""
    folds: int = 0
    """Splits that the protocol has, of which this run is one; 0: the task has a single one."""
    train_documents: int = 0
    """In the training part of the split, where there are several."""
    answers: float = 0.0
    """Gold answers in the test documents, over all labels; 0 without labels."""
    model_notes: tuple[str, ...] = ()
    """What a reader must know of how the checkpoint was read."""
    slices: Mapping[str, Mapping[str, Any]] = {}
    """Slice -> `schema.record.SliceScores` as plain data."""

    @classmethod
    def of(cls, r: RunRecord) -> Brief:
        """The brief of a record."""
        resampling = r.resampling
        contamination = None
        if r.contamination is not None:
            contamination = r.contamination.model_dump(mode="json")
        return cls(
            task=r.task.id,
            key=r.key,
            model=r.model.id,
            revision=r.model.revision,
            weights=r.model.hash,
            parameters=r.model.parameters,
            version=r.task.version,
            spec=r.task.hash,
            data=r.task.data_hash,
            source=r.task.source,
            language=r.task.language,
            type=r.task.type,
            corpus=r.task.corpus,
            paper=r.task.paper,
            seed=r.seed,
            track=r.track,
            limit=r.limit,
            overrides=r.overrides,
            engine=r.engine_version,
            precision=r.training.precision,
            started=r.provenance.started,
            seconds=r.cost.seconds,
            peak_memory_bytes=r.cost.peak_memory_bytes,
            train_tokens_per_second=r.cost.train_tokens_per_second,
            max_length=r.windows.max_length,
            truncated_documents=r.windows.truncated_documents,
            lost_gold=r.windows.lost_gold,
            test_documents=r.task.test_documents,
            scores=r.scores,
            ceiling=r.windows.ceiling,
            contamination=contamination,
            unexpressed={split: sum(gold.values()) for split, gold in r.unexpressed_gold.items()},
            count_problems=r.count_problems,
            origin=r.origin,
            split=r.split,
            device=r.provenance.device,
            folds=resampling.folds if resampling else 0,
            train_documents=resampling.train_documents if resampling else 0,
            answers=float(sum(row["support"] for row in r.per_label.values())),
            model_notes=r.model.notes,
            slices={name: scores.model_dump() for name, scores in r.slices.items()},
        )


State = tuple[int, int, int]
"""Time of change in nanoseconds, bytes and inode of a file (0 where the system has none)."""


class Seen(NamedTuple):
    """A record file at the time of looking. state: changes when it is written again. complete: its
    predictions are there.
    """

    task: str
    key: str
    state: State
    complete: bool


def list_files(runs: Path) -> list[Seen]:
    """All `runs/<task>/<name>.json`, sorted; reads names, times and sizes alone."""
    files: list[Seen] = []
    for folder in sorted(_entries(runs), key=lambda entry: entry.name):
        if not folder.is_dir():
            continue
        entries = {entry.name: entry for entry in _entries(Path(folder.path))}
        for name in sorted(entries):
            key = name.removesuffix(".json")
            if key == name or name.startswith("."):
                continue
            with suppress(FileNotFoundError):  # removed since it was listed
                status = entries[name].stat()
                state = status.st_mtime_ns, status.st_size, status.st_ino
                files.append(Seen(folder.name, key, state, f"{key}.parquet" in entries))
    return files


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise StoreError(message, hint="check the folder's permissions", file=folder) from error


def folder_times(folder: Path) -> list[tuple[str, int]]:
    """Each task folder and when a file in it was last added, removed or replaced; no file is looked
    at.
    """
    return sorted(
        (entry.name, entry.stat().st_mtime_ns) for entry in _entries(folder) if entry.is_dir()
    )


def read_index(file: Path) -> dict[tuple[str, str], tuple[State, Brief]]:
    """(task, key) -> (state, brief) as last written; empty where there is no index of this
    version."""
    rows = {}
    try:
        content = json.loads(file.read_bytes())
        if content["format"] != [_FORMAT, *Brief._fields]:
            return {}
        for state, values in content["rows"]:
            brief = Brief._make(values)
            brief = brief._replace(
                overrides=tuple(brief.overrides),
                count_problems=tuple(brief.count_problems),
                model_notes=tuple(brief.model_notes),
            )
            rows[brief.task, brief.key] = tuple(state), brief
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {}
    return rows


def write_index(file: Path, rows: Iterable[tuple[State, Brief]]) -> None:
    """Replace the index. A folder that cannot be written goes without: the records are what
    counts."""
    content = {"format": [_FORMAT, *Brief._fields], "rows": list(rows)}
    with suppress(StoreError):
        write_atomic(file, json.dumps(content).encode())
