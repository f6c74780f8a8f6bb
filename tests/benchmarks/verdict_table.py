"""How often each sentence of a verdict is false: ``python -m tests.benchmarks.verdict_table``.

Each row draws suites whose truth is known, asks the functions that `compare` asks, and counts false
sentences; a row over several cells shows its worst. Sizes are those of the shipped tasks: seeds of
1 point, test sets of 0.4 to 1.2.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from biobench import stats
from biobench.comparison.pairs import may_be_same
from biobench.comparison.ranking import MOST
from biobench.stats import Counts, MeanTest, TaskRuns
from biobench.stats.types import FloatArray

ALPHA = 0.05
COLLAPSE = 30.0
"""Points that a run which does not train lies below the others."""


@dataclass(frozen=True)
class Row:
    """what: the claim. cell: where its share is worst. measured: that share; target: (least, most)
    that it may be.
    """

    what: str
    cell: str
    measured: float
    repeats: int
    target: tuple[float, float]

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return math.sqrt(max(self.measured * (1 - self.measured), 1 / self.repeats) / self.repeats)

    @property
    def is_within(self) -> bool:
        """Whether the share is within its target, two standard errors allowed."""
        return self.target[0] - 2 * self.error <= self.measured <= self.target[1] + 2 * self.error


Noise = Callable[[np.random.Generator, tuple[int, ...]], FloatArray]


def _collapse(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Seeds of which one in ten does not train; mean 0."""
    return rng.normal(size=shape) - COLLAPSE * (rng.random(shape) < 0.1) + 0.1 * COLLAPSE


SEEDS: dict[str, Noise] = {
    "gaussian seeds": lambda rng, shape: rng.normal(size=shape),
    "t3 seeds": lambda rng, shape: rng.standard_t(3, size=shape) / math.sqrt(3),
    "skewed seeds": lambda rng, shape: 1 - rng.exponential(size=shape),
    "10% of seeds collapse": _collapse,
}
"""Noise over seeds in points, mean 0."""
EFFECTS: dict[str, Noise] = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "t3": lambda rng, shape: rng.standard_t(3, size=shape) / math.sqrt(3),
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "lognormal": lambda rng, shape: (np.exp(0.8 * rng.normal(size=shape)) - math.exp(0.32)) / 1.306,
    "outlier": lambda rng, shape: (
        rng.normal(size=shape) * np.where(rng.random(shape) < 1 / 7, 10.0, 1.0)
    ),
}
"""Effects of corpora in points, mean 0."""


@dataclass(frozen=True)
class Suite:
    """Scores in points, (models, corpora, seeds), a task a corpus; documents: (corpora,) standard
    error a corpus.
    """

    scores: FloatArray
    documents: FloatArray
    resolution: float = 0.0

    def pair(
        self, a: int, b: int, *, paired: bool = False, few: int = 0
    ) -> tuple[MeanTest, MeanTest]:
        """On these tasks, and on tasks like these. few: seeds of the first model, 0 for all."""
        first, second = self.scores[a], self.scores[b]
        first = first[:, :few] if few else first
        count = len(first)
        parts = [(float(se / count) ** 2, 99.0) for se in self.documents]
        within = stats.these_tasks(
            list(first),
            list(second),
            paired=[paired] * count,
            resolutions=[self.resolution] * count,
            documents=parts,
        ).test
        gaps = first.mean(axis=1) - second.mean(axis=1)
        return within, stats.tasks_like_these(
            gaps, [str(i) for i in range(count)], within, resolution=self.resolution
        )


