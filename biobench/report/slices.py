"""A results folder with the scores on a slice in place of the scores on all gold, so that report,
comparison and data frame show a slice as they show everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from biobench.errors import UsageError
from biobench.report.groups import RunGroup
from biobench.report.results import Results
from biobench.schema.strict import suggest
from biobench.score.slices import SLICES
from biobench.store.index import Brief


def check_slice(name: str) -> None:
    """Raise UsageError where there is no such slice."""
    if name not in SLICES:
        raise UsageError(f"there is no slice '{name[:40]}'", hint=suggest(name, list(SLICES)))


def sliced(results: Results, name: str) -> Results:
    """The runs that have scores on this slice, with those scores alone.

    Published scores, which nobody printed by slice, and no-skill baselines go. Raises UsageError
    for a slice that does not exist and where no run has it.
    """
    check_slice(name)
    groups = tuple(
        _sliced_group(group, name)
        for group in results.groups
        if all(name in brief.slices for brief in group.briefs)
    )
    if not groups:
        raise UsageError(
            f"no stored run has scores on the slice '{name}'",
            hint="`biobench rescore --data-dir FOLDER` computes them from the corpora",
        )
    return replace(
        results, groups=groups, published=(), baselines=(), judged=(), cells={}, slice=name
    )


def _sliced_group(group: RunGroup, name: str) -> RunGroup:
    return replace(
        group, slice=name, briefs=tuple(_sliced_brief(brief, name) for brief in group.briefs)
    )


def _sliced_brief(brief: Brief, name: str) -> Brief:
    part = brief.slices[name]
    return brief._replace(scores=part["scores"], answers=float(part["gold"]), ceiling={})


def slice_means(groups: Sequence[RunGroup], metric: str) -> dict[str, float]:
    """Slice -> the mean over all runs' `metric`, of the slices that each of the runs has."""
    means = {}
    for name in SLICES:
        scores = [
            brief.slices[name]["scores"][metric]
            for group in groups
            for brief in group.briefs
            if metric in brief.slices.get(name, {"scores": {}})["scores"]
        ]
        if len(scores) == sum(len(group.briefs) for group in groups):
            means[name] = sum(scores) / len(scores)
    return means
