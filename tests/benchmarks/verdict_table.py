"""How often each sentence of a verdict is false: ``python -m tests.benchmarks.verdict_table``.

Each row draws worlds whose truth is known, asks the functions that `compare` asks, and counts false
sentences; a row over several cells shows its worst one, measured anew. Scores are in points.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from operator import attrgetter
from typing import Any

import numpy as np

from biobench import stats
from biobench.comparison.correction import SAME_RUNS, SAME_SEEDS
from biobench.reporting.guessing import ALPHA as GUESSING_ALPHA
from biobench.stats import Answer, Counts, HolmStep, Variances
from biobench.stats.types import FloatArray
from tests.helpers.stats_simulation import compare_left_out, left_out_of

ALPHA = 0.05
COLLAPSE = 30.0
"""Points that a run which does not train lies below the others."""
ALLOWED = 0.06
"""A rate of false sentences that is still called 5%."""
TASKS = (1, 2, 3, 8, 21)
SEED_COUNTS = (3, 5, 9)
DOCUMENTS = (0.3, 0.8, 3.0)
"""Standard error of a difference over documents, where seeds spread by one point."""
Generator = np.random.Generator
Noise = Callable[[Generator, tuple[int, ...]], FloatArray]
Question = Callable[[Generator, Any], bool]
"""Draws a world and says whether a sentence about it is false (of power: is found)."""


@dataclass(frozen=True)
class Row:
    """A claim measured. cell: where its rate is worst."""

    claim: Claim
    cell: str
    rate: float
    draws: int

    @property
    def error(self) -> float:
        """Monte-Carlo standard error of the rate."""
        return math.sqrt(max(self.rate * (1 - self.rate), 1 / self.draws) / self.draws)

    def __str__(self) -> str:
        """In Markdown; outside: by more than two errors."""
        least, most = self.claim.least - 2 * self.error, self.claim.most + 2 * self.error
        mark = "" if least <= self.rate <= most else " **outside**"
        rate = f"{self.rate:.3f} ± {self.error:.3f}{mark}"
        return f"| {self.claim.words} | {self.cell} | {rate} | {self.claim.target} |"


@dataclass(frozen=True)
class Claim:
    """words: the sentence and the worlds. least, most: what its rate may be; where there is a
    least, the world with the lowest rate is the worst.
    """

    words: str
    question: Question
    worlds: Sequence[Any]
    least: float = 0.0
    most: float = ALLOWED

    @property
    def target(self) -> str:
        """``≤ 0.06``, ``≥ 0.015`` or ``0.7 to 0.9``."""
        if self.most > 1:
            return "known limit"
        if not self.least:
            return f"≤ {self.most:g}"
        return (
            f"≥ {self.least:g}" if self.most in (1, ALLOWED) else f"{self.least:g} to {self.most:g}"
        )

    def measured(self, rng: Generator, draws: int) -> Row:
        """In the worst of several worlds, measured anew: it is found with a quarter of the draws in
        each, and the largest of many is lucky.
        """
        world = self.worlds[0]
        if len(self.worlds) > 1:
            rates = [self._rate(world, rng, max(draws // 4, 10)) for world in self.worlds]
            world = self.worlds[int(np.argmin(rates) if self.least else np.argmax(rates))]
        return Row(self, str(world), self._rate(world, rng, draws), draws)

    def _rate(self, world: Any, rng: Generator, draws: int) -> float:
        return sum(self.question(rng, world) for _ in range(draws)) / draws


def gaussian(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
    """Mean 0, spread 1."""
    return rng.normal(size=shape)


def collapsing(share: float) -> Noise:
    """Gaussian seeds of which this share does not train; mean 0."""

    def draw(rng: Generator, shape: tuple[int, ...]) -> FloatArray:
        lost = COLLAPSE * (rng.random(shape) < share)
        return rng.normal(size=shape) - lost + share * COLLAPSE

    return draw


SEEDS: dict[str, Noise] = {
    "gaussian": gaussian,
    "t3": lambda rng, shape: rng.standard_t(3, size=shape) / math.sqrt(3),
    "skewed": lambda rng, shape: 1 - rng.exponential(size=shape),
    "5% of seeds collapse": collapsing(0.05),
    "10% of seeds collapse": collapsing(0.10),
}
"""Noise over seeds in points, mean 0, spread 1 where none collapses."""
EFFECTS: dict[str, Noise] = {
    "gaussian": gaussian,
    "t3": SEEDS["t3"],
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1,
    "lognormal": lambda rng, shape: (np.exp(0.8 * rng.normal(size=shape)) - math.exp(0.32)) / 1.306,
    "outlier": lambda rng, shape: (
        rng.normal(size=shape) * np.where(rng.random(shape) < 1 / 7, 10.0, 1.0)
    ),
}
"""Effects of corpora in points, mean 0."""


@dataclass(frozen=True)
class World:
    """What is drawn. models: their number; tasks: each a corpus of its own; seeds: of each model;
    documents: the standard error of a difference over documents, in points, of test sets of
    `groups` documents; means: true means of the first models, 0 of the others; noise: over seeds,
    of the first models, the last one of all others; effects: of corpora on each model, none without
    a name.
    """

    models: int = 2
    tasks: int = 1
    seeds: tuple[int, ...] = (3,)
    documents: float = 0.8
    groups: int = 100
    means: tuple[float, ...] = ()
    noise: tuple[str, ...] = ("gaussian",)
    effects: str = ""
    spread: float = 1.0

    def __str__(self) -> str:
        tasks = "1 task" if self.tasks == 1 else f"{self.tasks} tasks"
        seeds = " against ".join(map(str, self.seeds))
        return f"{self.models} models, {tasks}, {seeds} seeds, documents {self.documents:g}"

    @property
    def truth(self) -> FloatArray:
        """(models,) true means."""
        return np.pad(np.array(self.means), (0, self.models - len(self.means)))

    def draw(self, rng: Generator) -> Suite:
        """One suite of runs."""
        scores, seed_parts = [], []
        for model, truth in enumerate(self.truth):
            noise = SEEDS[self.noise[min(model, len(self.noise) - 1)]]
            count = self.seeds[min(model, len(self.seeds) - 1)]
            runs = truth + self.spread * noise(rng, (self.tasks, count))
            scores.append(runs.mean(axis=1))
            seed_parts.append([stats.seed_part(of_task) for of_task in runs])
        # half of the variance of a difference is each model's
        own = self.documents / math.sqrt(2)
        means = np.array(scores) + rng.normal(scale=own, size=(self.models, self.tasks))
        if self.effects:
            means = means + EFFECTS[self.effects](rng, means.shape) / math.sqrt(2)
        chi2 = rng.chisquare(self.groups - 1, size=means.shape) / (self.groups - 1)
        return Suite(means, seed_parts, own**2 * chi2, self.groups - 1.0)


@dataclass(frozen=True)
class Suite:
    """means: (models, tasks). seeds: of each model and task, variance of the mean and degrees of
    freedom. documents: (models, tasks) variances with `df` degrees of freedom.
    """

    means: FloatArray
    seeds: list[list[stats.Part]]
    documents: FloatArray
    df: float

    def here(self, model: int, rival: int | None = None) -> Answer:
        """On these tasks: a model's mean, or its difference to a rival's."""
        sides = [model] if rival is None else [model, rival]
        tasks = self.means.shape[1]
        seeds = [(v / tasks**2, df) for side in sides for v, df in self.seeds[side]]
        documents = self.documents[sides].sum(axis=0) / tasks**2
        variances = Variances(tuple(seeds), tuple((float(v), self.df) for v in documents))
        answer = stats.these_tasks(float(self.gaps(*sides).mean()), variances)
        assert answer is not None
        return answer

    def beyond(self, model: int, rival: int) -> Answer:
        """On tasks like these, of which there are two or more."""
        gaps = self.gaps(model, rival)
        answer = stats.tasks_like_these(
            gaps, list(map(str, range(gaps.size))), self.here(model, rival)
        )
        assert answer is not None
        return answer

    def gaps(self, model: int, *rivals: int) -> FloatArray:
        """(tasks,) scores of the model, less its rival's."""
        return np.subtract.reduce(self.means[[model, *rivals]])

    def tested(
        self, p: Callable[[Answer], float] = attrgetter("p"), *, beyond: bool = False
    ) -> Iterator[tuple[tuple[int, int], Answer, HolmStep]]:
        """Every pair, its answer, and its step after Holm's correction of p for all pairs."""
        pairs = list(combinations(range(len(self.means)), 2))
        ask = self.beyond if beyond else self.here
        answers = [ask(*pair) for pair in pairs]
        for pair, answer, step in zip(
            pairs, answers, stats.holm(list(map(p, answers)), ALPHA), strict=True
        ):
            assert step is not None
            yield pair, answer, step

    def shown(self, *, beyond: bool = False) -> list[tuple[int, int]]:
        """(better, worse) of the pairs that are shown to differ."""
        found = []
        for pair, answer, step in self.tested(beyond=beyond):
            if step.passed:
                found.append(pair if answer.estimate > 0 else pair[::-1])
        return found


