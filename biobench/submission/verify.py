"""The check of a submission: its files, its records, its predictions scored again, copies, and what
would lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.load import load_folds, subset
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain, words
from biobench.report.tasks import NEEDLE, shipped
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import has_f1, is_numeric
from biobench.schema.metric import F1_AVERAGES
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.score import ScoreError, parts_of, scored
from biobench.score.slices import slice_scores
from biobench.store import Brief, Store
from biobench.store.statements import Draw, Statement, statement_on
from biobench.store.tables import under_aliases
from biobench.submission.checks import Check, RunState, State, Verification, error, is_refused
from biobench.submission.content import check_predictions
from biobench.submission.duplicates import StoredRun, check_copies, earlier_runs
from biobench.submission.layout import check_layout, check_manifest
from biobench.submission.leading import by_conditions, leading
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
        manifest, of_manifest = check_manifest(folder)
        checks += of_manifest
    if manifest is None:
        return Verification(str(folder), "", tuple(map(_printable, checks)))
    store = Store(folder)
    records, of_records = read_records(store, manifest.model)
    checks += of_records
    if not records and not is_refused(checks):
        checks.append(error("R01", "runs", "holds no record"))
    sound = _sound(records, checks)
    rescored, of_predictions = score_again(store, sound, data_dir)
    checks += of_predictions
    earlier, statement = None, None
    if against is not None:
        earlier = earlier_runs(Path(against), folder, {record.task.id for record in records})
        statement, of_statement = _stated(folder, Path(against))
        checks += of_statement
    runs = [StoredRun(Brief.of(record), store) for record in sound]
    checks += check_copies(runs, earlier or [])
    draws = () if statement is None else statement.draws
    checks += _denied(draws)
    leads = _unproved_leads(records, earlier, draws)
    checks += leads
    checks += _together(records)
    states = [_state_of(record, checks, rescored=record.key in rescored) for record in records]
    return Verification(
        folder=str(folder),
        model=plain(manifest.model),
        checks=tuple(dict.fromkeys(map(_printable, checks))),
        runs=tuple(states),
        reproduced=statement is not None and statement.proved and not leads,
    )


def _sound(records: Sequence[RunRecord], checks: Sequence[Check]) -> list[RunRecord]:
    """The records in which nothing contradicts itself."""
    contradicted = {check.where for check in checks if check.grade == "error"}
    return [record for record in records if _file_of(record) not in contradicted]


def _stated(folder: Path, results: Path) -> tuple[Statement | None, list[Check]]:
    """What a maintainer here stated of the submission; W03 where that cannot be read."""
    try:
        statement = statement_on(folder, results)
    except StoreError as problem:
        return None, [Check("W03", "warning", "statements", problem.what)]
    # what another repository says of its own draws proves nothing here
    is_foreign = statement is not None and statement.foreign is not None
    return None if is_foreign else statement, []


def _file_of(record: RunRecord, kind: str = "json") -> str:
    """The record's file, or that of its predictions, in the submission's folder."""
    return f"runs/{record.task.id}/{record.key}.{kind}"


def read_records(store: Store, model: str) -> tuple[list[RunRecord], list[Check]]:
    """Every record that can be read, in order, held against the spec that it names.

    model: its name in the manifest.
    """
    records: list[RunRecord] = []
    checks: list[Check] = []
    for path in sorted(store.root.glob("runs/*/*.json")):
        try:
            record = store.get(path.parent.name, path.stem)
        except StoreError as problem:
            file = path.relative_to(store.root).as_posix()
            checks.append(error("R01", file, problem.what))
            continue
        if record is not None:
            checks += check_record(record, model)
            records.append(record)
    records.sort(key=lambda record: (record.task.id, record.model.id, record.seed, record.key))
    return records, checks


def score_again(
    store: Store, records: Sequence[RunRecord], data_dir: str | Path | None
) -> tuple[set[str], list[Check]]:
    """Every sound run scored on the data where it is at hand, else on the gold in its own file.

    Gives the keys of those that were scored on the data with the claimed result, and findings.
    """
    rescored: set[str] = set()
    checks: list[Check] = []
    for task, runs in groupby(records, key=lambda record: record.task.id):
        folds, missing = _folds(task, data_dir)
        for record in runs:
            fold = 0 if record.resampling is None else record.resampling.fold
            data = folds[fold] if folds else None
            if data is not None and data.source != record.task.source:
                missing = f"it is of source {data.source}, the runs are of {record.task.source}"
                data = None
            problems = check_run(store, record, data)
            checks += problems
            if data is not None and not problems:
                rescored.add(record.key)
        if missing:
            message = f"not scored again, the data is not available: {missing}"
            checks.append(Check("D03", "warning", f"runs/{task}", message))
    return rescored, checks


def _folds(task: str, data_dir: str | Path | None) -> tuple[list[TaskData], str]:
    """The task's data, one a fold, and why there is none."""
    try:
        return load_folds(load_task(task), data_dir), ""
    except (DataUnavailableError, DataFormatError) as problem:
        return [], problem.what


