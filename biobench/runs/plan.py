"""What is to be run: models x tasks x seeds, each with the key that says whether it was done before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from biobench.core.machine import Precision, resolve_device, resolve_precision
from biobench.data.catalog import LoadedTask, check_override_tasks, load_task
from biobench.data.hashing import task_hash, task_identity
from biobench.data.load import load_folds, without_test
from biobench.data.releases import release_problem
from biobench.data.suite import matching, picked, pool, suite_tasks, trained
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.finetune.kept import parse_label_map
from biobench.kinds.base import get_kind
from biobench.models.loading import Checkpoint, find_checkpoint
from biobench.runs.checks import check_worker_gpus, names_of_models
from biobench.runs.options import Executor, RunRequest, Track
from biobench.schema.document import TaskData
from biobench.schema.protocols import FROZEN, PROTOCOLS
from biobench.schema.record import TaskIdentity
from biobench.schema.source import Resampled
from biobench.schema.strict import FieldError, suggest
from biobench.schema.task import parse_seeds
from biobench.store import run_key

Status = Literal["done", "skipped", "failed", "unavailable", "planned"]


@dataclass(frozen=True, slots=True)
class Item:
    """One run to make."""

    checkpoint: Checkpoint
    task: TaskEntry
    seed: int
    key: str
    track: Track = "fixed"


@dataclass(slots=True)
class TaskEntry:
    """A task with its data, or with the reason why there is none."""

    loaded: LoadedTask
    data: TaskData | None
    precision: Precision
    unavailable: DataUnavailableError | None = None
    hash: str = ""
    identity: dict[str, Any] = field(default_factory=dict)
    resampled: Resampled | None = None
    """Where the task has several splits; there is an entry for each."""

    @property
    def id(self) -> str:
        """The task's id."""
        return self.loaded.id


@dataclass(slots=True)
class RunPlan:
    """All items, and the tasks without data."""

    request: RunRequest
    device: torch.device
    tasks: list[TaskEntry]
    checkpoints: list[Checkpoint]
    items: list[Item]
    label_map: dict[str, str] = field(default_factory=dict)
    """With --no-training: a checkpoint's label to the task's."""
    workers: int = 1
    """Worker processes that have been at this plan before the caller walks it."""
    sharing: int = 1
    """Processes of the same command that train on this device."""


def make_plan(request: RunRequest, *, precision: Precision | None = None) -> RunPlan:
    """Read the specs, the data and the models' identities; nothing is trained. Raises BioBenchError.

    precision: what `auto` means where the runs will be made; None: what it means here.
    """
    for option, value, known in (
        ("--executor", request.executor, get_args(Executor)),
        ("--track", request.track, get_args(Track)),
    ):
        if value not in known:
            raise UsageError(f"{option} '{value}' is not known", hint=" or ".join(known))
    device = resolve_device(request.device)
    if not request.model:
        raise UsageError("no model is named", hint="give a hub id, id@revision or a local folder")
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"--limit {request.limit} leaves nothing", hint="give at least 1 training document")
    names = _label_map(request)
    called = names_of_models(request)
    check_worker_gpus(request)
    loaded = _tasks(request)
    checkpoints = [
        _called(find_checkpoint(m, offline=request.offline, trust_remote_code=request.trust_remote_code), called.get(m))
        for m in dict.fromkeys(request.model)
    ]
    entries = [entry for task in loaded for entry in _entries(task, request, device, precision)]
    items = [
        Item(checkpoint, entry, seed, _key(checkpoint, entry, seed, request, names), request.track)
        for checkpoint in checkpoints
        for entry in entries
        if entry.data is not None
        for seed in _seeds(request, entry)
    ]
    plan = RunPlan(request, device, entries, checkpoints, items, names)
    return plan if request.only is None else narrowed(plan, request.only)


def _called(checkpoint: Checkpoint, name: str | None) -> Checkpoint:
    return checkpoint if name is None or name == checkpoint.id else replace(checkpoint, id=name, source=checkpoint.id)


