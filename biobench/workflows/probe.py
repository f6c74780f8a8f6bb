"""Small scores while a model is being pretrained: a frozen probe on open tasks, through the benchmark's own engine.

Scores are of the validation documents, never of the test documents: a checkpoint must not be chosen by those.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from biobench.data import catalog
from biobench.data.locate import find
from biobench.errors import DataUnavailableError, TrainingError, UsageError

QUICK = ("probe.learning_rates=[1e-3, 1e-2]", "probe.epochs=10")
"""Settings of the probe besides the usual ones: two rates and few epochs."""


def check_tasks(tasks: Sequence[str], data_dir: str | None) -> None:
    """Raise UsageError for a task that is not open to everybody, DataUnavailableError where its data is missing."""
    known = {task.id: task for task in catalog.list_tasks()}
    for name in tasks:
        if name not in known:
            raise UsageError(f"logging.probe names no task '{name}'", hint="give ids of `biobench tasks list`")
        if known[name].spec.access != "open":
            raise UsageError(
                f"logging.probe names {name}, whose data is under an agreement",
                hint="probe on open tasks: what is chosen by a probe is fitted to it",
            )
        if find(known[name], data_dir) is None:
            raise DataUnavailableError(f"the data of {name} is not available", hint="give its folder with --data-dir")


def probe(
    tasks: Sequence[str], *, documents: int, seed: int, data_dir: str | None, device: str
) -> Callable[[Path], dict[str, float]]:
    """A function from an exported model to the validation score (0-1) of each task.

    documents: training documents of each task, validation in proportion. device: cpu or cuda.
    """

    def scores(model: Path) -> dict[str, float]:
        from biobench.runs.api import run
        from biobench.store import Store

        with tempfile.TemporaryDirectory() as folder:
            results = run(
                str(model),
                list(tasks),
                seeds=seed,
                limit=documents,
                data_dir=data_dir,
                results_dir=folder,
                device=device,
                parallel=1,
                gate=False,
                overrides=["training.encoder=frozen", *QUICK],
            )
            values = {}
            for result in results:
                record = Store(folder).get(result.task, result.key or "")
                if record is None:
                    raise TrainingError(
                        f"the probe on {result.task} ended as {result.status}: {result.reason}",
                        hint="try `biobench run MODEL --task TASK --set training.encoder=frozen`, or leave it out",
                    )
                values[result.task] = max(point.validation[result.primary] for point in record.training.curve)
            return values

    return scores
