"""The check of a submission: its files, its records, its predictions scored again, copies, and what
would lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task
from biobench.data.counts import label_occurrences
from biobench.data.load import load_folds, subset
from biobench.data.locate import DataRoot
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.kinds.needle import within_window
from biobench.reporting.escape import plain, words
from biobench.reporting.tasks import NEEDLE
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import has_f1, is_numeric
from biobench.schema.metric import F1_AVERAGES
from biobench.schema.record import RunRecord
from biobench.score import ScoreError, parts_of, scored
from biobench.score.slices import slice_scores
from biobench.store import Brief, Store
from biobench.store.statements import Draw, statement_on
from biobench.store.tables import under_aliases
from biobench.submission.checks import (
    DRAW_COMMAND,
    Check,
    Problem,
    RunState,
    State,
    Verification,
    error,
    found,
    is_refused,
)
from biobench.submission.content import check_predictions
from biobench.submission.duplicates import StoredRun, check_copies, earlier_runs
from biobench.submission.layout import check_layout, check_manifest
from biobench.submission.leading import leading
from biobench.submission.records import check_record, differing
from biobench.submission.seeds import check_seeds


def examine(folder: Path, data_dir: DataRoot = None, against: Path | None = None) -> Verification:
    """Check one submission against the shipped tasks, the data in `data_dir` and the results in
    `against`.

    Nothing of the submission is trusted: it is opened only once its layout holds, and where the
    data is at hand its gold is replaced by the data's. Without the data a run is consistent at
    best, never verified.
    against: a results folder; its own runs and its `submitted/` are compared with these, and its
    `statements/` say what a maintainer reproduced. `guard.verify` calls this in a process of its
    own, with limits.
    """
    checks = check_layout(folder)
    manifest = None
    if not checks:
        manifest, checks = check_manifest(folder)
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
    earlier: list[StoredRun] | None = None
    draws: tuple[Draw, ...] = ()
    is_proved = False
    if against is not None:
        earlier = earlier_runs(against, folder, {record.task.id for record in records})
        draws, is_proved, of_statement = _stated(folder, against)
        checks += of_statement
    checks += check_copies([StoredRun(Brief.of(record), store) for record in sound], earlier or [])
    checks += _denied(draws)
    leads = _unproved_leads(records, earlier, draws)
    if not is_refused(checks):  # what is refused waits for nobody, and its claims are not repeated
        checks += leads
    checks += check_seeds(records)
    return Verification(
        folder=str(folder),
        model=plain(manifest.model),
        checks=tuple(dict.fromkeys(map(_printable, checks))),
        runs=tuple(_state_of(record, checks, record.key in rescored) for record in records),
        reproduced=is_proved and not leads,
    )


def _sound(records: Sequence[RunRecord], checks: Sequence[Check]) -> list[RunRecord]:
    """The records in which nothing contradicts itself."""
    contradicted = {check.where for check in checks if check.grade == "error"}
    return [record for record in records if _file_of(record) not in contradicted]


def _stated(folder: Path, results: Path) -> tuple[tuple[Draw, ...], bool, list[Check]]:
    """The runs that a maintainer drew here, and whether they prove the submission; W03 where the
    statement cannot be read.
    """
    try:
        statement = statement_on(folder, results)
    except StoreError as damage:
        return (), False, [Check("W03", "warning", "statements", damage.what)]
    if statement is None or statement.foreign is not None:
        # what another repository says of its own draws proves nothing here
        return (), False, []
    return statement.draws, statement.proved, []


def _file_of(record: RunRecord, kind: str = "json") -> str:
    """The record's file, or that of its predictions, in the submission's folder."""
    return f"runs/{record.task.id}/{record.key}.{kind}"


def read_records(store: Store, model: str) -> tuple[list[RunRecord], list[Check]]:
    """Every record that can be read, in order, held against the spec that it names.

    model: its name in the manifest.
    """
    try:
        records, unusable = store.scan()
    except StoreError as damage:  # of a folder, not of a file in it
        return [], [error("R01", "runs", damage.what)]
    checks = []
    for damaged in unusable:
        file = Path(damaged.file).relative_to(store.root).as_posix()
        checks.append(error("R01", file, damaged.what))
    for record in records:
        for problem in check_record(record, model):
            checks.append(problem.at(_file_of(record)))
    return records, sorted(checks, key=lambda check: check.where)


def score_again(
    store: Store, records: Sequence[RunRecord], data_dir: DataRoot
) -> tuple[set[str], list[Check]]:
    """Every sound run scored on the data where it is at hand, else on the gold in its own file.

    Gives the keys of those that were scored on the data with the claimed result, and findings.
    """
    rescored: set[str] = set()
    checks: list[Check] = []
    for task, runs in groupby(records, key=lambda record: record.task.id):
        folds, missing = _folds(task, data_dir)
        for record in runs:
            data = None
            if folds:
                fold = 0 if record.resampling is None else record.resampling.fold
                data = folds[fold]
                if data.source != record.task.source:
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


def _folds(task: str, data_dir: DataRoot) -> tuple[list[TaskData], str]:
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
    briefs = None if earlier is None else [run.brief for run in earlier]
    proved = {(draw.task, draw.task_hash, draw.track) for draw in draws if draw.agrees}
    remedy = f"waits for `{DRAW_COMMAND}` by a maintainer"
    checks = []
    for lead in leading(records, briefs):
        if (lead.task, lead.task_hash, lead.track) not in proved:
            folder = f"runs/{lead.task}"
            checks.append(Check("W01", "person", folder, f"{lead.what}: {remedy}"))
    return checks


def _state_of(record: RunRecord, checks: Sequence[Check], rescored: bool) -> RunState:
    """How far a run is proved, by the findings on its task and on its files."""
    task = record.task.id
    key = record.key
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
    try:
        # each check relies on those before it
        problem = next(_problems(store, record, data), None)
    except (StoreError, ScoreError) as damage:
        problem = Problem("R07", damage.what)
    return [] if problem is None else [problem.at(_file_of(record, "parquet"))]


def _problems(store: Store, record: RunRecord, data: TaskData | None) -> Iterator[Problem]:
    """What is wrong with a run's predictions, the most basic first."""
    if data is not None:
        yield from _data_problems(record, data)
    stored, predictions = store.stored_predictions(record)
    yield from check_predictions(record, stored, predictions)
    yield from _number_problems(record, stored, len(predictions))
    gold = stored
    if data is not None:
        gold = within_window(data.test, record.windows.max_length)
        if record.redacted:
            gold = under_aliases(gold)
        yield from _gold_problems(record, stored, gold, predictions)
    if record.redacted and data is None:
        return  # its gold is nowhere to be had
    yield from _score_problems(record, gold, predictions)
    if record.slices:
        yield from _slice_problems(record, data, gold, predictions)


