"""Suites: the shipped ones by name, any other by its YAML file; and tasks picked by language, type,
tag or pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from biobench.data.catalog import (
    SUITES,
    LoadedTask,
    list_tasks,
    load_task,
    spec_paths,
    tasks_folder,
)
from biobench.errors import UsageError
from biobench.kinds import get_kind
from biobench.schema.strict import load_yaml_model, suggest
from biobench.schema.suite import Member, SuiteSpec

FOLDER = Path(__file__).parent / "suites"


def suite_names() -> list[str]:
    """What `--suite` takes besides a YAML file."""
    return [*SUITES, "all", *sorted(path.stem for path in FOLDER.glob("*.yaml"))]


def load_suite(name: str) -> SuiteSpec | None:
    """The declared suite of this name or file; None for fr, en, needle and all, which are folders
    of tasks.

    Raises UsageError where there is none, SpecError where its file is wrong.
    """
    if name in (*SUITES, "all"):
        return None
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(
                f"there is no file '{name}'",
                hint="give a suite's name or a YAML file with `tasks:`",
            )
    else:
        path = FOLDER / f"{name}.yaml"
        if name not in suite_names():
            raise UsageError(f"unknown suite '{name}'", hint=suggest(name, suite_names()))
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
    if spec is None:
        folders = SUITES if name == "all" else (name,)
        tasks = [
            load_task(path)
            for folder in folders
            for path in sorted((tasks_folder() / folder).glob("*.yaml"))
        ]
        return [task for task in tasks if task.spec.variant_of is None]
    return [load_task(task) for member in spec.tasks if (task := task_of(member, name)) is not None]


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
    given_names = (
        name
        for n in map(str, names)
        for name in ([n] if Path(n).is_file() else n.split(","))
        if name
    )
    for name in given_names:
        if not any(sign in name for sign in "*?[") or Path(name).is_file():
            task_ids.append(name)
            continue
        ids = [
            task.id
            for task in trained([load_task(t) for t in spec_paths() if fnmatchcase(t, name)])
        ]
        if not ids:
            raise UsageError(
                f"no task matches '{name}'",
                hint="see `biobench tasks list`; put the pattern in quotes",
            )
        task_ids += ids
    return list(dict.fromkeys(task_ids))


def picked(
    tasks: Sequence[LoadedTask],
    languages: Collection[str] = (),
    types: Collection[str] = (),
    tags: Collection[str] = (),
) -> list[LoadedTask]:
    """Those of the tasks that have one of the languages, one of the types and all of the tags,
    where any are given.
    """
    specs = [(task, task.spec) for task in tasks if set(tags) <= set(task.spec.tags)]
    return [
        t
        for t, s in specs
        if (not languages or s.language in languages) and (not types or s.type in types)
    ]


def trained(tasks: Sequence[LoadedTask]) -> list[LoadedTask]:
    """Those of the tasks that are fine-tuned; where there is none, all. What names many tasks means
    these.
    """
    return [t for t in tasks if get_kind(t.spec.type).trains] or list(tasks)


def pool() -> list[LoadedTask]:
    """All shipped tasks but the variants and the demonstrations: what filters alone pick from."""
    return [t for t in list_tasks() if t.spec.variant_of is None and t.path.parent.name != "demo"]
