"""Which runs belong together: the same model on the same task under the same decisions, over seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from biobench.errors import StoreError
from biobench.report.escape import plain
from biobench.report.notes import Note, note
from biobench.report.tasks import TaskInfo
from biobench.schema.protocols import protocol_named_by
from biobench.schema.record import ENGINE_VERSION, RunRecord
from biobench.stats import failed_runs
from biobench.store import Brief, Store

Source = Literal["published", "run", "outside", "submitted", "floor", "ceiling"]
"""Where a score comes from; outside: from predictions that were made elsewhere (`biobench score`)."""


_LIMIT = "limit "
AS_IS = "no training"
VALIDATION = "validation only"
_NAMESAKES = ("weights ", "submission ")


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ by seed alone, one a seed, ordered by seed.

    variant: in words what sets these runs apart from the model's full runs on the shipped spec; empty for
    those. notes: what a reader must know of the group.
    """

    source: Source
    model: str
    variant: str
    task: str
    briefs: tuple[Brief, ...]
    store: Store = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def records(self) -> tuple[RunRecord, ...]:
        """The records themselves, read when first asked for. Raises StoreError where one is gone or damaged."""
        return tuple(map(self._record, self.briefs))

    @cached_property
    def unit(self) -> float:
        """What one more right answer is worth at most, a fraction: scores that agree to less agree by chance.

        0 without gold. Raises StoreError where the first record is gone or damaged.
        """
        answers = sum(row["support"] for row in self._record(self.briefs[0]).per_label.values())
        return 1 / answers if answers else 0.0

    def _record(self, brief: Brief) -> RunRecord:
        record = self.store.get(brief.task, brief.key)
        if record is None:
            raise StoreError(
                f"the record of {brief.task}, seed {brief.seed} is gone since the folder was read",
                hint="read the results folder again",
                file=self.store.root,
            )
        return record

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds in order."""
        return tuple(b.seed for b in self.briefs)

    def scores(self, metric: str) -> list[float] | None:
        """The metric per seed; None where a record does not have it."""
        found = [b.scores.get(metric) for b in self.briefs]
        return None if any(v is None for v in found) else [v for v in found if v is not None]

    def failed(self, metric: str, floors: Mapping[tuple[str, str], float]) -> tuple[bool, ...]:
        """Which runs failed, in the order of the seeds: the one flag of report, comparison, data frame and board.

        floors: (task, metric) -> what the best policy without skill scores. None failed where the metric is missing.
        """
        scores = self.scores(metric)
        if scores is None:
            return (False,) * len(self.briefs)
        tested = self.briefs[0].split == "test"  # the floors are scores on the test split
        return failed_runs(scores, floors.get((self.task, metric)) if tested else None)

    def labels(self) -> dict[str, tuple[int, float]]:
        """Label -> (gold in the test split, F1 mean over seeds), in the task's order."""
        found: dict[str, tuple[int, float]] = {}
        for label in self.records[0].task.labels:
            rows = [r.per_label[label] for r in self.records if label in r.per_label]
            if rows:
                found[label] = (int(rows[0]["support"]), sum(row["f1"] for row in rows) / len(rows))
        return found


def is_limited(variant: str) -> bool:
    """Whether the scores of this variant are not of the whole test split: a part of it (--limit), or validation."""
    return any(part.startswith(_LIMIT) or part == VALIDATION for part in variant.split(", "))


def is_whole(variant: str) -> bool:
    """Whether runs of this variant are full runs on the shipped protocol, of which there are several by one name."""
    return all(part.startswith(_NAMESAKES) for part in variant.split(", ") if part)


