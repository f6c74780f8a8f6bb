"""Which runs belong together: the same model on the same task under the same decisions, over
seeds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from statistics import fmean
from typing import Any, Literal

from biobench.core.grouped import grouped
from biobench.errors import StoreError
from biobench.reporting.escape import plain
from biobench.reporting.tasks import NEEDLE, Infos
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
Hashes = Mapping[tuple[str, str], set[str]]
"""(weights, name of a model), (data or spec, task) -> the hashes that runs have of it."""
_LENGTH = re.compile(r"accuracy\.(\d+)")
"""Score of a needle run on the documents of one length."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What sets runs apart from the model's full runs on the shipped spec; empty for those. str()
    is for people.

    departures: (what differs, in words), in the order in which they are said.
    """

    departures: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """In words, with commas."""
        return ", ".join(words for _, words in self.departures)

    def differs_in(self, *aspects: str) -> bool:
        """Whether one of these sets the runs apart."""
        return any(aspect in aspects for aspect, _ in self.departures)

    def without(self, *aspects: str) -> Variant:
        """The variant where these are not asked for."""
        return Variant(tuple(pair for pair in self.departures if pair[0] not in aspects))

    @property
    def partial(self) -> bool:
        """Whether the scores are not of the whole test split: a part of it (--limit), or
        validation.
        """
        return self.differs_in("limit", "validation")

    @property
    def whole(self) -> bool:
        """Whether these are full runs on the shipped protocol; of weights or submissions there can
        be several.
        """
        return not self.without("weights", "submission").departures


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
        brief = self.briefs[0]
        track = brief.track
        if track == READY:  # is compared with any run of the papers' recipe
            track = "fixed"
        return brief.spec, brief.data, brief.limit, track, brief.engine, brief.split

    @property
    def is_full(self) -> bool:
        """Whether the runs saw the whole task, without overrides that changed its protocol."""
        return not self.departures.differs_in("limit", "validation", "protocol", "overrides")

    @property
    def lengths(self) -> tuple[int, ...]:
        """The document lengths that a needle run's score is over, those that its window holds; ()
        for other tasks.
        """
        if self.briefs[0].type != NEEDLE:
            return ()
        lengths = []
        for metric in self.briefs[0].scores:
            match = _LENGTH.fullmatch(metric)
            if match is not None:
                lengths.append(int(match[1]))
        return tuple(sorted(lengths))

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
                raise StoreError(
                    f"the record of {brief.task}, seed {brief.seed} is gone since the folder was "
                    f"read",
                    hint="read the results folder again",
                    file=self.store.root,
                )
            records.append(record)
        return tuple(records)

    @property
    def unit(self) -> float:
        """What one more right answer is worth at most, a fraction: scores that agree to less agree
        by chance.

        0 without gold.
        """
        answers = self.briefs[0].answers
        if not answers:
            return 0.0
        return 1 / answers

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
        ratios = []
        for brief in self.briefs:
            if brief.train_documents:
                ratios.append(brief.test_documents / brief.train_documents)
        if not ratios:
            return 0.0
        return sum(ratios) / len(ratios)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds in order."""
        return tuple(b.seed for b in self.briefs)

    def scores(self, metric: str) -> tuple[float, ...] | None:
        """The metric per seed; None where a record does not have it."""
        if not all(metric in brief.scores for brief in self.briefs):
            return None
        return tuple(brief.scores[metric] for brief in self.briefs)

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
        supports: dict[str, int] = {}
        scores: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            for label, row in record.per_label.items():
                supports.setdefault(label, int(row["support"]))
                scores[label].append(row["f1"])
        by_label = {}
        for label in self.records[0].task.labels:
            if label in scores:
                by_label[label] = supports[label], fmean(scores[label])
        return by_label


def group_runs(
    briefs: Sequence[Brief], infos: Infos, store: Store, source: Source = "run"
) -> list[RunGroup]:
    """Groups in order of task, model and variant. Limited, overridden, tuned or otherwise different
    runs are groups of their own.
    """
    # one of a name need not be said, of several each says which it is
    hashes: Hashes = defaultdict(set)
    for brief in briefs:
        hashes["weights", _name(brief)].add(brief.weights)
        hashes["data", brief.task].add(brief.data)
        hashes["spec", brief.task].add(brief.spec)
    members: dict[tuple[Any, ...], list[Brief]] = defaultdict(list)
    for brief in briefs:
        shipped = infos[brief.task].hashes.get(brief.source)
        variant = Variant(tuple(_departures(brief, shipped, hashes)))
        identity = (brief.task, _name(brief), variant, brief.weights, brief.spec, brief.data)
        members[*identity, _labels_of(brief), _source_of(brief, source)].append(brief)
    groups = []
    for key in sorted(members, key=lambda key: (*key[:2], str(key[2]), *key[3:])):
        task, name, variant, *_, source_of_group = key
        runs, notes = _one_a_seed(members[key])
        groups.append(
            RunGroup(
                source=source_of_group,
                model=name,
                departures=variant,
                task=task,
                briefs=runs,
                store=store,
                notes=notes,
            )
        )
    return groups


def _labels_of(brief: Brief) -> str:
    """Of a ready-made model its key, which says which of its labels stand for which of the task:
    two such runs are no seeds of one. Empty for others.
    """
    return brief.key if brief.track == READY else ""


