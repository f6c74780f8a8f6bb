"""The runs of a results folder that a submission is compared with, read once and kept in small.

What a run answers is kept as hashes beside the counts of comparisons. A folder of thousands of runs
is then compared in seconds, and only one run of it is in memory at a time.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from biobench.core.files import write_atomic
from biobench.errors import StoreError
from biobench.report.escape import plain
from biobench.report.results import stores
from biobench.store import Brief, Store
from biobench.submission.duplicates import Answers, answers_of

_FORMAT = "biobench.answers.2"
_NUMBERS = ("fold", "documents", "varied")
_ARRAYS = ("decided", "scored", "right")


class EarlierRuns:
    """The runs of a results folder on some tasks, without those of one submission.

    What cannot be read there is passed over.
    """

    def __init__(self, results: Path, without: Path, tasks: Collection[str]) -> None:
        """without: the submission's folder."""
        self._stores: list[tuple[str, Store, list[Brief]]] = []
        for source, store in stores(results):
            if store.root.resolve() == without.resolve():
                continue
            name = "the results" if source == "run" else plain(store.root.name)
            briefs = [b for b in store.briefs()[0] if b.task in tasks and b.limit is None]
            self._stores.append((name, store, briefs))

    @property
    def briefs(self) -> list[Brief]:
        """All of them, in brief."""
        return [brief for _, _, briefs in self._stores for brief in briefs]

    def answers(self, task: str) -> Iterator[Answers]:
        """What those of a task answer, one by one."""
        for place, store, briefs in self._stores:
            for brief in (b for b in briefs if b.task == task):
                with suppress(StoreError):
                    yield _answers(store, brief, place)


def keep_answers(results: Path, submission: Path) -> None:
    """Make the files that hold what earlier runs answer, on the tasks of a submission, where they
    are not there. Nothing in the submission is opened.
    """
    tasks = {path.name for path in submission.glob("runs/*")}
    earlier = EarlierRuns(results, submission, tasks)
    for task in tasks:
        for _ in earlier.answers(task):
            pass


def _answers(store: Store, brief: Brief, place: str) -> Answers:
    """From the file that keeps them, else from the predictions. Raises StoreError."""
    file = _kept_file(store, brief)
    stored = _read_kept(file, brief, place)
    if stored is not None:
        return stored
    record = store.get(brief.task, brief.key)
    if record is None:
        raise StoreError("is gone", hint="repeat the command", file=store.root)
    answers = answers_of(record, *store.stored_predictions(record), place=place)
    _keep(file, answers)
    return answers


def _kept_file(store: Store, brief: Brief) -> Path:
    """Where a run's answers are kept: another name when its record or predictions are written
    again.
    """
    table = store.root / "runs" / brief.task / f"{brief.key}.parquet"
    states: list[Sequence[int]] = []
    with suppress(FileNotFoundError):  # reading it says so
        for status in (table.stat(), table.with_suffix(".json").stat()):
            states.append((status.st_mtime_ns, status.st_size, status.st_ino))
    name = hashlib.sha256(repr((_FORMAT, brief.task, brief.key, states)).encode()).hexdigest()
    return store.counts_folder / f"{name}.npz"


def _read_kept(file: Path, brief: Brief, place: str) -> Answers | None:
    """None where there is no such file, or it is not whole."""
    try:
        with np.load(file) as archive:
            arrays = {name: archive[name] for name in _ARRAYS}
            numbers = {name: archive[name].item() for name in _NUMBERS}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return Answers(brief=brief, place=place, **numbers, **arrays)


def _keep(file: Path, answers: Answers) -> None:
    """A folder that cannot be written goes without."""
    archive = {name: np.array(getattr(answers, name)) for name in (*_NUMBERS, *_ARRAYS)}
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **archive)
    with suppress(StoreError):
        write_atomic(file, stream.getvalue())