def _denied(draws: Sequence[Draw]) -> Iterator[Check]:
    """W02: a maintainer's draw contradicts the submission."""
    for draw in draws:
        if not draw.agrees:
            message = (
                f"seed {draw.seed}, which a maintainer drew, gave {100 * draw.score:.2f}: the "
                f"submitted seeds promise {100 * draw.low:.2f} to {100 * draw.high:.2f}, and its "
                "answers are compared too"
            )
            yield error("W02", f"runs/{draw.task}", message)


def _unproved_leads(
    records: Sequence[RunRecord], earlier: Sequence[StoredRun] | None, draws: Sequence[Draw]
) -> list[Check]:
    """W01: what would lead without an agreeing draw of a maintainer."""
    proved = {(draw.task, draw.task_hash, draw.track) for draw in draws if draw.agrees}
    briefs = None if earlier is None else [run.brief for run in earlier]
    waiting = []
    for lead in leading(records, briefs):
        if lead[:3] not in proved:
            message = f"{lead.what}: waits for `biobench reproduce --of SUBMISSION --draw`"
            waiting.append(
                Check("W01", "person", f"runs/{lead.task}", f"{message} by a maintainer")
            )
    return waiting


def _state_of(record: RunRecord, checks: Sequence[Check], *, rescored: bool) -> RunState:
    """How far a run is proved, by the findings on its task and on its files."""
    task, key = record.task.id, record.key
    files = (f"runs/{task}", _file_of(record), _file_of(record, "parquet"))
    grades = {check.grade for check in checks if check.where in files}
    state: State = "verified" if rescored else "consistent"
    if "person" in grades:
        state = "person"
    if "error" in grades:
        state = "refused"
    return RunState(task, key, record.seed, state, rescored)


def _printable(check: Check) -> Check:
    """File names and pieces of the records' own text are one line of visible characters in what is
    printed.
    """
    return check._replace(where=plain(check.where), what=words(check.what, plain))


def check_run(store: Store, record: RunRecord, data: TaskData | None) -> list[Check]:
    """The first D, P, R07 or S finding in a run's predictions.

    data: of the run's task and source; None where it is not available, so that the file's own gold
    counts.
    """
    file = _file_of(record, "parquet")
    try:
        return list(islice(_problems(store, record, file, data), 1))
    except (StoreError, ScoreError) as problem:
        return [error("R07", file, problem.what)]


def within_window(documents: Sequence[Document], window: int) -> list[Document]:
    """All documents but needle examples of whole tokens that are longer than the window."""
    within = []
    for document in documents:
        plan = document.plan
        if plan is None or plan.fit != "tokens" or plan.length <= window:
            within.append(document)
    return within


def _problems(store: Store, record: RunRecord, file: str, data: TaskData | None) -> Iterator[Check]:
    """Only the first is asked for: each check relies on those before it."""
    if data is not None:
        yield from _data_problems(record, file, data)
    stored, predictions = store.stored_predictions(record)
    yield from check_predictions(record, file, stored, predictions)
    yield from _number_problems(record, file, stored, len(predictions))
    gold = stored
    if data is not None:
        gold = within_window(data.test, record.windows.max_length)
        if record.redacted:
            gold = under_aliases(gold)
        yield from _gold_problems(record, file, stored, gold, predictions)
    if record.redacted and data is None:
        return  # its gold is nowhere to be had
    yield from _score_problems(record, file, gold, predictions)
    yield from _slice_problems(record, file, data, gold, predictions)


def _data_problems(record: RunRecord, file: str, data: TaskData) -> Iterator[Check]:
    """What the record says of its data that is not so."""
    task, folds = record.task, record.resampling
    if data.hash != task.data_hash:
        yield error("D02", file, "was made on other data than the data here")
    here = (data.gold_labels, data.labels, len(data.test), data.unexpressed)
    claimed = (task.gold_labels, task.labels, task.test_documents, record.unexpressed_gold)
    other_fold = folds is not None and len(data.train) != folds.train_documents
    if here != claimed or other_fold:
        message = "labels, numbers of documents or lost mentions are not those of the data"
        yield error("D01", file, message)


