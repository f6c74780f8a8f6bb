"""Suites: the shipped ones by name, any other by its YAML file; and tasks picked by language, type,
tag or pattern.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from pathlib import Path

from biobench.data.catalog import (
    SUITES,
    LoadedTask,
    list_tasks,
    load_task,
    spec_paths,
    tasks_folder,
)
from biobench.data.locate import is_pattern
from biobench.errors import UsageError
from biobench.kinds import get_kind
from biobench.schema.strict import load_yaml_model, suggest
from biobench.schema.suite import Member, SuiteSpec

FOLDER = Path(__file__).parent / "suites"


def suite_names() -> list[str]:
    """What `--suite` takes besides a YAML file."""
    return [*SUITES, "all", *sorted(path.stem for path in FOLDER.glob("*.yaml"))]


def suite_hint(name: str, names: Collection[str]) -> str:
    """What to say of a name that is no suite: the nearest of the names, and all of them."""
    known = f"known: {', '.join(sorted(names))}"
    nearest = suggest(name, sorted(names), otherwise=known)
    return known if nearest == known else f"{nearest} {known}"


def load_suite(name: str) -> SuiteSpec | None:
    """The declared suite of this name or file; None for fr, en, needle and all, which are folders
    of tasks.

    Raises UsageError where there is none, SpecError where its file is wrong.
    """
    if name in (*SUITES, "all"):
        return None
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = FOLDER / f"{name}.yaml"
        if name not in suite_names():
            raise UsageError(f"unknown suite '{name}'", hint=suite_hint(name, suite_names()))
    return load_yaml_model(path, SuiteSpec)


def task_of(member: Member, name: str) -> str | None:
    """What `load_task` takes for a member of the suite that was given as `name`."""
    if member.task is None or not member.task.endswith((".yaml", ".yml")):
        return member.task
    return str(Path(name).parent / member.task)


def suite_tasks(name: str) -> list[LoadedTask]:
    """The tasks of a suite that can be run, in its order; of a folder without variants. Raises as
    `load_suite`.
    """
    spec = load_suite(name)
    if spec is not None:
        members = [task_of(member, name) for member in spec.tasks]
        return [load_task(task) for task in members if task is not None]
    folders = {"all": SUITES}.get(name, (name,))
    return list(chain.from_iterable(map(_tasks_of_folder, folders)))


def _tasks_of_folder(name: str) -> list[LoadedTask]:
    """The tasks of a folder of shipped specs, without variants."""
    paths = sorted((tasks_folder() / name).glob("*.yaml"))
    return [task for task in map(load_task, paths) if task.spec.variant_of is None]


def skipped(name: str) -> list[str]:
    """A line for each task of a declared suite that cannot be run, with the reason."""
    spec = load_suite(name)
    if spec is None:
        return []
    return [f"{m.name} is skipped: {m.needs}" for m in spec.tasks if m.needs is not None]


def matching(names: Iterable[str | Path]) -> list[str]:
    """Task names without repetition: ``gad,hoc`` is two, unless a file is called so, and a pattern
    such as ``bc5*`` is the shipped ids that it matches (see `trained`).

    Raises UsageError for a pattern that matches nothing.
    """
    task_ids: list[str] = []
    for text in map(str, names):
        if Path(text).is_file():
            task_ids.append(text)
        else:
            for name in filter(None, text.split(",")):
                task_ids += _matching(name)
    return list(dict.fromkeys(task_ids))


def _matching(name: str) -> list[str]:
    """The name itself, or the ids that it matches as a pattern. Raises UsageError for none."""
    if not is_pattern(name):
        return [name]
    matches = trained(list(map(load_task, fnmatch.filter(spec_paths(), name))))
    if not matches:
        hint = "see `biobench tasks list`; put the pattern in quotes"
        raise UsageError(f"no task matches '{name}'", hint=hint)
    return [task.id for task in matches]


def picked(
    tasks: Sequence[LoadedTask],
    languages: Collection[str] = (),
    types: Collection[str] = (),
    tags: Collection[str] = (),
) -> list[LoadedTask]:
    """Those of the tasks that have one of the languages, one of the types and all of the tags,
    where any are given.
    """
    result: list[LoadedTask] = []
    for task in tasks:
        of_language = not languages or task.spec.language in languages
        of_type = not types or task.spec.type in types
        if of_language and of_type and set(tags) <= set(task.spec.tags):
            result.append(task)
    return result


def trained(tasks: Sequence[LoadedTask]) -> list[LoadedTask]:
    """Those of the tasks that are fine-tuned; where there is none, all. What names many tasks means
    these.
    """
    return [t for t in tasks if get_kind(t.spec.type).trains] or list(tasks)


def pool() -> list[LoadedTask]:
    """All shipped tasks but the variants and the demonstrations: what filters alone pick from."""
    tasks = [task for task in list_tasks() if task.spec.variant_of is None]
    return [task for task in tasks if task.folder.name != "demo"]
