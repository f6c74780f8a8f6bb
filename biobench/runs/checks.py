"""What is wrong with a run's arguments and can be told at once, before torch and the data are loaded."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from biobench.data.catalog import load_task
from biobench.data.suite import matching, suite_tasks
from biobench.errors import ModelError, UsageError
from biobench.runs.options import RunRequest

_NAME = re.compile(r"\S(.{0,198}\S)?")
_EXTRAS = {"energy": "codecarbon", "ray": "ray"}
"""Extra of the project to the module that it brings."""


def check_arguments(request: RunRequest) -> None:
    """Raises UsageError, ModelError or SpecError for the first argument that no run could use.

    What needs the data, the weights or the machine is checked later (`runs.plan.make_plan`).
    """
    names_of_models(request)
    check_worker_gpus(request)
    if request.suite is not None:
        suite_tasks(request.suite)
    for task in matching(request.tasks):
        load_task(task, request.overrides)
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", request.device):
        raise UsageError(f"--device '{request.device}' is not known", hint="use auto, cpu or cuda")
    for model in request.model:
        # as models.loading reads a name: these are paths and never hub ids
        looks_local = model.startswith((".", "/", "~")) or model.count("/") > 1
        if looks_local and not Path(model).expanduser().is_dir():
            raise ModelError(f"no such folder: {model}", hint="give an existing folder, or a hub id such as owner/name")
    for extra, wanted in (("energy", request.energy), ("ray", request.executor == "ray")):
        if wanted and find_spec(_EXTRAS[extra]) is None:
            option = "--energy" if extra == "energy" else "--executor ray"
            raise UsageError(f"{option}: {_EXTRAS[extra]} is not installed", hint=f"pip install 'biobench[{extra}]'")


def check_worker_gpus(request: RunRequest) -> None:
    """Raises UsageError where the share of a GPU is none, or nobody is to reserve it."""
    share = request.worker_gpus
    if share is None:
        return
    if request.executor != "ray":
        raise UsageError("--worker-gpus goes with --executor ray", hint="add --executor ray, or leave it out")
    if not 0 < share <= 1:
        raise UsageError(f"--worker-gpus {share:g} is no share of a GPU", hint="above 0 and at most 1, such as 0.5")


def names_of_models(request: RunRequest) -> dict[str, str]:
    """What `--name` calls each model. Raises UsageError for what is no name, too many or too few of them."""
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
