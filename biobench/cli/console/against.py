"""`biobench run --against MODEL`: what was run, compared with another model of the results folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biobench.errors import BioBenchError

if TYPE_CHECKING:
    from biobench.runs import RunResult


def comparison(results: Sequence[RunResult], against: str, results_dir: str, data_dir: str | None) -> Iterator[str]:
    """The verdict of `compare` for each model with scores, on the tasks that were run; why where it has none."""
    from biobench.comparison.compare import compare

    scored = [r for r in results if r.status in ("done", "skipped") and r.scores]
    for model in dict.fromkeys(r.model for r in scored):
        if model == against:
            continue
        tasks = list(dict.fromkeys(r.task for r in scored if r.model == model))
        try:
            verdict = compare(model, against, results_dir=results_dir, data_dir=data_dir, tasks=tasks).verdict
        except BioBenchError as error:  # the runs are stored and shown: this alone has no answer
            yield f"{model} and {against} are not compared: {error.what}"
            if error.hint:
                yield f"hint: {error.hint}"
            continue
        yield from map(str, verdict)