def suite(
    rng: np.random.Generator,
    corpora: int,
    seeds: int,
    *,
    models: int = 2,
    noise: Sequence[str] = ("gaussian seeds",),
    effect: str = "",
    means: Sequence[float] = (),
    test_sets: float = 1.0,
    shared: float = 0.0,
) -> Suite:
    """noise: of each model's seeds, the last one for the rest. effect: of the corpora, on the first
    model. means: of the models, 0 for the rest. test_sets: factor on the noise of test sets.
    shared: sd of what a seed gives all.
    """
    true = test_sets * np.linspace(0.4, 1.2, corpora)
    # half of the noise of a difference comes from each model
    scores = np.repeat(
        70 + rng.normal(0, true / math.sqrt(2), (models, corpora))[..., None], seeds, axis=2
    )
    for model in range(models):
        scores[model] += SEEDS[noise[min(model, len(noise) - 1)]](rng, (corpora, seeds))
    scores += shared * rng.normal(size=(corpora, seeds))
    scores += np.array([*means, *[0.0] * (models - len(means))])[:, None, None]
    if effect:
        scores[0] += EFFECTS[effect](rng, (corpora,))[:, None]
    return Suite(scores, true * np.sqrt(rng.chisquare(99, corpora) / 99))


Draw = Callable[[np.random.Generator, int, int], bool]
CELLS = tuple(product((1, 3, 8, 21), (3, 5, 9)))
"""(corpora, seeds)"""


