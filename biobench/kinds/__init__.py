"""Kinds of task, one file each: targets, head, loss, decoding and extra scores of a kind stand
together.

A file is found by being here; it registers its kind with `@register`. Importing a kind loads no
torch: what needs it imports it where it is used.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from biobench.core.packages import KINDS, METRICS, plugins
from biobench.kinds.base import Answers, Kind, Split, Task, get_kind
from biobench.schema.kind import PLUGIN_METRICS, metric_names

__all__ = ["Answers", "Kind", "Split", "Task", "get_kind", "metric_names"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
plugins(KINDS)
PLUGIN_METRICS.update(plugins(METRICS))
