"""A results folder read once: runs, accepted submissions, baselines, verdicts of the gate and
published scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biobench.reporting.baselines import Refusal, Remark, judge
from biobench.reporting.groups import RunGroup, Source, apart, group_runs
from biobench.reporting.literature.experiments import PublishedExperiments, experiments_for
from biobench.reporting.literature.published import PublishedValue, published_for, published_state
from biobench.reporting.row import METRICS, AverageName
from biobench.reporting.tasks import Infos, TaskInfo, task_infos
from biobench.schema.baseline import BaselineRecord
from biobench.schema.kind import has_f1
from biobench.store import Brief, Store, UnusableFile
from biobench.store.baselines import scan_baselines
from biobench.store.store import paused_collector

SUBMITTED = "submitted"
"""Folder of a results folder that holds accepted submissions, each a results folder of its own."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a results folder holds: from it, reports with any average and filter are quick.

    groups: the runs that the gate does not refuse. refused: tasks whose runs it does; judged: its
    remarks;
    refusals: the runs that it refuses.
    """

    groups: tuple[RunGroup, ...]
    infos: Infos
    published: tuple[PublishedValue, ...]
    findings: tuple[UnusableFile, ...]
    baselines: tuple[BaselineRecord, ...] = ()
    refused: frozenset[str] = frozenset()
    judged: tuple[Remark, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    experiments: tuple[PublishedExperiments, ...] = ()
    cells: dict[AverageName, Any] = field(
        default_factory=dict,
        repr=False,
        compare=False,
    )
    """What `frame.cells` has computed."""
    slice: str = ""
    """The part of the gold that the scores are of (`reporting.slices`); empty: all of it."""


def load(results_dir: str | Path) -> Results:
    """Read the folder's runs, accepted submissions, baselines and verdicts, and the published
    scores.

    A verdict on a submission's data is this folder's own. Damaged records become findings. Raises
    SpecError where a shipped spec or published data file is wrong.
    """
    folder = Path(results_dir)
    # tens of thousands of small objects, none of them in a circle: the collector would go over them
    # again and again
    with paused_collector():
        published = published_for(folder)
        baselines, damaged = scan_baselines(results_dir)
        scanned: list[tuple[Source, Store, list[Brief]]] = []
        briefs: list[Brief] = []
        findings: list[UnusableFile] = []
        for source, store in stores(folder):
            of_store, problems = store.briefs()
            scanned.append((source, store, of_store))
            briefs += of_store
            findings += problems
        infos = task_infos(briefs, published, baselines)
        groups: list[RunGroup] = []
        for source, store, of_store in scanned:
            groups += group_runs(of_store, infos, store, source)
        accepted, refusals, remarks = judge(apart(groups), baselines)
        refused = {refusal.group.task for refusal in refusals}
        return Results(
            groups=accepted,
            infos=infos,
            published=published,
            findings=(*findings, *damaged),
            baselines=tuple(baselines),
            refused=frozenset(refused.difference(group.task for group in accepted)),
            judged=remarks,
            refusals=refusals,
            experiments=experiments_for(folder),
        )


def fingerprint(results_dir: str | Path) -> str:
    """Changes when `load` would read something else from the folder; quick, for caches."""
    folder = Path(results_dir)
    states = [store.fingerprint() for _, store in stores(folder)]
    return " ".join([*states, published_state(folder)])


def stores(results_dir: Path) -> list[tuple[Source, Store]]:
    """The folder's own runs, then each accepted submission's."""
    listed: list[tuple[Source, Store]] = [("run", Store(results_dir))]
    folder = results_dir / SUBMITTED
    if folder.is_dir():
        # Their indexes stand apart: nothing is written into an accepted submission, and no index in
        # it is believed.
        indexes = results_dir / ".indexes"
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                listed.append(("submitted", Store(path, indexes / f"{path.name}.parquet")))
    return listed


def metric_of(info: TaskInfo, average: AverageName) -> str:
    """The score that `average` means on this task; kinds without F1 have the one that published
    scores use.
    """
    return info.paper if average == "paper" or not has_f1(info.type) else METRICS[average]
