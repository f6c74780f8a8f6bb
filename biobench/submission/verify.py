"""A submission checked from the outside in, and scored again; findings are coded (docs/sharing.md).

Codes begin with the level at which the submission fails: layout, manifest, record, task, data, predictions, scores,
completeness, waiting.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.load import load_folds
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain
from biobench.report.results import SUBMITTED
from biobench.report.tasks import NEEDLE, shipped
from biobench.schema.document import Document, TaskData
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.score import ScoreError, scored
from biobench.store import Store
from biobench.store.statements import Statement, statement_on
from biobench.store.tables import under_aliases
from biobench.submission.checks import Check, RunState, State, Verification
from biobench.submission.content import check_content, check_predictions
from biobench.submission.duplicates import Answers, answers_of, check_copies
from biobench.submission.layout import check_layout, check_manifest
from biobench.submission.leading import leading
from biobench.submission.records import TOLERANCE, check_record, equal

_OF_ONE_MODEL = ("hash", "revision", "architecture", "parameters", "max_positions", "licence")


def examine(folder: str | Path, data_dir: str | Path | None = None, against: str | Path | None = None) -> Verification:
    """Check one submission against the shipped tasks, the data in `data_dir` and the results in `against`.

    Nothing of the submission is trusted: it is opened only once its layout holds, and where the data is at
    hand its gold is replaced by the data's. Without the data a run is consistent at best, never verified.
    against: a results folder; its own runs and its `submitted/` are compared with these, and its `statements/` say
    what a maintainer reproduced. `guard.verify` calls this in a process of its own, with limits.
    """
    folder = Path(folder)
    checks, manifest = check_layout(folder), None
    if not any(c.grade == "error" for c in checks):
        manifest, manifest_checks = check_manifest(folder)
        checks += manifest_checks
    if manifest is None:
        return Verification(str(folder), "", tuple(map(_printable, checks)))
    rescoring = Rescoring(Store(folder), None if data_dir is None else Path(data_dir))
    records, rescored = list[RunRecord](), set[str]()
    for path in sorted(folder.glob("runs/*/*.json")):
        where = path.relative_to(folder).as_posix()
        try:
            record = rescoring.store.get(path.parent.name, path.stem)
            if record is None:
                continue
            of_run = check_record(record, manifest.model)
        except StoreError as error:
            checks.append(Check("R01", "error", where, error.what))
            continue
        records.append(record)
        if not any(c.grade == "error" for c in of_run):
            problem, again = rescoring.check(record)
            of_run += [] if problem is None else [problem]
            rescored |= {record.key} if again else set()
        checks += of_run
    if not records and not any(c.code == "R01" for c in checks):
        checks.append(Check("R01", "error", "runs", "holds no record"))
    records.sort(key=lambda r: (r.task.id, r.model.id, r.seed, r.key))
    earlier, statement = list[Answers](), None
    if against is not None:
        earlier = list(_earlier(Path(against), folder, rescoring.answers))
        try:
            statement = statement_on(folder, Path(against))
        except StoreError as error:
            checks.append(Check("W03", "warning", "statements", plain(error.what)))
    checks += rescoring.remarks() + check_copies(rescoring.answers, earlier)
    checks += _waiting(records, [other.record for other in earlier], statement)
    checks += _of_one_model(records) + _completeness(records)
    runs = []
    for r in records:
        mine = {f"runs/{r.task.id}/{r.key}.json", f"runs/{r.task.id}/{r.key}.parquet"}
        refused = any(c.grade == "error" and c.where in mine for c in checks)
        person = any(c.grade == "person" and c.where in {f"runs/{r.task.id}", *mine} for c in checks)
        proved: State = "verified" if r.key in rescored else "consistent"
        state: State = "refused" if refused else "person" if person else proved
        runs.append(RunState(r.task.id, r.key, r.seed, state, r.key in rescored))
    reproduced = statement is not None and statement.mark == "reproduced"
    checks = list(dict.fromkeys(map(_printable, checks)))
    return Verification(str(folder), plain(manifest.model), tuple(checks), tuple(runs), reproduced)


def _printable(check: Check) -> Check:
    """File names and pieces of the records' own text are one line of visible characters in what is printed."""
    return check._replace(where=plain(check.where), what=plain(check.what) if check.code[0] == "R" else check.what)


