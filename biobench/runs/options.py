"""The options of `biobench run`, each declared once.

From this declaration come the options of the command line (`biobench.cli.console.options`), the
typed signature of
`biobench.run`, and the `RunRequest` that is planned. A new option is one line here. Loads nothing
heavy.
"""
# ruff: noqa: RUF009 (what these functions make are descriptors, one for all requests)

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
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
    overload,
)

from biobench.errors import UsageError
from biobench.schema.strict import check_keywords

Declared = TypeVar("Declared")
Converted = TypeVar("Converted")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Executor = Literal["local", "ray"]
Track = Literal["fixed", "tuned", "frozen", "ready"]
Names = str | Path | Iterable[str | Path]


class Option(Generic[Declared, Converted]):
    """One option: what callers may give, and what the request holds.

    flags: its names on the command line; none for the argument. convert: from what is given to what
    is held.
    shown: further properties of the command line's option (help, metavar, envvar, min), as typer
    names them.
    """

    def __init__(
        self,
        default: Declared,
        *flags: str,
        convert: Callable[[Declared], Converted] | None = None,
        **shown: Any,
    ) -> None:
        self.default, self.flags, self.convert, self.shown = default, flags, convert, shown

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Declared: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Converted: ...
    def __get__(self, instance: object | None, owner: type) -> Declared | Converted:
        return self.default if instance is None else cast(Converted, instance.__dict__[self.name])

    def __set__(self, instance: object, value: Declared) -> None:
        least = self.shown.get("min")
        if least is not None and value is not None and cast(Any, value) < least:
            raise UsageError(f"{self.name} is {value}", hint=f"give {least} or more")
        instance.__dict__[self.name] = value if self.convert is None else self.convert(value)


def _names(value: Names) -> tuple[str, ...]:
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(map(str, value))


def _seeds(value: str | int | Iterable[int] | None) -> str | None:
    if value is None:
        return None
    return str(value) if isinstance(value, str | int) else ",".join(map(str, value))


def _shares(value: str | float | Iterable[float] | None) -> str | None:
    if value is None or isinstance(value, str | float | int):
        return None if value is None else str(value)
    return ",".join(str(share) for share in value)


def _folder(value: str | Path | None) -> str | None:
    return None if value is None else str(value)


Several = Option[Names, tuple[str, ...]]
Switch = Option[bool, bool]


def _several(flag: str, metavar: str, text: str) -> Several:
    return Option((), flag, convert=_names, metavar=metavar, help=text)


