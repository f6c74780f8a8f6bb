"""Tables, comparisons and exports from stored runs and published scores. Free of torch.

The package can be called: ``biobench.report("results")`` is the report of a results folder.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that stands for its main function, so that `biobench.report` can be both."""

    def __call__(self, results_dir: str = "results", average: str = "paper", **filters: Any) -> Any:
        """The report of a results folder (`report.frame.Report`, `.frame` is the data frame);
        filters as of `build`.

        average: paper (each task's published one), macro, micro or weighted. Raises UsageError
        where there is no such folder.
        """
        import inspect

        from biobench.report.frame import build
        from biobench.report.frames import results
        from biobench.schema.strict import check_keywords

        known = list(inspect.signature(build).parameters)[2:]
        check_keywords("report", filters, ["results_dir", "average", *known])
        return results(results_dir).report(average, **filters)  # type: ignore[arg-type]


sys.modules[__name__].__class__ = _Room
