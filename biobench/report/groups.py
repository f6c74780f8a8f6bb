"""Which runs belong together: the same model on the same task under the same decisions, over
seeds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal

from biobench.errors import StoreError
from biobench.report.escape import plain
from biobench.report.tasks import NEEDLE, TaskInfo
from biobench.schema.protocols import FROZEN, protocol_named_by
from biobench.schema.record import ENGINE_VERSION, READY, RunRecord
from biobench.stats import failed_runs
from biobench.store import Brief, Store
from biobench.store.statements import mark_of

Source = Literal["published", "run", "frozen", "external", "submitted", "baseline", "oracle"]
"""Where a score comes from; frozen: from runs whose encoder was not trained (`--track frozen`);
external: from predictions that were made elsewhere (`biobench score`).
"""
Condition = tuple[str, str, int | None, str, int, str]
"""What runs on one task must share: spec hash (with overrides), data hash, limit, track, engine
version, split.
"""
_LENGTH = re.compile(r"accuracy\.(\d+)")
"""Score of a needle run on the documents of one length."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What sets runs apart from the model's full runs on the shipped spec; empty for those. str()
    is for people.

    The hashes are there where the results hold more than one of their kind.
    """

    weights: str = ""
    trained: bool = True
    """False: a checkpoint evaluated as it is."""
    validation: bool = False
    """Scored on the validation split."""
    track: str = ""
    limit: int | None = None
    protocol: str = ""
    overrides: tuple[str, ...] = ()
    """KEY=VALUE in order, but for those of a declared protocol."""
    version: tuple[int, str] | None = None
    """Version and hash of a spec that is not the shipped one."""
    data: tuple[str, str] | None = None
    """Source and hash."""
    engine: int | None = None
    submission: str = ""
    unlike: tuple[tuple[str, str], ...] = ()
    """What else groups of one name do not share: (weights, spec, data or key; hash)."""

    @property
    def partial(self) -> bool:
        """Whether the scores are not of the whole test split: a part of it (--limit), or
        validation.
        """
        return self.limit is not None or self.validation

    @property
    def whole(self) -> bool:
        """Whether these are full runs on the shipped protocol; of weights or submissions there can
        be several.
        """
        unlike = tuple(pair for pair in self.unlike if pair[0] != "weights")
        return replace(self, weights="", submission="", unlike=unlike) == Variant()

    def __str__(self) -> str:
        """In words, with commas."""
        parts = [
            f"weights {self.weights[:8]}" if self.weights else "",
            "" if self.trained else "ready-made",
            "validation only" if self.validation else "",
            self.track,
            "" if self.limit is None else f"limit {self.limit}",
            f"{self.protocol} protocol" if self.protocol else "",
            *self.overrides,
            f"version {self.version[0]}, spec {self.version[1][:8]}" if self.version else "",
            f"data {self.data[0]} {self.data[1][:8]}" if self.data else "",
            "" if self.engine is None else f"engine {self.engine}",
            f"submission {self.submission}" if self.submission else "",
            *(f"{name} {value[:8]}" for name, value in self.unlike),
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ by seed alone, one a seed, ordered by seed.

    notes: what a reader must know of the group.
    """

    source: Source
    model: str
    departures: Variant
    task: str
    briefs: tuple[Brief, ...]
    store: Store = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    slice: str = ""
    """The part of the gold that the briefs' scores are of (`score.slices`); empty: all of it."""

    @cached_property
    def variant(self) -> str:
        """The departures in words."""
        return str(self.departures)

    @property
    def line(self) -> tuple[str, str, Source]:
        """What names its line in a wide table, as that of a row: model, variant, source."""
        return self.model, self.variant, self.source

    @property
    def condition(self) -> Condition:
        """What its runs share with those that they are compared with."""
        first = self.briefs[0]
        # what was trained before is compared with any run of the papers' recipe
        track = "fixed" if first.track == READY else first.track
        return first.spec, first.data, first.limit, track, first.engine, first.split

    @property
    def is_full(self) -> bool:
        """Whether the runs saw the whole task, without overrides that changed its protocol."""
        return not (
            self.departures.partial or self.departures.protocol or self.departures.overrides
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        """The document lengths that a needle run's score is over, those that its window holds; ()
        for other tasks.
        """
        first = self.briefs[0]
        matches = map(_LENGTH.fullmatch, first.scores if first.type == NEEDLE else ())
        return tuple(sorted(int(match[1]) for match in matches if match))

    @cached_property
    def mark(self) -> str:
        """Of a submission's runs: reproduced, re-scored or claimed (`store.statements`); empty for
        one's own.
        """
        return mark_of(self.store.root) if self.source == "submitted" else ""

    @cached_property
    def records(self) -> tuple[RunRecord, ...]:
        """The records themselves, read when first asked for. Raises StoreError where one is gone or
        damaged.
        """
        records = []
        for brief in self.briefs:
            record = self.store.get(brief.task, brief.key)
            if record is None:
                what = (
                    f"the record of {brief.task}, seed {brief.seed} is gone since the folder "
                    f"was read"
                )
                raise StoreError(what, hint="read the results folder again", file=self.store.root)
            records.append(record)
        return tuple(records)

    @property
    def unit(self) -> float:
        """What one more right answer is worth at most, a fraction: scores that agree to less agree
        by chance.

        0 without gold.
        """
        answers = self.briefs[0].answers
        return 1 / answers if answers else 0.0

    @property
    def is_untrained(self) -> bool:
        """Whether nothing was trained here (predictions made elsewhere, a checkpoint as it is), so
        that its single run has no seeds to vary.
        """
        return self.briefs[0].origin != "run" and len(self.briefs) == 1

    @property
    def folds(self) -> int:
        """Splits of the task that the protocol has, each of which is a run; 0 where there is one
        split.
        """
        return self.briefs[0].folds

    @cached_property
    def ratio(self) -> float:
        """Test documents to training documents of a split; 0 where the task has a single one."""
        sizes = [b.test_documents / b.train_documents for b in self.briefs if b.train_documents]
        return sum(sizes) / len(sizes) if sizes else 0.0

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds in order."""
        return tuple(b.seed for b in self.briefs)

    def scores(self, metric: str) -> tuple[float, ...] | None:
        """The metric per seed; None where a record does not have it."""
        if metric not in self._scores:
            whole = all(metric in b.scores for b in self.briefs)
            self._scores[metric] = tuple(b.scores[metric] for b in self.briefs) if whole else None
        return self._scores[metric]

    @cached_property
    def _scores(self) -> dict[str, tuple[float, ...] | None]:
        """What `scores` gave before."""
        return {}

    def failed(self, metric: str) -> tuple[bool, ...]:
        """Which runs failed, in the order of the seeds: the one flag of report, comparison, data
        frame and board. None failed where the metric is missing.
        """
        scores = self.scores(metric)
        # splits differ in their test documents, not in what went wrong
        if scores is None or self.folds:
            return (False,) * len(self.briefs)
        return failed_runs(scores)

    def labels(self) -> dict[str, tuple[int, float]]:
        """Label -> (gold in the test split, F1 mean over seeds), in the task's order."""
        by_label: dict[str, tuple[int, float]] = {}
        for label in self.records[0].task.labels:
            rows = [r.per_label[label] for r in self.records if label in r.per_label]
            if rows:
                by_label[label] = (
                    int(rows[0]["support"]),
                    sum(row["f1"] for row in rows) / len(rows),
                )
        return by_label


_conditions = attrgetter(
    *("task", "model", "revision", "weights", "spec", "version", "data", "source"),
    *("origin", "split", "track", "limit", "engine", "overrides"),
)
"""All that runs of one group share: what `Variant` and the group's name are made of."""


def _labels_of(brief: Brief) -> str:
    """Of a ready-made model its key, which says which of its labels stand for which of the task:
    two such runs are no seeds of one. Empty for others.
    """
    return brief.key if brief.track == READY else ""


def group_runs(
    briefs: Sequence[Brief], infos: Mapping[str, TaskInfo], store: Store, source: Source = "run"
) -> list[RunGroup]:
    """Groups in order of task, model and variant. Limited, overridden, tuned or otherwise different
    runs are groups of their own.
    """
    alike: dict[tuple[Any, ...], list[Brief]] = defaultdict(list)
    for b in briefs:
        alike[*_conditions(b), _labels_of(b)].append(b)
    weights: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    data: dict[str, set[str]] = defaultdict(set)
    specs: dict[str, set[str]] = defaultdict(set)
    for b, *_ in alike.values():
        weights[b.model, b.revision].add(b.weights)
        data[b.task].add(b.data)
        specs[b.task].add(b.spec)
    members: dict[tuple[Any, ...], list[Brief]] = defaultdict(list)
    for runs in alike.values():
        b = runs[0]
        variant = Variant(
            weights=b.weights if len(weights[b.model, b.revision]) > 1 else "",
            trained=b.origin != "checkpoint",
            validation=b.split != "test",
            track="" if b.track in ("fixed", READY) else b.track,
            limit=b.limit,
            data=(b.source, b.data) if len(data[b.task]) > 1 else None,
            engine=None if b.engine == ENGINE_VERSION else b.engine,
        )
        variant = _of_spec(
            variant, b, infos[b.task].hashes.get(b.source), several=len(specs[b.task]) > 1
        )
        name = b.model if b.revision is None else f"{b.model}@{b.revision}"
        of = source
        if source == "run":
            of = "external" if b.origin == "outside" else "frozen" if b.track == "frozen" else "run"
        members[of, b.task, name, variant, b.weights, b.spec, b.data, _labels_of(b)] += runs
    groups = []
    order = sorted(members, key=lambda key: (key[1], key[2], str(key[3]), *key[4:], key[0]))
    for of, task, name, variant, *hashes in order:
        kept, notes = _one_a_seed(members[of, task, name, variant, *hashes])
        groups.append(RunGroup(of, name, variant, task, tuple(kept), store, tuple(notes)))
    return groups


def _of_spec(variant: Variant, brief: Brief, shipped: str | None, *, several: bool) -> Variant:
    """With the protocol, or the spec where it is not the shipped one. several: the task was run on
    several specs.
    """
    protocol = protocol_named_by(brief.overrides)
    if protocol is not None:
        return replace(variant, protocol=protocol)
    if brief.spec == shipped:
        return variant
    if brief.overrides:
        overrides = set(brief.overrides) - (set(FROZEN) if brief.track == "frozen" else set())
        return replace(variant, overrides=tuple(sorted(overrides)))
    return (
        replace(variant, version=(brief.version, brief.spec))
        if shipped is not None or several
        else variant
    )


def apart(groups: Iterable[RunGroup]) -> tuple[RunGroup, ...]:
    """The groups, no two of one name on one task: in a table the later would stand in the place of
    the earlier.

    Where several submissions name one model, each says which submission it is, on all its tasks:
    nobody has checked that they are of one model, and parts of a suite from different hands are not
    one whole. Groups that still share a name say what else differs: their weights, spec or data.
    """
    groups = list(groups)
    folders: dict[str, set[str]] = defaultdict(set)
    for g in groups:
        if g.source == "submitted":
            folders[g.model].add(g.store.root.name)
    named = [
        replace(g, departures=replace(g.departures, submission=plain(g.store.root.name)))
        if g.source == "submitted" and len(folders[g.model]) > 1
        else g
        for g in groups
    ]
    alike: dict[tuple[str, ...], list[Brief]] = defaultdict(list)
    for g in named:
        alike[g.source, g.model, g.variant, g.task].append(g.briefs[0])
    for place, g in enumerate(named):
        briefs = alike[g.source, g.model, g.variant, g.task]
        if len(briefs) > 1:
            hashes = ["weights", "spec", "data"]
            if g.briefs[0].track == READY:
                hashes.append("key")
            differs = [n for n in hashes if len({getattr(b, n) for b in briefs}) > 1]
            unlike = tuple((name, getattr(g.briefs[0], name)) for name in differs)
            named[place] = replace(g, departures=replace(g.departures, unlike=unlike))
    return tuple(named)


def _one_a_seed(runs: list[Brief]) -> tuple[list[Brief], list[str]]:
    """One run a seed. Where seeds were run in two precisions, the one with more seeds (then bf16)
    is kept.
    """
    by_precision: dict[str, list[Brief]] = defaultdict(list)
    for b in runs:
        by_precision[b.precision].append(b)
    what = f"{runs[0].model} on {runs[0].task}"
    if len({b.seed for b in runs}) == len(runs):
        several = (
            f"{what}: seeds were run in different precisions ({', '.join(sorted(by_precision))})"
        )
        return sorted(runs, key=lambda b: b.seed), [several] if len(by_precision) > 1 else []
    best = min(by_precision, key=lambda p: (-len({b.seed for b in by_precision[p]}), p))
    # two records of one seed and precision differ in nothing that a key knows; the newer one stands
    unique = {b.seed: b for b in sorted(by_precision[best], key=lambda b: (b.started, b.key))}
    more = f"{what}: some seeds were run more than once; the {len(unique)} in {best} are shown"
    return [unique[seed] for seed in sorted(unique)], [more]