def _earlier(results: Path, folder: Path, answers: Sequence[Answers]) -> Iterator[Answers]:
    """The runs of a results folder on tasks and data of these; what cannot be read there is passed over."""
    wanted = {(run.record.task.id, run.record.task.data_hash) for run in answers}
    submitted = sorted(path.parent for path in results.glob(f"{SUBMITTED}/*/runs"))
    for place in [results, *(path for path in submitted if path.resolve() != folder.resolve())]:
        store, name = Store(place), plain("the results" if place == results else place.name)
        for path in sorted(path for task in {task for task, _ in wanted} for path in place.glob(f"runs/{task}/*.json")):
            try:
                record = store.get(path.parent.name, path.stem)
                if record is None or (record.task.id, record.task.data_hash) not in wanted or record.limit:
                    continue
                if not check_content(store.path_of(record), "", record):
                    yield answers_of(record, *store.stored_predictions(record), place=name)
            except StoreError:
                continue


def _waiting(records: Sequence[RunRecord], earlier: Iterable[RunRecord], statement: Statement | None) -> list[Check]:
    """W01: what would lead waits for a run that a maintainer makes. W02: such a run did not agree."""
    draws = () if statement is None else statement.draws
    settled = {(d.task, d.task_hash, d.track) for d in draws if d.agrees}
    checks = [
        Check("W02", "error", f"runs/{d.task}", f"seed {d.seed}, which a maintainer drew, gave {100 * d.score:.2f}: "
              f"the submitted seeds promise {100 * d.low:.2f} to {100 * d.high:.2f}, and its answers are compared too")
        for d in draws if not d.agrees
    ]  # fmt: skip
    for lead in leading(records, earlier):
        if lead[:3] not in settled:
            what = f"{lead.what}: waits for `biobench reproduce --of SUBMISSION --draw` by a maintainer"
            checks.append(Check("W01", "person", f"runs/{lead.task}", what))
    return checks


def _of_one_model(records: Sequence[RunRecord]) -> list[Check]:
    """R09: runs of several checkpoints under one name. What is known of one checkpoint is the same in all its runs."""
    facts = {n: {getattr(r.model, n) for r in records} for n in _OF_ONE_MODEL}
    # a run from before licences were recorded names none
    facts["licence"] -= {None}
    several = ", ".join(f"model.{name}" for name, values in facts.items() if len(values) > 1)
    if several:
        return [Check("R09", "error", "runs", f"are of several checkpoints under one name ({several})")]
    return []


