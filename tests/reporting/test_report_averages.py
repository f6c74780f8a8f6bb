"""Means, their intervals over seeds and suite averages against formulas written out here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, stdev, variance

import numpy as np
import pytest
from scipy import stats

from biobench.comparison.compare import compare
from biobench.reporting.averages import suite_averages
from biobench.reporting.frame import build
from biobench.reporting.frames import tidy
from biobench.reporting.results import load
from biobench.reporting.row import Row
from biobench.reporting.tasks import shipped
from biobench.schema.record import Resampling
from leaderboard import lines
from tests.helpers.report_make import run_of, save_runs
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
    for number, task in enumerate(TASKS):
        drawn = rng.normal(0.5, 0.01 * (number + 1), 2 + number % 3).tolist()
        own = (scores or {}).get(task, drawn)
        about = {"low": 0.0, "high": 1.0, "n_seeds": len(own), "suite": "fr", **fields}
        made.append(Row(model, task, "macro_f1", mean=fmean(own), sd=stdev(own), **about))
    return made


def average(rows: Sequence[Row]) -> Row:
    """The one average of these rows."""
    (found,) = suite_averages(rows, INFOS)[0]
    return found


def test_an_average_weighs_a_corpus_once_and_says_the_plain_mean_too():
    rows = line()
    found = average(rows)
    assert found.task_mean == pytest.approx(fmean(row.mean for row in rows))
    spreads = [weight * row.sd for weight, row in zip(shares(TASKS), rows, strict=True)]
    assert found.sd == pytest.approx(math.hypot(*spreads))
    assert (found.task, found.tasks, found.complete) == ("avg_fr", len(TASKS), True)
    assert (found.n_seeds, found.metric, found.line) == (2, "macro_f1", rows[0].line)


def test_the_ends_of_an_interval_are_scores():
    cut = average(line(scores={"diamed": [0.0, 1.0]}))
    assert (cut.low, cut.high) == (0.0, 1.0)


def test_report_data_frame_comparison_and_board_flag_the_same_runs(tmp_path):
    save_runs(tmp_path, "m", "gad", dict(enumerate([0.7, 0.71, 0.69, 0.705, 0.12], 42)))
    save_runs(tmp_path, "n", "gad", dict(enumerate([0.6, 0.61, 0.59, 0.605, 0.6], 42)))
    results = load(tmp_path)
    report = build(results, "macro", tasks=["gad"])
    by_report = {(r.model, seed) for r in report.rows for seed in r.failed_seeds}
    by_frame = {(row["model"], row["seed"]) for row in tidy(results) if row["failed"]}
    by_comparison = {(f.model, f.seed) for f in compare("m", "n", results_dir=tmp_path).failed}
    assert by_report == by_frame == by_comparison == {("m", 46)}
    rows = {row.model: row for row in report.rows}
    row = rows["m"]
    assert (row.mean, row.kept) == pytest.approx((0.585, 0.70125))
    assert row.low < row.kept < row.high
    assert row.margin < 0.02
    assert any("1 of 5 runs failed (seed 46)" in n for n in row.notes)
    assert lines.score(row).endswith("(1 failed)")
    assert "failed" not in lines.score(rows["n"])


def test_costs_are_means_and_memory_the_highest_where_all_are_known():
    rows = []
    for i, row in enumerate(line(parameters=7)):
        costs = {
            "seconds": float(i),
            "train_tokens_per_second": 2.0 * i,
            "peak_memory_bytes": 10 + i % 3,
        }
        rows.append(replace(row, **costs))
    found = average(rows)
    middle = (len(TASKS) - 1) / 2
    assert (found.seconds, found.train_tokens_per_second) == (middle, 2 * middle)
    assert (found.peak_memory_bytes, found.parameters) == (12, 7)
    rows[0] = replace(rows[0], train_tokens_per_second=None, metric="micro_f1")
    assert (average(rows).train_tokens_per_second, average(rows).metric) == (None, "mixed")


def test_what_is_averaged_and_what_is_not():
    rows = line()
    for fields in ({"source": "baseline"}, {"source": "oracle"}, {"partial": True}):
        assert not suite_averages([replace(row, **fields) for row in rows], INFOS)[0]
    assert average([replace(row, variant="tuned") for row in rows])
    assert not suite_averages(rows[:1], {TASKS[0]: INFOS[TASKS[0]]})[0]
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


def awkward_scores() -> dict[str, dict[str, list[float]]]:
    """Model -> task -> scores: few seeds, many, equal ones, gaps, a failed run, one task of several
    splits.
    """
    rng = np.random.default_rng(1)
    level = dict(zip(TASKS, rng.uniform(0.3, 0.7, len(TASKS)), strict=True))

    def drawn(seeds: int, tasks: Sequence[str] = TASKS) -> dict[str, list[float]]:
        counts = dict.fromkeys(tasks, seeds) | {SPLITS: 5}
        return {task: rng.normal(level[task], 0.01, counts[task]).tolist() for task in tasks}

    failed = drawn(5)
    failed[TASKS[0]][2] = 0.01
    return {
        "many": drawn(9),
        "single": drawn(1),
        "equal": {task: [level[task]] * 5 for task in TASKS},
        "lacking": drawn(5, TASKS[2:]),
        "elsewhere": drawn(5, TASKS[:2]),
        "failed": failed,
    }


def half_width(parts: Sequence[tuple[float, float]]) -> float:
    """Of the 95% interval of a sum with these (variance, df), by Welch and Satterthwaite."""
    total = sum(v for v, _ in parts)
    if math.sqrt(total) <= CLOSE:
        return 0.0
    return math.sqrt(total) * stats.t.ppf(0.975, total**2 / sum(v**2 / df for v, df in parts if v))


def expected(tasks: dict[str, list[float]]) -> tuple[float, object]:
    """Mean of all runs, and the ends of the interval about those that trained."""
    weights = shares(list(tasks))
    mean = sum(w * fmean(scores) for w, scores in zip(weights, tasks.values(), strict=True))
    if any(len(set(scores)) == 1 for scores in tasks.values()):
        return mean, (None, None)
    middle = 0.0
    parts = []
    for weight, (task, scores) in zip(weights, tasks.items(), strict=True):
        trained = [score for score in scores if score > 0.1]
        middle += weight * fmean(trained)
        count = 1 / len(trained) + (TEST / TRAIN if task == SPLITS else 0.0)
        parts.append((weight**2 * variance(trained) * count, len(trained) - 1))
    half = half_width(parts)
    ends = (max(middle - half, 0.0), min(middle + half, 1.0))
    return mean, pytest.approx(ends, abs=CLOSE)


def test_each_mean_and_its_interval(tmp_path):
    scores = awkward_scores()
    runs = [run_of("limited", task, 0, 0.9, limit=16) for task in TASKS[:3]]
    wanted = {(model, "avg_fr"): scores[model] for model in ("many", "single", "equal", "failed")}
    for model, tasks in scores.items():
        for task, of_seeds in tasks.items():
            wanted[model, task] = {task: of_seeds}
            for seed, score in enumerate(of_seeds):
                fold = None
                if task == SPLITS:
                    fold = Resampling(fold=seed, folds=10, train_documents=TRAIN)
                runs.append(run_of(model, task, seed, score, resampling=fold))
    write_runs(tmp_path, runs)
    report = build(tmp_path, "macro", suites=["fr"], sources=["run"])
    rows = {(r.model, r.task): r for r in (*report.rows, *report.averages) if not r.partial}
    assert rows.keys() == wanted.keys()
    for (model, task), row in rows.items():
        mean, ends = expected(wanted[model, task])
        assert row.mean == pytest.approx(mean, abs=CLOSE)
        assert (row.low, row.high) == ends, (model, task)
        assert row.failed == (model == "failed" and TASKS[0] in wanted[model, task])
