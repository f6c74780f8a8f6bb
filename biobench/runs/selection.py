"""What a request names, checked before torch, data and weights are loaded: options, tasks with
overrides, names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import filterfalse, product, starmap
from operator import attrgetter
from typing import get_args

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.locate import choose, data_folder, no_data
from biobench.data.suite import matching, picked, pool, skipped, suite_tasks, trained
from biobench.errors import DataUnavailableError, UsageError
from biobench.kinds.base import get_kind
from biobench.runs.options import Executor, RunRequest, Track, flag_of
from biobench.schema.protocols import FROZEN, PROTOCOLS, protocol_overrides
from biobench.schema.record import READY
from biobench.schema.strict import FieldError, repeated
from biobench.schema.task import parse_seeds

_FRACTION = "training.train_fraction"
_SETS_FRACTION = re.compile(rf"\s*{re.escape(_FRACTION)}")
_TRAINS = re.compile(r"training\.(?!precision)")
"""Begins an override that changes how a model is trained."""
_PROBE = re.compile(r"\s*probe\b")


def select(request: RunRequest) -> tuple[list[LoadedTask], list[str]]:
    """The request's tasks, with their overrides, and a line for each task of a suite that cannot be
    run.

    Raises UsageError or SpecError for what no run could use, and DataUnavailableError that lists
    the named tasks whose data is not available; a suite may hold such tasks.
    """
    _check_options(request)
    loaded, lines, named = _tasks(request)
    at_shares = [replace(request, overrides=texts) for texts in _overrides_of_shares(request)]
    tasks = list(starmap(_with_overrides, product(loaded, at_shares)))
    for task in tasks:
        seeds_of(task, request)
    check_data([task for task in tasks if task.id in named], request.data_dir)
    return tasks, lines


_NUMBER = (r"auto|0*[1-9][0-9]{0,8}", "auto, or a number of processes: 1, 2, ...")
_VALUES = {
    "executor": ("|".join(get_args(Executor)), " or ".join(get_args(Executor))),
    "track": ("|".join(get_args(Track)), " or ".join(get_args(Track))),
    "protocol": ("|".join(PROTOCOLS), " or ".join(PROTOCOLS)),
    "device": (r"auto|cpu|cuda(:\d+)?", "use auto, cpu or cuda"),
    "parallel": _NUMBER,
    "seeds_at_once": _NUMBER,
}
"""Option to the pattern of what it may be, and that in words."""


def _check_options(request: RunRequest) -> None:
    for name, (pattern, words) in _VALUES.items():
        value = getattr(request, name)
        if value is not None and not re.fullmatch(pattern, str(value)):
            raise UsageError(f"unknown {flag_of(name, value)} '{value}'", hint=words)
    if not request.model:
        raise UsageError("no model is named", hint="give a hub id, id@revision or a local folder")
    _check_ray(request)
    if request.protocol is not None:
        _refuse_beside(
            f"--protocol {request.protocol}, which fixes the recipe",
            {
                "--set": request.overrides,
                "--limit": request.limit,
                "--fractions": request.fractions,
                f"--track {request.track}": request.track != "fixed",
            },
        )
    if request.track == READY:
        _refuse_beside(
            "--track ready, which trains nothing",
            {
                "--seeds": request.seeds,
                "--fractions": request.fractions,
                "--keep-model": request.keep_model,
                "--set": any(map(_TRAINS.match, request.overrides)),
            },
        )
    elif request.label_map is not None:
        raise UsageError("--label-map goes with --track ready", hint="add it, or leave the map out")


def _refuse_beside(chosen: str, others: Mapping[str, object]) -> None:
    """Raise UsageError for the first of the other options that is given."""
    for option, value in others.items():
        if value not in (None, False, ()):
            raise UsageError(f"{option} does not go with {chosen}", hint="leave one of the two out")


def _check_ray(request: RunRequest) -> None:
    on_ray = request.executor == "ray"
    share = request.worker_gpus
    if share is not None and not (on_ray and 0 < share <= 1):
        raise UsageError(
            f"--worker-gpus {share:g} does not apply",
            hint="a share of a GPU above 0 and at most 1, such as 0.5, with --executor ray",
        )
    if on_ray and find_spec("ray") is None:
        raise UsageError("--executor ray: ray is not installed", hint="pip install 'biobench[ray]'")


def _tasks(request: RunRequest) -> tuple[list[LoadedTask], list[str], set[str]]:
    """The tasks as they are shipped, a line for each of the suite that is skipped, and the ids of
    those that `--task` names.
    """
    filters = {"languages": request.languages, "types": request.types, "tags": request.tags}
    is_filtered = any(filters.values())
    if not any((request.tasks, request.suite is not None, is_filtered)):
        raise UsageError(
            "no task is named", hint="--task ID_OR_YAML (repeatable), or --suite fr|en|needle|all"
        )
    loaded = list(map(load_task, matching(request.tasks)))
    named = {task.id for task in loaded}
    lines: list[str] = []
    if request.suite is not None:
        members, lines = _suite(request.suite, request.track)
        loaded += [task for task in members if task.id not in named]
    if is_filtered:
        loaded = _filtered(loaded, filters)
    if not loaded:
        raise UsageError(
            f"suite '{request.suite}' holds no task yet", hint="see `biobench tasks list`"
        )
    twice = repeated(map(attrgetter("id"), loaded))
    if twice:
        raise UsageError(
            f"two of the tasks have the id '{twice[0]}'", hint="give each spec its own id"
        )
    return loaded, lines, named


def _overrides_of_shares(request: RunRequest) -> list[tuple[str, ...]]:
    """The request's overrides for each share of `--fractions`, the largest first, so that the gate
    reads the whole task; once without shares. Raises UsageError.
    """
    if request.fractions is None:
        return [request.overrides]
    by_hand = any(map(_SETS_FRACTION.match, request.overrides))
    _refuse_beside("--fractions", {f"--set {_FRACTION}": by_hand})
    overrides = []
    for share in sorted(set(map(_share, request.fractions.split(","))), reverse=True):
        at_share = request.overrides
        if share < 1:
            at_share = (*at_share, f"{_FRACTION}={share:g}")
        overrides.append(at_share)
    return overrides


def _share(text: str) -> float:
    """A share of `--fractions`. Raises UsageError."""
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(
            f"--fractions: '{text.strip()}' is not a share above 0 and at most 1",
            hint="give shares of the training documents, such as 0.1,0.5,1",
        )
    return share


def _filtered(tasks: list[LoadedTask], filters: dict[str, tuple[str, ...]]) -> list[LoadedTask]:
    """Those of the tasks, or of all where there are none, that the filters name."""
    matches = picked(tasks or trained(picked(pool(), **filters)), **filters)
    if not matches:
        asked = [f"--{name[:-1]} {','.join(values)}" for name, values in filters.items() if values]
        raise UsageError(f"no task has {' '.join(asked)}", hint="see `biobench tasks list`")
    return matches


def _suite(suite: str, track: Track) -> tuple[list[LoadedTask], list[str]]:
    """The tasks of a suite that the track runs, and a line for each that is skipped."""
    members = suite_tasks(suite)
    lines = skipped(suite)
    if track == "frozen":
        for task in filterfalse(_can_be_frozen, members):
            reason = "it has no probe on a frozen encoder, or brings its own"
            lines.append(f"{task.id} is skipped: {reason}")
        members = list(filter(_can_be_frozen, members))
    return members, lines


def _can_be_frozen(task: LoadedTask) -> bool:
    """Whether the frozen track has a probe for the task, which brings none of its own."""
    kind = get_kind(task.spec.type)
    has_own_probe = kind.trains and task.spec.training.encoder == "frozen"
    return kind.probes and not has_own_probe


def _with_overrides(task: LoadedTask, request: RunRequest) -> LoadedTask:
    """The task with the overrides of the request's protocol or track, and those of the request."""
    spec = task.spec
    overrides: Sequence[str] = request.overrides
    if request.protocol is not None:
        overrides = protocol_overrides(request.protocol, kind=spec.type, unit=spec.unit)
    if request.track == "frozen":
        overrides = _frozen(task, overrides)
    elif not get_kind(spec.type).trains:
        raise UsageError(
            f"task {task.id} trains nothing: it asks a frozen encoder", hint="add --track frozen"
        )
    if not overrides:
        return task
    changed = load_task(task.path, overrides)
    probe = list(filter(_PROBE.match, changed.overrides))
    if probe and changed.spec.training.encoder != "frozen":
        raise UsageError(
            f"--set {probe[0]}: the encoder of {task.id} is fine-tuned, so no probe is used",
            hint="add --set training.encoder=frozen, or leave the probe out",
        )
    return changed


