"""Records and predictions in a results folder.

<results>/runs/<task>/<key>.json      the record; its presence means the run is done
<results>/runs/<task>/<key>.parquet   the predictions, written first
<results>/locks/<task>/<key>.running  the claim to a run: who makes it, since when, at which step
(`claims`) <results>/locks/<task>/<key>.failed   why it failed last, for the other workers of the
same command <results>/locks/<task>/<key>.command  which command made the stored run
<results>/locks/<task>/<key>.state    the state of a run under way; gone when it has ended
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from biobench.core.files import (
    commit,
    read_regular,
    remove_stale,
    sha256_of,
    write_atomic,
    write_temporary,
)
from biobench.errors import DataUnavailableError, StoreError
from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.store.claims import RUNNING, Claim, claimed
from biobench.store.index import FILE as INDEX
from biobench.store.index import (
    Brief,
    Seen,
    State,
    folder_times,
    list_files,
    read_index,
    write_index,
)
from biobench.store.records import from_json, is_key, is_task_id, to_json
from biobench.store.tables import from_parquet, redacted, to_parquet, under_aliases


@dataclass(frozen=True, slots=True)
class UnusableFile:
    """Something in the results folder that could not be used, and what to do about it."""

    file: str
    what: str
    hint: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class Note(NamedTuple):
    """What one worker lets others know of a run. command: when its command began, in seconds."""

    command: float
    reason: str = ""


_NOTE = TypeAdapter(Note)


class Store:
    """The runs of one results folder. The folder is made by the first save, not by looking."""

    def __init__(self, results_dir: str | Path, index: Path | None = None) -> None:
        """index: where the index of a folder that is not one's own is kept; an index inside it is
        then not read.
        """
        self.root = Path(results_dir)
        self._index = self.root / "runs" / INDEX if index is None else index
        self.counts_folder = (
            self.root / ".counts" if index is None else index.with_suffix(".counts")
        )
        """A cache next to the index: what a comparison has counted in predictions."""
        self._cleaned: set[Path] = set()

    def get(self, task_id: str, key: str) -> RunRecord | None:
        """The record of this run, None where it is not done. Raises StoreError where it is
        damaged."""
        path = self._path(task_id, key, ".json")
        content = _read(path)
        if content is None:
            return None
        record = from_json(content, path)
        if record.key != key or record.task.id != task_id:
            raise StoreError(
                f"holds the record of another run ({record.task.id}, {record.key[:40]})",
                hint="files of a results folder cannot be renamed; delete it and repeat the run",
                file=path,
            )
        is_named = record.predictions == f"runs/{task_id}/{key}.parquet"
        if not is_named or not path.with_suffix(".parquet").is_file():
            raise StoreError(
                "its predictions are missing",
                hint="delete the record and repeat the run",
                file=path,
            )
        return record

    def path_of(self, record: RunRecord) -> Path:
        """Where the record's predictions lie."""
        return self._path(record.task.id, record.key, ".parquet")

    def save(
        self,
        record: RunRecord,
        gold: Sequence[Document],
        predictions: Sequence[Prediction],
        claim: Claim | None = None,
    ) -> RunRecord:
        """Store a scored run; gives the record with the predictions' path and hash filled in.

        gold: the test documents of the run. A redacted record's predictions are stored under
        aliases, without gold. The record is written last, so a run is done or not there. claim: the
        right to make the run; it is asked for before each write, so that predictions and record are
        of one process. Raises StoreError, and ReplacedError where another process has the claim.
        """
        if not record.scores:
            raise ValueError(
                "a record is saved with its scores: pass it through biobench.score.scored first"
            )
        if record.redacted:
            gold, predictions = redacted(gold, predictions)
        table = to_parquet(gold, predictions)
        table_path = self.path_of(record)
        record_path = table_path.with_suffix(".json")
        stored = record.model_copy(
            update={
                "predictions": table_path.relative_to(self.root).as_posix(),
                "predictions_sha256": sha256_of(table),
            }
        )
        contents = {table_path: table, record_path: to_json(stored, record_path)}
        self._clean(record_path.parent)
        temporaries: list[Path] = []
        try:
            for path, content in contents.items():
                temporaries.append(write_temporary(path, content))
            if claim is not None:
                claim.check(record_path)
            # A run made anew must not leave new predictions with an old record if the machine stops
            # here.
            record_path.unlink(missing_ok=True)
            for path, temporary in zip(contents, temporaries, strict=True):
                if claim is not None:
                    claim.check(record_path)
                commit(temporary, path)
        except StoreError:
            for temporary in temporaries:
                temporary.unlink(missing_ok=True)
            raise
        return stored

    def update(self, record: RunRecord) -> None:
        """Replace a stored record (its scores), leaving the predictions as they are. Raises
        StoreError.
        """
        path = self.path_of(record).with_suffix(".json")
        if not path.is_file():
            raise StoreError("there is no such record", hint="save the run first", file=path)
        self._clean(path.parent)
        write_atomic(path, to_json(record, path))

    def copy(self, source: Store, record: RunRecord) -> None:
        """Take a run of another store as it is, predictions first. Raises StoreError."""
        table_path = self.path_of(record)
        record_path = table_path.with_suffix(".json")
        write_atomic(table_path, source._predictions(record))
        write_atomic(record_path, to_json(record, record_path))

    def scan(self) -> tuple[list[RunRecord], list[UnusableFile]]:
        """All readable records, ordered by task, model, seed and key; and what could not be
        read."""
        findings: list[UnusableFile] = []
        records = []
        for seen in list_files(self.root / "runs"):
            record = self._read_or_note(seen, findings)
            if record is not None:
                records.append(record)
        return sorted(records, key=lambda r: (r.task.id, r.model.id, r.seed, r.key)), findings

    def records(self) -> list[RunRecord]:
        """The records of `scan`."""
        return self.scan()[0]

    def briefs(self) -> tuple[list[Brief], list[UnusableFile]]:
        """As `scan`, each record in brief; records seen before come from the index instead of their
        files.
        """
        # tens of thousands of small objects that all stay: collecting between them frees nothing
        # and costs a third
        with paused_collector():
            indexed = read_index(self._index)
            rows: list[tuple[State, Brief]] = []
            findings: list[UnusableFile] = []
            changed = False
            for seen in list_files(self.root / "runs"):
                entry = indexed.pop((seen.task, seen.key), None)
                if entry is not None and entry[0] == seen.state and seen.complete:
                    rows.append(entry)
                    continue
                changed = True
                record = self._read_or_note(seen, findings)
                if record is not None:
                    rows.append((seen.state, Brief.of(record)))
            if (changed and rows) or indexed:
                write_index(self._index, rows)
            briefs = [brief for _, brief in rows]
            return sorted(briefs, key=lambda b: (b.task, b.model, b.seed, b.key)), findings

    def _read_or_note(self, seen: Seen, findings: list[UnusableFile]) -> RunRecord | None:
        """The record; where it is damaged, None and a finding more."""
        try:
            return self.get(seen.task, seen.key)
        except StoreError as error:
            path = self.root / "runs" / seen.task / f"{seen.key}.json"
            findings.append(UnusableFile(error.file or str(path), error.what, error.hint))
            return None

    def fingerprint(self) -> str:
        """Changes when a record or verdict is added, removed or replaced by BioBench; looks at no
        file.
        """
        times = [folder_times(self.root / folder) for folder in ("runs", "floors")]
        return hashlib.sha256(repr(times).encode()).hexdigest()

    def load_predictions(
        self, record: RunRecord, documents: Sequence[Document] | None = None
    ) -> tuple[list[Document], list[Prediction]]:
        """Gold documents (without text) and predictions of a run.

        documents: the test split, needed (and only used) for a redacted record, whose gold is not
        stored; both sides then carry aliases instead of ids. Raises StoreError where the file is
        missing or not the one that was stored, DataUnavailableError where a redacted record comes
        without documents.
        """
        gold, predictions = self.stored_predictions(record)
        if not record.redacted:
            return gold, predictions
        if documents is None:
            raise DataUnavailableError(
                f"the gold of {record.task.id} is under an agreement and not in the results",
                hint="give the folder that holds the data with --data-dir",
                access="agreement",
            )
        aliased = under_aliases(documents)
        if {d.id for d in aliased} != {d.id for d in gold}:
            raise StoreError(
                f"the available documents are not those of this run of {record.task.id}",
                hint="use the data release that the record names (task.data_hash)",
                file=self.path_of(record),
            )
        return aliased, predictions

    def stored_predictions(self, record: RunRecord) -> tuple[list[Document], list[Prediction]]:
        """Documents (without text, those of a redacted record without gold) and predictions as the
        file holds them.
        """
        return from_parquet(self._predictions(record), self.path_of(record))

    def _predictions(self, record: RunRecord) -> bytes:
        """The file's bytes, proved to be the ones that were stored."""
        path = self.path_of(record)
        content = _read(path)
        if content is None:
            raise StoreError(
                "the predictions are missing",
                hint="delete the record and repeat the run",
                file=path,
            )
        if sha256_of(content) != record.predictions_sha256:
            raise StoreError(
                "is not the file that was stored with the record",
                hint="restore it, or delete it and its record and repeat the run",
                file=path,
            )
        return content

    def claim(self, task_id: str, key: str) -> AbstractContextManager[Claim | None]:
        """Hold the right to make a run. Gives it, or at once None while another process has it; see
        `store.claims`.

        Raises StoreError where the folder cannot be written.
        """
        return claimed(self.heartbeat_path(task_id, key))

    def heartbeat_path(self, task_id: str, key: str) -> Path:
        """Where the process that makes a run says so; see `store.claims`."""
        return self._lock_path(task_id, key, RUNNING)

    def state_path(self, task_id: str, key: str) -> Path:
        """Where the holder of a run keeps its state while it is under way."""
        return self._lock_path(task_id, key, ".state")

    def is_begun(self, task_id: str, key: str) -> bool:
        """Whether a killed process left the run's state, or that of a part of it."""
        path = self.state_path(task_id, key)
        return path.is_file() or any(path.parent.glob(f"{path.name}.*"))

    def note_command(self, task_id: str, key: str, command: float) -> None:
        """Let others know which command made the stored run. Raises StoreError.

        command: when the command began, seconds since the epoch, by which its workers know each
        other.
        """
        self._clean(self.root / "locks" / task_id)
        self._write_note(self._lock_path(task_id, key, ".command"), Note(command))

    def command_of(self, task_id: str, key: str) -> float | None:
        """The command that made the stored run, None where that is not known. Raises StoreError for
        a damaged note.
        """
        note = self._note(self._lock_path(task_id, key, ".command"))
        return None if note is None else note.command

    def note_failure(self, task_id: str, key: str, command: float, reason: str) -> None:
        """Let the other workers of a command know that this run failed, and why. Raises
        StoreError."""
        self._write_note(self._lock_path(task_id, key, ".failed"), Note(command, reason))

    def failure(self, task_id: str, key: str, command: float | None = None) -> str | None:
        """Why this run failed last, in this very command where one is named; None where it did not.

        Raises StoreError where the note is damaged.
        """
        note = self._note(self._lock_path(task_id, key, ".failed"))
        if note is None or command not in (None, note.command):
            return None
        return note.reason

    @staticmethod
    def _write_note(path: Path, note: Note) -> None:
        write_atomic(path, json.dumps(note._asdict(), ensure_ascii=False).encode())

    @staticmethod
    def _note(path: Path) -> Note | None:
        content = _read(path)
        if content is None:
            return None
        try:
            return _NOTE.validate_json(content)
        except ValidationError as error:
            raise StoreError("is not the note of a run", hint="move it away", file=path) from error

    def _path(self, task_id: str, key: str, suffix: str) -> Path:
        folder = self.root / "runs"
        if not is_task_id(task_id) or not is_key(key):
            raise StoreError(
                f"'{task_id[:40]}', '{key[:40]}' do not name a run",
                hint="a run is runs/<task id>/<32 hex digits>.json",
                file=folder / task_id / f"{key}.json" if "/" not in task_id + key else folder,
            )
        return folder / task_id / (key + suffix)

    def _lock_path(self, task_id: str, key: str, suffix: str) -> Path:
        """A file about making the run, which is no part of its result."""
        inside = self._path(task_id, key, suffix).relative_to(self.root / "runs")
        return self.root / "locks" / inside

    def _clean(self, folder: Path) -> None:
        """Remove what dead processes left, once a folder and process."""
        if folder not in self._cleaned and folder.is_dir():
            remove_stale(folder)
            self._cleaned.add(folder)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Without garbage collection, whatever it was before."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_collecting:
            gc.enable()


def _read(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
