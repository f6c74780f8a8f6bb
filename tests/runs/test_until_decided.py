"""Seeds are added until two models are decided: which runs are asked for, and when it stops."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from biobench.comparison.decided import decided_sentences
from biobench.errors import UsageError
from biobench.runs.plan import RunRequest
from biobench.runs.result import RunResult
from biobench.runs.sequential import run_until_decided


class Maker:
    """Answers requests with made-up scores. level: (model, task) -> mean; spread: of seeds; seconds: by task."""

    def __init__(self, level, spread, seconds=None, status="done"):
        self.level, self.spread, self.status = level, spread, status
        self.seconds = seconds or {}
        self.asked: list[tuple[str, str, int]] = []

    def __call__(self, request: RunRequest):
        tasks = [Path(t).stem for t in request.tasks]
        low, _, high = (request.seeds or "").partition("-")
        results = []
        for task in tasks:
            for seed in range(int(low), int(high or low) + 1):
                (model,) = request.model
                self.asked.append((model, task, seed))
                score = self.level[model, task] + self.spread * np.random.default_rng([seed, len(model)]).normal()
                results.append(
                    RunResult(model, task, 1, seed, self.status, reason="broken", scores={"macro_f1": score},
                              seconds=self.seconds.get(task, 1.0))
                )  # fmt: skip
        entries = [
            SimpleNamespace(
                id=t,
                loaded=SimpleNamespace(path=Path(f"/specs/{t}.yaml"), spec=SimpleNamespace(corpus_id=t)),
                resampled=None,
            )
            for t in tasks
        ]
        return SimpleNamespace(tasks=entries), results


def levels(gap):
    return {("a", t): 0.7 + gap for t in "xy"} | {("bb", t): 0.7 for t in "xy"}


def said(found):
    return " ".join(decided_sentences(found.first, found.second, found.look, found.seeds, rope=found.rope))


def test_a_clear_difference_takes_three_seeds_of_each():
    make = Maker(levels(0.1), 0.005)
    found = run_until_decided(RunRequest(model=("a",), tasks=("x", "y")), "bb", make)
    assert found.look.decision == "different"
    assert found.seeds == {"x": 3, "y": 3}
    assert len(make.asked) == len(found.runs) == 12
    assert said(found).startswith("a is better than bb on these tasks and test sets, by 10.")


def test_equal_models_are_shown_to_be_the_same_within_the_rope():
    found = run_until_decided(RunRequest(model=("a",), tasks=("x", "y")), "bb", Maker(levels(0.0), 0.002), rope=0.02)
    assert found.look.decision == "same"
    assert "the same within 2 points" in said(found)


def test_it_stops_at_the_most_seeds_and_no_run_is_asked_for_twice():
    make = Maker(levels(0.0), 0.05, seconds={"x": 100.0})
    found = run_until_decided(RunRequest(model=("a",), tasks=("x", "y")), "bb", make, max_seeds=6, rope=0.001)
    assert found.look.decision is None
    assert found.seeds == {"x": 6, "y": 6}
    assert len(set(make.asked)) == len(make.asked) == 24
    # the cheap task goes first, as far as it may be ahead
    after = [task for model, task, _ in make.asked[12:] if model == "a"]
    assert after[:2] == ["y", "y"]
    assert said(found).startswith("Not decided:")


def test_what_cannot_be_decided_is_refused():
    request = RunRequest(model=("a",), tasks=("x", "y"))
    for wrong, options, word in (
        (RunRequest(model=("a", "b"), tasks=("x",)), {}, "one model"),
        (request, {"max_seeds": 2}, "too few"),
        (RunRequest(model=("a",), tasks=("x",), seeds="42-44"), {}, "exclude"),
    ):
        with pytest.raises(UsageError, match=word):
            run_until_decided(wrong, "bb", Maker(levels(0.0), 0.01), **options)
    with pytest.raises(UsageError, match="failed, broken"):
        run_until_decided(request, "bb", Maker(levels(0.0), 0.01, status="failed"))
