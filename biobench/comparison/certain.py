"""When a difference on these tasks leaves no doubt."""

from __future__ import annotations

import math
from collections import Counter

from scipy import special

from biobench.comparison.result import PairResult

#: A p value below this is called certain, where seeds and test-set noise are part of it.
CERTAIN = 1e-6
#: From fewer seeds than these their spread is too badly known for so small a p; it is then taken for SEED_SD.
CERTAIN_SEEDS = 5
#: Below so many groups of documents or seeds nothing is called certain: a t on few groups is not exact so far out.
CERTAIN_GROUPS, FEWEST_SEEDS = 30, 2
#: More than fine-tuning seeds of a working recipe differ by (standard deviation, a fraction).
SEED_SD = 0.05


def is_certain(result: PairResult) -> bool:
    """Whether the difference on these tasks leaves no doubt, seeds and test-set noise taken in."""
    p = certain_p(result)
    return p is not None and p < CERTAIN


def certain_p(result: PairResult) -> float | None:
    """The p that certainty rests on, None where it is not asked for.

    Asked only where every task has 30 groups of documents and every model two seeds. The t has the groups of the
    smallest test set less one degrees of freedom; its standard error is no smaller than one group of each task that
    answers otherwise. With five seeds or more the spread over seeds is as measured, with fewer at least `SEED_SD`.
    """
    within = result.within
    if within.test is None or within.test.p is None or within.se_documents is None or within.test.p > 0.05:
        return None
    counts = [[n for n in (line.n_first, line.n_second) if n] for line in result.tasks]
    groups = [line.groups or 0 for line in result.tasks]
    least = least_seeds(result)
    if min(groups) < CERTAIN_GROUPS or 0 < least < FEWEST_SEEDS or not any(counts):
        return None
    # the difference is a mean of means over corpora, so a task of a corpus of several weighs less
    corpora = Counter(line.corpus for line in result.tasks)
    weights = [(len(corpora) * corpora[line.corpus]) ** -2 for line in result.tasks]
    documents = max(within.se_documents**2, sum(w / n**2 for w, n in zip(weights, groups, strict=True)))
    seeds = (within.se_seeds or 0.0) ** 2
    if least < CERTAIN_SEEDS:
        seeds = max(seeds, SEED_SD**2 * sum(w / n for w, pair in zip(weights, counts, strict=True) for n in pair))
    t = abs(within.difference) / math.sqrt(documents + seeds)
    df = min(min(groups) - 1, within.test.df if within.test.df is not None and least >= CERTAIN_SEEDS else math.inf)
    return 2 * float(special.stdtr(df, -t))


def least_seeds(result: PairResult) -> int:
    """Of the models that have seeds, on any task."""
    return min((n for line in result.tasks for n in (line.n_first, line.n_second) if n), default=0)