@dataclass(slots=True)
class Rescoring:
    """Scores records again, with the data of one task read at a time. answers: what the runs so far say."""

    store: Store
    data_dir: Path | None
    answers: list[Answers] = field(default_factory=list)
    _data: tuple[str, list[TaskData]] = ("", [])
    _missing: dict[str, str] = field(default_factory=dict)
    """Task to the reason why its runs are not scored again."""

    def check(self, record: RunRecord) -> tuple[Check | None, bool]:
        """(the first D, P or S finding, whether the run was scored again on the data with the claimed result)."""
        where = f"runs/{record.task.id}/{record.key}.parquet"
        data = self._of(record)
        try:
            content = check_content(self.store.path_of(record), where, record)
            problem = content[0] if content else self._problem(record, where, data)
        except (StoreError, ScoreError) as error:
            problem = Check("R07", "error", where, error.what)
        return problem, problem is None and data is not None

    def _problem(self, record: RunRecord, where: str, data: TaskData | None) -> Check | None:
        def error(code: str, what: str) -> Check:
            return Check(code, "error", where, what)

        if data is not None and data.hash != record.task.data_hash:
            return error("D02", "was made on other data than the data at hand")
        if data is not None and not _is_of(record, data):
            return error("D01", "labels, numbers of documents or lost mentions are not those of the data")
        stored, predictions = self.store.stored_predictions(record)
        if wrong := check_predictions(record, where, stored, predictions):
            return wrong[0]
        if len({d.id for d in stored}) < len(stored):
            return error("S02", "a document is there twice")
        # a needle run scores the lengths that its window holds, and no others
        if len(stored) != record.task.test_documents and record.task.type != NEEDLE:
            return error("D01", "the number of documents is not that of its gold")
        if len(predictions) != len(stored):
            return error("S02", f"{len(stored) - len(predictions)} documents lack a prediction")
        gold = stored
        if data is not None:
            read = _read_by(record, data.test)
            gold = under_aliases(read) if record.redacted else read
            same = {d.id for d in gold} == {d.id for d in stored}
            if not same or (not record.redacted and _truth(stored) != _truth(gold)):
                return error("D01", "its documents or their gold are not those of the data")
            lengths = {d.id: len(d.text) for d in gold}
            if any(p.spans and max(s.end for s in p.spans) > lengths[p.document] for p in predictions):
                return error("P01", "holds spans that end beyond the text")
        self.answers.append(answers_of(record, gold, predictions))
        if record.redacted and data is None:
            return None  # its gold is nowhere to be had
        labels = {s.label for d in gold for s in d.spans} | {label for d in gold for label in d.labels}
        if not is_numeric(record.task.type) and set(record.task.gold_labels) != labels:  # a number is no label
            return error("D01", "the labels with gold are not those of its gold")
        after = scored(record, gold, predictions)
        names = sorted(n for n in record.scores.keys() | after.scores.keys()
                       if abs(record.scores.get(n, math.inf) - after.scores.get(n, -math.inf)) > TOLERANCE)  # fmt: skip
        if names:
            return error("S01", f"the predictions do not give the claimed {', '.join(plain(n) for n in names[:5])}")
        if record.per_label.keys() != after.per_label.keys() or not all(
            equal(row, after.per_label[label]) for label, row in record.per_label.items()
        ):
            return error("S03", "the predictions do not give the numbers of its labels")
        return None

    def remarks(self) -> list[Check]:
        """One warning a task whose data is not at hand."""
        what = "not scored again, the data is not at hand: "
        return [Check("D03", "warning", f"runs/{task}", what + why) for task, why in self._missing.items()]

    def _of(self, record: RunRecord) -> TaskData | None:
        task = record.task
        if task.id != self._data[0]:
            try:
                self._data = task.id, load_folds(load_task(task.id), self.data_dir)
            except (DataUnavailableError, DataFormatError) as error:
                self._data, self._missing[task.id] = (task.id, []), error.what
        data = self._data[1]
        if data and data[0].source != task.source:
            self._missing[task.id] = f"it is of source {data[0].source}, the runs are of {task.source}"
            return None
        return data[0 if record.resampling is None else record.resampling.fold] if data else None


def _is_of(record: RunRecord, data: TaskData) -> bool:
    """Whether what the record says of the data holds for the data at hand."""
    task, folds = record.task, record.resampling
    return (
        (data.gold_labels, data.labels, len(data.test)) == (task.gold_labels, task.labels, task.test_documents)
        and (folds is None or len(data.train) == folds.train_documents)
        and record.unexpressed_gold == data.unexpressed
    )


def _read_by(record: RunRecord, documents: Sequence[Document]) -> list[Document]:
    """The documents that a run scores: of needle examples those whose length its window holds, else all."""
    window = record.windows.max_length
    return [d for d in documents if d.plan is None or d.plan.fit != "tokens" or d.plan.length <= window]


def _truth(documents: Sequence[Document]) -> set[tuple[Any, ...]]:
    return {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in documents}


def _completeness(records: Sequence[RunRecord]) -> list[Check]:
    """C codes: what a complete submission would hold beyond this."""
    checks = []
    groups: dict[tuple[str, str, str], list[RunRecord]] = defaultdict(list)
    for record in records:
        groups[record.task.id, record.task.hash, record.track].append(record)
    tasks = shipped()
    for (task, *_), runs in sorted(groups.items()):
        spec, present, where = tasks[task].spec if task in tasks else None, {r.seed for r in runs}, f"runs/{task}"
        if len(present) < len(runs):
            checks.append(Check("C03", "error", where, "a seed is there twice"))
        needed = set() if spec is None else {*parse_seeds(spec.seeds)}
        if (folds := runs[0].resampling) is not None:
            needed = {runs[0].seed - folds.fold + number for number in range(folds.folds)}
        missing, others = sorted(needed - present), sorted(present - needed)
        if missing:
            what = f"seeds {', '.join(map(str, missing))} of the protocol are missing"
            checks.append(Check("C02", "warning", where, what))
        if missing and others and needed:
            what = f"seeds {', '.join(map(str, others[:10]))} stand in their place: they may have been chosen"
            checks.append(Check("C05", "person", where, what))
    return checks
