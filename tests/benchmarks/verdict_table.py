"""Measured against nominal for every interval and sentence of a verdict: ``python -m tests.benchmarks.verdict_table``.

Each row draws suites whose truth is known, asks the functions that `compare` asks, and counts how often what would be
said is false. Corpora, seeds and test-set noise are as the shipped tasks have them: 6 (French) or 11 (English) corpora,
5 seeds, standard errors of 0.4 to 1.2 points from the test documents.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import cast

import numpy as np

from biobench.comparison.certain import CERTAIN, certain_p
from biobench.comparison.result import PairResult
from biobench.stats import (
    Estimand,
    MeanTest,
    SuiteComparison,
    compare_suite,
    detectable_difference,
    failed_runs,
    gather_pairs,
    holm,
    interaction_of,
    look,
    next_task,
    seed_interval,
    seeds_needed,
    suite_variance,
    t_power,
    tost,
    without_failed,
)
from biobench.stats.means import pooled_df, t_from_se
from biobench.stats.types import FloatArray

SEEDS = 5
ALPHA = 0.05
COLLAPSE = 0.08
"""Share of runs that do not train, 30 points below the others."""


@dataclass(frozen=True)
class Row:
    """what: the claim. measured: its share. target: (least, most) that it may be."""

    what: str
    world: str
    measured: float
    target: tuple[float, float]

    @property
    def is_within(self) -> bool:
        """Whether the share is within its target."""
        return self.target[0] <= self.measured <= self.target[1]


Effect = Callable[[np.random.Generator, int], FloatArray]
WORLDS: dict[str, Effect] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "strongly skewed": lambda rng, n: (np.exp(0.8 * rng.normal(size=n)) - math.exp(0.32)) / 1.306,
    "heavy-tailed": lambda rng, n: rng.standard_t(3, size=n) / math.sqrt(3),
    "heteroscedastic": lambda rng, n: rng.normal(size=n) * np.linspace(0.3, 2.0, n),
    "no effects": lambda rng, n: np.zeros(n),
    "partly collapsed": lambda rng, n: rng.normal(size=n),
}
"""Effects of corpora around the gain, in points, mean 0."""


@dataclass(frozen=True)
class Sample:
    """One simulated comparison of two models, a task a corpus. documents: standard error a corpus, as estimated."""

    first: FloatArray
    second: FloatArray
    documents: FloatArray

    def tested(self, rope: float = 0.0) -> tuple[SuiteComparison, MeanTest]:
        """The suite's test as a verdict rests on it, and the test on these tasks."""
        n = len(self.first)
        gaps = self.first - self.second
        seeds = gaps.var(axis=1, ddof=1) / gaps.shape[1]
        parts = [*((v, gaps.shape[1] - 1.0) for v in seeds / n**2), *((v, 99.0) for v in self.documents**2 / n**2)]
        se = math.sqrt(sum(v for v, _ in parts))
        within = t_from_se(float(gaps.mean()), se, pooled_df(parts), n=n, estimand=Estimand.THESE_TASKS)
        names = [str(i) for i in range(n)]
        suite = compare_suite(self.first.tolist(), self.second.tolist(), tasks=names, rope=rope)
        return suite.hardened(within, float(np.sqrt((self.documents**2).sum()) / n)), within


def sample(rng: np.random.Generator, world: str, corpora: int, gain: float = 0.0, spread: float = 1.0) -> Sample:
    """Scores in points: gain + effect of the corpus + noise of its test set + noise of seeds."""
    true = np.linspace(0.4, 1.2, corpora)
    shift = gain + spread * WORLDS[world](rng, corpora) + rng.normal(0, true)
    noise = rng.normal(0, 0.7, size=(2, corpora, SEEDS))
    if world == "partly collapsed":
        noise -= 30.0 * (rng.random(noise.shape) < COLLAPSE)
    documents = true * np.sqrt(rng.chisquare(99, corpora) / 99)
    return Sample(70 + shift[:, None] + noise[0], 70 + noise[1], documents)


