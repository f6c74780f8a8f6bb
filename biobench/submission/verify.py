"""The check of a submission: its files, its records, its predictions scored again, copies, and what
would lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.load import load_folds
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain, words
from biobench.report.tasks import NEEDLE, shipped
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.score import ScoreError, scored
from biobench.store import Store
from biobench.store.statements import Draw, statement_on
from biobench.store.tables import under_aliases
from biobench.submission.checks import Check, RunState, State, Verification, error, is_refused
from biobench.submission.content import check_predictions
from biobench.submission.duplicates import Answers, answers_of, check_copies
from biobench.submission.earlier import EarlierRuns
from biobench.submission.layout import check_layout, check_manifest
from biobench.submission.leading import Leading, by_conditions, leading
from biobench.submission.records import check_record, differing


def examine(
    folder: str | Path, data_dir: str | Path | None = None, against: str | Path | None = None
) -> Verification:
    """Check one submission against the shipped tasks, the data in `data_dir` and the results in
    `against`.

    Nothing of the submission is trusted: it is opened only once its layout holds, and where the
    data is at hand its gold is replaced by the data's. Without the data a run is consistent at
    best, never verified.
    against: a results folder; its own runs and its `submitted/` are compared with these, and its
    `statements/` say what a maintainer reproduced. `guard.verify` calls this in a process of its
    own, with limits.
    """
    folder = Path(folder)
    checks, manifest = check_layout(folder), None
    if not is_refused(checks):
        manifest, manifest_checks = check_manifest(folder)
        checks += manifest_checks
    if manifest is None:
        return Verification(str(folder), "", tuple(map(_printable, checks)))
    store = Store(folder)
    records, sound_records, record_checks = _read_records(store, manifest.model)
    checks += record_checks
    if not records and not is_refused(checks):
        checks.append(error("R01", "runs", "holds no record"))
    answers, rescored, run_checks = _score_again(store, sound_records, data_dir)
    checks += run_checks
    earlier, briefs, statement = None, None, None
    if against is not None:
        earlier = EarlierRuns(Path(against), folder, {record.task.id for record in records})
        briefs = earlier.briefs
        try:
            statement = statement_on(folder, Path(against))
        except StoreError as problem:
            checks.append(Check("W03", "warning", "statements", problem.what))
    checks += _copies(answers, earlier)
    # what another repository says of its own draws proves nothing here
    draws = statement.draws if statement is not None and statement.foreign is None else ()
    checks += _draw_checks(draws)
    checks += _lead_checks(leading(records, briefs), draws)
    checks += _together(records)
    states = tuple(_run_state(record, checks, record.key in rescored) for record in records)
    waits = any(check.code == "W01" for check in checks)
    reproduced = statement is not None and statement.proved and not waits
    printable = tuple(dict.fromkeys(map(_printable, checks)))
    return Verification(str(folder), plain(manifest.model), printable, states, reproduced)


def _read_records(store: Store, model: str) -> tuple[list[RunRecord], list[RunRecord], list[Check]]:
    """The readable records, those of them without an error, and the findings in all.

    Both lists are in the order of task, model, seed and key. model: the name in the manifest.
    """
    records, sound_records, checks = list[RunRecord](), list[RunRecord](), list[Check]()
    for path in sorted(store.root.glob("runs/*/*.json")):
        try:
            record = store.get(path.parent.name, path.stem)
        except StoreError as problem:
            where = path.relative_to(store.root).as_posix()
            checks.append(error("R01", where, problem.what))
            continue
        if record is None:
            continue
        record_checks = check_record(record, model)
        checks += record_checks
        records.append(record)
        if not is_refused(record_checks):
            sound_records.append(record)
    return sorted(records, key=_order), sorted(sound_records, key=_order), checks


def _order(record: RunRecord) -> tuple[str, str, int, str]:
    return record.task.id, record.model.id, record.seed, record.key


def _score_again(
    store: Store, records: Sequence[RunRecord], data_dir: str | Path | None
) -> tuple[list[Answers], set[str], list[Check]]:
    """What the runs answer, the keys of those that the data confirms, and the findings.

    records: in the order of their tasks, so that the data of one task is in memory at a time.
    """
    answers, rescored, checks = list[Answers](), set[str](), list[Check]()
    for task, runs in groupby(records, key=lambda record: record.task.id):
        folds, missing = list[TaskData](), ""
        try:
            folds = load_folds(load_task(task), data_dir)
        except (DataUnavailableError, DataFormatError) as problem:
            missing = problem.what
        for record in runs:
            data = _fold_of(record, folds)
            if data is not None and data.source != record.task.source:
                missing = f"it is of source {data.source}, the runs are of {record.task.source}"
                data = None
            problems = check_run(store, record, data, answers)
            checks += problems
            if data is not None and not problems:
                rescored.add(record.key)
        if missing:
            missing = f"not scored again, the data is not available: {missing}"
            checks.append(Check("D03", "warning", f"runs/{task}", missing))
    return answers, rescored, checks


def _fold_of(record: RunRecord, folds: Sequence[TaskData]) -> TaskData | None:
    """The data of a run's fold; None where no data is available."""
    if not folds:
        return None
    return folds[0 if record.resampling is None else record.resampling.fold]


