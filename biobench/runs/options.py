"""The options of `biobench run`, each declared once.

From this declaration come the options of the command line (`biobench.cli.console.options`), the typed signature of
`biobench.run`, and the `RunRequest` that is planned. A new option is one line here. Loads nothing heavy.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast, get_args, get_origin, get_type_hints, overload

from biobench.errors import UsageError

Declared = TypeVar("Declared")
Converted = TypeVar("Converted")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Executor = Literal["local", "ray"]
Track = Literal["fixed", "tuned", "frozen"]
Names = str | Path | Iterable[str | Path]


class Option(Generic[Declared, Converted]):
    """One option: what callers may give, and what the request holds.

    flags: its names on the command line; none for the argument. convert: from what is given to what is held.
    shown: further properties of the command line's option (help, metavar, envvar, min), as typer names them.
    """

    def __init__(
        self, default: Declared, *flags: str, convert: Callable[[Declared], Converted] | None = None, **shown: Any
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
    return (str(value),) if isinstance(value, str | Path) else tuple(str(g) for g in value)


def _seeds(value: str | int | Iterable[int] | None) -> str | None:
    if value is None or isinstance(value, str | int):
        return None if value is None else str(value)
    return ",".join(str(s) for s in value)


def _folder(value: str | Path | None) -> str | None:
    return None if value is None else str(value)


def _start(value: float | None) -> float:
    return time.time() if value is None else float(value)


def _shares(value: float | Iterable[float]) -> tuple[float, ...]:
    return (value,) if isinstance(value, int | float) else tuple(value)


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `run`, as the command line or the Python interface gives them."""

    model: Option[Names, tuple[str, ...]] = Option(
        (),
        convert=_names,
        metavar="MODEL...",
        help="Hub id, id@revision, local folder, or dummy (a random tiny encoder).",
    )
    tasks: Option[Names, tuple[str, ...]] = Option(
        (), "--task", convert=_names, metavar="ID_OR_YAML", help="Task id, pattern ('bc5*') or YAML path; repeatable."
    )
    _: KW_ONLY
    name: Option[Names, tuple[str, ...]] = Option(
        (),
        "--name",
        convert=_names,
        metavar="NAME",
        help="What reports call the model (default: its id, or its folder's name); once a model, in their order.",
    )
    suite: Option[str | None, str | None] = Option(
        None, "--suite", help="fr, en, needle, all, blurb, drbenchmark, or a YAML file that lists tasks."
    )
    languages: Option[Names, tuple[str, ...]] = Option(
        (), "--language", convert=_names, metavar="CODE", help="Only tasks in this language; repeatable."
    )
    types: Option[Names, tuple[str, ...]] = Option(
        (), "--type", convert=_names, metavar="TYPE", help="Only tasks of this type, such as token_ner; repeatable."
    )
    tags: Option[Names, tuple[str, ...]] = Option(
        (), "--tag", convert=_names, metavar="TAG", help="Only tasks with this tag, such as clinical; repeatable."
    )
    seeds: Option[str | int | Iterable[int] | None, str | None] = Option(
        None, "--seeds", convert=_seeds, help="42-50 or 42,43 (default: the spec's)."
    )
    data_dir: Option[str | Path | None, str | None] = Option(
        None,
        "--data-dir",
        convert=_folder,
        envvar="BIOBENCH_DATA_DIR",
        help="Folder that holds the corpora (default: ./data).",
    )
    results_dir: Option[str | Path, str] = Option(
        "results",
        "--results-dir",
        convert=str,
        envvar="BIOBENCH_RESULTS_DIR",
        help="Folder of records and predictions.",
    )
    device: Option[str, str] = Option("auto", "--device", help="auto, cpu or cuda.")
    parallel: Option[str | int, str] = Option(
        "auto", "--parallel", convert=str, help="auto, or a number of worker processes."
    )
    seeds_at_once: Option[str | int, str] = Option(
        "1", "--seeds-at-once", convert=str, help="Runs side by side on each device: a number, or auto (by memory)."
    )
    threads: Option[int | None, int | None] = Option(
        None, "--threads", min=1, help="CPU threads, of all workers together (default: the CPUs this process may use)."
    )
    executor: Option[Executor, Executor] = Option("local", "--executor", help="local, or ray (a cluster).")
    worker_gpus: Option[float | None, float | None] = Option(
        None, "--worker-gpus", help="With --executor ray: share of a GPU that each worker reserves, such as 0.5."
    )
    overrides: Option[Names, tuple[str, ...]] = Option(
        (),
        "--set",
        convert=_names,
        metavar="[TASK:]KEY=VALUE",
        help="Change a field of the spec, e.g. training.epochs=1; of one task alone: gad:training.epochs=1.",
    )
    limit: Option[int | None, int | None] = Option(None, "--limit", help="Training documents; the rest in proportion.")
    track: Option[Track, Track] = Option(
        "fixed",
        "--track",
        help="fixed (the papers' recipe), tuned (the same few rates for every model), or frozen (a probe on the states "
        "of an encoder that is not trained).",
    )
    protocol: Option[str | None, str | None] = Option(
        None, "--protocol", help="small: capped training documents and epochs, whole test splits; its own rows."
    )
    train_fractions: Option[float | Iterable[float], tuple[float, ...]] = Option(
        (1.0,), "--train-fraction", convert=_shares, help="Shares of the training documents, such as 0.1,0.25,1.0."
    )
    no_test: Option[bool, bool] = Option(
        False, "--no-test", help="Score on validation and leave the test split alone; shown apart from tested runs."
    )
    no_training: Option[bool, bool] = Option(
        False, "--no-training", help="Evaluate checkpoints that are fine-tuned already, as they are."
    )
    label_map: Option[Names, tuple[str, ...]] = Option(
        (),
        "--label-map",
        convert=_names,
        metavar="MODEL_LABEL=TASK_LABEL",
        help="With --no-training: which label of the task a checkpoint's label is; repeatable.",
    )
    keep_model: Option[str | Path | None, str | None] = Option(
        None,
        "--keep-model",
        convert=_folder,
        metavar="DIR",
        help="Save each fine-tuned model as a checkpoint below DIR.",
    )
    dry_run: Option[bool, bool] = Option(False, "--dry-run", help="Print the plan and stop.")
    force: Option[bool, bool] = Option(False, "--force", help="Re-run even if a result exists.")
    started: Option[float | None, float] = Option(
        None,
        "--start-token",
        convert=_start,
        metavar="NUMBER",
        help="One number for all processes of one command, such as a batch job's: none re-runs what another has made.",
    )
    wait: Option[bool, bool] = Option(
        True, "--wait/--no-wait", help="At the end, wait for runs that other processes make, or leave these to them."
    )
    offline: Option[bool, bool] = Option(False, "--offline", help="Open no connection.")
    strict: Option[bool, bool] = Option(False, "--strict", help="Refuse missing data, and data that contradict a spec.")
    energy: Option[bool, bool] = Option(
        False, "--energy", help="Measure the energy of each run (needs the extra `energy`)."
    )
    save_every: Option[float | None, float | None] = Option(
        None, "--save-every", min=0.0, help="Seconds after which a run writes its state (default: 5 minutes)."
    )
    gate: Option[bool, bool] = Option(
        True, "--gate/--no-gate", help="Ask before a task's first run whether it measures something."
    )
    trust_remote_code: Option[bool, bool] = Option(
        False, "--trust-remote-code", help="Let checkpoints run their own code."
    )


def options() -> dict[str, Option[Any, Any]]:
    """Every declared option by its Python keyword."""
    return {name: value for name, value in vars(RunRequest).items() if isinstance(value, Option)}


def with_arguments_of(
    kind: Callable[Arguments, Declared],
) -> Callable[[Callable[[Declared], Result]], Callable[Arguments, Result]]:
    """A function of what `kind` makes becomes a function of the arguments that `kind` takes, with their types."""

    def decorate(function: Callable[[Declared], Result]) -> Callable[Arguments, Result]:
        def called(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
            return function(kind(*args, **keywords))

        called.__doc__, called.__name__, called.__module__ = function.__doc__, function.__name__, function.__module__
        shown, hints = inspect.signature(kind), get_type_hints(kind)
        plain = [
            p.replace(annotation=get_args(hints[n])[0] if get_origin(hints[n]) is Option else hints[n])
            for n, p in shown.parameters.items()
        ]
        called.__signature__ = shown.replace(parameters=plain)  # type: ignore[attr-defined]
        return called

    return decorate
