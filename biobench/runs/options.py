"""The options of `biobench run`, each declared once.

From this declaration come the options of the command line (`biobench.cli.console.options`), the
typed signature of
`biobench.run`, and the `RunRequest` that is planned. A new option is one line here. Loads nothing
heavy.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from pathlib import Path
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from biobench.errors import SpecError, UsageError

Declared = TypeVar("Declared")
Converted = TypeVar("Converted")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Executor = Literal["local", "ray"]
Track = Literal["fixed", "tuned", "frozen", "ready"]
Names = str | Path | Iterable[str | Path]
ARGUMENT = ""
"""In place of the flags of what is given by its position."""


def flag_of(name: str, default: object) -> str:
    """``--name``, and ``--no-name`` of a switch that is on."""
    flag = name.strip("_").replace("_", "-")
    return f"--{flag}/--no-{flag}" if default is True else f"--{flag}"


class Option(Generic[Declared, Converted]):
    """One option: what callers may give, and what the request holds.

    flags: its names on the command line, where they are not its own with dashes.
    convert: from what is given to what is held.
    properties: further ones of the command line's option (metavar, envvar, min), as typer names
    them.
    """

    def __init__(
        self,
        default: Declared,
        help: str,
        *flags: str,
        convert: Callable[[Declared], Converted] | None = None,
        **properties: Any,
    ) -> None:
        self.default = default
        self.flags = flags
        self.convert: Callable[[Any], Any] = convert or (lambda value: value)
        self.properties = {"help": help, **properties}

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.flags = self.flags or (flag_of(name, self.default),)

    def __get__(self, instance: object | None, owner: type) -> Converted:
        value: Any = self.default if instance is None else instance.__dict__[self.name]
        return value  # type: ignore[no-any-return]

    def __set__(self, instance: object, value: Declared) -> None:
        least = self.properties.get("min")
        number = cast(Any, value)
        if least is not None and number is not None and number < least:
            raise UsageError(f"{self.name} is {value}", hint=f"give {least} or more")
        instance.__dict__[self.name] = self.convert(value)


def _names(value: Names) -> tuple[str, ...]:
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(map(str, value))


def _overrides(value: Names | Mapping[str, object]) -> tuple[str, ...]:
    """``KEY=VALUE`` of each; of a mapping, which may hold others, the values as JSON, which is YAML
    too.
    """
    if not isinstance(value, Mapping):
        return _names(value)
    texts: list[str] = []
    for key, field in value.items():
        if isinstance(field, Mapping):
            texts += [f"{key}.{text}" for text in _overrides(field)]
        else:
            texts.append(f"{key}={json.dumps(field)}")
    return tuple(texts)


def _text(value: object) -> str | None:
    """As one writes it on the command line: several with commas between."""
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)


Text = Option[str | None, str | None]
Folder = Option[str | Path | None, str | None]
Count = Option[int | None, int | None]
Number = Option[float | None, float | None]
Workers = Option[str | int, str]
Several = Option[Names, tuple[str, ...]]
Switch = Option[bool, bool]


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `run`, as the command line or the Python interface gives them."""

    model: Several = Option(
        (),
        "Hub id, id@revision, local folder, or dummy (a random tiny encoder).",
        ARGUMENT,
        convert=_names,
        metavar="MODEL",
    )
    tasks: Several = Option(
        (),
        "Task id, pattern ('bc5*') or YAML path; repeatable.",
        "--task",
        convert=_names,
        metavar="ID_OR_YAML",
    )
    _: KW_ONLY
    suite: Text = Option(
        None, "fr, en, needle, all, blurb, drbenchmark, or a YAML file that lists tasks."
    )
    seeds: Option[str | int | Iterable[int] | None, str | None] = Option(
        None, "42-50 or 42,43 (default: the spec's).", convert=_text
    )
    data_dir: Folder = Option(
        None, "Folder of the corpora (default: ./data).", convert=_text, envvar="BIOBENCH_DATA_DIR"
    )
    results_dir: Option[str | Path, str] = Option(
        "results",
        "Folder of records and predictions.",
        convert=str,
        envvar="BIOBENCH_RESULTS_DIR",
    )
    limit: Count = Option(None, "Training documents; the rest in proportion.", min=1)
    protocol: Text = Option(
        None,
        "small: capped training documents and epochs, whole test splits; its own rows.",
    )
    overrides: Option[Names | Mapping[str, object], tuple[str, ...]] = Option(
        (),
        "Change a field of the spec, e.g. training.epochs=1.",
        "--set",
        convert=_overrides,
        metavar="KEY=VALUE",
    )
    dry_run: Switch = Option(False, "Print the plan and stop.")
    languages: Several = Option(
        (),
        "Only tasks in this language; repeatable.",
        "--language",
        convert=_names,
        metavar="CODE",
    )
    types: Several = Option(
        (),
        "Only tasks of this type, such as token_ner; repeatable.",
        "--type",
        convert=_names,
        metavar="TYPE",
    )
    tags: Several = Option(
        (),
        "Only tasks with this tag, such as clinical; repeatable.",
        "--tag",
        convert=_names,
        metavar="TAG",
    )
    track: Option[Track, Track] = Option(
        "fixed",
        "fixed (the papers' recipe), tuned (the same few rates for every model), frozen "
        "(a probe on the states of an encoder that is not trained), or ready (a checkpoint with a "
        "head, as it is).",
    )
    label_map: Folder = Option(
        None,
        "With --track ready: YAML lines MODEL_LABEL: TASK_LABEL.",
        convert=_text,
        metavar="FILE",
    )
    fractions: Option[str | float | Iterable[float] | None, str | None] = Option(
        None,
        "Learning curve: a run on each share of the training documents, e.g. 0.1,0.2,0.5,1.",
        convert=_text,
        metavar="SHARES",
    )
    no_test: Switch = Option(
        False, "Score on validation and leave the test split alone; shown apart from tested runs."
    )
    keep_model: Folder = Option(
        None,
        "Save each fine-tuned model as a checkpoint below DIR.",
        convert=_text,
        metavar="DIR",
    )
    gate: Switch = Option(True, "Before a task's first run, measure baselines without skill.")
    device: Option[str, str] = Option("auto", "auto, cpu or cuda.")
    parallel: Workers = Option("auto", "auto, or a number of worker processes.", convert=str)
    seeds_at_once: Workers = Option(
        "1", "Runs at the same time on each device: a number, or auto (by memory).", convert=str
    )
    threads: Count = Option(
        None,
        "CPU threads, of all workers together (default: the CPUs this process may use).",
        min=1,
    )
    executor: Option[Executor, Executor] = Option("local", "local, or ray (a cluster).")
    worker_gpus: Number = Option(
        None, "With --executor ray: share of a GPU that each run reserves, such as 0.5."
    )
    offline: Switch = Option(False, "Open no connection.")
    save_every: Number = Option(
        None, "Seconds after which a run writes its state (default: 5 minutes).", min=0.0
    )
    wait: Switch = Option(
        True, "At the end, wait for runs that other processes make, or skip them."
    )
    started: Option[float | None, float] = Option(
        None,
        "One number for all processes of a command, such as a batch job's: --force then "
        "makes each run once.",
        "--start-token",
        convert=lambda value: time.time() if value is None else float(value),
        metavar="NUMBER",
    )
    force: Switch = Option(False, "Re-run even if a result exists.")
    strict: Switch = Option(False, "Refuse missing data, and data that contradict a spec.")
    trust_remote_code: Switch = Option(False, "Let checkpoints run their own code.")

    @property
    def split(self) -> Literal["validation", "test"]:
        """What the runs are scored on."""
        return "validation" if self.no_test else "test"