def _number_problems(
    record: RunRecord, file: str, stored: Sequence[Document], predictions: int
) -> Iterator[Check]:
    """Documents that are missing or twice. predictions: their number."""
    if len({document.id for document in stored}) < len(stored):
        yield error("S02", file, "a document is there twice")
    # a needle run scores the lengths that its window holds, and no others
    if len(stored) != record.task.test_documents and record.task.type != NEEDLE:
        yield error("D01", file, "the number of documents is not that of its gold")
    if predictions != len(stored):
        yield error("S02", file, f"{len(stored) - predictions} documents lack a prediction")


def _gold_problems(
    record: RunRecord,
    file: str,
    stored: Sequence[Document],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Check]:
    """What the file holds otherwise than the data. gold: of the data."""
    lengths = {document.id: len(document.text) for document in gold}
    same_documents = lengths.keys() == {document.id for document in stored}
    same_gold = record.redacted or _truths(stored) == _truths(gold)
    if not (same_documents and same_gold):
        yield error("D01", file, "its documents or their gold are not those of the data")
    for prediction in predictions:
        if any(span.end > lengths[prediction.document] for span in prediction.spans):
            yield error("P01", file, "holds spans that end beyond the text")


def _truths(documents: Sequence[Document]) -> set[Any]:
    return {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in documents}


def _score_problems(
    record: RunRecord,
    file: str,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Check]:
    """Scores and labels that the predictions do not give."""
    labels: set[str] = set()
    for document in gold:
        labels.update(document.labels, (span.label for span in document.spans))
    if not is_numeric(record.task.type) and set(record.task.gold_labels) != labels:
        yield error("D01", file, "the labels with gold are not those of its gold")
    recomputed = scored(record, gold, predictions)
    # A record of an earlier version lacks the scores that came later, and one of a machine without
    # seqeval its figures. What runs are ranked by may not be missing.
    expected = {record.task.primary, record.task.paper, *record.scores}
    if has_f1(record.task.type):
        expected.update(metric.name for metric in F1_AVERAGES)
    comparable = {name: recomputed.scores[name] for name in expected & recomputed.scores.keys()}
    if names := differing(record.scores, comparable):
        yield error("S01", file, f"the predictions do not give the claimed {', '.join(names[:5])}")
    for label in record.per_label.keys() | recomputed.per_label.keys():
        claimed, computed = record.per_label.get(label), recomputed.per_label.get(label)
        if claimed is None or computed is None or differing(claimed, computed):
            yield error("S03", file, "the predictions do not give the numbers of its labels")


def _slice_problems(
    record: RunRecord,
    file: str,
    data: TaskData | None,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Check]:
    """Scores on slices that the predictions do not give, or that nothing here can show.

    gold: with texts where `data` is at hand, under the names that the predictions use. Records may
    have no slices.
    """
    if not record.slices:
        return
    if data is None:
        message = "its scores on slices are the submitter's word: only the corpus shows them"
        yield Check("S04", "warning", file, message)
        return
    recipe = load_task(record.task.id, record.overrides).spec.training
    trained_on = subset(data.train, recipe.train_fraction, recipe.train_documents)
    computed = slice_scores(record.task, parts_of(record.task.type, trained_on, gold), predictions)
    for name, claimed in record.slices.items():
        recomputed = computed.get(name)
        is_same = recomputed is not None and recomputed.gold == claimed.gold
        if recomputed is None or not is_same or differing(claimed.scores, recomputed.scores):
            yield error("S04", file, f"the predictions do not give the scores on {name[:40]}")


def _together(records: Sequence[RunRecord]) -> Iterator[Check]:
    """R09: runs of several checkpoints under one name. C codes: seeds that are there twice,
    missing, or replaced.
    """
    if len({r.model.hash for r in records}) > 1:
        yield error("R09", "runs", "are of several checkpoints under one name")
    for (task, *_), runs in by_conditions(records).items():
        file = f"runs/{task}"
        present = {run.seed for run in runs}
        if len(present) < len(runs):
            yield error("C03", file, "a seed is there twice")
        needed = _needed_seeds(task, runs[0])
        missing, extra = sorted(needed - present), sorted(present - needed)
        if missing:
            seeds = ", ".join(map(str, missing))
            yield Check("C02", "warning", file, f"seeds {seeds} of the protocol are missing")
        if missing and extra:
            seeds = ", ".join(map(str, extra[:10]))
            message = f"seeds {seeds} replace them: they may have been chosen"
            yield Check("C05", "person", file, message)


def _needed_seeds(task: str, run: RunRecord) -> set[int]:
    """The seeds of the protocol: those of the spec, or one a split."""
    if run.resampling is not None:
        first_seed = run.seed - run.resampling.fold
        return {first_seed + number for number in range(run.resampling.folds)}
    info = shipped().get(task)
    return set() if info is None or info.spec is None else {*parse_seeds(info.spec.seeds)}