def grid(
    models: int,
    tasks: Sequence[int] = (),
    seeds: Sequence[int | tuple[int, ...]] = (),
    documents: Sequence[float] = (),
    **fields: Any,
) -> list[World]:
    """Worlds of these sizes, of all sizes where none are named."""
    sizes = product(tasks or TASKS, seeds or SEED_COUNTS, documents or DOCUMENTS)
    return [World(models, t, tuple(np.atleast_1d(s)), d, **fields) for t, s, d in sizes]


def some_pair(rng: Generator, world: World) -> bool:
    """Whether some pair is shown the wrong way round, or though the models are equal."""
    truth = world.truth
    return any(truth[better] <= truth[worse] for better, worse in world.draw(rng).shown())


def some_pair_beyond(rng: Generator, world: World) -> bool:
    """The same on tasks like these."""
    return bool(world.draw(rng).shown(beyond=True))


def some_rank(rng: Generator, world: World) -> bool:
    """Whether some model's possible ranks leave out its true ones."""
    truth = world.truth
    low, high = np.array(stats.possible_ranks(world.models, world.draw(rng).shown())).T
    best = 1 + (truth[:, None] < truth).sum(axis=1)
    last = world.models - (truth[:, None] > truth).sum(axis=1)
    return bool(((low > best) | (high < last)).any())


