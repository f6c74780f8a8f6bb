"""A results folder with the scores on a slice in place of the scores on all gold, so that report,
comparison and data frame show a slice as they show everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from biobench.errors import UsageError
from biobench.reporting.groups import RunGroup
from biobench.reporting.rescore import RunTextReader
from biobench.reporting.results import Results
from biobench.schema.record import RunRecord
from biobench.schema.strict import suggest
from biobench.score.slices import SLICES, Part


def check_slice(name: str) -> None:
    """Raise UsageError where there is no such slice."""
    if name not in SLICES:
        raise UsageError(f"there is no slice '{name[:40]}'", hint=suggest(name, list(SLICES)))


def sliced(results: Results, name: str) -> Results:
    """The runs that have scores on this slice, with those scores alone.

    Baselines keep theirs; published scores, which nobody printed by slice, go. Raises UsageError
    for a slice that does not exist and where no run has it.
    """
    groups = sliced_groups(results.groups, name)
    if not groups:
        raise UsageError(
            f"no stored run has scores on the slice '{name}'",
            hint="`biobench rescore --data-dir FOLDER` computes them from the corpora",
        )
    baselines = []
    for record in results.baselines:
        policies = []
        for policy in record.policies:
            if name in policy.slices:
                scores = policy.slices[name].scores
                policies.append(policy.model_copy(update={"scores": scores}))
        baselines.append(record.model_copy(update={"policies": tuple(policies)}))
    return replace(
        results,
        groups=groups,
        published=(),
        baselines=tuple(baselines),
        judged=(),
        cells={},
        slice=name,
    )


def sliced_groups(
    groups: Sequence[RunGroup],
    name: str,
) -> tuple[RunGroup, ...]:
    """Those that have scores on this slice, with those scores alone. Raises UsageError for a slice
    that does not exist.
    """
    check_slice(name)
    sliced_runs = []
    for group in groups:
        briefs = []
        for brief in group.briefs:
            if name in brief.slices:
                scores = brief.slices[name]["scores"]
                gold = brief.slices[name]["gold"]
                briefs.append(brief._replace(scores=scores, answers=float(gold)))
        if len(briefs) == len(group.briefs):
            sliced_runs.append(replace(group, slice=name, briefs=tuple(briefs)))
    return tuple(sliced_runs)


def slice_part(
    record: RunRecord,
    name: str,
    read_texts: RunTextReader,
) -> Part:
    """What a slice holds of a run's test documents.

    Raises UsageError where the slice does not exist or the task has none of it, and as `run_data`.
    """
    check_slice(name)
    part = read_texts(record).parts.get(name)
    if part is None:
        raise UsageError(
            f"{record.task.id} has no slice '{name}'",
            hint="seen and unseen are of tasks with mentions; no slice is of tasks without F1",
        )
    return part