def suite_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """False verdicts, coverage and coherence in every world."""
    for corpora in (6, 11):
        for world in WORLDS:
            false = narrower = covered = 0
            for _ in range(repeats):
                suite, within = sample(rng, world, corpora).tested()
                false += suite.test.p <= ALPHA
                narrower += suite.test.interval.half_width < within.interval.half_width - 1e-9
                covered += 1.0 in sample(rng, world, corpora, gain=1.0).tested()[0].test.interval
            name = f"{world}, {corpora} corpora"
            yield Row("'better on tasks like these' though equal", name, false / repeats, (0.0, 0.07))
            yield Row("wider question, narrower interval", name, narrower / repeats, (0.0, 0.0))
            yield Row("suite interval holds the true difference", name, covered / repeats, (0.93, 1.0))


def part_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Kinds of task that differ, their mean being zero: a pooled statement is false, or refused."""
    for sizes in ((4, 2), (7, 4), (8, 3)):
        parts = [str(kind) for kind, size in enumerate(sizes) for _ in range(size)]
        for gap in (0.5, 1.0, 2.0):
            false = refused = 0
            shift = np.array([gap if part == "0" else -gap for part in parts])
            for _ in range(repeats):
                drawn = sample(rng, "normal", len(parts))
                drawn = Sample(drawn.first + shift[:, None], drawn.second, drawn.documents)
                suite, _ = drawn.tested()
                p = interaction_of(suite.cluster_differences, parts).p
                refused += p <= ALPHA
                false += suite.test.p <= ALPHA and p > ALPHA
            name = f"{sizes[0]} + {sizes[1]} corpora, +{gap:g} and -{gap:g} points (refused {refused / repeats:.2f})"
            yield Row("one verdict for kinds that differ", name, false / repeats, (0.0, 0.07))


def language_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Two languages, French with 6 and English with 11 corpora: the pooled verdict, and that of French alone."""
    parts = ["fr"] * 6 + ["en"] * 11
    for gap in (0.5, 1.0, 2.0):
        pooled = refused = alone = 0
        for _ in range(repeats):
            # French gains what English loses, so that over both nothing is gained
            shift = np.array([gap * 11 / 6 if part == "fr" else -gap for part in parts])
            drawn = sample(rng, "normal", len(parts))
            suite, _ = Sample(drawn.first + shift[:, None], drawn.second, drawn.documents).tested()
            p = interaction_of(suite.cluster_differences, parts).p
            refused += p <= ALPHA
            pooled += suite.test.p <= ALPHA and p > ALPHA
            # equal in French, apart in English: the French verdict sees the French corpora alone
            french = Sample(drawn.first[:6], drawn.second[:6], drawn.documents[:6])
            alone += french.tested()[0].test.p <= ALPHA
        name = f"English {-gap:g}, French {gap * 11 / 6:+.1f} points (refused {refused / repeats:.2f})"
        yield Row("--pooled: one verdict for languages that differ", name, pooled / repeats, (0.0, 0.07))
        name = f"equal in French, English apart by {gap:g}"
        yield Row("'better in French' though equal there", name, alone / repeats, (0.0, 0.07))