def badge(rng: Generator, world: World) -> bool:
    """Whether the leader is shown to lead the next one: one comparison, as on the board."""
    suite = world.draw(rng)
    leader, following = np.argsort(-suite.means.mean(axis=1))[:2].tolist()
    return suite.here(leader, following).p <= ALPHA


def equal_rows() -> Iterator[Claim]:
    """Equal models: 'shown for these tasks', possible ranks, the badge."""
    for models in (2, 5, 12):
        claim = f"some pair of {models} equal models shown, some rank wrong"
        yield Claim(claim, some_pair, grid(models))
    yield Claim("two equal models shown (the least)", some_pair, grid(2), least=0.015)
    one_noise = grid(2, (1,), (3, 5, 9), (0.02, 20.0))
    claim = "two equal models shown, one noise dominates (the least)"
    yield Claim(claim, some_pair, one_noise, least=0.025)
    for name in list(SEEDS)[1:]:
        worlds = grid(2, noise=(name,)) + grid(12, (1, 2, 3), (3, 9), noise=(name,))
        yield Claim(f"some pair of equal models shown, {name}", some_pair, worlds)
    worlds = grid(2, noise=("skewed", "gaussian"))
    yield Claim("equal models shown, seeds of one model skewed", some_pair, worlds)
    counts = ((3, 9), (9, 3), (3, 5))
    unequal = grid(2, (1, 2, 8), counts) + grid(12, (1, 2, 8), counts)
    yield Claim("equal models shown, unequal seeds", some_pair, unequal)
    steps = grid(12, (1, 3, 8), (3, 9), means=(2.0, 2.0, 1.0, 1.0, 1.0))
    yield Claim("12 models in 3 steps, some rank wrong", some_rank, steps)
    yield Claim("badge of the leader of 2 equal models", badge, grid(2))
    # the leader of many is picked for its luck, which the next one shares in part
    yield Claim("badge of the leader of 12 equal models", badge, grid(12))


def beyond_rows() -> Iterator[Claim]:
    """Equal on average over all corpora: 'shown for tasks like these'."""
    for effects in EFFECTS:
        # lognormal effects of few corpora are the known limit of a t over corpora
        most = 0.07 if effects == "lognormal" else ALLOWED
        worlds = grid(2, TASKS[1:], effects=effects)
        claim = f"shown for tasks like these though equal, {effects} effects"
        yield Claim(claim, some_pair_beyond, worlds, most=most)
    worlds = grid(12, (2, 8), (3, 9), effects="gaussian")
    yield Claim("some pair of 12 shown for tasks like these", some_pair_beyond, worlds)

    def misses(rng: Generator, world: World) -> bool:
        return 1.0 not in world.draw(rng).beyond(0, 1).interval()

    worlds = grid(2, TASKS[1:], effects="gaussian", means=(1.0,))
    yield Claim("the interval of tasks like these misses the truth", misses, worlds)


