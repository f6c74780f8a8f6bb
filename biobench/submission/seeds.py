"""The seeds of a submission: those of the protocol that are missing, and others in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from biobench.reporting.tasks import shipped
from biobench.schema.record import RunRecord
from biobench.schema.task import parse_seeds
from biobench.submission.checks import Check, Problem, error
from biobench.submission.leading import by_conditions


def check_seeds(records: Sequence[RunRecord]) -> Iterator[Check]:
    """R09: runs of several checkpoints under one name. C codes: seeds that are there twice,
    missing, or replaced.
    """
    checkpoints = {record.model.hash for record in records}
    if len(checkpoints) > 1:
        yield error("R09", "runs", "are of several checkpoints under one name")
    for (task, *_), runs in by_conditions(records).items():
        for problem in _seed_problems(task, runs):
            yield problem.at(f"runs/{task}")


def _seed_problems(task: str, runs: Sequence[RunRecord]) -> Iterator[Problem]:
    """C codes, of runs of one task under the same conditions."""
    present = {run.seed for run in runs}
    needed = _needed_seeds(task, runs[0])
    missing = sorted(needed - present)
    others = sorted(present - needed)
    if len(present) < len(runs):
        yield Problem("C03", "a seed is there twice")
    if missing:
        message = f"seeds {_listed(missing)} of the protocol are missing"
        yield Problem("C02", message, "warning")
    if missing and others:
        message = f"seeds {_listed(others[:10])} replace them: they may have been chosen"
        yield Problem("C05", message, "person")


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _needed_seeds(task: str, run: RunRecord) -> set[int]:
    """The seeds of the protocol: those of the spec, or one a split."""
    splits = run.resampling
    if splits is not None:
        first_seed = run.seed - splits.fold
        return set(range(first_seed, first_seed + splits.folds))
    info = shipped().get(task)
    return set() if info is None or info.spec is None else {*parse_seeds(info.spec.seeds)}
