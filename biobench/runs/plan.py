"""What is to be run: models x tasks x seeds, each with the key that says whether it was done
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from biobench.data.catalog import LoadedTask
from biobench.data.hashing import release_problem, task_hash, task_identity
from biobench.data.load import load_folds, without_test
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.kinds.base import get_kind
from biobench.models.loading import Checkpoint, find_checkpoint
from biobench.runs.options import RunRequest, Track
from biobench.runs.ready import Heads, ReadyHead, match_heads
from biobench.runs.result import Reporter, RunName, RunResult, Status
from biobench.runs.selection import seeds_of, select
from biobench.schema.document import TaskData
from biobench.schema.record import READY, TaskIdentity
from biobench.schema.source import SplitFoldFiles
from biobench.schema.task import TaskSpec
from biobench.store import Store, run_key

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
    ready: ReadyHead | None = None
    """With the track of that name: the checkpoint's own head."""

    @property
    def group(self) -> tuple[str, str, int]:
        """What the item shares with the task's other seeds: checkpoint, task and split."""
        return self.checkpoint.hash, self.task.hash, self.task.loaded.fold

    @property
    def is_frozen(self) -> bool:
        """Whether the encoder is not trained."""
        return self.track == "frozen" or self.task.spec.training.encoder == "frozen"

    def result(self, request: RunRequest, status: Status, reason: str | None = None) -> RunResult:
        """The line of a run that is planned, failed, or made elsewhere."""
        line = unstored(self.task.loaded, request, self.checkpoint, status, reason)
        fold = None if self.task.resampled is None else self.task.loaded.fold
        return replace(line, seed=self.seed, key=self.key, fold=fold)


@dataclass
class TaskEntry:
    """A task with its data.

    resampled: where it has several splits; there is an entry for each. precision: resolved last, as
    it needs torch.
    """

    loaded: LoadedTask
    data: TaskData
    hash: str
    resampled: SplitFoldFiles | None = None
    precision: Precision = "fp32"

    @property
    def id(self) -> str:
        """The task's id."""
        return self.loaded.id

    @property
    def spec(self) -> TaskSpec:
        """The task's declaration."""
        return self.loaded.spec

    @cached_property
    def characters(self) -> dict[str, int]:
        """Of the documents of each split."""
        characters = {}
        for split, documents in self.data.documents.items():
            characters[split] = sum(map(len, map(attrgetter("reading"), documents)))
        return characters


def unstored(
    task: LoadedTask,
    request: RunRequest,
    checkpoint: Checkpoint,
    status: Status,
    reason: str | None,
) -> RunResult:
    """The line of a task without a stored run."""
    spec = task.spec
    return RunResult(
        model=checkpoint.id,
        weights=checkpoint.hash,
        task=task.id,
        task_version=spec.version,
        seed=None,
        status=status,
        reason=None if reason is None else " ".join(reason.split()),
        primary=spec.metric.primary,
        paper=spec.metric.paper,
        split=request.split,
        track=request.track,
        limit=request.limit,
        overrides=task.overrides,
    )


