"""Where the variance of a model's scores comes from: its crossed runs, read from a results folder, and their plan.

A run of the design sets `training.head_seed` and `training.order_seed`, so head initialisation and data order vary
by themselves; test sampling comes from the stored predictions, by resampling groups of documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from biobench.comparison.evidence import Evidence
from biobench.core.files import canonical
from biobench.errors import UsageError
from biobench.report.entrants import find_entrants
from biobench.report.groups import RunGroup
from biobench.report.results import load, metric_of
from biobench.report.row import AverageName
from biobench.stats import Component, Counts, document_interval, variance_components

FIELDS = ("head_seed", "order_seed")
"""Of the spec's `training`, which the runs of a design set."""
_Cells = dict[tuple[int, int], RunGroup]


@dataclass(frozen=True, slots=True)
class VarianceReport:
    """components: standard deviations as fractions. notes: what is not in them, and why."""

    model: str
    tasks: tuple[str, ...]
    metrics: Mapping[str, str]
    heads: int
    orders: int
    seeds: int
    components: tuple[Component, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def text(self) -> str:
        """A line a source, in points, and what is largest."""
        runs = "1 training seed" if self.seeds == 1 else f"{self.seeds} training seeds"
        head = f"{self.model}: {self.heads} head initialisations x {self.orders} data orders x {runs}"
        rows = [f"{'source':<20} {'sd':>6}  {'95% interval':>16}  share"]
        for part in self.components:
            ends = f"{100 * part.low:.2f} to {100 * part.high:.2f}"
            share = "–" if part.share is None else f"{100 * part.share:.0f}%"
            rows.append(f"{part.part:<20} {100 * part.sd:>6.2f}  {ends:>16}  {share:>5}")
        legend = [
            "sd            standard deviation of one run's score from this source alone, in points",
            "share         of the variance of one run's score on one task",
            "rest          head and order together, dropout, and the training seed where there are several",
        ]
        if any(part.part == "task" for part in self.components):
            legend.insert(2, "task          between the true scores of tasks, test sampling taken off")
        notes = [f"* {text}" for text in self.notes]
        blocks = [[f"{head}, on {', '.join(self.tasks)}"], rows, legend, notes]
        return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def variance_report(
    model: str,
    results_dir: str | Path = "results",
    *,
    tasks: Sequence[str] = (),
    average: AverageName = "macro",
    data_dir: str | Path | None = None,
) -> VarianceReport:
    """The components of the model's crossed runs (of these tasks; by default of all that have a design).

    Raises UsageError where there is no design, where runs of one are missing, or where tasks have different ones.
    """
    results = load(results_dir)
    (entrant,) = find_entrants([model], results, [])
    designs: dict[str, _Cells] = {}
    for task, groups in entrant.groups.items():
        if not tasks or task in tasks:
            cells = _design(task, groups)
            if cells:
                designs[task] = cells
    missing = [task for task in tasks if task not in designs]
    if missing or not designs:
        what = f"on {', '.join(missing)}" if missing else "in this folder"
        raise UsageError(
            f"'{model}' has no crossed runs {what}",
            hint=f"`biobench analyze variance {quote(model)} --task ID --plan` prints the runs to make",
        )
    source = Evidence(None if data_dir is None else Path(data_dir))
    sizes: dict[str, tuple[int, int, tuple[int, ...]]] = {}
    scores, variances, counted, notes = [], [], [], []
    metrics = {}
    for task, cells in designs.items():
        heads, orders, seeds = _levels(model, task, cells)
        sizes[task] = len(heads), len(orders), seeds
        metric = metrics[task] = metric_of(results.infos[task], average)
        rows = {at: group.scores(metric) for at, group in cells.items()}
        if any(values is None for values in rows.values()):
            raise UsageError(f"{task}: some record has no {metric}", hint="`biobench rescore` computes it")
        table = {at: dict(zip(cells[at].seeds, values or (), strict=True)) for at, values in rows.items()}
        scores.append([[[table[h, o][s] for s in seeds] for o in orders] for h in heads])
        noise = _test_variance(source, cells, metric)
        if isinstance(noise, str):
            notes.append(f"test sampling is unknown on {task}: {noise}")
        else:
            variances.append(noise[0])
            counted.append(noise[1])
    if len({(h, o, len(s)) for h, o, s in sizes.values()}) > 1:
        each = "; ".join(f"{task} {h} x {o} x {len(s)}" for task, (h, o, s) in sizes.items())
        raise UsageError(f"the designs differ: {each}", hint="name tasks of one design with --task (repeatable)")
    whole = len(variances) == len(designs)
    components = variance_components(scores, variances if whole else None, counted if whole else None)
    heads_count, orders_count, first_seeds = next(iter(sizes.values()))
    return VarianceReport(
        entrant.label, tuple(designs), metrics, heads_count, orders_count, len(first_seeds), components, tuple(notes)
    )


def _design(task: str, groups: Sequence[RunGroup]) -> _Cells:
    """(head seed, order seed) -> runs, of the one protocol under which there are crossed runs."""
    protocols: dict[str, _Cells] = defaultdict(dict)
    for group in groups:
        record = group.records[0]
        training = record.protocol.get("training")
        if not isinstance(training, dict) or not all(isinstance(training.get(name), int) for name in FIELDS):
            continue
        rest = record.protocol | {"training": {k: v for k, v in training.items() if k not in FIELDS}}
        same = [rest, record.task.data_hash, record.limit, record.track, record.engine_version, record.model.hash]
        protocols[canonical(same)][training["head_seed"], training["order_seed"]] = group
    if len(protocols) > 1:
        raise UsageError(
            f"{task}: there are crossed runs under {len(protocols)} protocols",
            hint="keep each design in a results folder of its own",
        )
    return next(iter(protocols.values()), {})


def _levels(model: str, task: str, cells: _Cells) -> tuple[list[int], list[int], tuple[int, ...]]:
    """The heads, orders and common seeds. Raises UsageError where runs of the cross are missing."""
    heads, orders = (sorted({at[i] for at in cells}) for i in (0, 1))
    lacking = [f"head {h} order {o}" for h, o in product(heads, orders) if (h, o) not in cells]
    seeds = tuple(sorted(set.intersection(*(set(group.seeds) for group in cells.values()))))
    if lacking or min(len(heads), len(orders)) < 2 or not seeds:
        what = f"lacks {', '.join(lacking)}" if lacking else "needs two heads, two orders and a common training seed"
        command = f"`biobench analyze variance {quote(model)} --task {task} --plan`"
        raise UsageError(f"{task}: the crossed design {what}", hint=f"{command} prints the runs to make")
    return heads, orders, seeds


def _test_variance(source: Evidence, cells: _Cells, metric: str) -> tuple[float, int] | str:
    """Squared standard error of the mean over all runs on another test set, and its groups; or why there is none."""
    parts = []
    for group in cells.values():
        part = source.group_counts(group, metric)
        if isinstance(part, str):
            return part
        parts.append(part)
    first = parts[0]
    if any(part.groups != first.groups for part in parts):
        return "the runs were scored on different documents"
    stacked = Counts.of(*(np.concatenate([getattr(p.counts, n) for p in parts]) for n in ("tp", "fp", "fn")))
    noise = document_interval(stacked, first.average, evaluated=first.evaluated)
    return noise.note or "no variation" if noise.se is None else (noise.se**2, noise.n_groups)


def planned_commands(
    model: str, tasks: Sequence[str], *, heads: int, orders: int, seeds: str, more: Sequence[str] = ()
) -> list[str]:
    """The commands of a crossed design, one a pair of head and order. more: further arguments of each, as given."""
    if not tasks:
        raise UsageError("a plan needs a task", hint="--task ID (repeatable)")
    if min(heads, orders) < 2:
        raise UsageError(f"{heads} heads x {orders} orders are no crossed design", hint="give two of each or more")
    shared = ["biobench", "run", model, *(part for task in tasks for part in ("--task", task)), "--seeds", seeds, *more]
    return [
        " ".join(map(quote, [*shared, "--set", f"training.head_seed={h}", "--set", f"training.order_seed={o}"]))
        for h, o in product(range(1, heads + 1), range(1, orders + 1))
    ]