def worst(
    what: str,
    rng: np.random.Generator,
    repeats: int,
    draw: Draw,
    cells: Sequence[tuple[int, int]],
    target: tuple[float, float] = (0.0, 0.05),
) -> Row:
    """The cell with the largest share of draws that are true (the smallest where the share is to be
    large).

    It is found with a quarter of the repeats in each cell, then measured anew: the largest of many
    is lucky.
    """
    counted = [(sum(draw(rng, *cell) for _ in range(repeats // 4)), *cell) for cell in cells]
    _, corpora, seeds = (min if target[1] == 1.0 else max)(counted)
    share = sum(draw(rng, corpora, seeds) for _ in range(repeats)) / repeats
    return Row(what, f"{corpora} corpora, {seeds} seeds", share, repeats, target)


def here_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Equal models: 'Shown for the mean of these tasks'."""

    def shown(noise: Sequence[str] = ("gaussian seeds",), **options: float) -> Draw:
        paired, few, coarse = (
            options.pop("paired", 0),
            int(options.pop("few", 0)),
            options.pop("coarse", 0.0),
        )

        def draw(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
            drawn = suite(rng, corpora, seeds, noise=noise, **options)  # type: ignore[arg-type]
            if coarse:
                drawn = Suite(np.round(drawn.scores / coarse) * coarse, drawn.documents, coarse)
            within, _ = drawn.pair(0, 1, paired=bool(paired), few=few)
            return (within.p or 0.0) <= ALPHA

        return draw

    what = "shown for these tasks, though equal: "
    for name in SEEDS:
        yield worst(f"{what}{name} of both models", rng, repeats, shown((name,)), CELLS)
    yield worst(
        f"{what}skewed seeds of one model",
        rng,
        repeats,
        shown(("skewed seeds", "gaussian seeds")),
        CELLS,
    )
    yield worst(
        f"{what}3 seeds against more, unpaired",
        rng,
        repeats,
        shown(few=3),
        [c for c in CELLS if c[1] > 3],
    )
    yield worst(
        f"{what}paired seeds that share 2 points", rng, repeats, shown(paired=1, shared=2.0), CELLS
    )
    yield worst(f"{what}test sets of 100 answers, ties", rng, repeats, shown(coarse=1.0), CELLS)
    yield worst(
        f"{what}test-set noise twice as large (badge)", rng, repeats, shown(test_sets=2.0), CELLS
    )
    yield worst(
        f"{what}20 or 40 documents, macro F1",
        rng,
        max(200, repeats // 4),
        _few_documents,
        ((20, 5), (40, 5)),
    )


def _few_documents(rng: np.random.Generator, documents: int, seeds: int) -> bool:
    """Two equal models on one task of so many documents and two labels, from counts."""
    gold = rng.random((documents, 2)) < 0.5
    gold[:2] = True
    hard = rng.normal(size=(documents, 2))
    models = []
    for _ in range(2):
        good = (
            hard + rng.normal(0, 0.3, (seeds, 1, 1)) + rng.normal(size=(seeds, documents, 2)) < 0.8
        )
        models.append(Counts.of(gold & good, ~gold & ~good, gold & ~good))
    ((a, b),) = stats.redraw([TaskRuns.of("t", models, "macro")], draws=400)
    noise = stats.document_noise([a], [b], paired=[False])
    parts = [(noise.variance, noise.df)]
    test = stats.these_tasks(
        [a.full], [b.full], paired=[False], documents=parts, twice=noise.twice
    ).test
    return test is not None and test.p is not None and test.p <= ALPHA


def beyond_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Equal on average over all corpora: 'Shown for other tasks like these'; coherence and
    coverage.
    """

    def asked(effect: str, answer: Callable[[MeanTest, MeanTest], bool], gain: float = 0.0) -> Draw:
        def draw(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
            within, beyond = suite(rng, corpora, seeds, effect=effect, means=(gain,)).pair(0, 1)
            return answer(within, beyond)

        return draw

    several = [(n, s) for n, s in CELLS if n > 1]
    for effect in EFFECTS:
        # lognormal effects of few corpora are the known limit of a t over corpora
        most = 0.07 if effect == "lognormal" else 0.05
        draw = asked(effect, lambda _, beyond: (beyond.p or 0.0) <= ALPHA)
        what = f"shown for tasks like these, though equal: {effect} effects"
        yield worst(what, rng, repeats, draw, several, (0.0, most))

    def covers(within: MeanTest, beyond: MeanTest) -> bool:
        return beyond.interval is not None and 1.0 in beyond.interval

    def narrower(within: MeanTest, beyond: MeanTest) -> bool:
        here, there = within.interval, beyond.interval
        return here is not None and there is not None and there.half_width < here.half_width - 1e-9

    yield worst(
        "interval of tasks like these holds the truth",
        rng,
        repeats,
        asked("gaussian", covers, 1.0),
        several,
        (0.93, 1.0),
    )
    yield worst(
        "wider question, narrower interval",
        rng,
        repeats,
        asked("gaussian", narrower),
        several,
        (0.0, 0.0),
    )


def limit_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """What no test of the runs at hand can know: a failure or an outlier that is not among them."""

    def collapse(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
        drawn = suite(rng, corpora, seeds, noise=("10% of seeds collapse", "gaussian seeds"))
        return (drawn.pair(0, 1)[0].p or 0.0) <= ALPHA

    def outlier(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
        drawn = suite(rng, corpora, seeds)
        drawn.scores[0] += (10.0 * (rng.random(corpora) < 1 / 7) - 10 / 7)[:, None]
        return (drawn.pair(0, 1)[1].p or 0.0) <= ALPHA

    limit = (0.0, 1.1)
    what = "limit: shown for these tasks, 3 points better but for 10% collapsed seeds"
    yield worst(what, rng, repeats, collapse, ((3, 3), (8, 5)), limit)
    what = "limit: shown for tasks like these, 1.4 worse but for one corpus in 7, 10 better"
    yield worst(what, rng, repeats, outlier, ((8, 5), (21, 5)), limit)


def many_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Several models: any false pair after Holm's correction, any possible ranks that are wrong."""

    def told(models: int, means: Sequence[float], *, beyond: bool, ranks: bool) -> Draw:
        truth = np.array([*means, *[0.0] * (models - len(means))])

        def draw(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
            drawn = suite(rng, corpora, seeds, models=models, means=means)
            pairs = list(combinations(range(models), 2))
            tests = [drawn.pair(a, b)[int(beyond)] for a, b in pairs]
            apart = [
                ((a, b) if test.estimate > 0 else (b, a))
                for (a, b), test, p in zip(
                    pairs, tests, stats.holm([t.p for t in tests]), strict=True
                )
                if p is not None and p <= ALPHA
            ]
            if not ranks:
                return any(truth[a] <= truth[b] for a, b in apart)
            best = [1 + int((truth > mine).sum()) for mine in truth]
            last = [models - int((truth < mine).sum()) for mine in truth]
            # equal models share their ranks: the possible ones must hold all of them
            found = stats.possible_ranks(models, apart)
            return any(
                low > b or high < w for (low, high), b, w in zip(found, best, last, strict=True)
            )

        return draw

    def badge(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
        """Whether the leader of ten equal models is shown to lead the runner-up, Holm over its
        nearest rivals.
        """
        drawn = suite(rng, corpora, seeds, models=10)
        leader, *rivals = np.argsort(-drawn.scores.mean(axis=(1, 2)))[:MOST]
        runner_up, *_ = stats.holm([drawn.pair(leader, rival)[0].p for rival in rivals])
        return runner_up is not None and runner_up <= ALPHA

    cells = ((3, 3), (8, 5))
    yield worst("10 equal models: badge of the leader", rng, repeats, badge, cells)
    for models in (7, 10):
        what = (
            f"{models} equal models: "
            f"{'some possible rank wrong' if models == 10 else 'some pair shown to differ'}"
        )
        yield worst(what, rng, repeats, told(models, (), beyond=False, ranks=models == 10), cells)
    yield worst(
        "10 equal models: some pair shown to differ on tasks like these",
        rng,
        repeats,
        told(10, (), beyond=True, ranks=False),
        cells,
    )
    steps = (2.0, 2.0, 1.0, 1.0, 1.0)
    yield worst(
        "10 models in 3 steps: some possible ranks wrong",
        rng,
        repeats,
        told(10, steps, beyond=False, ranks=True),
        cells,
    )


def same_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """'The same within' a margin, where the true difference is that margin or more."""

    def same(noise: Sequence[str], gap: float, margin: float = 1.0) -> Draw:
        def draw(rng: np.random.Generator, corpora: int, seeds: int) -> bool:
            within, _ = suite(rng, corpora, seeds, noise=noise, means=(gap,)).pair(0, 1)
            p = stats.equivalent(within, margin)
            return may_be_same([(seeds, seeds)] * corpora) and p is not None and p <= ALPHA

        return draw

    cells = tuple(product((1, 3, 8, 21), (3, 5, 9, 30)))
    what = "the same within 1 point, though "
    yield worst(
        f"{what}1 point apart: gaussian seeds", rng, repeats, same(("gaussian seeds",), -1.0), cells
    )
    skewed = ("skewed seeds", "gaussian seeds")
    yield worst(f"{what}1 point apart: skewed seeds", rng, repeats, same(skewed, -1.0), cells)
    # without its collapsed runs the first model scores as the second
    one = ("10% of seeds collapse", "gaussian seeds")
    yield worst(
        f"{what}3 apart: 10% of one model's seeds collapse", rng, repeats, same(one, -3.0), cells
    )


def power_row(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Power at the smallest difference said to be found in 4 of 5 cases: that of the test that is
    used.
    """
    for corpora, seeds in ((3, 5), (8, 5), (21, 3)):
        found = 0
        for _ in range(repeats):
            said, _ = suite(rng, corpora, seeds).pair(0, 1)
            gain = stats.detectable_difference(said.se, said.df or 1e4)
            found += (suite(rng, corpora, seeds, means=(gain,)).pair(0, 1)[0].p or 0.0) <= ALPHA
        cell = f"{corpora} corpora, {seeds} seeds"
        yield Row("the detectable difference is found", cell, found / repeats, repeats, (0.7, 0.9))


PARTS = (here_rows, beyond_rows, many_rows, same_rows, power_row, limit_rows)


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description="how often each sentence of a verdict is false")
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument(
        "--only", action="append", default=[], choices=[part.__name__ for part in PARTS]
    )
    arguments = parser.parse_args()
    print("| claim | worst cell | measured | target |\n|---|---|---|---|")
    for place, part in enumerate(PARTS):
        if arguments.only and part.__name__ not in arguments.only:
            continue
        for row in part(np.random.default_rng(place), arguments.repeats):
            low, high = row.target
            target = (
                f"≥ {low:g}"
                if high == 1
                else f"{low:g} to {high:g}"
                if low
                else f"≤ {high:g}"
                if high < 1
                else "–"
            )
            mark = "" if row.is_within else " **outside**"
            print(
                f"| {row.what} | {row.cell} | {row.measured:.3f} ± {row.error:.3f}{mark} | "
                f"{target} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