def _switch(flag: str, text: str, default: bool = False) -> Switch:
    return Option(default, flag, help=text)


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `run`, as the command line or the Python interface gives them."""

    model: Several = Option(
        (),
        convert=_names,
        metavar="MODEL",
        help="Hub id, id@revision, local folder, or dummy (a random tiny encoder).",
    )
    tasks: Several = _several(
        "--task", "ID_OR_YAML", "Task id, pattern ('bc5*') or YAML path; repeatable."
    )
    _: KW_ONLY
    suite: Option[str | None, str | None] = Option(
        None,
        "--suite",
        help="fr, en, needle, all, blurb, drbenchmark, or a YAML file that lists tasks.",
    )
    seeds: Option[str | int | Iterable[int] | None, str | None] = Option(
        None, "--seeds", convert=_seeds, help="42-50 or 42,43 (default: the spec's)."
    )
    data_dir: Option[str | Path | None, str | None] = Option(
        None,
        "--data-dir",
        convert=_folder,
        envvar="BIOBENCH_DATA_DIR",
        help="Folder of the corpora (default: ./data).",
    )
    results_dir: Option[str | Path, str] = Option(
        "results",
        "--results-dir",
        convert=str,
        envvar="BIOBENCH_RESULTS_DIR",
        help="Folder of records and predictions.",
    )
    limit: Option[int | None, int | None] = Option(
        None, "--limit", min=1, help="Training documents; the rest in proportion."
    )
    protocol: Option[str | None, str | None] = Option(
        None,
        "--protocol",
        help="small: capped training documents and epochs, whole test splits; its own rows.",
    )
    overrides: Several = _several(
        "--set", "KEY=VALUE", "Change a field of the spec, e.g. training.epochs=1."
    )
    dry_run: Switch = _switch("--dry-run", "Print the plan and stop.")
    languages: Several = _several("--language", "CODE", "Only tasks in this language; repeatable.")
    types: Several = _several(
        "--type", "TYPE", "Only tasks of this type, such as token_ner; repeatable."
    )
    tags: Several = _several(
        "--tag", "TAG", "Only tasks with this tag, such as clinical; repeatable."
    )
    track: Option[Track, Track] = Option(
        "fixed",
        "--track",
        help="fixed (the papers' recipe), tuned (the same few rates for every model), frozen "
        "(a probe on the states of an encoder that is not trained), or ready (a checkpoint with a "
        "head, as it is).",
    )
    label_map: Option[str | Path | None, str | None] = Option(
        None,
        "--label-map",
        convert=_folder,
        metavar="FILE",
        help="With --track ready: YAML lines MODEL_LABEL: TASK_LABEL.",
    )
    fractions: Option[str | float | Iterable[float] | None, str | None] = Option(
        None,
        "--fractions",
        convert=_shares,
        metavar="SHARES",
        help="Learning curve: a run on each share of the training documents, e.g. 0.1,0.2,0.5,1.",
    )
    no_test: Switch = _switch(
        "--no-test",
        "Score on validation and leave the test split alone; shown apart from tested runs.",
    )
    keep_model: Option[str | Path | None, str | None] = Option(
        None,
        "--keep-model",
        convert=_folder,
        metavar="DIR",
        help="Save each fine-tuned model as a checkpoint below DIR.",
    )
    gate: Switch = _switch(
        "--gate/--no-gate", "Before a task's first run, measure baselines without skill.", True
    )
    device: Option[str, str] = Option("auto", "--device", help="auto, cpu or cuda.")
    parallel: Option[str | int, str] = Option(
        "auto", "--parallel", convert=str, help="auto, or a number of worker processes."
    )
    seeds_at_once: Option[str | int, str] = Option(
        "1",
        "--seeds-at-once",
        convert=str,
        help="Runs at the same time on each device: a number, or auto (by memory).",
    )
    threads: Option[int | None, int | None] = Option(
        None,
        "--threads",
        min=1,
        help="CPU threads, of all workers together (default: the CPUs this process may use).",
    )
    executor: Option[Executor, Executor] = Option(
        "local", "--executor", help="local, or ray (a cluster)."
    )
    worker_gpus: Option[float | None, float | None] = Option(
        None,
        "--worker-gpus",
        help="With --executor ray: share of a GPU that each run reserves, such as 0.5.",
    )
    offline: Switch = _switch("--offline", "Open no connection.")
    save_every: Option[float | None, float | None] = Option(
        None,
        "--save-every",
        min=0.0,
        help="Seconds after which a run writes its state (default: 5 minutes).",
    )
    wait: Switch = _switch(
        "--wait/--no-wait",
        "At the end, wait for runs that other processes make, or skip them.",
        True,
    )
    started: Option[float | None, float] = Option(
        None,
        "--start-token",
        convert=lambda value: time.time() if value is None else float(value),
        metavar="NUMBER",
        help="One number for all processes of a command, such as a batch job's: --force then "
        "makes each run once.",
    )
    force: Switch = _switch("--force", "Re-run even if a result exists.")
    strict: Switch = _switch("--strict", "Refuse missing data, and data that contradict a spec.")
    trust_remote_code: Switch = _switch(
        "--trust-remote-code", "Let checkpoints run their own code."
    )


def options() -> dict[str, Option[Any, Any]]:
    """Every declared option by its Python keyword."""
    return {name: value for name, value in vars(RunRequest).items() if isinstance(value, Option)}


def with_arguments_of(
    kind: Callable[Arguments, Declared],
) -> Callable[[Callable[[Declared], Result]], Callable[Arguments, Result]]:
    """A function of what `kind` makes becomes a function of the arguments that `kind` takes, with
    their types.
    """

    def decorate(function: Callable[[Declared], Result]) -> Callable[Arguments, Result]:
        def called(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
            check_keywords(function.__name__, keywords, list(shown.parameters))
            return function(kind(*args, **keywords))

        called.__doc__, called.__name__ = function.__doc__, function.__name__
        called.__module__ = function.__module__
        shown, hints = inspect.signature(kind), get_type_hints(kind)
        plain = []
        for name, parameter in shown.parameters.items():
            hint = hints[name]
            declared = get_args(hint)[0] if get_origin(hint) is Option else hint
            plain.append(parameter.replace(annotation=declared))
        called.__signature__ = shown.replace(parameters=plain)  # type: ignore[attr-defined]
        return called

    return decorate
