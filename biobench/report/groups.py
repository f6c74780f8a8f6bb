"""Which runs belong together: the same model on the same task under the same decisions, over seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from biobench.report.tasks import TaskInfo
from biobench.schema.record import ENGINE_VERSION, RunRecord

Source = Literal["published", "run", "submitted", "floor", "ceiling"]
"""Where a score comes from."""


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that differ by seed alone, one a seed, ordered by seed.

    variant: in words what sets these runs apart from the model's full runs on the shipped spec; empty for
    those. notes: what a reader must know of the group.
    """

    source: Source
    model: str
    variant: str
    task: str
    records: tuple[RunRecord, ...]
    notes: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds in order."""
        return tuple(r.seed for r in self.records)

    def scores(self, metric: str) -> list[float] | None:
        """The metric per seed; None where a record does not have it."""
        found = [r.scores.get(metric) for r in self.records]
        return None if any(v is None for v in found) else [v for v in found if v is not None]

    def labels(self) -> dict[str, tuple[int, float]]:
        """Label -> (gold in the test split, F1 mean over seeds), in the task's order."""
        found: dict[str, tuple[int, float]] = {}
        for label in self.records[0].task.labels:
            rows = [r.per_label[label] for r in self.records if label in r.per_label]
            if rows:
                found[label] = (int(rows[0]["support"]), sum(row["f1"] for row in rows) / len(rows))
        return found


def group_runs(records: Sequence[RunRecord], infos: Mapping[str, TaskInfo], source: Source = "run") -> list[RunGroup]:
    """Groups in order of task, model and variant. Limited, overridden, tuned or otherwise different runs are
    groups of their own."""
    weights: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    data: dict[str, set[str]] = defaultdict(set)
    specs: dict[str, set[str]] = defaultdict(set)
    for r in records:
        weights[r.model.id, r.model.revision].add(r.model.hash)
        data[r.task.id].add(r.task.data_hash)
        specs[r.task.id].add(r.task.hash)
    members: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for r in records:
        shipped = infos[r.task.id].hashes.get(r.task.source)
        parts = []
        if len(weights[r.model.id, r.model.revision]) > 1:
            parts.append(f"weights {r.model.hash[:8]}")
        if r.track != "fixed":
            parts.append(r.track)
        if r.limit is not None:
            parts.append(f"limit {r.limit}")
        if r.task.hash != shipped:
            parts += sorted(r.overrides)
            if not r.overrides and (shipped is not None or len(specs[r.task.id]) > 1):
                parts.append(f"version {r.task.version}, spec {r.task.hash[:8]}")
        if len(data[r.task.id]) > 1:
            parts.append(f"data {r.task.source} {r.task.data_hash[:8]}")
        if r.engine_version != ENGINE_VERSION:
            parts.append(f"engine {r.engine_version}")
        name = r.model.id if r.model.revision is None else f"{r.model.id}@{r.model.revision}"
        identity = (r.task.id, name, ", ".join(parts), r.model.hash, r.task.hash, r.task.data_hash)
        members[identity].append(r)
    groups = []
    for (task, name, variant, *_), runs in sorted(members.items()):
        kept, notes = _one_a_seed(runs)
        groups.append(RunGroup(source, name, variant, task, tuple(kept), tuple(notes)))
    return groups


def _one_a_seed(runs: list[RunRecord]) -> tuple[list[RunRecord], list[str]]:
    """One run a seed. Where seeds were run in two precisions, the one with more seeds (then bf16) is kept."""
    by_precision: dict[str, list[RunRecord]] = defaultdict(list)
    for r in runs:
        by_precision[r.training.precision].append(r)
    first = runs[0]
    what = f"{first.model.id} on {first.task.id}"
    repeated = len({r.seed for r in runs}) < len(runs)
    if not repeated:
        notes = []
        if len(by_precision) > 1:
            notes.append(f"{what}: seeds were run in different precisions ({', '.join(sorted(by_precision))})")
        return sorted(runs, key=lambda r: r.seed), notes
    best = min(by_precision, key=lambda p: (-len({r.seed for r in by_precision[p]}), p))
    # two records of one seed and precision differ in nothing that a key knows; the newer one stands
    unique = {r.seed: r for r in sorted(by_precision[best], key=lambda r: (r.provenance.started, r.key))}
    note = f"{what}: some seeds were run more than once; the {len(unique)} in {best} are shown"
    return [unique[seed] for seed in sorted(unique)], [note]