def certain_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Equal models on one task: the p that 'Certain' rests on. One answer in ten differs between the models."""
    for seeds, groups in ((2, 30), (5, 30), (5, 100), (9, 300)):
        few = certain = 0
        count = 20 * repeats
        for _ in range(count):
            documents = rng.choice([-1.0, 0.0, 1.0], p=[0.05, 0.9, 0.05], size=groups)
            runs = rng.normal(documents.mean(), 0.01, seeds)
            within = SimpleNamespace(
                test=SimpleNamespace(p=0.0, df=seeds - 1.0),
                difference=float(runs.mean()),
                se_documents=float(documents.std(ddof=1)) / math.sqrt(groups),
                se_seeds=float(runs.std(ddof=1)) / math.sqrt(seeds),
            )
            line = SimpleNamespace(n_first=seeds, n_second=seeds, groups=groups, corpus="one")
            p = certain_p(cast(PairResult, SimpleNamespace(within=within, tasks=(line,))))
            few += p is not None and p <= 0.01
            certain += p is not None and p < CERTAIN
        name = f"{seeds} seeds, {groups} documents"
        yield Row("the p behind 'Certain' is below 1% though equal", name, few / count, (0.0, 0.012))
        yield Row("'Certain' though equal", f"{name}, {count} samples", certain / count, (0.0, CERTAIN))


def seed_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """± over seeds where runs collapse: the mean of the runs that train."""
    for seeds in (3, 5, 9):
        covered = said = flagged = 0
        for _ in range(4 * repeats):
            scores = rng.normal(0.7, 0.01, seeds)
            lost = rng.random(seeds) < COLLAPSE
            scores[lost] -= rng.uniform(0.2, 0.6, int(lost.sum()))
            found = failed_runs(scores)
            flagged += list(found) == list(lost)
            interval = seed_interval(without_failed(scores.tolist(), found)).interval
            if interval is not None:
                said += 1
                covered += 0.7 in interval
        name = f"{seeds} seeds, 8% collapsed (flags right {flagged / (4 * repeats):.3f})"
        yield Row("± over seeds holds the mean of the runs that train", name, covered / said, (0.93, 1.0))


SHAPES = ((4, 4), (6, 6), (10, 6), (6, 11))
"""(models, corpora)"""


def pair_rows(rng: np.random.Generator, repeats: int, shapes: Sequence[tuple[int, int]] = SHAPES) -> Iterator[Row]:
    """Several equal models: any letter or sentence that tells two apart."""
    for models, corpora in shapes:
        for world in ("alike", "one specialist", "three specialists"):
            spread = np.ones(models)
            spread[: {"alike": 0, "one specialist": 1, "three specialists": 3}[world]] = 5.0
            false = 0
            for _ in range(repeats // 2):
                scores = 70 + rng.normal(size=(models, corpora)) * spread[:, None]
                shaped = [[[x] for x in row] for row in scores]
                names = [str(i) for i in range(models)]
                compared = {
                    (names[a], names[b]): compare_suite(shaped[a], shaped[b]) for a, b in combinations(range(models), 2)
                }
                false += any(p.different for p in gather_pairs(shaped, names, compared).pairs)
            name = f"{models} models, {corpora} corpora, {world}"
            yield Row("letters tell equal models apart", name, false / (repeats // 2), (0.0, 0.055))
    for models in (3, 5):
        false, count = 0, repeats
        for _ in range(count):
            scores = rng.normal(70, 1, size=(models, SEEDS))
            tests = [
                t_from_se(
                    float((a - b).mean()), float((a - b).std(ddof=1)) / math.sqrt(SEEDS), SEEDS - 1.0,
                    n=SEEDS, estimand=Estimand.THESE_TASKS,
                )
                for a, b in combinations(scores, 2)
            ]  # fmt: skip
            false += min(holm([t.p for t in tests])) <= ALPHA
        yield Row("'X is better than Y' among equals on one task", f"{models} models", false / count, (0.0, 0.055))


def margin_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Equivalence where the true difference is the margin itself."""
    for corpora in (6, 11):
        for margin in (1.0, 2.0):
            same = 0
            for _ in range(repeats):
                suite, within = sample(rng, "normal", corpora, gain=margin, spread=0.5).tested(rope=margin)
                same += max(tost(suite.test, margin), tost(within, margin)) <= ALPHA
            name = f"{corpora} corpora, truly {margin:g} apart"
            yield Row("'the same within' that margin", name, same / repeats, (0.0, 0.06))