def coherence_rows() -> Iterator[Claim]:
    """What may never happen."""

    def narrower(rng: Generator, world: World) -> bool:
        suite = world.draw(rng)
        here, beyond = suite.here(0, 1).interval(), suite.beyond(0, 1).interval()
        return beyond.half_width < here.half_width - 1e-12

    def surer(rng: Generator, world: World) -> bool:
        """More noise of documents, and the p value falls."""
        suite = world.draw(rng)
        noisier = replace(suite, documents=suite.documents * 4)
        return noisier.here(0, 1).p < suite.here(0, 1).p * (1 - 1e-12)

    def against_its_interval(rng: Generator, world: World) -> bool:
        return any(
            step.passed == (0.0 in answer.interval(1 - step.alpha))
            for _, answer, step in world.draw(rng).tested()
        )

    worlds = grid(2, (2, 8), effects="gaussian")
    yield Claim("the wider question has the narrower interval", narrower, worlds, most=0)
    yield Claim("more noise gives the smaller p", surer, grid(2), most=0)
    several = grid(5, (1, 3), (3,), means=(3.0, 1.0))
    yield Claim("a word against its interval", against_its_interval, several, most=0)


def same_rows() -> Iterator[Claim]:
    """'The same within' a margin of 1 point, where the true difference is that or more."""

    def same(rng: Generator, world: World) -> bool:
        """Whether some pair whose truth is a margin apart or more is called the same."""
        truth = world.truth
        outside = world.draw(rng).tested(lambda answer: answer.p_outside(1.0))
        return any(
            step.passed and abs(truth[model] - truth[rival]) >= 1.0
            for (model, rival), _, step in outside
        )

    def worlds(models: int, **fields: Any) -> list[World]:
        """With as many runs as the word needs."""
        sizes = ((1, 60), (3, 20), (8, 9), (21, 5))
        assert all(n >= SAME_SEEDS and t * n >= SAME_RUNS for t, n in sizes)
        return [World(models, t, (n,), d, **fields) for (t, n), d in product(sizes, (0.3, 1.0))]

    for models in (2, 4, 6, 10):
        claim = f"some pair of {models} the same within 1 point, though 1 point apart"
        yield Claim(claim, same, worlds(models, means=tuple(map(float, range(models)))))
    # one model's collapsing seeds cost it 1.5 points; without them it scores as the others
    for models in (2, 6):
        claim = f"the same within 1 point, though 5% of one model's seeds collapse, {models} models"
        collapsed = worlds(models, means=(-1.5,), noise=("5% of seeds collapse", "gaussian"))
        yield Claim(claim, same, collapsed)


