"""Planning and making runs: models x tasks x seeds, locally or on a cluster; and the gate, which needs no torch."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biobench.run.api import run
    from biobench.run.plan import Plan, Request, make_plan
    from biobench.run.result import RunResult

__all__ = ["Plan", "Request", "RunResult", "make_plan", "run"]

_LAZY = {"Plan": "plan", "Request": "plan", "make_plan": "plan", "RunResult": "result", "run": "api"}
"""Name to the module that has it, imported at first use: all but `biobench.run.gate` loads torch."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'biobench.run' has no attribute {name!r}")
    return getattr(import_module(f"biobench.run.{_LAZY[name]}"), name)


class _Callable(ModuleType):
    """`biobench.run` is the function of the public contract and, once imported, this package: both work."""

    def __call__(self, *args: Any, **named: Any) -> "list[RunResult]":
        from biobench.run.api import run

        return run(*args, **named)


sys.modules[__name__].__class__ = _Callable
