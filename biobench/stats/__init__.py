"""Honest comparison of scores: arrays in, numbers out.

An estimate and its noises make an `Answer`: other seeds (`seeds`), other documents (`documents`),
these tasks and tasks like these (`suite`); several claims at once are corrected in `several`. Every
interval names what it is about (`Estimand`).

Modules write `scipy.stats.…` in full: it takes longer to import than most pages to compute, and is
imported when one of its functions is first called.
"""

from biobench.stats.answer import Answer, Noise
from biobench.stats.counts import Average, Counts, f1_scores
from biobench.stats.documents import (
    DocumentNoise,
    LeftOut,
    document_interval,
    document_noise,
    left_out,
)
from biobench.stats.ratio import Ratio, paired_ratio
from biobench.stats.seeds import (
    MeanTest,
    failed_runs,
    mean_test,
    pooled_df,
    seed_interval,
    seed_part,
    splits_part,
    t_from_se,
    without_failed,
)
from biobench.stats.several import HolmStep, holm, possible_ranks
from biobench.stats.suite import (
    TaskNoise,
    Variances,
    mean_variances,
    task_weights,
    tasks_like_these,
    these_tasks,
)
from biobench.stats.types import Estimand, Interval, Part, StatsInputError

__all__ = [
    "Answer",
    "Average",
    "Counts",
    "DocumentNoise",
    "Estimand",
    "HolmStep",
    "Interval",
    "LeftOut",
    "MeanTest",
    "Noise",
    "Part",
    "Ratio",
    "StatsInputError",
    "TaskNoise",
    "Variances",
    "document_interval",
    "document_noise",
    "f1_scores",
    "failed_runs",
    "holm",
    "left_out",
    "mean_test",
    "mean_variances",
    "paired_ratio",
    "pooled_df",
    "possible_ranks",
    "seed_interval",
    "seed_part",
    "splits_part",
    "t_from_se",
    "task_weights",
    "tasks_like_these",
    "these_tasks",
    "without_failed",
]
