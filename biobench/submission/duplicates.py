"""Exact copies among runs: of another seed of the submission, or of a run that was there before.

Two trainings differ in the last digits of their scores. Runs without such digits (all scores next
to 0 and 1, or none) may say the same, and are compared by their weights alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from biobench.core.files import sha256_of
from biobench.errors import StoreError
from biobench.report.escape import plain
from biobench.report.results import stores
from biobench.schema.document import Prediction
from biobench.schema.kind import traits_of
from biobench.store import Brief, Store
from biobench.submission.checks import Check, error


@dataclass(frozen=True, slots=True)
class Answers:
    """What one run answers. digest: of all its predictions; empty where equal ones say nothing."""

    brief: Brief
    digest: str

    @property
    def where(self) -> str:
        """Its predictions, in the folder of its results."""
        return f"runs/{self.brief.task}/{self.brief.key}.parquet"


class EarlierRun(NamedTuple):
    """A run of a results folder. place: the part of the folder that holds it, in words."""

    brief: Brief
    store: Store
    place: str

    @property
    def digest(self) -> str:
        """Of its predictions; empty where they cannot be read, which is no fault of others."""
        with suppress(StoreError):
            record = self.store.get(self.brief.task, self.brief.key)
            if record is not None:
                return digest_of(record.task.type, self.store.stored_predictions(record)[1])
        return ""


def earlier_runs(results: Path, without: Path, tasks: Collection[str]) -> list[EarlierRun]:
    """The full runs of a results folder on some tasks, without those of one submission.

    without: the submission's folder.
    """
    runs = []
    for source, store in stores(results):
        if store.root.resolve() == without.resolve():
            continue
        place = "the results" if source == "run" else plain(store.root.name)
        for brief in store.briefs()[0]:
            if brief.task in tasks and brief.limit is None:
                runs.append(EarlierRun(brief, store, place))
    return runs


def digest_of(type: str, predictions: Sequence[Prediction]) -> str:
    """Equal for runs that say the same of the same documents, to the last digit; empty where two
    trainings may do so.
    """
    traits = traits_of(type)
    is_telling = traits.numeric or traits.ranked
    rows = []
    for prediction in sorted(predictions, key=lambda prediction: prediction.document):
        scores = (*prediction.label_scores, *prediction.span_scores)
        is_telling = is_telling or any(1e-3 < score < 1 - 1e-3 for score in scores)
        rows.append((prediction.document, prediction.labels, prediction.spans, scores))
    return sha256_of(repr(rows).encode("utf-8", "surrogatepass")) if is_telling else ""


def check_copies(runs: Sequence[Answers], earlier: Sequence[EarlierRun]) -> list[Check]:
    """P02 codes, at most one a run: copies of another seed, or of a run that was there before."""
    checks = []
    for number, run in enumerate(runs):
        checks += list(_copied(run, runs[:number], earlier))[:1]
    return checks


def _copied(
    run: Answers, others: Sequence[Answers], earlier: Sequence[EarlierRun]
) -> Iterator[Check]:
    """What a run has of the other seeds, then of the earlier runs on its data."""
    brief = run.brief
    for other in others:
        if run.digest and run.digest == other.digest:
            yield error("P02", run.where, f"has the predictions of seed {other.brief.seed}")
    for original in earlier:
        theirs = original.brief
        if (brief.task, brief.data) != (theirs.task, theirs.data):
            continue
        named = f"{theirs.model[:80]}, seed {theirs.seed}, in {original.place}"
        if brief.weights == theirs.weights and brief.model != theirs.model:
            message = f"has the weights, under another name, of {named}"
            yield Check("P02", "person", run.where, message)
        # the run itself may be sent again, or in another precision
        is_itself = (brief.model, brief.seed) == (theirs.model, theirs.seed)
        if is_itself or not _same_score(brief, theirs):
            continue
        if run.digest and run.digest == original.digest:
            yield error("P02", run.where, f"has the predictions of {named}")


def _same_score(brief: Brief, other: Brief) -> bool:
    """Whether two runs can have the same predictions, which are read only then."""
    scores = [run.scores.get(brief.paper, math.nan) for run in (brief, other)]
    return math.isclose(*scores, abs_tol=1e-9)