def narrowed(plan: RunPlan, keys: Collection[str]) -> RunPlan:
    """The plan with these runs alone, and their models and tasks; its worker processes make no others either."""
    chosen = set(keys)
    items = [item for item in plan.items if item.key in chosen]
    return replace(
        plan,
        request=replace(plan.request, only=tuple(sorted(chosen))),
        tasks=[entry for entry in plan.tasks if any(item.task is entry for item in items)],
        checkpoints=[c for c in plan.checkpoints if any(item.checkpoint is c for item in items)],
        items=items,
    )


def _label_map(request: RunRequest) -> dict[str, str]:
    """The declared map. Raises UsageError for what does not go with --no-training."""
    names = parse_label_map(request.label_map)
    if not request.no_training:
        if names:
            raise UsageError("--label-map goes with --no-training", hint="add --no-training, or leave it out")
        return names
    for option, wanted in (
        (f"--track {request.track}", request.track != "fixed"),
        ("--train-fraction", request.train_fractions != (1.0,)),
        ("--seeds", request.seeds is not None),
        ("--keep-model", request.keep_model is not None),
    ):
        if wanted:
            raise UsageError(f"{option} does not go with --no-training: nothing is trained", hint="leave it out")
    return names


def _tasks(request: RunRequest) -> list[LoadedTask]:
    filters = {"languages": request.languages, "types": request.types, "tags": request.tags}
    if not request.tasks and request.suite is None and not any(filters.values()):
        raise UsageError("no task is named", hint="--task ID_OR_YAML (repeatable), or --suite fr|en|needle|all")
    shares = request.train_fractions
    if not shares or len(set(shares)) < len(shares) or not all(0 < s <= 1 for s in shares):
        raise UsageError(
            f"--train-fraction {','.join(f'{s:g}' for s in shares)}: shares are distinct, above 0 and at most 1",
            hint="for example 0.1,0.25,1.0",
        )
    _check_protocol(request)
    loaded = [_load(t, request) for t in matching(request.tasks)]
    if request.suite is not None:
        members = [m for m in suite_tasks(request.suite) if m not in not_frozen(request)]
        loaded += [_load(m.path, request) for m in members if m.id not in {t.id for t in loaded}]
    if any(filters.values()):
        if not loaded:
            loaded = [_load(m.path, request) for m in trained(picked(pool(), **filters))]
        loaded = picked(loaded, **filters)
        if not loaded:
            asked = " ".join(
                f"--{name.removesuffix('s')} {','.join(patterns)}" for name, patterns in filters.items() if patterns
            )
            raise UsageError(f"no task has {asked}", hint="see `biobench tasks list`")
    if not loaded:
        raise UsageError(f"suite '{request.suite}' holds no task yet", hint="see `biobench tasks list`")
    ids = [t.id for t in loaded]
    check_override_tasks(request.overrides, ids)
    for task in loaded:
        if ids.count(task.id) > 1:
            raise UsageError(f"two of the tasks have the id '{task.id}'", hint="give each spec its own id")
        _check_probe(task, task.overrides)
    if request.protocol is not None:
        return [_under(task, request.protocol) for task in loaded]
    return [_with_share(task, share) for task in loaded for share in shares]


def _load(task: str | Path, request: RunRequest) -> LoadedTask:
    """The task with the request's overrides, after those of the track."""
    if request.track != "frozen":
        loaded = load_task(task, request.overrides)
        if not get_kind(loaded.spec.type).trains:
            raise UsageError(f"task {loaded.id} trains nothing: it asks a frozen encoder", hint="add --track frozen")
        return loaded
    spec = load_task(task).spec
    if not get_kind(spec.type).trains:
        return load_task(task, request.overrides)
    if spec.training.encoder == "frozen":
        raise UsageError(
            f"--track frozen: the encoder of {task} is frozen by its own spec, with a probe of its own",
            hint="run it without --track",
        )
    return load_task(task, [*FROZEN, *(text for text in request.overrides if text not in FROZEN)])


def not_frozen(request: RunRequest) -> list[LoadedTask]:
    """Tasks of the request's suite that its track leaves out: they have no probe, or are frozen by their own spec."""
    if request.suite is None or request.track != "frozen":
        return []
    members = suite_tasks(request.suite)
    kinds = [(m, get_kind(m.spec.type)) for m in members]
    return [m for m, kind in kinds if not kind.probes or (kind.trains and m.spec.training.encoder == "frozen")]


