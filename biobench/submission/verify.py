"""The check of a submission: its files, its records, its predictions scored again, copies, and what
would lead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.load import load_folds, subset
from biobench.errors import DataFormatError, DataUnavailableError, StoreError
from biobench.report.escape import plain, words
from biobench.report.tasks import NEEDLE, shipped
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import is_numeric
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.score import ScoreError, parts_of, scored
from biobench.score.slices import slice_scores
from biobench.store import Store
from biobench.store.statements import statement_on
from biobench.store.tables import under_aliases
from biobench.submission.checks import Check, RunState, State, Verification, error, is_refused
from biobench.submission.content import check_predictions
from biobench.submission.duplicates import Answers, answers_of, check_copies
from biobench.submission.earlier import EarlierRuns
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
    store, records, sound = Store(folder), list[RunRecord](), set[str]()
    for path in sorted(folder.glob("runs/*/*.json")):
        try:
            if (record := store.get(path.parent.name, path.stem)) is None:
                continue
        except StoreError as problem:
            checks.append(error("R01", path.relative_to(folder).as_posix(), problem.what))
            continue
        of_run = check_record(record, manifest.model)
        checks += of_run
        records.append(record)
        sound |= set() if is_refused(of_run) else {record.key}
    if not records and not is_refused(checks):
        checks.append(error("R01", "runs", "holds no record"))
    records.sort(key=lambda r: (r.task.id, r.model.id, r.seed, r.key))
    answers, rescored = list[Answers](), set[str]()
    for task, runs in groupby((r for r in records if r.key in sound), key=lambda r: r.task.id):
        folds, missing = list[TaskData](), ""
        try:
            folds = load_folds(load_task(task), data_dir)
        except (DataUnavailableError, DataFormatError) as problem:
            missing = problem.what
        for record in runs:
            data = (
                folds[0 if record.resampling is None else record.resampling.fold] if folds else None
            )
            if data is not None and data.source != record.task.source:
                missing = f"it is of source {data.source}, the runs are of {record.task.source}"
                data = None
            problems = check_run(store, record, data, answers)
            checks += problems
            rescored |= set() if problems or data is None else {record.key}
        if missing:
            missing = f"not scored again, the data is not available: {missing}"
            checks.append(Check("D03", "warning", f"runs/{task}", missing))
    earlier, statement = None, None
    if against is not None:
        earlier = EarlierRuns(Path(against), folder, {record.task.id for record in records})
        try:
            statement = statement_on(folder, Path(against))
        except StoreError as problem:
            checks.append(Check("W03", "warning", "statements", problem.what))
    checks += _copies(answers, earlier)
    # what another repository says of its own draws proves nothing here
    draws = () if statement is None or statement.foreign is not None else statement.draws
    for d in draws:
        if not d.agrees:
            what = (
                f"seed {d.seed}, which a maintainer drew, gave {100 * d.score:.2f}: the "
                f"submitted seeds promise "
            )
            what += f"{100 * d.low:.2f} to {100 * d.high:.2f}, and its answers are compared too"
            checks.append(error("W02", f"runs/{d.task}", what))
    for lead in leading(records, None if earlier is None else earlier.briefs):
        if lead[:3] not in {(d.task, d.task_hash, d.track) for d in draws if d.agrees}:
            what = (
                f"{lead.what}: waits for `biobench reproduce --of SUBMISSION --draw` by a "
                f"maintainer"
            )
            checks.append(Check("W01", "person", f"runs/{lead.task}", what))
    checks += _together(records)
    states = []
    for r in records:
        places = (
            f"runs/{r.task.id}",
            f"runs/{r.task.id}/{r.key}.json",
            f"runs/{r.task.id}/{r.key}.parquet",
        )
        grades = {check.grade for check in checks if check.where in places}
        proved: State = "verified" if r.key in rescored else "consistent"
        state: State = (
            "refused" if "error" in grades else "person" if "person" in grades else proved
        )
        states.append(RunState(r.task.id, r.key, r.seed, state, r.key in rescored))
    waits = any(check.code == "W01" for check in checks)
    reproduced = statement is not None and statement.proved and not waits
    checks = list(dict.fromkeys(map(_printable, checks)))
    return Verification(
        str(folder), plain(manifest.model), tuple(checks), tuple(states), reproduced
    )


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
    task, window = record.task, record.windows.max_length
    if data is not None:
        if data.hash != task.data_hash:
            yield error("D02", where, "was made on other data than the data here")
        facts = (data.gold_labels, data.labels, len(data.test), data.unexpressed)
        folds = record.resampling
        if facts != (
            task.gold_labels,
            task.labels,
            task.test_documents,
            record.unexpressed_gold,
        ) or (folds is not None and len(data.train) != folds.train_documents):
            yield error(
                "D01",
                where,
                "labels, numbers of documents or lost mentions are not those of the data",
            )
    stored, predictions = store.stored_predictions(record)
    yield from check_predictions(record, where, stored, predictions)
    if len({d.id for d in stored}) < len(stored):
        yield error("S02", where, "a document is there twice")
    # a needle run scores the lengths that its window holds, and no others
    if len(stored) != task.test_documents and task.type != NEEDLE:
        yield error("D01", where, "the number of documents is not that of its gold")
    if len(predictions) != len(stored):
        yield error("S02", where, f"{len(stored) - len(predictions)} documents lack a prediction")
    gold = stored
    if data is not None:
        fits = within_window(data.test, window)
        gold = under_aliases(fits) if record.redacted else fits
        lengths = {d.id: len(d.text) for d in gold}
        truths = [
            {(d.id, d.group, frozenset(d.spans), frozenset(d.labels)) for d in one}
            for one in (stored, gold)
        ]
        if lengths.keys() != {d.id for d in stored} or (
            not record.redacted and truths[0] != truths[1]
        ):
            yield error("D01", where, "its documents or their gold are not those of the data")
        if any(p.spans and max(s.end for s in p.spans) > lengths[p.document] for p in predictions):
            yield error("P01", where, "holds spans that end beyond the text")
    answers.append(answers_of(record, gold, predictions))
    if record.redacted and data is None:
        return  # its gold is nowhere to be had
    labels = {s.label for d in gold for s in d.spans} | {label for d in gold for label in d.labels}
    if not is_numeric(task.type) and set(task.gold_labels) != labels:  # a number is no label
        yield error("D01", where, "the labels with gold are not those of its gold")
    after = scored(record, gold, predictions)
    if names := differing(record.scores, after.scores):
        yield error("S01", where, f"the predictions do not give the claimed {', '.join(names[:5])}")
    mine, theirs = record.per_label, after.per_label
    if mine.keys() != theirs.keys() or any(
        differing(row, theirs[label]) for label, row in mine.items()
    ):
        yield error("S03", where, "the predictions do not give the numbers of its labels")
    yield from _slice_problems(record, where, data, gold, predictions)


def _slice_problems(
    record: RunRecord,
    where: str,
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
        what = "its scores on slices are the submitter's word: only the corpus shows them"
        yield Check("S04", "warning", where, what)
        return
    recipe = load_task(record.task.id, record.overrides).spec.training
    trained_on = subset(data.train, recipe.train_fraction, recipe.train_documents)
    computed = slice_scores(record.task, parts_of(record.task.type, trained_on, gold), predictions)
    for name, claimed in record.slices.items():
        own = computed.get(name)
        if own is None or own.gold != claimed.gold or differing(claimed.scores, own.scores):
            yield error("S04", where, f"the predictions do not give the scores on {name[:40]}")


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