def group_runs(
    briefs: Sequence[Brief], infos: Mapping[str, TaskInfo], store: Store, source: Source = "run"
) -> list[RunGroup]:
    """Groups in order of task, model and variant. Limited, overridden, tuned or otherwise different runs are
    groups of their own."""
    weights: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    data: dict[str, set[str]] = defaultdict(set)
    specs: dict[str, set[str]] = defaultdict(set)
    for b in briefs:
        weights[b.model, b.revision].add(b.weights)
        data[b.task].add(b.data)
        specs[b.task].add(b.spec)
    members: dict[tuple[Any, ...], list[Brief]] = defaultdict(list)
    for b in briefs:
        shipped = infos[b.task].hashes.get(b.source)
        parts = []
        if len(weights[b.model, b.revision]) > 1:
            parts.append(f"weights {b.weights[:8]}")
        if b.origin == "checkpoint":
            parts.append(AS_IS)
        if b.split != "test":
            parts.append(VALIDATION)
        if b.track != "fixed":
            parts.append(b.track)
        if b.limit is not None:
            parts.append(f"{_LIMIT}{b.limit}")
        protocol = protocol_named_by(b.overrides)
        if protocol is not None:
            parts.append(f"{protocol} protocol")
        elif b.spec != shipped:
            parts += sorted(b.overrides)
            if not b.overrides and (shipped is not None or len(specs[b.task]) > 1):
                parts.append(f"version {b.version}, spec {b.spec[:8]}")
        if len(data[b.task]) > 1:
            parts.append(f"data {b.source} {b.data[:8]}")
        if b.engine != ENGINE_VERSION:
            parts.append(f"engine {b.engine}")
        name = b.model if b.revision is None else f"{b.model}@{b.revision}"
        of = "outside" if source == "run" and b.origin == "outside" else source
        members[of, b.task, name, ", ".join(parts), b.weights, b.spec, b.data].append(b)
    groups = []
    for (of, task, name, variant, *_), runs in sorted(members.items(), key=lambda item: item[0][1:] + item[0][:1]):
        kept, notes = _one_a_seed(runs)
        groups.append(RunGroup(of, name, variant, task, tuple(kept), store, tuple(notes)))
    return groups


def apart(groups: Iterable[RunGroup]) -> tuple[RunGroup, ...]:
    """The groups, no two of one name on one task: in a table the later would stand in the place of the earlier.

    Where several submissions name one model, each says which submission it is, on all its tasks: nobody has
    checked that they are of one model, and parts of a suite from different hands are not one whole. Groups that
    still share a name say what else differs: their weights, spec or data.
    """
    found = list(groups)
    folders: dict[str, set[str]] = defaultdict(set)
    for g in found:
        if g.source == "submitted":
            folders[g.model].add(g.store.root.name)
    several = {model for model, names in folders.items() if len(names) > 1}
    for place, g in enumerate(found):
        if g.source == "submitted" and g.model in several:
            found[place] = _said_of(g, f"submission {plain(g.store.root.name)}")
    alike: dict[tuple[str, ...], list[RunGroup]] = defaultdict(list)
    for g in found:
        alike[g.source, g.model, g.variant, g.task].append(g)
    return tuple(
        _said_of(g, *_differing([other.briefs[0] for other in others], g.briefs[0]))
        for g in found
        for others in [alike[g.source, g.model, g.variant, g.task]]
    )


def _said_of(group: RunGroup, *parts: str) -> RunGroup:
    return replace(group, variant=", ".join(part for part in (group.variant, *parts) if part))


def _differing(briefs: Sequence[Brief], own: Brief) -> list[str]:
    """The hashes of `own` that the briefs do not share."""
    return [
        f"{name} {getattr(own, name)[:8]}"
        for name in ("weights", "spec", "data")
        if len({getattr(b, name) for b in briefs}) > 1
    ]


def _one_a_seed(runs: list[Brief]) -> tuple[list[Brief], list[Note]]:
    """One run a seed. Where seeds were run in two precisions, the one with more seeds (then bf16) is kept."""
    by_precision: dict[str, list[Brief]] = defaultdict(list)
    for b in runs:
        by_precision[b.precision].append(b)
    what = {"model": runs[0].model, "task": runs[0].task}
    repeated = len({b.seed for b in runs}) < len(runs)
    if not repeated:
        notes = []
        if len(by_precision) > 1:
            form = "{model} on {task}: seeds were run in different precisions ({precisions})"
            notes.append(note(form, **what, precisions=", ".join(sorted(by_precision))))
        return sorted(runs, key=lambda b: b.seed), notes
    best = min(by_precision, key=lambda p: (-len({b.seed for b in by_precision[p]}), p))
    # two records of one seed and precision differ in nothing that a key knows; the newer one stands
    unique = {b.seed: b for b in sorted(by_precision[best], key=lambda b: (b.started, b.key))}
    form = "{model} on {task}: some seeds were run more than once; the {count} in {precision} are shown"
    return [unique[seed] for seed in sorted(unique)], [note(form, **what, count=len(unique), precision=best)]
