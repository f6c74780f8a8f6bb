"""The command line's options from their one declaration in `biobench.runs.options`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from copy import copy
from functools import wraps
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from biobench.core.threads import prepare_threads
from biobench.errors import UsageError
from biobench.runs.options import ARGUMENT, Option, RunRequest, flag_of, options

PANELS = {
    "Selection": ("languages", "types", "tags"),
    "Protocol": ("track", "label_map", "fractions", "no_test", "keep_model", "gate"),
    "Machine": (
        "device",
        "threads",
        "parallel",
        "seeds_at_once",
        "executor",
        "worker_gpus",
        "offline",
        "save_every",
    ),
    "More": ("force", "wait", "started", "strict", "trust_remote_code"),
}
"""Panels of the help of `run` behind its first, which people need first."""
_EXPLAINED = re.compile(r"^(\w+)(?: \((.+)\))?: (.*(?:\n .*)*)", re.MULTILINE)
"""A parameter's line in a docstring: name, metavar and help, which goes on in lines further in."""


def explain(command: Callable[..., None]) -> None:
    """Take the help of a command's options and arguments from the end of its docstring.

    A line each there: ``name: help``, or ``name (METAVAR): help``. A parameter that has no option
    of its own in its annotation becomes ``--name``, or an argument where its position names it.
    """
    text, hints = inspect.getdoc(command) or "", get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters
    lines = [line for line in _EXPLAINED.finditer(text) if line[1] in parameters]
    for line in lines:
        name, metavar, words = line.groups()
        annotation: Any = hints[name]
        if get_origin(annotation) is Annotated:
            annotation, declared = get_args(annotation)
            info = copy(declared)
        else:
            info = _plain_option(parameters[name])
        info.help = " ".join(words.split())
        info.metavar = metavar or info.metavar
        hints[name] = Annotated[annotation, info]
    command.__annotations__ = hints
    if lines:
        command.__doc__ = text[: lines[0].start()].rstrip()


def _plain_option(parameter: inspect.Parameter) -> Any:
    """``--name`` (of a switch that is on, ``--no-name`` too), or an argument."""
    is_required = parameter.default is inspect.Parameter.empty
    if is_required and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return typer.Argument()
    return typer.Option(flag_of(parameter.name, parameter.default))


def shown(name: str, **changed: Any) -> Any:
    """Typer's option (or argument) of that keyword. changed: other properties, such as another help
    text.
    """
    option = options()[name]
    properties: dict[str, Any] = {"callback": _set_threads if name == "threads" else _refuse_option}
    properties |= option.properties | changed
    if ARGUMENT in option.flags:
        return typer.Argument(**properties)
    return typer.Option(*option.flags, **properties)


def _refuse_option(param: typer.CallbackParam, value: Any) -> Any:
    """The value, unless it is the next option, which one without its value swallowed."""
    for given in value if isinstance(value, list) else [value]:
        if isinstance(given, str) and given.startswith("--"):
            raise UsageError(
                f"{param.opts[-1]} has no value before '{given}'",
                hint=f"write {param.opts[-1]} {param.metavar or 'VALUE'}",
            )
    return value


def _set_threads(threads: int | None) -> int | None:
    """The option's value, applied as soon as it is read: the command loads torch after that."""
    if threads is not None:
        prepare_threads(threads)
    return threads


def takes_request(command: Callable[..., None], only: Collection[str] = ()) -> Callable[..., None]:
    """A command whose first parameter is a `RunRequest` gets the options that make one, in panels,
    before its own.

    only: keywords of the options that it has, or all; others keep their defaults.
    """
    explain(command)
    declared = {name: option for name, option in options().items() if not only or name in only}
    panel = {name: title for title, names in PANELS.items() for name in names}

    @wraps(command)
    def called(**arguments: Any) -> None:
        request = {name: arguments.pop(name) for name in declared}
        command(RunRequest(**request), **arguments)

    _, *further = inspect.signature(command).parameters.values()
    parameters = []
    for name, option in declared.items():
        parameters.append(_parameter(name, option, rich_help_panel=panel.get(name)))
    parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in further]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def _parameter(name: str, option: Option[Any, Any], **changed: Any) -> inspect.Parameter:
    annotated = get_args(get_type_hints(RunRequest)[name])[1]
    default: Any = option.default
    if annotated == tuple[str, ...]:
        annotated, default = list[str], list(default)
    elif get_origin(annotated) is Literal:
        annotated = str
    if ARGUMENT in option.flags:
        default = inspect.Parameter.empty
    annotation: Any = Annotated[annotated, shown(name, **changed)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
