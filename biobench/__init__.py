"""BioBench: judging biomedical encoders, in French and English.

The Python interface equals the command line: `run`, `compare`, `load_task`, `validate`, `results`,
`predictions` and `report`. Nothing heavy is imported until one of them is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from biobench.version import __version__

if TYPE_CHECKING:
    from biobench.comparison.compare import compare as compare
    from biobench.data.describe import validate as validate
    from biobench.data.export import load_task as load_task
    from biobench.reporting.frames import predictions as predictions
    from biobench.reporting.frames import report as report
    from biobench.reporting.frames import results as results
    from biobench.runs.api import run as run

__all__ = [
    "__version__",
    "compare",
    "load_task",
    "predictions",
    "report",
    "results",
    "run",
    "validate",
]

_LAZY = {
    "run": ("biobench.runs.api", "run"),
    "load_task": ("biobench.data.export", "load_task"),
    "compare": ("biobench.comparison.compare", "compare"),
    "validate": ("biobench.data.describe", "validate"),
    "results": ("biobench.reporting.frames", "results"),
    "predictions": ("biobench.reporting.frames", "predictions"),
    "report": ("biobench.reporting.frames", "report"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module 'biobench' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    globals()[name] = function = _with_checked_keywords(getattr(import_module(module), attribute))
    return function


def _with_checked_keywords(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; a keyword that it does not have is answered with the nearest one."""
    import functools
    import inspect

    from biobench.schema.strict import check_keywords

    names = list(inspect.signature(function).parameters)
    if "filters" in names:  # it checks them itself
        return function

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        check_keywords(function.__name__, keywords, names)
        return function(*arguments, **keywords)

    return called
