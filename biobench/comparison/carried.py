"""Whether a statement rests on single corpora: the same test, or the same mean, without each of them."""

from __future__ import annotations

from biobench.comparison.result import Compared, PairResult
from biobench.comparison.words import equals, points

#: Share of a mean difference that is left without one corpus, below which that corpus carries it.
CARRIED = 0.5
#: Corpora below which each of them is much of the mean anyway.
FEWEST = 3


def carried(comparison: Compared, result: PairResult) -> list[str]:
    """Whether a statement about tasks like these rests on single corpora."""
    known = [(p, corpus) for p, corpus in zip(result.without, comparison.clusters, strict=False) if p is not None]
    if not result.pair.different or not known:
        return _leading(comparison, result)
    most, corpus = max(known)
    lost = sum(p > comparison.alpha for p, _ in known)
    shared = {"corpus": corpus, "p": equals(most), "alpha": f"{comparison.alpha:g}"}
    if not lost:
        return ["It holds without any one corpus (at most {p}, without {corpus}).".format(**shared)]
    if lost == 1:
        return ["One corpus carries this result: without {corpus} it is not shown ({p}).".format(**shared)]
    form = (
        "This result is fragile: for {lost} of the {count} corpora, leaving that one out, it is not shown (p above "
        "{alpha}; without {corpus} {p})."
    )
    return [form.format(lost=lost, count=len(known), **shared)]


def _leading(comparison: Compared, result: PairResult) -> list[str]:
    """Of a difference shown on these tasks: the one corpus without which less than half of the mean is left."""
    gaps = result.pair.comparison.cluster_differences
    mean, count = result.pair.comparison.difference, len(gaps)
    shown = result.within_p is not None and result.within_p <= comparison.alpha
    if count < FEWEST or mean == 0 or not shown:
        return []
    rest = [(mean * count - gap) / (count - 1) for gap in gaps]
    small = [i for i, left in enumerate(rest) if left / mean < CARRIED]
    if len(small) != 1:
        return []
    form = "One corpus carries the mean: without {corpus} the difference is {points} points."
    return [form.format(corpus=comparison.clusters[small[0]], points=points(rest[small[0]]))]
