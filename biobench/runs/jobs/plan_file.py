"""A plan as a file: every run with its key and cost, and the options that lead to the same runs on another machine.

Free of torch: writing and reading alone. `jobs.planning` makes one and makes its runs.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from biobench.core.files import OUTPUT, write_atomic
from biobench.errors import SpecError, UsageError
from biobench.runs.jobs.packing import Load, shards
from biobench.runs.options import RunRequest, options
from biobench.schema.strict import Bytes, Count, Line, Positive, Seconds, Strict, plain, suggest, validate
from biobench.schema.yaml12 import parse

Basis = Literal["measured", "estimated", "unknown"]
"""measured: on runs of the same model and task; estimated: on other runs, by characters and parameters, or from the
weights; unknown: no stored run tells anything."""
WHERE_AND_HOW = (
    *("data_dir", "results_dir", "device", "parallel", "seeds_at_once", "threads", "executor", "worker_gpus"),
    *("keep_model", "force"),
    *("offline", "strict", "energy", "save_every", "gate", "trust_remote_code", "dry_run"),
)
"""Options that may be given beside a plan; the others say what is run, which the plan does."""
_LARGEST = 2**26
"""Bytes of a plan: above a hundred thousand runs."""
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{8,128}$")]


class PlannedModel(Strict):
    """A model: as it was asked for, its name in records, and the hash of its files."""

    name: Line
    id: Line
    hash: Hash


class PlannedTask(Strict):
    """A task: its id, and what names its spec (the id of a shipped one, else the file's path).

    resumes: whether a run that was stopped continues; one on text under an agreement writes no state and begins anew.
    """

    id: Line
    spec: Line
    resumes: bool = True


class PlannedRun(Strict):
    """One run, and what it costs. work: characters times parameters, in which runs without seconds are compared."""

    key: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    model: Hash
    task: Line
    task_hash: Hash
    data_hash: Hash
    precision: Literal["bf16", "fp32"]
    seed: Count
    fold: Count | None = None
    seconds: Seconds | None = None
    seconds_basis: Basis
    memory_bytes: Bytes
    memory_basis: Basis
    work: Annotated[float, Field(gt=0)]


class PlanFile(Strict):
    """All runs, the longest first. device: where their costs were measured. created: seconds since the epoch."""

    format: Literal["biobench.plan.1"]
    biobench: Line
    engine: Positive
    created: Seconds
    device: Line
    request: dict[str, Any]
    models: Annotated[tuple[PlannedModel, ...], Field(min_length=1)]
    tasks: tuple[PlannedTask, ...]
    runs: tuple[PlannedRun, ...]

    def loads(self) -> list[Load]:
        """What each run takes; a run of unknown seconds counts its work at the median rate of the others."""
        rates = [run.seconds / run.work for run in self.runs if run.seconds is not None]
        rate = median(rates) if rates else 1.0
        return [
            Load(run.key, rate * run.work if run.seconds is None else run.seconds, run.memory_bytes)
            for run in self.runs
        ]

    def costs_in_words(self) -> str:
        """How many costs are measured, estimated and unknown, and on which device."""
        counts = Counter(run.seconds_basis for run in self.runs)
        parts = ", ".join(f"{counts[basis]} {basis}" for basis in get_args(Basis) if counts[basis])
        return f"costs: {parts}" + (f" (on {self.device})" if self.device else "")


def request_fields(request: RunRequest) -> dict[str, Any]:
    """The options that differ from their defaults, as JSON takes them."""
    values = {name: (getattr(request, name), _default(name)) for name in options()}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, (value, default) in values.items()
        if value != default
    }


def _default(name: str) -> Any:
    return getattr(RunRequest(), name)


def write_plan(path: Path, plan: PlanFile) -> None:
    """Write the file. Raises StoreError."""
    write_atomic(path, (plan.model_dump_json(indent=1) + "\n").encode(), OUTPUT)


def replaced_plan(path: Path, plan: PlanFile) -> int:
    """Runs of the plan that is in the file, where they are not those of `plan` in its order; else 0.

    Raises UsageError where the file is there and is no plan.
    """
    if not path.exists():
        return 0
    try:
        before = read_plan(path)
    except (SpecError, UsageError) as error:
        raise UsageError(
            "the file is there and is no plan", hint="remove it, or give another name by -o", file=path
        ) from error
    return 0 if [run.key for run in before.runs] == [run.key for run in plan.runs] else len(before.runs)


def read_plan(path: Path) -> PlanFile:
    """Read and check a plan. Raises UsageError or SpecError with file, line, field and remedy."""
    remedy = "make the plan anew: `biobench plan MODELS... -o plan.json` (docs/cluster.md lists the fields)"
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"the plan is larger than {_LARGEST // 2**20} MiB", hint=remedy, file=path)
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=_once, parse_constant=_Unusual)
    except OSError as error:
        raise UsageError(f"the plan cannot be read: {error.strerror or error}", hint=remedy, file=path) from error
    except UnicodeDecodeError as error:
        raise UsageError("the plan is not UTF-8 text", hint=remedy, file=path) from error
    except json.JSONDecodeError as error:
        raise UsageError(f"the plan is not JSON: {error.msg}", hint=remedy, file=path, line=error.lineno) from error
    except RecursionError as error:
        raise UsageError("the plan is nested too deeply", hint=remedy, file=path) from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise UsageError("a number is too large to be read", hint=remedy, file=path) from error
    try:
        plan = PlanFile.model_validate(content)
    except ValidationError:
        plan = _located(text, path, remedy)
    fields = plain(plan.request)
    _check(plan, fields, path, remedy)
    return plan.model_copy(update={"request": fields})


class _Unusual:
    """Stands for what no plan has, a constant that is no number or a name given twice: of no type that fits a field."""

    def __init__(self, what: object) -> None:
        self.what = what


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unusual:
    fields = dict(pairs)
    return fields if len(fields) == len(pairs) else _Unusual(pairs)


def _located(text: str, path: Path, remedy: str) -> PlanFile:
    """Read again as YAML, which tells the line of what is wrong and takes a hundred times as long. Raises SpecError."""
    try:
        return validate(parse(text, path), PlanFile)
    except SpecError as error:
        hint = remedy if "tasks schema" in error.hint or "add `" in error.hint else f"{error.hint}; or {remedy}"
        raise SpecError(error.what, hint=hint, file=error.file, line=error.line) from None


def _check(plan: PlanFile, fields: dict[str, Any], path: Path, remedy: str) -> None:
    """What the types alone do not show. Raises SpecError."""
    hints = get_type_hints(RunRequest)
    for name, value in fields.items():
        if name not in options():
            raise SpecError(f"request: unknown option '{name}'", hint=suggest(name, list(options())), file=path)
        try:
            TypeAdapter(get_args(hints[name])[1]).validate_python(value)
        except ValidationError as error:
            what = error.errors()[0]["msg"]
            raise SpecError(f"request.{name}: {what[0].lower()}{what[1:]}", hint=remedy, file=path) from None
    if not plan.runs:
        raise SpecError("runs: there is none", hint=remedy, file=path)
    models, tasks = {model.hash for model in plan.models}, {task.id for task in plan.tasks}
    for name, count in Counter(task.id for task in plan.tasks).items():
        if count > 1:
            raise SpecError(f"tasks: '{name}' stands twice", hint=remedy, file=path)
    seen: set[str] = set()
    for number, run in enumerate(plan.runs):
        what = ""
        if run.key in seen:
            what = f"key: {run.key} stands twice"
        elif run.model not in models:
            what = f"model: '{run.model[:12]}' is the hash of none of the plan's models"
        elif run.task not in tasks:
            what = f"task: '{run.task}' is none of the plan's tasks"
        if what:
            raise SpecError(f"runs.{number}.{what}", hint=remedy, file=path)
        seen.add(run.key)


def check_trust(plan: PlanFile, *, allowed: bool) -> None:
    """A plan may come from elsewhere: code of a checkpoint is run where the command says so, not by the plan alone."""
    if RunRequest(**plan.request).trust_remote_code and not allowed:
        raise UsageError(
            "the plan asks for the checkpoint's own code to be run",
            hint="where you trust it add --trust-remote-code (`biobench slurm`: --option=--trust-remote-code)",
        )


def request_of(plan: PlanFile, beside: RunRequest) -> RunRequest:
    """The plan's request with what was given beside it. Raises UsageError for an option that the plan decides."""
    planned = RunRequest(**plan.request)
    check_trust(plan, allowed=beside.trust_remote_code)
    changed = request_fields(beside)
    for name in changed:
        if name not in WHERE_AND_HOW:
            option = "a MODEL" if name == "model" else options()[name].flags[0].split("/")[0]
            raise UsageError(
                f"--plan says what is run, and {option} would change it",
                hint="leave it out, or make another plan with it",
            )
    request = dataclasses.replace(planned, **{name: getattr(beside, name) for name in changed})
    # with --force the same command given again, or requeued, does not make again what it has made
    started = beside.started if beside.force or not planned.force else plan.created
    return dataclasses.replace(request, started=started)


def keys_of_part(plan: PlanFile, array_index: int | None, shard: str | None) -> list[str]:
    """The keys of the runs of one part, in the plan's order; all without a part. Raises UsageError.

    array_index: the run of this place, from 0. shard: i/n, from 1/n to n/n.
    """
    if array_index is not None and shard is not None:
        raise UsageError("--array-index and --shard exclude each other", hint="give one of them")
    keys = [run.key for run in plan.runs]
    if array_index is not None:
        if not 0 <= array_index < len(keys):
            raise UsageError(
                f"--array-index {array_index}: the plan has {len(keys)} runs", hint=f"give 0 to {len(keys) - 1}"
            )
        return [keys[array_index]]
    if shard is None:
        return keys
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard, re.ASCII)
    number, count = (0, 0) if match is None else (int(match[1]), int(match[2]))
    if not 1 <= number <= count:
        raise UsageError(f"--shard '{shard}' is not a part", hint="give i/n with i from 1 to n, such as 1/8")
    # parts beyond the number of runs are empty: only the others are made
    parts = shards(plan.loads(), min(count, len(keys)))
    return in_order(keys, parts[number - 1]) if number <= len(parts) else []


def in_order(keys: Iterable[str], chosen: Iterable[str]) -> list[str]:
    """Those of the keys that are chosen."""
    wanted = set(chosen)
    return [key for key in keys if key in wanted]