def _draw_checks(draws: Sequence[Draw]) -> Iterator[Check]:
    """W02: a seed that a maintainer drew does not give what the submitted seeds promise."""
    for draw in draws:
        if not draw.agrees:
            problem = (
                f"seed {draw.seed}, which a maintainer drew, gave {100 * draw.score:.2f}: the "
                f"submitted seeds promise {100 * draw.low:.2f} to {100 * draw.high:.2f}, and its "
                f"answers are compared too"
            )
            yield error("W02", f"runs/{draw.task}", problem)


def _lead_checks(leads: Sequence[Leading], draws: Sequence[Draw]) -> Iterator[Check]:
    """W01: runs that would lead and that no agreeing draw confirms."""
    confirmed = {(draw.task, draw.task_hash, draw.track) for draw in draws if draw.agrees}
    for lead in leads:
        if (lead.task, lead.task_hash, lead.track) not in confirmed:
            waits = "waits for `biobench reproduce --of SUBMISSION --draw` by a maintainer"
            yield Check("W01", "person", f"runs/{lead.task}", f"{lead.what}: {waits}")


def _run_state(record: RunRecord, checks: Sequence[Check], rescored: bool) -> RunState:
    """How far a run is proved: the findings in its files and in its task count."""
    task = f"runs/{record.task.id}"
    files = (task, f"{task}/{record.key}.json", f"{task}/{record.key}.parquet")
    grades = {check.grade for check in checks if check.where in files}
    state: State = "consistent"
    if "error" in grades:
        state = "refused"
    elif "person" in grades:
        state = "person"
    elif rescored:
        state = "verified"
    return RunState(record.task.id, record.key, record.seed, state, rescored)


def _printable(check: Check) -> Check:
    """File names and pieces of the records' own text are one line of visible characters in what is
    printed.
    """
    return check._replace(where=plain(check.where), what=words(check.what, plain))


def check_run(
    store: Store, record: RunRecord, data: TaskData | None, answers: list[Answers]
) -> list[Check]:
    """The first D, P, R07 or S finding in a run's predictions; what they answer is added to
    `answers`.

    data: of the run's task and source; None where it is not available, so that the file's own gold
    counts.
    """
    where = f"runs/{record.task.id}/{record.key}.parquet"
    try:
        return list(islice(_problems(store, record, where, data, answers), 1))
    except (StoreError, ScoreError) as problem:
        return [error("R07", where, problem.what)]


def within_window(documents: Sequence[Document], window: int) -> list[Document]:
    """All documents but needle examples of whole tokens that are longer than the window."""
    return [
        d for d in documents if not (d.plan and d.plan.fit == "tokens" and d.plan.length > window)
    ]


def _problems(
    store: Store, record: RunRecord, where: str, data: TaskData | None, answers: list[Answers]
) -> Iterator[Check]:
    """Only the first is asked for: each check relies on those before it."""
    if data is not None:
        yield from _claims_about(data, record, where)
    stored, predictions = store.stored_predictions(record)
    yield from check_predictions(record, where, stored, predictions)
    yield from _completeness(record, where, stored, predictions)
    gold = stored
    if data is not None:
        gold = within_window(data.test, record.windows.max_length)
        if record.redacted:
            gold = under_aliases(gold)
        yield from _gold_problems(record, where, stored, gold)
        lengths = {document.id: len(document.text) for document in gold}
        if any(span.end > lengths[p.document] for p in predictions for span in p.spans):
            yield error("P01", where, "holds spans that end beyond the text")
    answers.append(answers_of(record, gold, predictions))
    # without the data, the gold of a redacted run is nowhere to be had
    if data is not None or not record.redacted:
        yield from _score_problems(record, where, gold, predictions)


