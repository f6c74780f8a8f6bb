"""The command line's options from their one declaration in `biobench.runs.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from biobench.core.threads import prepare_threads
from biobench.errors import UsageError
from biobench.runs.options import Option, RunRequest, options

PANELS = {
    "Selection": ("name", "languages", "types", "tags"),
    "Protocol": ("track", "train_fractions", "no_test", "keep_model", "gate"),
    "Machine": ("device", "threads", "parallel", "seeds_at_once", "executor", "worker_gpus", "offline", "save_every"),
    "More": ("force", "wait", "started", "strict", "energy", "trust_remote_code"),
}
"""Panels of the help of `run` behind its first, which people need first."""


def shown(name: str, **changed: Any) -> Any:
    """Typer's option (or argument) of that keyword. changed: other properties, such as another help text."""
    option = options()[name]
    properties = option.shown | changed
    return typer.Option(*option.flags, **properties) if option.flags else typer.Argument(**properties)


def takes_request(
    *, only: Collection[str] = (), helps: Mapping[str, str] | None = None, panels: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose first parameter is a `RunRequest` gets the options that make one, before its own.

    only: keywords of the options that the command has, or all; others keep their defaults. helps: other words for some.
    panels: group the options of the help.
    """
    panel = {name: title for title, names in PANELS.items() for name in names} if panels else {}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        taken = {name: option for name, option in options().items() if not only or name in only}

        def called(**arguments: Any) -> None:
            request = {name: _read(option, arguments.pop(name)) for name, option in taken.items()}
            if request.get("threads") is not None:
                prepare_threads(request["threads"])  # before the command loads torch
            command(RunRequest(**request), **arguments)

        _, *others = inspect.signature(command, eval_str=True).parameters.values()
        changed = {name: {"help": text} for name, text in (helps or {}).items()}
        changed |= {name: {"rich_help_panel": title} for name, title in panel.items()}
        parameters = [_parameter(name, option, **changed.get(name, {})) for name, option in taken.items()]
        parameters += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in others]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        called.__doc__, called.__name__ = command.__doc__, command.__name__
        return called

    return decorate


def _parameter(name: str, option: Option[Any, Any], **changed: Any) -> inspect.Parameter:
    annotated = get_args(get_type_hints(RunRequest)[name])[1]
    default: Any = option.default
    if annotated == tuple[str, ...]:
        annotated, default = list[str], list(default)
    elif annotated == tuple[float, ...]:
        annotated, default = str, ",".join(str(value) for value in default)
    elif get_origin(annotated) is Literal:
        annotated = str
    if not option.flags:
        default = inspect.Parameter.empty
    annotation: Any = Annotated[annotated, shown(name, **changed)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _read(option: Option[Any, Any], value: Any) -> Any:
    """Numbers in a text become numbers. Raises UsageError."""
    if not isinstance(value, str) or isinstance(option.default, str) or not isinstance(option.default, tuple):
        return value
    try:
        return tuple(float(part) for part in value.split(","))
    except ValueError:
        raise UsageError(f"{option.flags[0]} '{value}' is not understood", hint="for example 0.1,1.0") from None
