"""The catalogue of task specs: the shipped ones by id, any other by its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from biobench.core.packages import TASKS, plugins
from biobench.data.readers import ReaderOptions, formats, get_reader
from biobench.errors import SpecError, UsageError
from biobench.kinds import Kind  # noqa: F401  (registers the kinds that a spec may name)
from biobench.schema.source import Source
from biobench.schema.strict import Strict, apply_overrides, json_schema, suggest, validate
from biobench.schema.task import TaskMetrics, TaskSpec
from biobench.schema.training import Head, Protocol, Training
from biobench.schema.yaml12 import LocatedYaml, Path_, parse_file

SUITES = ("fr", "en", "needle")
"""Folders of shipped specs that `--suite` runs; `all` is the three together."""


OTHER_UNIT = {
    "training.epochs": "training.max_steps",
    "training.max_steps": "training.epochs",
}
"""The two units of a length of training, of which a spec gives one."""


@dataclass(frozen=True, slots=True, repr=False)
class LoadedTask:
    """A validated spec with where it came from and its checked reader options."""

    spec: TaskSpec
    located: LocatedYaml
    path: Path
    options: dict[str, ReaderOptions]
    """Source id to reader options, defaults filled in."""
    overrides: tuple[str, ...] = ()
    fold: int = 0
    """Where the data is split several times: which split is meant, from 0."""

    @property
    def id(self) -> str:
        """The task's id."""
        return self.spec.id

    @property
    def folder(self) -> Path:
        """Where files named by the spec (id lists) lie."""
        return self.path.parent

    def source(self, source_id: str) -> Source:
        """The source with this id. Raises KeyError."""
        return {source.id: source for source in self.spec.all_sources}[source_id]

    def __repr__(self) -> str:
        spec = self.spec
        words = f"{spec.name} ({spec.language}, {spec.type}, version {spec.version})"
        return f"<task {spec.id}: {words}, {self.path}>"


def tasks_folder() -> Path:
    """Folder of the shipped specs: the checkout's `tasks/`, else the installed wheel's copy."""
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent / "tasks"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return package / "bundled" / "tasks"


def spec_paths() -> dict[str, Path]:
    """Task id (the file's stem) to path of every shipped spec, in order of folder and name; then of
    those that other packages bring. Raises SpecError where one of these has the name of another
    task.
    """
    paths = {path.stem: path for path in sorted(tasks_folder().glob("*/*.yaml"))}
    for name, target in plugins(TASKS):
        folder = Path(next(iter(getattr(target, "__path__", [target]))))
        for path in sorted(folder.rglob("*.yaml")):
            if path.stem in paths:
                message = (
                    f"plug-in '{name}' brings a task '{path.stem}', which there is already "
                    f"({paths[path.stem]})"
                )
                raise SpecError(message, hint="rename the file and the spec's id", file=path)
            paths[path.stem] = path
    return paths


def load_task(path_or_id: str | Path, overrides: Sequence[str] = ()) -> LoadedTask:
    """The task with this id, or of this YAML file, with ``KEY=VALUE`` overrides applied.

    Raises SpecError where the YAML, a reader option or an override is wrong, UsageError where there
    is no such task.
    """
    text = str(path_or_id)
    path = Path(text)
    if not text.endswith((".yaml", ".yml")):
        paths = spec_paths()
        if text not in paths:
            hint = suggest(text, list(paths), otherwise="`biobench tasks list` shows the ids")
            if path.is_dir():
                hint = "a folder is no task; a model's stands before --task"
            elif path.is_file():
                hint = "a task is an id or a path ending in .yaml"
            elif Path(f"{text}.yaml").is_file():
                hint = f"did you mean '{text}.yaml'?"
            raise UsageError(f"unknown task '{text}'", hint=hint)
        path = paths[text]
    written = parse_file(path)
    located = apply_overrides(written, [*_unset(overrides), *overrides])
    try:
        spec = validate(located, TaskSpec)
        return LoadedTask(spec, located, path, _reader_options(located, spec), tuple(overrides))
    except SpecError as error:
        raise _blamed(error, written, overrides) from None


def _unset(overrides: Sequence[str]) -> list[str]:
    """What takes back a spec's length of training that an override gives in the other unit."""
    named = {override.partition("=")[0].strip() for override in overrides}
    others = []
    for key, other in OTHER_UNIT.items():
        if key in named and other not in named:
            others.append(f"{other}=null")
    return others


def _blamed(error: SpecError, written: LocatedYaml, overrides: Sequence[str]) -> SpecError:
    """The error itself where the file is at fault; where only the overrides are, one that names
    them.
    """
    if not overrides:
        return error
    try:
        _reader_options(written, validate(written, TaskSpec))
    except SpecError:
        return error
    hint = error.hint
    for override in reversed(overrides):
        meant = _nested(override.partition("=")[0].strip())
        if meant is not None:
            hint = f"did you mean '{meant}'?"
    return SpecError(f"--set {' --set '.join(overrides)}: {error.what}", hint=hint)


def _nested(key: str) -> str | None:
    """The dotted key of a field that stands in one of the spec's groups, given alone; None where
    there is none.
    """
    if key in TaskSpec.model_fields or "." in key:
        return None
    groups: dict[str, type[Strict]] = {
        "training": Training,
        "protocol": Protocol,
        "head": Head,
        "metric": TaskMetrics,
    }
    fields: dict[str, str] = {}
    for group, model in groups.items():
        fields |= {field: f"{group}.{field}" for field in model.model_fields}
    close = get_close_matches(key, fields, n=1, cutoff=0.8)
    return fields[close[0]] if close else None


def _reader_options(located: LocatedYaml, spec: TaskSpec) -> dict[str, ReaderOptions]:
    options: dict[str, ReaderOptions] = {}
    for source in spec.all_sources:
        at: Path_ = ("reader",)
        if source.reader is not None:
            at = (*spec.path_of(source), "reader")
        try:
            reader = get_reader(spec.reader_of(source).format)
        except SpecError as error:
            line = located.line_of((*at, "format"))
            raise SpecError(error.what, hint=error.hint, file=located.file, line=line) from None
        options[source.id] = validate(located, reader.options, at)
    return options


def check_agreement(task: LoadedTask, include_agreement: bool) -> None:
    """Raises UsageError where texts under an agreement would be written and nobody said so."""
    if task.spec.access == "agreement" and not include_agreement:
        raise UsageError(
            f"the data of {task.id} is under an agreement, and this writes its texts",
            hint="say --include-agreement if you may hold a copy there",
        )


def list_tasks() -> list[LoadedTask]:
    """All shipped tasks, in order of folder and name."""
    return [load_task(path) for path in spec_paths().values()]


def task_json_schema() -> dict[str, Any]:
    """Draft 2020-12 schema for editor completion: TaskSpec, with `reader` as a choice by
    `format`."""
    schema = json_schema(TaskSpec)
    definitions = schema["$defs"]
    names = []
    for reader in formats().values():
        options = reader.options.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(options.pop("$defs", {}))
        definitions[reader.options.__name__] = options
        names.append(reader.options.__name__)
    definitions["ReaderSpec"] = {
        "description": "The native format and its reader's options.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names],
    }
    return schema