def _name(brief: Brief) -> str:
    return brief.model if brief.revision is None else f"{brief.model}@{brief.revision}"


def _source_of(brief: Brief, source: Source) -> Source:
    """source: of the store; own runs are told apart by how they were made."""
    if source == "run" and brief.origin == "outside":
        return "external"
    if source == "run" and brief.track == "frozen":
        return "frozen"
    return source


def _departures(brief: Brief, shipped: str | None, hashes: Hashes) -> Iterator[tuple[str, str]]:
    """What sets a run apart. shipped: hash of the shipped spec; hashes: all weights of the model,
    data and specs of the task.
    """
    if len(hashes["weights", _name(brief)]) > 1:
        yield "weights", f"weights {brief.weights[:8]}"
    if brief.origin == "checkpoint":
        yield "training", "ready-made"
    if brief.split != "test":
        yield "validation", "validation only"
    if brief.track not in ("fixed", READY):
        yield "track", brief.track
    if brief.limit is not None:
        yield "limit", f"limit {brief.limit}"
    yield from _departures_of_spec(brief, shipped, is_alone=len(hashes["spec", brief.task]) == 1)
    if len(hashes["data", brief.task]) > 1:
        yield "data", f"data {brief.source} {brief.data[:8]}"
    if brief.engine != ENGINE_VERSION:
        yield "engine", f"engine {brief.engine}"


def _departures_of_spec(
    brief: Brief, shipped: str | None, *, is_alone: bool
) -> list[tuple[str, str]]:
    """The protocol, the overrides or the version of a spec that is not the shipped one. is_alone:
    the task was run on this spec only.
    """
    protocol = protocol_named_by(brief.overrides)
    if protocol is not None:
        return [("protocol", f"{protocol} protocol")]
    if brief.spec == shipped:
        return []
    if brief.overrides:
        of_track = FROZEN if brief.track == "frozen" else ()
        overrides = sorted(set(brief.overrides).difference(of_track))
        return [("overrides", override) for override in overrides]
    if shipped is None and is_alone:
        return []
    return [("version", f"version {brief.version}, spec {brief.spec[:8]}")]


def apart(groups: Iterable[RunGroup]) -> tuple[RunGroup, ...]:
    """The groups, no two of one name on one task: in a table the later would stand in the place of
    the earlier.

    Where several submissions name one model, each says which submission it is, on all its tasks:
    nobody has checked that they are of one model, and parts of a suite from different hands are not
    one whole. Groups that still share a name say what else differs: their weights, spec or data.
    """
    groups = list(groups)
    folders: dict[tuple[str, str], set[str]] = defaultdict(set)
    for group in groups:
        folders[group.source, group.model].add(group.store.root.name)
    named = []
    for group in groups:
        if group.source == "submitted" and len(folders[group.source, group.model]) > 1:
            submission = plain(group.store.root.name)
            group = _set_apart(group, ("submission", f"submission {submission}"))
        named.append(group)
    namesakes = grouped(named, lambda group: (*group.line, group.task))
    unique = []
    for group in named:
        briefs = [namesake.briefs[0] for namesake in namesakes[*group.line, group.task]]
        unique.append(_set_apart(group, *_differences(group.briefs[0], briefs)))
    return tuple(unique)


def _set_apart(group: RunGroup, *departures: tuple[str, str]) -> RunGroup:
    return replace(group, departures=Variant((*group.departures.departures, *departures)))


_ASPECTS = {"weights": "weights", "spec": "unlike", "data": "unlike"}
"""Hash of a run -> the aspect in which runs of one name differ by it."""


def _differences(brief: Brief, namesakes: Sequence[Brief]) -> Iterator[tuple[str, str]]:
    """The hashes in which runs of one name differ; the key of a ready-made model stands for which
    of its labels are used.
    """
    aspects = _ASPECTS
    if brief.track == READY:
        aspects = _ASPECTS | {"key": "unlike"}
    for name, aspect in aspects.items():
        if len(set(map(attrgetter(name), namesakes))) > 1:
            yield aspect, f"{name} {getattr(brief, name)[:8]}"


def _one_a_seed(runs: list[Brief]) -> tuple[tuple[Brief, ...], tuple[str, ...]]:
    """One run a seed, in order, and notes. Where seeds were run in two precisions, the one with
    more seeds (then bf16) is kept.
    """
    by_precision: dict[str, dict[int, Brief]] = defaultdict(dict)
    # two records of one seed and precision differ in nothing that a key knows; the newer one stands
    for brief in sorted(runs, key=attrgetter("started", "key")):
        by_precision[brief.precision][brief.seed] = brief
    name = f"{runs[0].model} on {runs[0].task}"
    notes: tuple[str, ...] = ()
    if len({brief.seed for brief in runs}) < len(runs):
        best = min(by_precision, key=lambda precision: (-len(by_precision[precision]), precision))
        runs = list(by_precision[best].values())
        shown = f"the {len(runs)} in {best} are shown"
        notes = (f"{name}: some seeds were run more than once; {shown}",)
    elif len(by_precision) > 1:
        precisions = ", ".join(sorted(by_precision))
        notes = (f"{name}: seeds were run in different precisions ({precisions})",)
    return tuple(sorted(runs, key=attrgetter("seed"))), notes