def options() -> dict[str, Option[Any, Any]]:
    """Every declared option by its Python keyword."""
    return {name: value for name, value in vars(RunRequest).items() if isinstance(value, Option)}


def in_keywords(text: str) -> str:
    """A message of the command line in the keywords of Python, ``--set`` as ``overrides``; commands
    between backticks stay.
    """
    keywords = {}
    for name, option in options().items():
        for flag in "/".join(option.flags).split("/"):
            keywords[flag] = name
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(
            r"--[a-z-]+", lambda found: keywords.get(found[0], found[0]), parts[number]
        )
    return "`".join(parts)


def with_arguments_of(
    kind: Callable[Arguments, Declared],
) -> Callable[[Callable[[Declared], Result]], Callable[Arguments, Result]]:
    """A function of what `kind` makes becomes a function of the arguments that `kind` takes, with
    their types; its docstring ends with what each option means.
    """

    def decorate(function: Callable[[Declared], Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def called(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
            try:
                return function(kind(*args, **keywords))
            except (UsageError, SpecError) as error:
                what, hint = map(in_keywords, (error.what, error.hint))
                raise type(error)(what, hint=hint, file=error.file, line=error.line) from error

        hints = get_type_hints(kind)
        parameters = []
        for name, parameter in inspect.signature(kind).parameters.items():
            hint = hints[name]
            if get_origin(hint) is Option:
                hint, _ = get_args(hint)
            parameters.append(parameter.replace(annotation=hint))
        returned = get_type_hints(function)["return"]
        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=returned
        )
        called.__doc__ = "\n".join([inspect.getdoc(function) or "", "", *_in_words(kind)])
        return called

    return decorate


def _in_words(kind: Callable[..., object]) -> Iterator[str]:
    """A paragraph for each option of the class: its name and the help of the command line."""
    for name in inspect.signature(kind).parameters:
        option = inspect.getattr_static(kind, name, None)
        if isinstance(option, Option):
            line = f"{name}: {option.properties['help']}"
            yield textwrap.fill(line, 96, subsequent_indent="    ")
