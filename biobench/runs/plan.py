"""What is to be run: models x tasks x seeds, each with the key that says whether it was done before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biobench.data.catalog import LoadedTask
from biobench.data.hashing import release_problem, task_hash
from biobench.data.load import load_folds, without_test
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.kinds.base import get_kind
from biobench.models.loading import Checkpoint, find_checkpoint
from biobench.runs.options import RunRequest, Track
from biobench.runs.result import Reporter, RunName, RunResult, Status
from biobench.runs.selection import Selection, seeds_of, select
from biobench.schema.baseline import BaselineRecord
from biobench.schema.document import TaskData
from biobench.schema.record import TaskIdentity
from biobench.schema.source import SplitFoldFiles
from biobench.store import Store, run_key
from biobench.store.floors import find_floor

if TYPE_CHECKING:
    import torch

    from biobench.core.machine import Precision


@dataclass(frozen=True, slots=True)
class Item:
    """One run to make."""

    checkpoint: Checkpoint
    task: TaskEntry
    seed: int
    key: str
    track: Track = "fixed"

    @property
    def group(self) -> tuple[str, str, int]:
        """What the item shares with the task's other seeds: checkpoint, task and split."""
        return self.checkpoint.hash, self.task.hash, self.task.loaded.fold

    @property
    def name(self) -> RunName:
        """What it is called where its progress is told."""
        return RunName(self.key, self.checkpoint.id, self.task.id, self.seed)

    def result(self, request: RunRequest, status: Status, reason: str | None = None) -> RunResult:
        """The line of a run that is planned, failed, or made elsewhere."""
        line = self.task.result(
            request, self.checkpoint.id, status, None if reason is None else " ".join(reason.split())
        )
        return replace(line, seed=self.seed, key=self.key)


@dataclass
class TaskEntry:
    """A task with its data, or with the reason why there is none.

    resampled: where it has several splits; there is an entry for each. precision: resolved last, as it needs torch.
    """

    loaded: LoadedTask
    data: TaskData | None
    unavailable: DataUnavailableError | None = None
    hash: str = ""
    resampled: SplitFoldFiles | None = None
    precision: Precision = "fp32"

    @property
    def id(self) -> str:
        """The task's id."""
        return self.loaded.id

    def result(self, request: RunRequest, model: str, status: Status, reason: str | None) -> RunResult:
        """The line of a task without a stored run."""
        spec = self.loaded.spec
        return RunResult(
            model=model,
            task=self.id,
            task_version=spec.version,
            seed=None,
            status=status,
            reason=reason,
            primary=spec.metric.primary,
            origin="checkpoint" if request.no_training else "run",
            split="validation" if request.no_test else "test",
            track=request.track,
            limit=request.limit,
            train_fraction=spec.training.train_fraction,
            fold=None if self.resampled is None else self.loaded.fold,
            overrides=self.loaded.overrides,
        )

    @cached_property
    def characters(self) -> dict[str, int]:
        """Of the documents of each split."""
        assert self.data is not None
        return {split: sum(len(d.reading) for d in documents) for split, documents in self.data.documents.items()}


@dataclass(slots=True)
class RunPlan:
    """All items in the order of the request, and the tasks without data.

    label_map: with --no-training, a checkpoint's label to the task's. left_out: a line for each task of the suite that
    cannot be run. sharing: processes of the same command that train on this device.
    """

    request: RunRequest
    device: torch.device
    tasks: list[TaskEntry]
    checkpoints: list[Checkpoint]
    items: list[Item]
    label_map: dict[str, str]
    left_out: list[str]
    sharing: int = 1

    def undone(self) -> list[Item]:
        """The items that are not stored yet, or all with --force."""
        store = Store(self.request.results_dir)
        return [i for i in self.items if self.request.force or store.get(i.task.id, i.key) is None]

    def contradictions(self) -> list[str]:
        """Which tasks' data are not what their specs count, or no known release, a line each."""
        lines = []
        for entry in self.tasks:
            if entry.data is None:
                continue
            if problem := release_problem(entry.loaded, entry.data.source, entry.data.hash):
                lines.append(f"warning: {entry.id}: {problem}")
            if problems := entry.data.count_problems:
                more = f" (and {len(problems) - 1} more counts)" if len(problems) > 1 else ""
                lines.append(f"warning: {entry.id}: {problems[0]}{more}; scores are not comparable with others")
        return list(dict.fromkeys(lines))

    def verdicts(self) -> dict[str, BaselineRecord]:
        """Baselines and verdict of each task for which the results folder holds them."""
        stored = {}
        for entry in self.tasks:
            if entry.data is not None and not entry.loaded.fold:
                verdict = find_floor(self.request.results_dir, entry.id, entry.hash, entry.data.hash)
                if verdict is not None:
                    stored[entry.id] = verdict
        return stored