def _check_protocol(request: RunRequest) -> None:
    """Raise UsageError for a protocol that is not declared, or that other options would change."""
    if request.protocol is None:
        return
    if request.protocol not in PROTOCOLS:
        raise UsageError(
            f"--protocol '{request.protocol}' is not declared", hint=suggest(request.protocol, list(PROTOCOLS))
        )
    others = {
        "--set": bool(request.overrides),
        "--limit": request.limit is not None,
        "--train-fraction": request.train_fractions != (1.0,),
        "--track": request.track != "fixed",
    }
    for option, present in others.items():
        if present:
            raise UsageError(
                f"--protocol {request.protocol} fixes the recipe, and {option} would change it",
                hint=f"leave one of the two out; the protocol: {PROTOCOLS[request.protocol].summary}",
            )


def _under(task: LoadedTask, protocol: str) -> LoadedTask:
    """The task under a declared protocol: its overrides, so that the runs have keys of their own."""
    return load_task(task.path, PROTOCOLS[protocol].of(kind=task.spec.type, unit=task.spec.unit))


def _check_probe(task: LoadedTask, overrides: tuple[str, ...]) -> None:
    """Raise UsageError for a probe that is asked for where the encoder is fine-tuned and no probe is used."""
    if task.spec.training.encoder == "frozen":
        return
    for text in overrides:
        if text.partition("=")[0].split(".")[0].strip() == "probe":
            raise UsageError(
                f"--set {text}: the encoder of {task.id} is fine-tuned, so no probe is used",
                hint="add --set training.encoder=frozen, or leave the probe out",
            )


def _with_share(task: LoadedTask, share: float) -> LoadedTask:
    """The task on that share of its training documents: an override like any other, so never mixed with full runs."""
    if share == 1.0:
        return task
    return load_task(task.path, [*task.overrides, f"training.train_fraction={share:g}"])


def _entries(task: LoadedTask, request: RunRequest, device: torch.device, wanted: Precision | None) -> list[TaskEntry]:
    """The task with its data: once, or where it has several splits once for each."""
    declared = task.spec.training.precision
    precision = resolve_precision(wanted if wanted is not None and declared == "auto" else declared, device)
    folder = Path(request.data_dir) if request.data_dir else None
    try:
        folds = load_folds(task, folder, request.limit, offline=request.offline)
    except DataUnavailableError as error:
        if request.strict:
            raise
        return [TaskEntry(task, None, precision, unavailable=error)]
    resampled = task.spec.resampled(task.source(folds[0].source))
    if resampled is None:
        return [_entry(task, folds[0], request, precision)]
    if request.no_training:
        raise UsageError(
            f"--no-training: {task.id} has {resampled.count} splits, and a checkpoint learned from some of their tests",
            hint="name a task with one split",
        )
    every = [_entry(replace(task, fold=i), data, request, precision, resampled) for i, data in enumerate(folds)]
    if request.seeds is None:
        return every
    seeds = _parsed_seeds(task, request)
    known = range(resampled.seed, resampled.seed + resampled.count)
    if unknown := [seed for seed in seeds if seed not in known]:
        raise UsageError(
            f"--seeds: {unknown[0]} names no split of {task.id}, whose {len(known)} splits have a seed each",
            hint=f"leave --seeds out, or take some of {known[0]}-{known[-1]}",
        )
    return [entry for seed, entry in zip(known, every, strict=True) if seed in seeds]


def _entry(
    task: LoadedTask, data: TaskData, request: RunRequest, precision: Precision, resampled: Resampled | None = None
) -> TaskEntry:
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
    return TaskEntry(
        task,
        data,
        precision,
        hash=task_hash(task, data.source),
        identity=task_identity(task, data.source),
        resampled=resampled,
    )


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
    seeds = _parsed_seeds(entry.loaded, request)
    probe = entry.loaded.spec.probe if entry.loaded.spec.training.encoder == "frozen" else None
    # where nothing is trained every seed gives the same answers
    return seeds[:1] if request.seeds is None and probe is not None and not probe.trained else seeds


def _parsed_seeds(task: LoadedTask, request: RunRequest) -> list[int]:
    try:
        return parse_seeds(task.spec.seeds if request.seeds is None else request.seeds)
    except FieldError as error:
        raise UsageError(f"--seeds: {error.what}", hint=error.hint) from None


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