def power_rows() -> Iterator[Claim]:
    """What is found where there is something to find."""

    def some_gain(rng: Generator, world: World) -> bool:
        """Whether the first model is shown to be better."""
        return (0, 1) in world.draw(rng).shown()

    for models, (tasks, seeds) in product((2, 5, 10), ((1, 5), (3, 5), (8, 5), (21, 3))):
        world = World(models, tasks, (seeds,))
        gain = detectable_truth(world, pairs=models * (models - 1) // 2)
        claim = f"the detectable difference of {models} models is found"
        yield Claim(claim, some_gain, [replace(world, means=(gain,))], 0.7, 0.9)
    # a t on paired seeds found these in .30 and .27 of the draws
    alone = World(means=(6.0,), spread=1.9, documents=2.2, groups=500)
    unequal = World(tasks=2, seeds=(3, 9), means=(6.0,), spread=4.1, documents=2.2, groups=500)
    yield Claim("6 points found, seeds spread by 1.9", some_gain, [alone], 0.45, 1.0)
    yield Claim("6 points found, seeds spread by 4.1", some_gain, [unequal], 0.55, 1.0)


def detectable_truth(world: World, pairs: int) -> float:
    """The detectable difference at the true standard errors."""
    count, size = world.seeds[0], (2, world.tasks)
    seeds = [[(world.spread**2 / count, count - 1.0)] * world.tasks] * 2
    documents = np.full(size, world.documents**2 / 2)
    suite = Suite(np.zeros(size), seeds, documents, world.groups - 1.0)
    difference = suite.here(0, 1).detectable(alpha=ALPHA / pairs)
    assert difference is not None
    return difference


@dataclass(frozen=True)
class CountWorld:
    """Models that answer documents, scored from counts.

    documents: of the test set, in groups of `cluster` documents each; labels: frequencies of the
    labels; seed_spread: of a run's skill on the scale of a normal; shared: share of the errors that
    a model makes with every seed.
    """

    models: int
    seeds: int
    documents: int
    labels: tuple[float, ...] = (0.5, 0.3)
    average: stats.Average = "macro"
    seed_spread: float = 0.1
    shared: float = 0.5
    cluster: int = 1

    def __str__(self) -> str:
        grouped = f" in groups of {self.cluster}" if self.cluster > 1 else ""
        return f"{self.models} models, {self.seeds} seeds, {self.documents} documents{grouped}"

    def shown(self, rng: Generator) -> bool:
        """Whether some pair of equal models on one test set is shown to differ."""
        size = (self.documents, len(self.labels))
        gold = rng.random(size) < np.array(self.labels)
        gold[0] = True
        starts = np.arange(0, self.documents, self.cluster)
        owner = np.arange(self.documents) // self.cluster

        def difficulty() -> FloatArray:
            """Of each document and label, in part its group's where there are groups."""
            own = rng.normal(size=size)
            return own + rng.normal(size=(len(starts), 1))[owner] * (self.cluster > 1)

        hard, models = difficulty(), []
        for _ in range(self.models):
            mixed = math.sqrt(self.shared) * difficulty()
            mixed = mixed + math.sqrt(1 - self.shared) * rng.normal(size=(self.seeds, *size))
            skill = self.seed_spread * rng.normal(size=(self.seeds, 1, 1))
            right = 0.7 * hard + 0.7 * mixed + skill < 0.8
            answers = np.array([gold & right, ~gold & (mixed > 2.0), gold & ~right], dtype=int)
            counts = Counts.of(*np.add.reduceat(answers, starts, axis=2))
            models.append([left_out_of(counts, self.average)])
        p_values = []
        for model, rival in combinations(models, 2):
            answer, _ = compare_left_out(model, rival, ["corpus"])
            p_values.append(None if answer is None else answer.p)
        return any(step is not None and step.passed for step in stats.holm(p_values, ALPHA))


def count_rows() -> Iterator[Claim]:
    """The jackknife over documents, on counts."""
    rare = (0.5, 0.3, 0.03, 0.02)
    clustered = [
        CountWorld(2, 3, n, cluster=5, seed_spread=spread)
        for n, spread in product((150, 1500), (0.05, 0.3))
    ]
    for name, worlds in (
        (
            "30 to 1,500 documents, macro F1",
            [CountWorld(2, s, n) for s, n in product((3, 9), (30, 100, 1500))],
        ),
        ("rare labels, macro F1", [CountWorld(2, s, n, rare) for s in (3, 9) for n in (60, 300)]),
        ("clustered documents", clustered),
        ("seeds err apart", [CountWorld(2, s, 200, shared=0.0) for s in (3, 9)]),
        ("12 models, micro F1", [CountWorld(12, s, 200, average="micro") for s in (3, 9)]),
    ):
        yield Claim(f"equal models shown, {name}", lambda rng, world: world.shown(rng), worlds)


def guessing_rows() -> Iterator[Claim]:
    """A model at chance passes as above guessing."""

    def passes(rng: Generator, world: World) -> bool:
        answer = world.draw(rng).here(0)
        return answer.estimate > 0 and answer.p_not_above <= GUESSING_ALPHA

    yield Claim("a model at chance passes as above guessing", passes, grid(1))


def limit_rows() -> Iterator[Claim]:
    """What no test of the runs at hand can know: a failure or an outlier that is not among them."""
    noise = ("10% of seeds collapse", "gaussian")
    worlds = [World(2, 3, (3,), noise=noise), World(2, 8, (5,), noise=noise)]
    claim = "limit: shown, 3 points better but for 10% collapsed seeds"
    yield Claim(claim, some_pair, worlds, most=1.1)

    def outlier(rng: Generator, world: World) -> bool:
        suite = world.draw(rng)
        suite.means[0] += 10.0 * (rng.random(world.tasks) < 1 / 7) - 10 / 7
        return bool(suite.shown(beyond=True))

    claim = "limit: shown for tasks like these, 1.4 worse but for one corpus in 7, 10 better"
    yield Claim(claim, outlier, grid(2, (8, 21), (5,), (0.3,)), most=1.1)


PARTS = {
    part.__name__: part
    for part in (
        equal_rows,
        count_rows,
        beyond_rows,
        coherence_rows,
        same_rows,
        guessing_rows,
        power_rows,
        limit_rows,
    )
}


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description="how often each sentence of a verdict is false")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", action="append", choices=PARTS)
    arguments = parser.parse_args()
    print("| claim | worst cell | measured | target |\n|---|---|---|---|")
    for number, (name, part) in enumerate(PARTS.items()):
        if name in (arguments.only or PARTS):
            rng = np.random.default_rng(number)
            for claim in part():
                print(claim.measured(rng, arguments.draws), flush=True)


if __name__ == "__main__":
    main()