@dataclass
class RunPlan:
    """All items in the order of the request.

    unavailable: tasks without data, with the reason. skipped: a line for each task of the suite
    that cannot be run.
    """

    request: RunRequest
    device: torch.device
    tasks: list[TaskEntry]
    unavailable: list[tuple[LoadedTask, DataUnavailableError]]
    checkpoints: list[Checkpoint]
    items: list[Item]
    skipped: list[str]

    @cached_property
    def aliases(self) -> dict[str, tuple[str, str]]:
        """Weights to name (`model`, `model (2)`, ...) and folder, of checkpoints that share a
        name.
        """
        folders: dict[str, dict[str, str]] = defaultdict(dict)
        for checkpoint in self.checkpoints:
            folders[checkpoint.id].setdefault(checkpoint.hash, str(checkpoint.folder))
        aliases = {}
        for name, by_weights in folders.items():
            if len(by_weights) > 1:
                alias = name
                for number, (weights, folder) in enumerate(by_weights.items(), start=2):
                    aliases[weights] = alias, folder
                    alias = f"{name} ({number})"
        return aliases

    def name_of(self, item: Item) -> RunName:
        """What a run is called where its progress is shown."""
        checkpoint = item.checkpoint
        model, _ = self.aliases.get(checkpoint.hash, (checkpoint.id, ""))
        return RunName(item.key, model, item.task.id, item.seed)

    def told_apart(self, result: RunResult) -> RunResult:
        """The result under a name that no other checkpoint of the plan has, with its folder."""
        if result.weights not in self.aliases:
            return result
        model, folder = self.aliases[result.weights]
        return replace(result, model=model, folder=folder)

    def undone(self) -> list[Item]:
        """The items that are not stored yet, or all with --force."""
        store = Store(self.request.results_dir)
        return [i for i in self.items if self.request.force or store.get(i.task.id, i.key) is None]

    def remarks(self) -> list[str]:
        """What a user must know before the runs begin, a line each: tasks that are left out, data
        that contradict their specs, and how the checkpoints are read.
        """
        lines = list(self.skipped)
        for entry in self.tasks:
            for problem in _contradictions(entry.loaded, entry.data):
                lines.append(f"warning: {entry.id}: {problem}")
        for checkpoint in self.checkpoints:
            if checkpoint.reading is not None:
                lines += [f"note: {checkpoint.id}: {note}" for note in checkpoint.reading.notes]
        return list(dict.fromkeys(lines))


def make_plan(request: RunRequest, reporter: Reporter | None = None) -> RunPlan:
    """Read the data and the models' identities; nothing is trained. Raises BioBenchError.

    What needs no torch is checked first: options, specs, whether the data of named tasks is at
    hand, model folders.
    """
    tasks, skipped = select(request)
    reporter = reporter or Reporter()
    checkpoints = [
        find_checkpoint(model, offline=request.offline, trust_remote_code=request.trust_remote_code)
        for model in dict.fromkeys(request.model)
    ]
    if request.device.startswith("cuda"):
        from biobench.core.machine import resolve_device

        resolve_device(request.device)  # refused before the data are read
    entries: list[TaskEntry] = []
    unavailable = []
    for task in tasks:
        reporter.stage(f"reading {task.id}")
        try:
            entries += _entries(task, request)
        except DataUnavailableError as error:
            if request.strict:
                raise
            unavailable.append((task, error))
    from biobench.core.machine import resolve_device, resolve_precision

    device = resolve_device(request.device)
    for entry in entries:
        entry.precision = resolve_precision(entry.spec.training.precision, device)
    heads: Heads | None = None
    if request.track == READY:
        at_hand = [(entry.loaded, entry.data) for entry in entries]
        heads, lines = match_heads(checkpoints, at_hand, request)
        skipped = [*skipped, *lines]
    items: list[Item] = []
    for checkpoint, entry in product(checkpoints, entries):
        items += _items(checkpoint, entry, request, heads)
    return RunPlan(request, device, entries, unavailable, checkpoints, items, skipped)


def _items(
    checkpoint: Checkpoint, entry: TaskEntry, request: RunRequest, heads: Heads | None
) -> Iterator[Item]:
    """A run a seed; none where the checkpoint's own head is asked for and does not answer the
    task.
    """
    ready = None
    if heads is not None:
        ready = heads.get((checkpoint.hash, entry.id))
        if ready is None:
            return
    for seed in _seeds(request, entry):
        key = _key(checkpoint, entry, seed, request, ready)
        yield Item(checkpoint, entry, seed, key, request.track, ready)


