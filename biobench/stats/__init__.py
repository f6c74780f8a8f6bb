"""Honest comparison of scores: arrays in, numbers out.

Six statistics: other seeds (`seeds`), other test sets (`documents`), these tasks and tasks like
these (`suite`), several pairs, and sameness within a margin (`pairs`). Every interval names what it
is about (`Estimand`).

Modules write `scipy.stats.…` in full: it takes longer to import than most pages to compute, and is
imported when one of its functions is first called.
"""

from biobench.stats.counts import Average, Counts, f1_scores
from biobench.stats.documents import (
    DocumentNoise,
    Redrawn,
    TaskRuns,
    document_interval,
    document_noise,
    redraw,
)
from biobench.stats.pairs import detectable_difference, equivalent, holm, possible_ranks, task_ranks
from biobench.stats.ratio import Ratio, paired_ratio
from biobench.stats.seeds import (
    MeanTest,
    compare_seeds,
    failed_runs,
    mean_test,
    pooled_df,
    seed_interval,
    t_from_se,
    without_failed,
)
from biobench.stats.suite import task_weights, tasks_like_these, these_tasks
from biobench.stats.types import Estimand, Interval, Part, StatsInputError

__all__ = [
    "Average",
    "Counts",
    "DocumentNoise",
    "Estimand",
    "Interval",
    "MeanTest",
    "Part",
    "Ratio",
    "Redrawn",
    "StatsInputError",
    "TaskRuns",
    "compare_seeds",
    "detectable_difference",
    "document_interval",
    "document_noise",
    "equivalent",
    "f1_scores",
    "failed_runs",
    "holm",
    "mean_test",
    "paired_ratio",
    "pooled_df",
    "possible_ranks",
    "redraw",
    "seed_interval",
    "t_from_se",
    "task_ranks",
    "task_weights",
    "tasks_like_these",
    "these_tasks",
    "without_failed",
]
