"""Planning and making runs: models x tasks x seeds, locally or on a cluster."""

import sys
from types import ModuleType
from typing import Any

from biobench.run.api import run
from biobench.run.plan import Plan, Request, make_plan
from biobench.run.result import RunResult

__all__ = ["Plan", "Request", "RunResult", "make_plan", "run"]


class _Callable(ModuleType):
    """`biobench.run` is the function of the public contract and, once imported, this package: both work."""

    def __call__(self, *args: Any, **named: Any) -> list[RunResult]:
        return run(*args, **named)


sys.modules[__name__].__class__ = _Callable
