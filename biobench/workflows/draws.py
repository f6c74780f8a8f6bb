"""`biobench reproduce --draw`: one more seed of a submission; does it agree with the others?"""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection, Sequence
from functools import partial
from itertools import product, starmap
from pathlib import Path

import numpy as np
from scipy import special

from biobench.errors import UsageError
from biobench.schema.record import RunRecord
from biobench.store import Store
from biobench.store.statements import Draw, Mark, Statement, make_statement
from biobench.submission.leading import by_conditions
from biobench.workflows.reproduce import Again, alike, stored_runs

LEAST_SEEDS = 3
"""Submitted seeds that show how far one more may lie from them."""


def draw(submission: Path, waiting: Collection[str], again: Again) -> Statement:
    """Runs of seeds drawn at random where a submission waits (else on a random task), and whether
    they agree with it.

    A drawn run agrees if its score lies in the 95% prediction interval of the submitted seeds, and
    so does the share of test documents that it answers as they do. Raises UsageError for fewer than
    `LEAST_SEEDS` seeds, and where the run cannot be made as the submitted ones were.
    """
    store, records = stored_runs(submission)
    groups = by_conditions(records)
    chosen = [runs for key, runs in groups.items() if key[0] in waiting]
    chosen = chosen or [secrets.choice(list(groups.values()))]
    draws = tuple(_drawn(store, runs, again) for runs in chosen)
    mark: Mark = "reproduced" if all(drawn.agrees for drawn in draws) else "claimed"
    return make_statement(submission, mark, draws)


def _drawn(store: Store, runs: Sequence[RunRecord], again: Again) -> Draw:
    """One more run under the conditions of the submitted ones."""
    example = runs[0]
    task = example.task
    seed = _draw_seed(example)
    submitted = [run for run in runs if run.seed != seed]
    number = len(submitted)
    if number < LEAST_SEEDS:
        message = f"{task.id}: {number} submitted seeds do not tell what one more would score"
        raise UsageError(message, hint=f"ask the submitter for {LEAST_SEEDS} seeds or more")
    repeated, answers = again.run(example, seed)
    score = repeated.scores[task.primary]
    scores = np.array([run.scores[task.primary] for run in submitted])
    # of a score that differs by one document
    noise = 1 / task.test_documents**2
    low, high = prediction_interval(scores.mean(), scores, noise)
    _, answered = zip(*map(store.stored_predictions, submitted), strict=True)
    share_alike = partial(alike, example)
    pairs = list(starmap(share_alike, product(answered, repeat=2)))
    agreements = np.array(pairs).reshape(number, number)
    alike_low, alike_high = agreement_interval(agreements, task.test_documents)
    shares = [share_alike(answers, stored) for stored in answered]
    share = float(np.mean(shares))
    # each split has test documents of its own, so that no answers can be compared
    answers_agree = example.resampling is not None or alike_low <= share <= alike_high
    # a claim that the board shows and filters by
    sizes_agree = {run.model.parameters for run in runs} == {repeated.model.parameters}
    agrees = low <= score <= high and answers_agree and sizes_agree
    return Draw(
        task=task.id,
        task_hash=task.hash,
        track=example.track,
        seed=seed,
        metric=task.primary,
        score=score,
        low=low,
        high=high,
        alike=share,
        alike_low=alike_low,
        alike_high=alike_high,
        agrees=agrees,
    )


def _draw_seed(run: RunRecord) -> int:
    """A random seed; of a task with several splits, which have all its seeds, that of one."""
    splits = run.resampling
    if splits is None:
        return secrets.randbelow(2**31)
    return run.seed - splits.fold + secrets.randbelow(splits.folds)


def prediction_interval(centre: float, values: np.ndarray, noise: float) -> tuple[float, float]:
    """The 95% interval for one more value like these: `centre` ± √(t(n - 1)² s² (1 + 1/n) + 1.96²
    noise).

    noise: a known variance besides theirs: equal scores of a few seeds do not say that no document
    ever changes.
    """
    n = len(values)
    spread = float(np.var(values, ddof=1)) * (1 + 1 / n)
    t = special.stdtrit(n - 1, 0.975)
    z = special.ndtri(0.975)
    half = math.sqrt(t**2 * spread + z**2 * noise)
    return float(centre - half), float(centre + half)


def agreement_interval(pairs: np.ndarray, documents: int) -> tuple[float, float]:
    """The 95% interval for the mean agreement of one more run with these.

    pairs: (runs, runs), the share of documents that two of them answer alike. Two runs agree as
    mean + a + b + rest, where a and b belong to one run each: of the effects of the known runs
    (least squares) comes that of a new one.
    """
    n = len(pairs)
    with_others = pairs.sum(axis=1) - np.diag(pairs)
    means = with_others / (n - 1)
    centre = float(means.mean())
    # Laplace's estimate: runs that agree on every document may still differ on the next one
    share = (centre * documents + 1) / (documents + 2)
    effects = (means - centre) * (n - 1) / (n - 2)
    return prediction_interval(centre, effects, share * (1 - share) / documents)