def _claims_about(data: TaskData, record: RunRecord, where: str) -> Iterator[Check]:
    """D02, D01: what the record says of its data, held against the data."""
    task, resampling = record.task, record.resampling
    if data.hash != task.data_hash:
        yield error("D02", where, "was made on other data than the data here")
    claimed = (task.gold_labels, task.labels, task.test_documents, record.unexpressed_gold)
    facts = (data.gold_labels, data.labels, len(data.test), data.unexpressed)
    same_training = resampling is None or len(data.train) == resampling.train_documents
    if facts != claimed or not same_training:
        problem = "labels, numbers of documents or lost mentions are not those of the data"
        yield error("D01", where, problem)


def _completeness(
    record: RunRecord,
    where: str,
    stored: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Check]:
    """S02, D01: every test document is there once, with a prediction."""
    if len({document.id for document in stored}) < len(stored):
        yield error("S02", where, "a document is there twice")
    # a needle run scores the lengths that its window holds, and no others
    if len(stored) != record.task.test_documents and record.task.type != NEEDLE:
        yield error("D01", where, "the number of documents is not that of its gold")
    if len(predictions) != len(stored):
        yield error("S02", where, f"{len(stored) - len(predictions)} documents lack a prediction")


def _gold_problems(
    record: RunRecord, where: str, stored: Sequence[Document], gold: Sequence[Document]
) -> Iterator[Check]:
    """D01: the file's documents are not those of the data; a redacted file holds ids alone."""
    same = {document.id for document in stored} == {document.id for document in gold}
    if not record.redacted:
        same = same and _truths(stored) == _truths(gold)
    if not same:
        yield error("D01", where, "its documents or their gold are not those of the data")


def _truths(documents: Sequence[Document]) -> set[tuple[object, ...]]:
    return {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in documents}


def _score_problems(
    record: RunRecord, where: str, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> Iterator[Check]:
    """D01, S01, S03: the predictions do not give the claimed numbers. Raises ScoreError."""
    labels = {span.label for document in gold for span in document.spans}
    labels.update(label for document in gold for label in document.labels)
    if not is_numeric(record.task.type) and set(record.task.gold_labels) != labels:
        yield error("D01", where, "the labels with gold are not those of its gold")
    rescored = scored(record, gold, predictions)
    if names := differing(record.scores, rescored.scores):
        yield error("S01", where, f"the predictions do not give the claimed {', '.join(names[:5])}")
    claimed, computed = record.per_label, rescored.per_label
    if claimed.keys() != computed.keys() or any(
        differing(row, computed[label]) for label, row in claimed.items()
    ):
        yield error("S03", where, "the predictions do not give the numbers of its labels")


def _copies(answers: Sequence[Answers], earlier: EarlierRuns | None) -> list[Check]:
    """Copies task by task, so that the earlier runs of one task are read at a time."""
    checks: list[Check] = []
    for task, runs in groupby(answers, key=lambda run: run.ran.task):
        checks += check_copies([*runs], () if earlier is None else earlier.answers(task))
    return checks


def _together(records: Sequence[RunRecord]) -> Iterator[Check]:
    """R09: runs of several checkpoints under one name. C codes: seeds that are there twice,
    missing, or replaced.
    """
    if len({r.model.hash for r in records}) > 1:
        yield error("R09", "runs", "are of several checkpoints under one name")
    for (task, *_), runs in by_conditions(records).items():
        info, present, where = shipped().get(task), {r.seed for r in runs}, f"runs/{task}"
        if len(present) < len(runs):
            yield error("C03", where, "a seed is there twice")
        needed = set() if info is None or info.spec is None else {*parse_seeds(info.spec.seeds)}
        if (folds := runs[0].resampling) is not None:
            needed = {runs[0].seed - folds.fold + number for number in range(folds.folds)}
        missing, others = sorted(needed - present), sorted(present - needed)
        if missing:
            yield Check(
                "C02",
                "warning",
                where,
                f"seeds {', '.join(map(str, missing))} of the protocol are missing",
            )
        if missing and others:
            what = (
                f"seeds {', '.join(map(str, others[:10]))} replace them: they may have been chosen"
            )
            yield Check("C05", "person", where, what)