def make_plan(request: RunRequest, reporter: Reporter | None = None, *, selection: Selection | None = None) -> RunPlan:
    """Read the data and the models' identities; nothing is trained. Raises BioBenchError.

    What needs no torch is checked first: options, specs, whether the data of named tasks is at hand, model folders.
    selection: what `select` gave for the request, where it was asked before.
    """
    selection = selection or select(request)
    reporter = reporter or Reporter()
    if request.device.startswith("cuda"):
        from biobench.core.machine import resolve_device

        resolve_device(request.device)  # refused before the data are read
    entries = []
    for task in selection.tasks:
        reporter.stage(f"reading {task.id}")
        entries += _entries(task, request)
    checkpoints = []
    for model, place in selection.models.items():
        reporter.stage(f"reading model {model}")
        checkpoint = find_checkpoint(place, trust_remote_code=request.trust_remote_code)
        name = selection.names.get(model, checkpoint.id)
        same = name == checkpoint.id
        checkpoints.append(checkpoint if same else replace(checkpoint, id=name, source=checkpoint.id))
    from biobench.core.machine import resolve_device, resolve_precision

    device = resolve_device(request.device)
    for entry in entries:
        entry.precision = resolve_precision(entry.loaded.spec.training.precision, device)
    items = [
        Item(checkpoint, entry, seed, _key(checkpoint, entry, seed, request, selection.label_map), request.track)
        for checkpoint in checkpoints
        for entry in entries
        if entry.data is not None
        for seed in _seeds(request, entry)
    ]
    return RunPlan(request, device, entries, checkpoints, items, selection.label_map, selection.left_out)


def _entries(task: LoadedTask, request: RunRequest) -> list[TaskEntry]:
    """The task with its data: once, or where it has several splits once for each."""
    folder = Path(request.data_dir) if request.data_dir else None
    try:
        folds = load_folds(task, folder, request.limit)
    except DataUnavailableError as error:
        if request.strict:
            raise
        return [TaskEntry(task, None, unavailable=error)]
    resampled = task.spec.resampled(task.source(folds[0].source))
    if resampled is None:
        return [_entry(task, folds[0], request)]
    if request.no_training:
        raise UsageError(
            f"--no-training: {task.id} has several splits, and a checkpoint learned from some of their tests",
            hint="name a task with one split",
        )
    every = [_entry(replace(task, fold=i), data, request, resampled) for i, data in enumerate(folds)]
    if request.seeds is None:
        return every
    seeds = seeds_of(task, request)
    known = range(resampled.seed, resampled.seed + resampled.fold_files)
    if unknown := [seed for seed in seeds if seed not in known]:
        raise UsageError(
            f"--seeds: {unknown[0]} names no split of {task.id}, whose {len(known)} splits have a seed each",
            hint=f"leave --seeds out, or take some of {known[0]}-{known[-1]}",
        )
    return [entry for seed, entry in zip(known, every, strict=True) if seed in seeds]


def _entry(task: LoadedTask, data: TaskData, request: RunRequest, resampled: SplitFoldFiles | None = None) -> TaskEntry:
    if request.strict and data.count_problems:
        raise DataFormatError(
            f"task {task.id}: the data contradict the spec in {len(data.count_problems)} counts; the first is "
            f"{data.count_problems[0]}",
            hint=f"`biobench data verify {task.id}` lists them; correct the data or the spec, or leave --strict out",
            file=task.path,
            line=task.located.line_of(("counts",)),
        )
    if request.strict and (problem := release_problem(task, data.source, data.hash)):
        raise DataFormatError(
            f"task {task.id}: {problem}",
            hint="use the release that the spec names, add this one to its `releases`, or leave --strict out",
            file=task.path,
        )
    if request.no_test:
        data = without_test(data)
    return TaskEntry(task, data, hash=task_hash(task, data.source), resampled=resampled)


def identity_of(task: LoadedTask, data: TaskData, digest: str) -> TaskIdentity:
    """What a record says of its task. digest: the task's hash."""
    spec = task.spec
    return TaskIdentity(
        id=spec.id,
        version=spec.version,
        hash=digest,
        data_hash=data.hash,
        source=data.source,
        corpus=spec.corpus_id,
        language=spec.language,
        type=spec.type,
        labels=data.labels,
        gold_labels=data.gold_labels,
        decode=data.decode,
        negative_label=spec.metric.negative_label,
        primary=spec.metric.primary,
        paper=spec.metric.paper,
        test_documents=len(data.test),
    )


def _seeds(request: RunRequest, entry: TaskEntry) -> list[int]:
    if request.no_training:
        return [0]
    if entry.resampled is not None:
        return [entry.resampled.seed + entry.loaded.fold]
    seeds = seeds_of(entry.loaded, request)
    probe = entry.loaded.spec.probe if entry.loaded.spec.training.encoder == "frozen" else None
    # where nothing is trained every seed gives the same answers
    return seeds[:1] if request.seeds is None and probe is not None and not probe.trained else seeds


def _key(checkpoint: Checkpoint, entry: TaskEntry, seed: int, request: RunRequest, names: dict[str, str]) -> str:
    assert entry.data is not None
    spec = entry.loaded.spec
    part = request.limit is not None or spec.training.train_fraction < 1
    protocol: dict[str, Any] = dict(get_kind(spec.type).drawn(part) or {})
    if request.no_test:
        protocol["scored"] = "validation"
    if request.no_training:
        protocol |= {"training": "none", "label_map": names}
    if entry.resampled is not None:
        protocol["fold"] = entry.loaded.fold
    return run_key(
        model_hash=checkpoint.hash,
        task_hash=entry.hash,
        data_hash=entry.data.hash,
        seed=seed,
        precision=entry.precision,
        track=request.track,
        limit=request.limit,
        protocol=protocol or None,
    )
