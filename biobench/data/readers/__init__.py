"""Native formats, a few of a kind in a file; a file is found by being here and registers them with
`@reader`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from biobench.core.packages import READERS, plugins
from biobench.data.readers.base import REGISTRY, Reader, ReaderOptions, Request
from biobench.errors import SpecError
from biobench.schema.strict import suggest

__all__ = ["Reader", "ReaderOptions", "Request", "formats", "get_reader"]


@cache
def _discover() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    plugins(READERS)


def get_reader(name: str) -> Reader:
    """The reader of format `name`. Raises SpecError with the nearest known name."""
    _discover()
    if name not in REGISTRY:
        raise SpecError(
            f"reader.format '{name}' is not known", hint=suggest(name, sorted(REGISTRY))
        )
    return REGISTRY[name]


def formats() -> dict[str, Reader]:
    """All readers by format name."""
    _discover()
    return dict(sorted(REGISTRY.items()))
