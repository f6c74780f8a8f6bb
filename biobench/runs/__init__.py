"""Planning and making runs: models x tasks x seeds, locally or on a cluster.

The names below are imported at first use, because most of them load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biobench.runs.api import run
    from biobench.runs.options import RunRequest
    from biobench.runs.plan import RunPlan, make_plan
    from biobench.runs.result import RunResult
    from biobench.runs.table import RunResults

__all__ = ["RunPlan", "RunRequest", "RunResult", "RunResults", "make_plan", "run"]

_LAZY = {"RunRequest": "options", "RunResult": "result", "RunResults": "table", "run": "api"}
_LAZY |= dict.fromkeys(("RunPlan", "make_plan"), "plan")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