def _frozen(task: LoadedTask, overrides: Sequence[str]) -> Sequence[str]:
    """The overrides with those of a probe on a frozen encoder; as they are where the task trains
    nothing.
    """
    if not get_kind(task.spec.type).trains:
        return overrides
    if task.spec.training.encoder == "frozen":
        raise UsageError(
            f"--track frozen: the encoder of {task.id} is frozen by its own spec, with a probe of "
            f"its own",
            hint="run it without --track",
        )
    return [*FROZEN, *(text for text in overrides if text not in FROZEN)]


def seeds_of(task: LoadedTask, request: RunRequest) -> list[int]:
    """The request's seeds, else the spec's. Raises UsageError."""
    try:
        return parse_seeds(task.spec.seeds if request.seeds is None else request.seeds)
    except FieldError as error:
        raise UsageError(f"--seeds: {error.what}", hint=error.hint) from None


def check_data(tasks: Sequence[LoadedTask], data_dir: str | None) -> None:
    """Raises DataUnavailableError that lists the tasks without data, each with the steps to get
    it."""
    folder = data_folder(data_dir)
    missing: dict[str, DataUnavailableError] = {}
    is_used = False
    for task in tasks:
        try:
            is_used |= any(choose(task, folder).files.values())
        except DataUnavailableError as error:
            missing[task.id] = error
    if not missing:
        return
    problem = f"tasks {', '.join(missing)}: {no_data(folder)}"
    hints = [f"{task}: {error.hint}" for task, error in missing.items()]
    if len(missing) == 1:
        (reason,) = missing.values()
        problem = reason.what
        hints = [reason.hint]
    if is_used:
        hints.append(f"or link a folder that lies elsewhere into {folder} (ln -s)")
    raise DataUnavailableError(problem, hint="; ".join(hints))
