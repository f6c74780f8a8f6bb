"""What a request names, checked before torch, data and weights are loaded: options, tasks with overrides, models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import get_args

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.locate import choose, data_folder
from biobench.data.suite import left_out, matching, picked, pool, suite_tasks, trained
from biobench.errors import DataUnavailableError, UsageError
from biobench.kinds.base import get_kind
from biobench.models.loading import Located, locate
from biobench.runs.options import Executor, RunRequest, Track
from biobench.schema.protocols import FROZEN, PROTOCOLS
from biobench.schema.strict import FieldError, suggest
from biobench.schema.task import parse_seeds

_NAME = re.compile(r"\S(.{0,198}\S)?")


@dataclass(frozen=True, slots=True)
class Selection:
    """A request's tasks and models, each read once.

    tasks: with their overrides; once for each share of the training documents. left_out: a line for each task of a
    suite that cannot be run. models: by what the request calls them. names: what `--name` calls each model. label_map:
    with --no-training, a checkpoint's label to the task's.
    """

    tasks: list[LoadedTask]
    left_out: list[str]
    models: dict[str, Located]
    names: dict[str, str]
    label_map: dict[str, str]


def select(request: RunRequest) -> Selection:
    """Read the specs and find the models that the request names; a model of the hub is downloaded.

    Raises UsageError, ModelError or SpecError for what no run could use, and DataUnavailableError that lists the named
    tasks whose data is not at hand; a suite may hold such tasks.
    """
    _check_options(request)
    names, label_map = _names_of_models(request), _label_map(request)
    tasks, lines, named = _tasks(request)
    for task in tasks:
        seeds_of(task, request)
    check_data([task for task in tasks if task.id in named], request.data_dir)
    models = {
        model: locate(model, offline=request.offline, trust_remote_code=request.trust_remote_code)
        for model in dict.fromkeys(request.model)
    }
    return Selection(tasks, lines, models, names, label_map)


def _check_options(request: RunRequest) -> None:
    for option, value, known in (
        ("--executor", request.executor, get_args(Executor)),
        ("--track", request.track, get_args(Track)),
    ):
        if value not in known:
            raise UsageError(f"{option} '{value}' is not known", hint=" or ".join(known))
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", request.device):
        raise UsageError(f"--device '{request.device}' is not known", hint="use auto, cpu or cuda")
    for option, number, what in (
        ("--parallel", request.parallel, "workers"),
        ("--seeds-at-once", request.seeds_at_once, "runs"),
    ):
        if number != "auto" and not (re.fullmatch(r"[0-9]{1,9}", number) and int(number)):
            raise UsageError(f"{option} '{number}' is not a number of {what}", hint="give auto or 1, 2, ...")
    if not request.model:
        raise UsageError("no model is named", hint="give a hub id, id@revision or a local folder")
    if request.limit is not None and request.limit < 1:
        raise UsageError(f"--limit {request.limit} leaves nothing", hint="give at least 1 training document")
    if (share := request.worker_gpus) is not None:
        if request.executor != "ray":
            raise UsageError("--worker-gpus goes with --executor ray", hint="add --executor ray, or leave it out")
        if not 0 < share <= 1:
            raise UsageError(f"--worker-gpus {share:g} is no share of a GPU", hint="above 0 and at most 1, such as 0.5")
    for option, module, extra, wanted in (
        ("--energy", "codecarbon", "energy", request.energy),
        ("--executor ray", "ray", "ray", request.executor == "ray"),
    ):
        if wanted and find_spec(module) is None:
            raise UsageError(f"{option}: {module} is not installed", hint=f"pip install 'biobench[{extra}]'")
    shares = request.train_fractions
    if not shares or len(set(shares)) < len(shares) or not all(0 < s <= 1 for s in shares):
        raise UsageError(
            f"--train-fraction {','.join(f'{s:g}' for s in shares)}: shares are distinct, above 0 and at most 1",
            hint="for example 0.1,0.25,1.0",
        )
    _check_protocol(request)


def _check_protocol(request: RunRequest) -> None:
    """Refuse a protocol that is not declared, or that other options would change."""
    if request.protocol is None:
        return
    if request.protocol not in PROTOCOLS:
        what = f"--protocol '{request.protocol}' is not declared"
        raise UsageError(what, hint=suggest(request.protocol, list(PROTOCOLS)))
    for option, present in (
        ("--set", bool(request.overrides)),
        ("--limit", request.limit is not None),
        ("--train-fraction", request.train_fractions != (1.0,)),
        ("--track", request.track != "fixed"),
    ):
        if present:
            raise UsageError(
                f"--protocol {request.protocol} fixes the recipe, and {option} would change it",
                hint=f"leave one of the two out; the protocol: {PROTOCOLS[request.protocol].summary}",
            )


def _names_of_models(request: RunRequest) -> dict[str, str]:
    models = list(dict.fromkeys(request.model))
    if request.name and len(request.name) != len(models):
        what = f"{len(request.name)} --name for {len(models)} model{'s' if len(models) != 1 else ''}"
        raise UsageError(what, hint="give one a model, in the models' order, or leave it out")
    for text in request.name:
        check_name(text, "--name")
        if request.name.count(text) > 1:
            raise UsageError(f"--name '{text}' stands twice", hint="two models of one name cannot be told apart")
    return dict(zip(models, request.name, strict=False))


def check_name(name: str, option: str) -> None:
    """Raises UsageError where what a model or system is to be called is no name. option: what gave it."""
    if not _NAME.fullmatch(name) or not name.isprintable():
        raise UsageError(f"{option} is no name", hint="name it in one line of at most 200 characters")


def _label_map(request: RunRequest) -> dict[str, str]:
    """The declared map. Raises UsageError for what does not go with --no-training."""
    if not request.no_training:
        if request.label_map:
            raise UsageError("--label-map goes with --no-training", hint="add --no-training, or leave it out")
        return {}
    for option, wanted in (
        (f"--track {request.track}", request.track != "fixed"),
        ("--train-fraction", request.train_fractions != (1.0,)),
        ("--seeds", request.seeds is not None),
        ("--keep-model", request.keep_model is not None),
    ):
        if wanted:
            raise UsageError(f"{option} does not go with --no-training: nothing is trained", hint="leave it out")
    names: dict[str, str] = {}
    for text in request.label_map:  # nothing behind the sign leaves a label out
        name, sign, target = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise UsageError(f"--label-map '{text}' is not MODEL_LABEL=TASK_LABEL", hint="for example LABEL_0=Disease")
        if name in names:
            raise UsageError(f"--label-map names '{name}' twice", hint="map each label once")
        names[name] = target
    return names


def _tasks(request: RunRequest) -> tuple[list[LoadedTask], list[str], set[str]]:
    """The tasks, a line for each of the suite that is left out, and the ids of those that `--task` names."""
    filters = {"languages": request.languages, "types": request.types, "tags": request.tags}
    if not request.tasks and request.suite is None and not any(filters.values()):
        raise UsageError("no task is named", hint="--task ID_OR_YAML (repeatable), or --suite fr|en|needle|all")
    loaded = [load_task(task) for task in matching(request.tasks)]
    named = {task.id for task in loaded}
    lines = [] if request.suite is None else left_out(request.suite)
    for member in [] if request.suite is None else suite_tasks(request.suite):
        if request.track == "frozen" and not _can_be_probed(member):
            lines.append(f"{member.id} is left out: it has no probe on a frozen encoder, or brings its own")
        elif member.id not in named:
            loaded.append(member)
    if any(filters.values()):
        loaded = picked(loaded or trained(picked(pool(), **filters)), **filters)
        if not loaded:
            asked = " ".join(f"--{name[:-1]} {','.join(patterns)}" for name, patterns in filters.items() if patterns)
            raise UsageError(f"no task has {asked}", hint="see `biobench tasks list`")
    if not loaded:
        raise UsageError(f"suite '{request.suite}' holds no task yet", hint="see `biobench tasks list`")
    ids = [task.id for task in loaded]
    if twice := [name for name in ids if ids.count(name) > 1]:
        raise UsageError(f"two of the tasks have the id '{twice[0]}'", hint="give each spec its own id")
    return [_under(task, request, share) for task in loaded for share in request.train_fractions], lines, named


def _can_be_probed(task: LoadedTask) -> bool:
    kind = get_kind(task.spec.type)
    return kind.probes and not (kind.trains and task.spec.training.encoder == "frozen")


def _under(task: LoadedTask, request: RunRequest, share: float) -> LoadedTask:
    """The task with the overrides of the request's protocol or track, those of the request, and the share.

    A share is an override like any other, so a run on it is never mixed with full runs.
    """
    overrides: Sequence[str] = request.overrides
    trains = get_kind(task.spec.type).trains
    if request.protocol is not None:
        overrides = PROTOCOLS[request.protocol].of(kind=task.spec.type, unit=task.spec.unit)
    if request.track != "frozen" and not trains:
        raise UsageError(f"task {task.id} trains nothing: it asks a frozen encoder", hint="add --track frozen")
    if request.track == "frozen" and trains:
        if task.spec.training.encoder == "frozen":
            raise UsageError(
                f"--track frozen: the encoder of {task.id} is frozen by its own spec, with a probe of its own",
                hint="run it without --track",
            )
        overrides = [*FROZEN, *(text for text in overrides if text not in FROZEN)]
    if share != 1.0:
        overrides = [*overrides, f"training.train_fraction={share:g}"]
    changed = load_task(task.path, overrides) if overrides else task
    probe = [text for text in changed.overrides if re.match(r"probe\b", text.strip())]
    if probe and changed.spec.training.encoder != "frozen":
        raise UsageError(
            f"--set {probe[0]}: the encoder of {task.id} is fine-tuned, so no probe is used",
            hint="add --set training.encoder=frozen, or leave the probe out",
        )
    return changed


def seeds_of(task: LoadedTask, request: RunRequest) -> list[int]:
    """The request's seeds, else the spec's. Raises UsageError."""
    try:
        return parse_seeds(task.spec.seeds if request.seeds is None else request.seeds)
    except FieldError as error:
        raise UsageError(f"--seeds: {error.what}", hint=error.hint) from None


def check_data(tasks: Sequence[LoadedTask], data_dir: str | None) -> None:
    """Raises DataUnavailableError that lists the tasks without data, each with the steps to get it."""
    folder = data_folder(data_dir)
    missing: dict[str, DataUnavailableError] = {}
    for task in tasks:
        try:
            choose(task, folder)
        except DataUnavailableError as error:
            missing[task.id] = error
    if missing:
        if len(missing) == 1:
            raise next(iter(missing.values()))
        raise DataUnavailableError(
            f"tasks {', '.join(missing)}: no data below {folder}",
            hint="; ".join(f"{task}: {error.hint}" for task, error in missing.items()),
        )