def _data_problems(record: RunRecord, data: TaskData) -> Iterator[Problem]:
    """What the record says of its data that is not so."""
    task = record.task
    folds = record.resampling
    here = (data.gold_labels, data.labels, len(data.test), data.unexpressed)
    claimed = (task.gold_labels, task.labels, task.test_documents, record.unexpressed_gold)
    other_fold = folds is not None and len(data.train) != folds.train_documents
    other_data = Problem("D02", "was made on other data than the data here")
    message = "labels, numbers of documents or lost mentions are not those of the data"
    other_counts = Problem("D01", message)
    return found(
        {
            other_data: data.hash != task.data_hash,
            other_counts: here != claimed or other_fold,
        }
    )


def _number_problems(
    record: RunRecord, stored: Sequence[Document], predictions: int
) -> Iterator[Problem]:
    """Documents that are missing or twice. predictions: their number."""
    number = len(stored)
    twice = Problem("S02", "a document is there twice")
    other_number = Problem("D01", "the number of documents is not that of its gold")
    unanswered = Problem("S02", f"{number - predictions} documents lack a prediction")
    # a needle run scores the lengths that its window holds, and no others
    is_counted = record.task.type != NEEDLE
    return found(
        {
            twice: len({document.id for document in stored}) < number,
            other_number: is_counted and number != record.task.test_documents,
            unanswered: predictions != number,
        }
    )


def _gold_problems(
    record: RunRecord,
    stored: Sequence[Document],
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Problem]:
    """What the file holds otherwise than the data. gold: of the data."""
    lengths = {document.id: len(document.text) for document in gold}
    same_documents = lengths.keys() == {document.id for document in stored}
    same_gold = record.redacted or _truths(stored) == _truths(gold)
    if not (same_documents and same_gold):
        yield Problem("D01", "its documents or their gold are not those of the data")
    for prediction in predictions:
        ends = [span.end for span in prediction.spans]
        if max(ends, default=0) > lengths[prediction.document]:
            yield Problem("P01", "holds spans that end beyond the text")


def _truths(documents: Sequence[Document]) -> set[Any]:
    truths = set()
    for document in documents:
        spans = frozenset(document.spans)
        labels = frozenset(document.labels)
        truths.add((document.id, document.group, spans, labels))
    return truths


def _score_problems(
    record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction]
) -> Iterator[Problem]:
    """Scores and labels that the predictions do not give."""
    labels = set(label_occurrences(gold))
    if not is_numeric(record.task.type) and set(record.task.gold_labels) != labels:
        yield Problem("D01", "the labels with gold are not those of its gold")
    recomputed = scored(record, gold, predictions)
    scores = recomputed.scores
    per_label = recomputed.per_label
    # A record of an earlier version lacks the scores that came later, and one of a machine without
    # seqeval its figures. What runs are ranked by may not be missing.
    expected = {record.task.primary, record.task.paper, *record.scores}
    if has_f1(record.task.type):
        expected.update(metric.name for metric in F1_AVERAGES)
    comparable = {name: scores[name] for name in expected & scores.keys()}
    names = differing(record.scores, comparable)
    if names:
        named = ", ".join(names[:5])
        yield Problem("S01", f"the predictions do not give the claimed {named}")
    for label in record.per_label.keys() | per_label.keys():
        claimed = record.per_label.get(label, {})
        computed = per_label.get(label, {})
        if differing(claimed, computed):
            yield Problem("S03", "the predictions do not give the numbers of its labels")


def _slice_problems(
    record: RunRecord,
    data: TaskData | None,
    gold: Sequence[Document],
    predictions: Sequence[Prediction],
) -> Iterator[Problem]:
    """Scores on slices that the predictions do not give, or that nothing here can show.

    gold: with texts where `data` is at hand, under the names that the predictions use.
    """
    if data is None:
        message = "its scores on slices are the submitter's word: only the corpus shows them"
        yield Problem("S04", message, "warning")
        return
    recipe = load_task(record.task.id, record.overrides).spec.training
    trained_on = subset(data.train, recipe.train_fraction, recipe.train_documents)
    parts = parts_of(record.task.type, trained_on, gold)
    computed = slice_scores(record.task, parts, predictions)
    for name, claimed in record.slices.items():
        part = computed.get(name)
        if part is None or part.gold != claimed.gold or differing(claimed.scores, part.scores):
            yield Problem("S04", f"the predictions do not give the scores on {name[:40]}")
