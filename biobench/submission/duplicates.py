"""Exact copies among runs: of another seed of the submission, or of a run that was there before.

Two trainings differ in the last digits of their scores. Runs without such digits (all scores next
to 0 and 1, or none) may say the same, and are compared by their weights alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from biobench.core.files import sha256_of
from biobench.errors import StoreError
from biobench.reporting.escape import plain
from biobench.reporting.results import stores
from biobench.schema.document import Prediction
from biobench.schema.kind import traits_of
from biobench.store import Brief, Store
from biobench.submission.checks import Check, error


@dataclass(frozen=True)
class StoredRun:
    """A run of a results folder. place: the part of the folder that holds it, in words; empty for
    the submission itself.
    """

    brief: Brief
    store: Store
    place: str = ""

    @property
    def where(self) -> str:
        """Its predictions, in the folder of its results."""
        return f"runs/{self.brief.task}/{self.brief.key}.parquet"

    @cached_property
    def digest(self) -> str:
        """Of its predictions; empty where they cannot be read, which is no fault of others."""
        with suppress(StoreError):
            record = self.store.get(self.brief.task, self.brief.key)
            if record is not None:
                return digest_of(record.task.type, self.store.stored_predictions(record)[1])
        return ""


def earlier_runs(results: Path, without: Path, tasks: Collection[str]) -> list[StoredRun]:
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
                runs.append(StoredRun(brief, store, place))
    return runs


def digest_of(type: str, predictions: Sequence[Prediction]) -> str:
    """Equal for runs that say the same of the same documents, to the last digit; empty where two
    trainings may do so.
    """
    traits = traits_of(type)
    rows = []
    telling: list[float] = []
    for prediction in sorted(predictions, key=lambda prediction: prediction.document):
        scores = (*prediction.label_scores, *prediction.span_scores)
        telling += filter(_has_digits, scores)
        rows.append((prediction.document, prediction.labels, prediction.spans, scores))
    if not (traits.numeric or traits.ranked or telling):
        return ""
    return sha256_of(repr(rows).encode("utf-8", "surrogatepass"))


def _has_digits(score: float) -> bool:
    """Whether a score lies far enough from 0 and 1 that two trainings differ in it."""
    return 1e-3 < score < 1 - 1e-3


def check_copies(runs: Sequence[StoredRun], earlier: Sequence[StoredRun]) -> list[Check]:
    """P02 codes, at most one a run: copies of another seed, or of a run that was there before."""
    checks: list[Check] = []
    for number, run in enumerate(runs):
        copies = (_copied(run, original) for original in (*runs[:number], *earlier))
        checks += islice(filter(None, copies), 1)
    return checks


def _copied(run: StoredRun, original: StoredRun) -> Check | None:
    """What a run has of another on its data."""
    brief = run.brief
    theirs = original.brief
    if (brief.task, brief.data) != (theirs.task, theirs.data):
        return None
    has_its_weights = brief.weights == theirs.weights
    if has_its_weights and brief.model != theirs.model:
        message = f"has the weights, under another name, of {_named(original)}"
        return Check("P02", "person", run.where, message)
    # the run itself may be sent again, in another precision or, where nothing is trained, under
    # another seed; others, also those of other weights by its name, are read where they may be the
    # same
    is_itself = has_its_weights and (brief.seed == theirs.seed or not traits_of(brief.type).trains)
    if not is_itself and _have_same_score(brief, theirs) and run.digest == original.digest != "":
        return error("P02", run.where, f"has the predictions of {_named(original)}")
    return None


def _named(run: StoredRun) -> str:
    """A run in a message: its seed, and where it is of another submission its model and place."""
    seed = f"seed {run.brief.seed}"
    if not run.place:
        return seed
    return f"{run.brief.model[:80]}, {seed}, in {run.place}"


def _have_same_score(brief: Brief, other: Brief) -> bool:
    score = brief.scores.get(brief.paper, math.nan)
    return math.isclose(score, other.scores.get(brief.paper, math.nan), abs_tol=1e-9)
