"""Means, their intervals over seeds and suite averages against formulas written out here."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance

import numpy as np
import pytest
from scipy import stats

from biobench.comparison.compare import compare
from biobench.report.averages import known_mean, suite_averages
from biobench.report.frame import build
from biobench.report.frames import tidy
from biobench.report.results import load
from biobench.report.row import Row
from biobench.report.tasks import shipped
from biobench.schema.record import Resampling
from leaderboard import lines
from tests.helpers.report_make import run_of, save_run
from tests.helpers.store_make import write_runs

CLOSE = 1e-12
TASKS = tuple(i.id for i in shipped().values() if i.suite == "fr" and i.in_suite)
INFOS = {task: shipped()[task] for task in TASKS}
SPLITS, TEST, TRAIN = TASKS[-1], 3, 12
"""The task whose runs are several splits of one corpus, and the documents of a split."""


def shares(tasks: Sequence[str]) -> list[float]:
    """Weights of tasks in an average that counts a corpus once."""
    corpora = [INFOS[task].corpus for task in tasks]
    return [1 / len(set(corpora)) / corpora.count(corpus) for corpus in corpora]


def line(model: str = "m", scores: dict[str, list[float]] | None = None, **fields) -> list[Row]:
    """A row a task, with mean, sd and an interval over these scores."""
    rng = np.random.default_rng(3)
    made = []
    for place, task in enumerate(TASKS):
        own = (scores or {}).get(task) or rng.normal(
            0.5, 0.01 * (place + 1), 2 + place % 3
        ).tolist()
        row = Row(
            model,
            task,
            "macro_f1",
            float(np.mean(own)),
            None,
            None,
            None,
            len(own),
            "run",
            suite="fr",
        )
        if len(own) > 1:
            row = replace(row, sd=float(np.std(own, ddof=1)), low=0.0, high=1.0)
        made.append(replace(row, values=tuple(own), **fields))
    return made


def test_an_average_weighs_a_corpus_once_and_says_the_plain_mean_too():
    rows = line()
    (found,) = suite_averages(rows, INFOS)[0]
    weights = shares(TASKS)
    assert found.mean == pytest.approx(sum(w * r.mean for w, r in zip(weights, rows, strict=True)))
    assert found.task_mean == pytest.approx(np.mean([np.mean(r.values) for r in rows]))
    assert found.sd == pytest.approx(
        math.hypot(*(w * r.sd for w, r in zip(weights, rows, strict=True)))
    )
    assert (found.task, found.tasks, found.complete, found.notes) == (
        "avg_fr",
        len(TASKS),
        True,
        (),
    )
    assert (found.n_seeds, found.metric, found.line) == (2, "macro_f1", rows[0].line)


def test_one_seed_anywhere_leaves_no_interval_and_ends_are_scores():
    (alone,) = suite_averages(line(scores={TASKS[3]: [0.5]}), INFOS)[0]
    assert (alone.sd, alone.low, alone.high, alone.n_seeds) == (None, None, None, 1)
    (cut,) = suite_averages(line(scores={"diamed": [0.0, 1.0]}), INFOS)[0]
    assert (cut.low, cut.high) == (0.0, 1.0)


def test_report_data_frame_comparison_and_board_flag_the_same_runs(tmp_path):
    for model, scores in {
        "m": [0.7, 0.71, 0.69, 0.705, 0.12],
        "n": [0.6, 0.61, 0.59, 0.605, 0.6],
    }.items():
        for seed, score in enumerate(scores, 42):
            save_run(tmp_path, model, "gad", seed, score)
    results = load(tmp_path)
    report = build(results, "macro", tasks=["gad"])
    by_report = {(r.model, seed) for r in report.rows for seed in r.failed_seeds}
    by_frame = {(row["model"], row["seed"]) for row in tidy(results) if row["failed"]}
    by_comparison = {(f.model, f.seed) for f in compare("m", "n", results_dir=tmp_path).failed}
    assert by_report == by_frame == by_comparison == {("m", 46)}
    assert {row["failed"] for row in tidy(results) if row["model"] == "n"} == {False}
    (row,) = (r for r in report.rows if r.failed)
    assert (row.mean, row.kept) == pytest.approx((0.585, 0.70125))
    assert row.low < row.kept < row.high
    assert row.margin < 0.02
    assert any("1 of 5 runs failed (seed 46)" in n for n in row.notes)
    cells = {r.model: lines.score(r) for r in report.rows}
    assert cells["m"].endswith("(1 failed)")
    assert "failed" not in cells["n"]


def test_costs_are_means_and_memory_the_highest_where_all_are_known():
    assert (
        suite_averages([replace(line()[0], metric="micro_f1"), *line()[1:]], INFOS)[0][0].metric
        == "mixed"
    )
    rows = [
        replace(
            r,
            seconds=float(i),
            energy_kwh=2.0 * i,
            train_tokens_per_second=3.0 * i,
            peak_memory_bytes=10 + i % 3,
        )
        for i, r in enumerate(line(parameters=7))
    ]
    (found,) = suite_averages(rows, INFOS)[0]
    middle = (len(TASKS) - 1) / 2
    assert (found.seconds, found.energy_kwh, found.train_tokens_per_second) == (
        middle,
        2 * middle,
        3 * middle,
    )
    assert (found.peak_memory_bytes, found.parameters) == (12, 7)
    (found,) = suite_averages([replace(rows[0], energy_kwh=None), *rows[1:]], INFOS)[0]
    assert (found.seconds, found.energy_kwh) == (middle, None)
    (found,) = suite_averages(line(), INFOS)[0]
    assert (found.seconds, found.peak_memory_bytes) == (None, None)
    assert [known_mean(v) for v in ([], [None], [1.0, None], [1.0, 4.0])] == [None, None, None, 2.5]


def test_what_is_averaged_and_what_is_not():
    rows = line()
    assert not suite_averages([replace(r, source="baseline") for r in rows], INFOS)[0]
    assert not suite_averages([replace(r, source="oracle") for r in rows], INFOS)[0]
    assert not suite_averages(
        [replace(r, variant="tuned, limit 64", partial=True) for r in rows], INFOS
    )[0]
    assert suite_averages([replace(r, variant="tuned") for r in rows], INFOS)[0]
    assert not suite_averages(rows[:1], {TASKS[0]: INFOS[TASKS[0]]})[0]
    two = dict(list(INFOS.items())[:2])
    assert suite_averages(rows[:2], two)[0][0].mean == pytest.approx(
        (rows[0].mean + rows[1].mean) / 2
    )
    apart = {TASKS[0]: replace(INFOS[TASKS[0]], in_suite=False)}
    assert suite_averages(rows, INFOS | apart)[0][0].tasks == len(TASKS) - 1


def test_parts_of_a_suite_are_averaged_where_asked_and_counted_where_not():
    whole, part, single = line("whole"), line("part")[:3], line("single")[:1]
    rows, notes = suite_averages([*whole, *part, *single], INFOS)
    assert [r.model for r in rows] == ["whole"]
    (note,) = notes
    assert f"some of the {len(TASKS)} fr tasks are missing" in note
    assert sorted(re.findall(r"\d+", note)) == ["2", str(len(TASKS))]
    rows, notes = suite_averages([*whole, *part, *single], INFOS, incomplete=True)
    assert [(r.model, r.tasks, r.complete) for r in rows] == [
        ("whole", len(TASKS), True),
        ("part", 3, False),
    ]
    assert notes[0] == f"part: average over 3 of {len(TASKS)} fr tasks"
    assert sorted(re.findall(r"\d+", notes[1])) == ["1", str(len(TASKS))]
    # nobody is said to lack what was not asked for
    assert not suite_averages(part, INFOS, asked=TASKS[:3])[1]
    assert suite_averages(part, INFOS, asked=[*TASKS, "gad"])[1]


def awkward_scores() -> dict[str, dict[str, dict[int, float]]]:
    """Model -> task -> seed -> score: few seeds, many, equal ones, gaps, a failed run, one task of
    several splits.
    """
    chance = random.Random(1)
    level = {task: chance.uniform(0.3, 0.7) for task in TASKS}

    def drawn(seeds: int) -> dict[str, dict[int, float]]:
        return {
            task: {
                seed: chance.gauss(level[task], 0.01)
                for seed in range(5 if task == SPLITS else seeds)
            }
            for task in TASKS
        }

    failed, lacking = drawn(5), drawn(5)
    failed[TASKS[0]][2] = 0.01
    return {
        "many": drawn(9),
        "single": drawn(1),
        "equal": {task: dict.fromkeys(range(5), level[task]) for task in TASKS},
        "lacking": {task: lacking[task] for task in TASKS[2:]},
        "elsewhere": {task: lacking[task] for task in TASKS[:2]},
        "failed": failed,
    }


def half_width(parts: Sequence[tuple[float, float]]) -> float:
    """Of the 95% interval of a sum with these (variance, df), by Welch and Satterthwaite."""
    total = sum(v for v, _ in parts)
    if math.sqrt(total) <= CLOSE:
        return 0.0
    return math.sqrt(total) * stats.t.ppf(0.975, total**2 / sum(v**2 / df for v, df in parts if v))


def test_each_mean_and_its_interval(tmp_path):
    scores = awkward_scores()
    runs = [run_of("limited", task, 0, 0.9, limit=16) for task in TASKS[:3]]
    for model, tasks in scores.items():
        for task, seeds in tasks.items():
            split = [
                Resampling(fold=i, folds=10, train_documents=TRAIN) if task == SPLITS else None
                for i in seeds
            ]
            runs += [
                run_of(model, task, i, seeds[i], resampling=fold)
                for i, fold in zip(seeds, split, strict=True)
            ]
    write_runs(tmp_path, runs)
    report = build(tmp_path, "macro", suites=["fr"], sources=["run"])
    rows = {(row.model, row.task): row for row in report.rows if not row.partial}
    assert set(rows) == {(model, task) for model, tasks in scores.items() for task in tasks}
    for (model, task), row in rows.items():
        values = list(scores[model][task].values())
        assert row.mean == pytest.approx(fmean(values), abs=CLOSE)
        assert row.failed == (model == "failed" and task == TASKS[0])
        rest = [value for value in values if value > 0.1]
        if len(rest) == 1 or model == "equal":
            assert (row.low, row.high) == (None, None)
            continue
        count = 1 / len(rest) + (TEST / TRAIN if task == SPLITS else 0.0)
        half = half_width([(variance(rest) * count, len(rest) - 1)])
        ends = (max(fmean(rest) - half, 0.0), min(fmean(rest) + half, 1.0))
        assert (row.low, row.high) == pytest.approx(ends, abs=CLOSE), (model, task)
    means = {row.model: row for row in report.averages}
    assert set(means) == set(scores) - {"lacking", "elsewhere"}
    for model, row in means.items():
        each = [list(scores[model][task].values()) for task in TASKS]
        rest = [[value for value in values if value > 0.1] for values in each]
        weights = shares(TASKS)
        assert row.mean == pytest.approx(
            sum(w * fmean(v) for w, v in zip(weights, each, strict=True)), abs=CLOSE
        )
        if model in ("single", "equal"):
            assert (row.low, row.high) == (None, None)
            continue
        parts = [
            (
                w**2 * variance(v) * (1 / len(v) + (TEST / TRAIN if task == SPLITS else 0.0)),
                len(v) - 1,
            )
            for w, v, task in zip(weights, rest, TASKS, strict=True)
        ]
        middle, half = (
            sum(w * fmean(v) for w, v in zip(weights, rest, strict=True)),
            half_width(parts),
        )
        assert (row.low, row.high) == pytest.approx(
            (max(middle - half, 0), min(middle + half, 1)), abs=CLOSE
        ), model
