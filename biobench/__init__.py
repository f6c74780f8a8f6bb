"""BioBench: judging biomedical encoders, in French and English.

The Python interface equals the command line: `run`, `load_task`, `compare`. Nothing heavy is imported
until one of them is used.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "compare", "load_task", "run"]

_LAZY = {
    "run": ("biobench.runs.api", "run"),
    "load_task": ("biobench.data.catalog", "load_task"),
    "compare": ("biobench.comparison.compare", "compare"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'biobench' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _LAZY[name]
    return getattr(import_module(module), attribute)