def _entries(task: LoadedTask, request: RunRequest) -> list[TaskEntry]:
    """The task with its data: once, or where it has several splits once for each. Raises
    DataUnavailableError.
    """
    folds = load_folds(task, request.data_dir, request.limit)
    resampled = task.spec.resampled(task.source(folds[0].source))
    if resampled is None:
        return [_entry(task, folds[0], request)]
    by_seed = {}
    for fold, data in enumerate(folds):
        split = replace(task, fold=fold)
        by_seed[resampled.seed + fold] = _entry(split, data, request, resampled)
    if request.seeds is None:
        return list(by_seed.values())
    seeds = seeds_of(task, request)
    for seed in seeds:
        if seed not in by_seed:
            raise UsageError(
                f"--seeds: {seed} names no split of {task.id}, whose {len(by_seed)} splits have a "
                f"seed each",
                hint=f"leave --seeds out, or take some of {min(by_seed)}-{max(by_seed)}",
            )
    return [by_seed[seed] for seed in sorted(seeds)]  # the gate looks at the first


def _entry(
    task: LoadedTask, data: TaskData, request: RunRequest, resampled: SplitFoldFiles | None = None
) -> TaskEntry:
    if request.strict and (lines := _contradictions(task, data)):
        raise DataFormatError(
            f"task {task.id}: {lines[0]}",
            hint=f"`biobench data verify {task.id}` lists what differs; correct the data, or the "
            f"spec's counts or `releases`",
            file=task.path,
        )
    if request.no_test:
        data = without_test(data)
    return TaskEntry(task, data, hash=task_hash(task, data.source), resampled=resampled)


def _contradictions(task: LoadedTask, data: TaskData) -> list[str]:
    """In what the data are not those of the spec: the release, and the counts."""
    problem = release_problem(task, data.source, data.hash)
    lines = list(filter(None, [problem]))
    counts = data.count_problems
    if counts:
        further = f" (and {len(counts) - 1} more counts)" if len(counts) > 1 else ""
        lines.append(f"{counts[0]}{further}; scores are not comparable with others")
    return lines


def task_fields(task: LoadedTask, data: TaskData, digest: str) -> dict[str, Any]:
    """What every record says of its task and data, by field, without predictions as yet. digest:
    the task's hash.
    """
    spec = task.spec
    identity = TaskIdentity(
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
    return {
        "task": identity,
        "protocol": task_identity(task, data.source),
        "overrides": task.overrides,
        "predictions": "",
        "predictions_sha256": "",
        "unexpressed_gold": data.unexpressed,
        "count_problems": tuple(data.count_problems),
        "redacted": spec.access == "agreement",
    }


def _seeds(request: RunRequest, entry: TaskEntry) -> list[int]:
    if entry.resampled is not None:
        return [entry.resampled.seed + entry.loaded.fold]
    if request.track == READY:
        return [0]
    seeds = seeds_of(entry.loaded, request)
    probe = entry.spec.probe
    encoder = entry.spec.training.encoder
    is_trained = encoder != "frozen" or probe is None or probe.trained
    if request.seeds is None and not is_trained:
        return seeds[:1]  # every seed would give the same answers
    return seeds


def _key(
    checkpoint: Checkpoint,
    entry: TaskEntry,
    seed: int,
    request: RunRequest,
    ready: ReadyHead | None,
) -> str:
    spec = entry.spec
    is_part = request.limit is not None or spec.training.train_fraction < 1
    protocol: dict[str, Any] = dict(get_kind(spec.type).drawn(is_part) or {})
    if request.no_test:
        protocol["scored"] = "validation"
    if entry.resampled is not None:
        protocol["fold"] = entry.loaded.fold
    if changes := changes_of(checkpoint, spec):
        protocol["checkpoint"] = changes
    if ready is not None:
        protocol["labels"] = [[label, ready.matched.get(label)] for label in ready.head.labels]
        if ready.head.options is not None:
            protocol["head"] = ready.head.options.model_dump(mode="json")
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


def changes_of(checkpoint: Checkpoint, spec: TaskSpec) -> list[str]:
    """In what the engine reads the checkpoint otherwise than the libraries by themselves."""
    changes = [] if checkpoint.reading is None else list(checkpoint.reading.changes)
    if spec.reads_first_token and checkpoint.takes_global_attention:
        changes.append("global attention")
    return changes