def plan_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Detectable differences and numbers of seeds."""
    for corpora in (6, 11, 100):
        true_sd = math.sqrt(1 + float((np.linspace(0.4, 1.2, corpora) ** 2).mean()) + 2 * 0.49 / SEEDS)
        true = detectable_difference(true_sd, corpora)
        between, seed = true_sd**2 - 2 * 0.49 / SEEDS, 2 * 0.49
        inside = said = near = 0
        for _ in range(repeats):
            drawn = sample(rng, "normal", corpora)
            suite, _ = drawn.tested()
            inside += suite.detectable_range.low <= true <= suite.detectable_range.high
            names = [str(i) for i in range(corpora)]
            wanted = 0.94 * true
            plan = seeds_needed(wanted, suite_variance(drawn.first.tolist(), drawn.second.tolist(), names))
            if plan.seeds is not None:
                said += 1
                near += 0.7 <= t_power(wanted, math.sqrt(between + seed / plan.seeds), corpora) <= 0.9
        yield Row("detectable range holds the true one", f"{corpora} corpora", inside / repeats, (0.87, 1.0))
        if said:
            name = f"{corpora} corpora (said in {said / repeats:.2f})"
            yield Row("'N seeds would do' has 70 to 90% power", name, near / said, (0.9, 1.0))
        else:
            yield Row("'N seeds would do' is said", f"{corpora} corpora", 0.0, (0.0, 0.0))


def peeking_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Seeds until decided, looked at after every run; up to 15 seeds a task."""
    for tasks in (1, 8):
        for gain, rope, what, target in (
            (0.0, 0.0, "a difference though equal", (0.0, 0.05)),
            (1.0, 0.0, "a difference where it is 1 point", (0.0, 1.0)),
            (0.0, 1.0, "the same within 1 point where equal", (0.0, 1.0)),
            (1.0, 1.0, "the same within 1 point where 1 apart", (0.0, 0.05)),
        ):
            found, spent, fixed = 0, 0.0, 0
            count = max(40, repeats // 4)
            for _ in range(count):
                spread = np.exp(0.4 * rng.normal(size=tasks)) * (1.0 if tasks > 1 else 0.7)
                seconds = np.exp(rng.normal(size=tasks))
                runs = [list(gain + s * rng.normal(size=5)) for s in spread]
                fixed += look(runs, [1 / tasks] * tasks, prior=4.0).interval is not None and _t_of(runs) <= ALPHA
                runs = [r[:3] for r in runs]
                decision = None
                while decision is None and sum(map(len, runs)) < 15 * tasks:
                    decision = look(runs, [1 / tasks] * tasks, rope=rope).decision
                    if decision is None:
                        place = next_task(runs, [1 / tasks] * tasks, seconds.tolist())
                        runs[place].append(float(gain + spread[place] * rng.normal()))
                found += decision == ("same" if what.startswith("the same") else "different")
                spent += sum(map(len, runs)) / tasks
            name = f"{tasks} tasks ({spent / count:.1f} seeds a task; 5 fixed seeds: {fixed / count:.2f})"
            yield Row(f"until decided: {what}", name, found / count, target)


def _t_of(runs: list[list[float]]) -> float:
    """p of the t on these tasks with so many seeds."""
    n = len(runs)
    parts = [(float(np.var(r, ddof=1)) / len(r) / n**2, len(r) - 1.0) for r in runs]
    mean = float(np.mean([np.mean(r) for r in runs]))
    se = math.sqrt(sum(v for v, _ in parts))
    return t_from_se(mean, se, pooled_df(parts), n=n, estimand=Estimand.THESE_TEST_SETS).p or 0.0


PARTS = (suite_rows, part_rows, language_rows, certain_rows, seed_rows, pair_rows, margin_rows, plan_rows, peeking_rows)


def table(repeats: int, only: Sequence[str] = ()) -> Iterator[Row]:
    """All rows, or those of some parts; the standard error of a share of 5% is 0.22 / sqrt(repeats)."""
    for place, part in enumerate(PARTS):
        if not only or part.__name__ in only:
            yield from part(np.random.default_rng(place), repeats)


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description="measured against nominal for every claim of a verdict")
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--only", action="append", default=[], choices=[part.__name__ for part in PARTS])
    arguments = parser.parse_args()
    print("| claim | world | measured | target |\n|---|---|---|---|")
    for row in table(arguments.repeats, arguments.only):
        low, high = row.target
        target = f"≤ {high:g}" if low == 0 and high < 1 else f"≥ {low:g}" if high == 1 and low > 0 else "–"
        mark = "" if row.is_within else " **outside**"
        print(f"| {row.what} | {row.world} | {row.measured:.3f}{mark} | {target} |", flush=True)


if __name__ == "__main__":
    main()
