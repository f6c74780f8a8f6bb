"""Honest comparison of scores: arrays in, numbers out.

Three kinds of noise are kept apart: seeds (would another fine-tuning run differ), documents (would
another test set) and tasks (would another choice of tasks). Every interval names the one it is about.

Modules write `scipy.stats.…` and `scipy.optimize.…` in full: these parts of scipy take longer to import than most pages
to compute, and are imported when one of their functions is first called.
"""

from biobench.stats.components import Component, variance_components
from biobench.stats.counts import Average, Counts, f1_scores
from biobench.stats.equivalence import tost
from biobench.stats.failed import failed_runs, without_failed
from biobench.stats.heterogeneity import Interaction, interaction_of, shrunken, variance_shares, without_each
from biobench.stats.hierarchy import (
    RankInterval,
    SuiteDraws,
    TaskPool,
    document_pools,
    rank_intervals,
    score_pool,
    suite_draws,
)
from biobench.stats.intervals import DocumentSummary, SeedSummary, document_interval, seed_interval, seed_intervals
from biobench.stats.letters import letter_groups, letters
from biobench.stats.means import MeanTest, mean_test
from biobench.stats.moderated import moderated_p
from biobench.stats.multiplicity import holm
from biobench.stats.paired import (
    McNemar,
    SeedDifference,
    TaskComparison,
    compare_seeds,
    compare_task,
    mcnemar,
)
from biobench.stats.power import (
    DetectableRange,
    SeedPlan,
    SuiteVariance,
    detectable_difference,
    detectable_from_se,
    detectable_range,
    seeds_needed,
    t_power,
    values_needed,
)
from biobench.stats.ranking import ManyComparison, Pair, Standing, compare_many, gather_pairs, task_ranks
from biobench.stats.runs import TaskRuns
from biobench.stats.sequential import Look, look, next_task
from biobench.stats.suite import (
    SuiteComparison,
    cluster_means,
    coherent,
    compare_suite,
    probability_of_improvement,
    suite_means,
    suite_variance,
    task_weights,
    wilcoxon_p,
)
from biobench.stats.types import Estimand, Interval, StatsInputError, SuiteScores
from biobench.stats.within import WithinTasks, within_tasks, within_tasks_seeds

__all__ = [
    "Average",
    "Component",
    "Counts",
    "DetectableRange",
    "DocumentSummary",
    "Estimand",
    "Interaction",
    "Interval",
    "Look",
    "ManyComparison",
    "McNemar",
    "MeanTest",
    "Pair",
    "RankInterval",
    "SeedDifference",
    "SeedPlan",
    "SeedSummary",
    "Standing",
    "StatsInputError",
    "SuiteComparison",
    "SuiteDraws",
    "SuiteScores",
    "SuiteVariance",
    "TaskComparison",
    "TaskPool",
    "TaskRuns",
    "WithinTasks",
    "cluster_means",
    "coherent",
    "compare_many",
    "compare_seeds",
    "compare_suite",
    "compare_task",
    "detectable_difference",
    "detectable_from_se",
    "detectable_range",
    "document_interval",
    "document_pools",
    "f1_scores",
    "failed_runs",
    "gather_pairs",
    "holm",
    "interaction_of",
    "letter_groups",
    "letters",
    "look",
    "mcnemar",
    "mean_test",
    "moderated_p",
    "next_task",
    "probability_of_improvement",
    "rank_intervals",
    "score_pool",
    "seed_interval",
    "seed_intervals",
    "seeds_needed",
    "shrunken",
    "suite_draws",
    "suite_means",
    "suite_variance",
    "t_power",
    "task_ranks",
    "task_weights",
    "tost",
    "values_needed",
    "variance_components",
    "variance_shares",
    "wilcoxon_p",
    "within_tasks",
    "within_tasks_seeds",
    "without_each",
    "without_failed",
]
