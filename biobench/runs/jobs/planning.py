"""From a request to a plan file, and from a plan file to the runs of one part of it."""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import torch

import biobench
from biobench.core.machine import Precision
from biobench.data.catalog import LoadedTask, overrides_for, spec_paths
from biobench.errors import UsageError
from biobench.runs.estimate import Pace, measured_device, pace_of, work
from biobench.runs.jobs.plan_file import Basis, PlanFile, PlannedModel, PlannedRun, PlannedTask, request_fields
from biobench.runs.options import RunRequest
from biobench.runs.parallel import memory_before_first
from biobench.runs.plan import Item, RunPlan, make_plan, narrowed
from biobench.schema.record import ENGINE_VERSION
from biobench.store import Store


def plan_file(
    request: RunRequest, *, precision: Precision | None = None, costs: Store | None = None
) -> tuple[PlanFile, list[str]]:
    """Every run of the request with its cost; and a line for each task without data, which the plan leaves out.

    Raises BioBenchError as `make_plan`.

    precision: of the machines that will make the runs, where it is not this one's. costs: whose records tell costs;
    the request's results folder where None.
    """
    elsewhere = request.device.startswith("cuda") and not torch.cuda.is_available()
    plan = make_plan(dataclasses.replace(request, device="auto") if elsewhere else request, precision=precision)
    store = costs or Store(request.results_dir)
    device = measured_device(plan, store)
    pace, memory = pace_of(plan, store, device), _Memory(plan, store, device)
    runs = [_planned(item, pace, memory) for item in plan.items]
    rates = [run.seconds / run.work for run in runs if run.seconds is not None]
    rate = median(rates) if rates else 1.0
    runs.sort(key=lambda run: -(rate * run.work if run.seconds is None else run.seconds))
    names = dict(zip((c.hash for c in plan.checkpoints), dict.fromkeys(request.model), strict=False))
    shipped = spec_paths()
    file = PlanFile(
        format="biobench.plan.1",
        biobench=biobench.__version__,
        engine=ENGINE_VERSION,
        created=time.time(),
        device=device if pace.any else "",
        request=request_fields(request),
        models=tuple(PlannedModel(name=names[c.hash], id=c.id, hash=c.hash) for c in plan.checkpoints),
        tasks=tuple(
            PlannedTask(id=task.id, spec=_spec_name(task, shipped), resumes=task.spec.access != "agreement")
            for task in {entry.id: entry.loaded for entry in plan.tasks if entry.data is not None}.values()
        ),
        runs=tuple(runs),
    )
    return file, [f"{e.id} is left out: {e.unavailable}" for e in plan.tasks if e.unavailable is not None]


def _spec_name(task: LoadedTask, shipped: dict[str, Path]) -> str:
    path = shipped.get(task.id)
    return task.id if path is not None and path.resolve() == task.path.resolve() else str(task.path)


def _planned(item: Item, pace: Pace, memory: _Memory) -> PlannedRun:
    parameters = item.checkpoint.parameters
    seconds, seconds_basis = pace.expected(item, parameters)
    memory_bytes, memory_basis = memory.of(item)
    assert item.task.data is not None
    return PlannedRun(
        key=item.key,
        model=item.checkpoint.hash,
        task=item.task.id,
        task_hash=item.task.hash,
        data_hash=item.task.data.hash,
        precision=item.task.precision,
        seed=item.seed,
        fold=None if item.task.resampled is None else item.task.loaded.fold,
        seconds=None if seconds is None else round(seconds, 3),
        seconds_basis=seconds_basis,
        memory_bytes=memory_bytes,
        memory_basis=memory_basis,
        work=work(item) * (parameters or 1),
    )


class _Memory:
    """Peaks of stored runs on the device: of the same model and task, of the same model; else from the weights."""

    def __init__(self, plan: RunPlan, store: Store, device: str) -> None:
        self.same: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.model: dict[str, list[int]] = defaultdict(list)
        specs = {entry.hash for entry in plan.tasks}
        for brief in store.briefs()[0]:
            if brief.device == device and brief.origin == "run":
                self.model[brief.weights].append(brief.peak_memory_bytes)
                if brief.spec in specs:
                    self.same[brief.weights, brief.task].append(brief.peak_memory_bytes)

    def of(self, item: Item) -> tuple[int, Basis]:
        """Bytes, and what they rest on."""
        same = self.same.get((item.checkpoint.hash, item.task.id))
        if same:
            return max(same), "measured"
        model = self.model.get(item.checkpoint.hash)
        return (max(model) if model else memory_before_first([item.checkpoint])), "estimated"


def plan_of_part(file: Path, plan: PlanFile, request: RunRequest, keys: Sequence[str]) -> RunPlan:
    """The runs of `keys` on this machine, whose models, specs and data must be those of the plan.

    request: as `request_of` gives it. Only the part's tasks and models are read. Raises UsageError that names what has
    changed, DataUnavailableError where the data is not here.
    """
    chosen = set(keys)
    runs = [run for run in plan.runs if run.key in chosen]
    hashes, tasks = {run.model for run in runs}, {run.task for run in runs}
    part = dataclasses.replace(
        request,
        model=tuple(m.name for m in plan.models if m.hash in hashes),
        name=tuple(m.id for m in plan.models if m.hash in hashes) if request.name else (),
        tasks=tuple(t.spec for t in plan.tasks if t.id in tasks),
        suite=None,
        languages=(),
        types=(),
        tags=(),
        overrides=overrides_for(request.overrides, tasks),
    )
    here = make_plan(part)
    for entry in here.tasks:
        if entry.unavailable is not None:
            raise entry.unavailable
    known = {item.key: (item.task.id, item.seed) for item in here.items}
    for run in runs:
        if known.get(run.key) != (run.task, run.seed):
            raise UsageError(
                f"the plan does not fit what is here: {_difference(run, plan, here)}",
                hint="restore what the plan was made with, or make it anew with `biobench plan`",
                file=file,
            )
    return narrowed(here, chosen)


def _difference(run: PlannedRun, plan: PlanFile, here: RunPlan) -> str:
    """What keeps the run's key from coming out again."""
    if plan.engine != ENGINE_VERSION:
        return f"its engine version is {plan.engine}, this program's {ENGINE_VERSION}"
    if run.model not in {c.hash for c in here.checkpoints}:
        name = next(m.name for m in plan.models if m.hash == run.model)
        return f"the files of model {name} (hash {run.model[:12]}) have changed"
    entries = [e for e in here.tasks if e.id == run.task and (run.fold is None or e.loaded.fold == run.fold)]
    same_spec = [e for e in entries if e.hash == run.task_hash]
    if not same_spec:
        ours = ", ".join(e.hash[:12] for e in entries)
        return f"the spec of task {run.task} has changed (hash {run.task_hash[:12]}, here {ours or 'none'})"
    digests = [e.data.hash for e in same_spec if e.data is not None]
    if run.data_hash not in digests:
        ours = ", ".join(digest[:12] for digest in digests)
        return f"the data of task {run.task} have changed (hash {run.data_hash[:12]}, here {ours})"
    precisions = {e.precision for e in same_spec}
    if run.precision not in precisions:
        return (
            f"task {run.task} was planned in {run.precision}, and this machine computes {'/'.join(sorted(precisions))} "
            f"(plan with --precision, or --set training.precision=...)"
        )
    return f"seed {run.seed} of task {run.task} with these options gives another key"
