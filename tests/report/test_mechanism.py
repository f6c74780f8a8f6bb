"""Freeze reports, recovery and stability from scores that are chosen, and the chart of a CKA
analysis from its JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from biobench.cli.main import app
from biobench.errors import SpecError, TrainingError, UsageError
from biobench.report.details.mechanism import cka_chart
from biobench.runs.options import RunRequest
from biobench.runs.result import RunResult
from biobench.workflows.mechanism import frozen_layers, paired_report, stability, stored_scores
from tests.helpers.ledger_make import ledger, write
from tests.helpers.report_make import save_runs
from tests.helpers.view_make import cka

SEEDS = range(42, 47)
RNG = np.random.default_rng(0)
NOISE = {seed: float(RNG.normal(scale=0.01)) for seed in SEEDS}


def scores(level: float, wobble: float = 0.002) -> dict[str, dict[int, float]]:
    """Two tasks around a level; seeds that are good for one model are good for all."""
    rng = np.random.default_rng(int(1000 * level))
    return {
        task: {
            seed: level + shift + NOISE[seed] + float(rng.normal(scale=wobble)) for seed in SEEDS
        }
        for task, shift in (("demo_ner", 0.0), ("demo_topic", 0.1))
    }


TABLE = {"detour": scores(0.62), "twin": scores(0.58), "low": scores(0.59), "mid": scores(0.615)}


def test_differences_are_over_shared_seeds_and_tasks() -> None:
    report = paired_report(
        TABLE, reference="detour", twin="twin", frozen={"low": "layers 0-7 in detour"}
    )
    assert report.seeds == tuple(SEEDS)
    rows = {row.model: row for row in report.rows}
    assert [rows[m].role for m in TABLE] == ["reference", "twin", "frozen", "frozen"]
    detour, twin, frozen = (
        np.array([list(TABLE[m][t].values()) for t in report.tasks])
        for m in ("detour", "twin", "low")
    )
    wanted = float((detour - twin).mean())
    test = rows["detour"].to_twin
    assert test.estimate == pytest.approx(wanted)
    # Welch over seeds, task by task
    variance = sum(side.var(axis=1, ddof=1).sum() for side in (detour, twin)) / detour.shape[1]
    assert test.se == pytest.approx(variance**0.5 / len(detour))
    assert rows["twin"].to_twin is rows["detour"].to_reference is None
    low = rows["low"]
    assert low.frozen == "layers 0-7 in detour"
    assert low.kept.value == pytest.approx((frozen - twin).mean() / wanted)
    assert low.kept.value in low.kept.interval


def test_only_shared_seeds_and_tasks_count() -> None:
    fewer = {
        **TABLE,
        "low": {"demo_ner": {s: v for s, v in TABLE["low"]["demo_ner"].items() if s != 42}},
    }
    report = paired_report(fewer, reference="detour", twin="twin")
    assert (report.tasks, report.seeds) == (("demo_ner",), (43, 44, 45, 46))
    with pytest.raises(UsageError, match="no task in common"):
        paired_report({**TABLE, "low": {"other": {42: 0.5}}}, reference="detour", twin="twin")
    with pytest.raises(UsageError, match="no seed in common"):
        paired_report({**TABLE, "low": {"demo_ner": {1: 0.5}}}, reference="detour", twin="twin")


def test_a_gain_that_may_be_nothing_leaves_recovery_without_interval() -> None:
    flat = {"donor": scores(0.60, 0.03), "recipient": scores(0.601, 0.03), "hybrid": scores(0.61)}
    kept = paired_report(flat, reference="donor", twin="recipient").rows[2].kept
    assert kept.interval is None
    assert kept.note


def test_stability_measures_the_spread_within_seeds() -> None:
    def at(level: float) -> dict[str, dict[int, float]]:
        return {"demo_ner": {seed: level + NOISE[seed] for seed in SEEDS}}

    rates = {1e-5: (0.60, 0.50), 5e-5: (0.61, 0.60), 1e-4: (0.62, 0.40)}
    _, _, (steady, shaky) = stability(
        {r: {"steady": at(a), "shaky": at(b)} for r, (a, b) in rates.items()}
    )
    # the seeds' own ups and downs, the same at every rate, are no spread over rates
    assert steady.test.estimate == pytest.approx(0.01)
    assert shaky.test.estimate == pytest.approx(0.1)
    assert (steady.best_rate, shaky.best_rate) == (1e-4, 5e-5)
    assert shaky.range == pytest.approx(0.2)
    assert steady.to_first is None
    assert shaky.to_first.estimate == pytest.approx(0.09)


def test_freeze_report_reads_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for model, table in TABLE.items():
        for task, by_seed in table.items():
            save_runs(tmp_path, model, task, by_seed)
    found = stored_scores(["detour", "low"], tmp_path, ["demo_ner"])
    assert found["low"]["demo_ner"] == pytest.approx(TABLE["low"]["demo_ner"])
    command = ["analyze", "freeze-report", *TABLE, "--results-dir", str(tmp_path)]
    app([*command, "--json"], standalone_mode=False)
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["model"] for r in rows] == ["detour", "twin", "low", "mid"]
    assert rows[3]["kept"]["value"] > rows[2]["kept"]["value"]
    app(command, standalone_mode=False)
    assert "to twin" in capsys.readouterr().out
    with pytest.raises(UsageError, match="one frozen run or more are needed"):
        app([*command[:4], *command[-2:]], standalone_mode=False)
    with pytest.raises(UsageError, match="no results of a model 'nobody'"):
        app([*command, "nobody"], standalone_mode=False)


def test_the_frozen_layers_are_those_of_the_ledger(tmp_path: Path) -> None:
    assert frozen_layers("low") == ""
    held = ledger("low")
    first, *rest = held.phases
    phases = (first.model_copy(update={"frozen_layers": "0-7"}), *rest)
    write(tmp_path / "ledger.json", held.model_copy(update={"phases": phases}))
    assert frozen_layers(str(tmp_path)) == f"layers 0-7 in {first.name}"


def test_stability_command_runs_every_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, str]] = []

    def run(request: RunRequest, _: Any) -> list[RunResult]:
        (model,), tasks, setting = request.model, request.tasks, request.overrides[-1]
        asked.append((model, setting))
        rate = float(setting.partition("=")[2])
        level = 0.6 if model == "steady" else 0.6 - 2000 * rate
        return [
            RunResult(model, tasks[0], 1, seed, "done", scores={"macro_f1": level + NOISE[seed]})
            for seed in SEEDS
        ]

    monkeypatch.setattr("biobench.runs.api.make_runs", run)
    monkeypatch.setattr(
        "biobench.workflows.mechanism.check_runs", lambda *_: None
    )  # the models are names alone
    command = ["analyze", "stability", "steady", "shaky", "--task", "demo_ner"]
    command += ["--learning-rates", "1e-5,1e-4"]
    app([*command, "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert asked[0] == ("steady", "training.learning_rate=1e-05")
    assert len(asked) == 4
    assert found["spreads"][0]["range"] == pytest.approx(0)
    assert found["spreads"][1]["range"] == pytest.approx(0.18)
    app(command, standalone_mode=False)
    assert "sd over rates" in capsys.readouterr().out
    with pytest.raises(UsageError, match="not understood"):
        app([*command[:-1], "high"], standalone_mode=False)

    failed = [RunResult("steady", "demo_ner", 1, 42, "failed", reason="out of memory")]
    monkeypatch.setattr("biobench.runs.api.make_runs", lambda *_: failed)
    with pytest.raises(TrainingError, match="out of memory"):
        app(command, standalone_mode=False)


def test_a_rate_that_cannot_be_trained_is_refused_before_any_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "biobench.runs.api.make_runs", Mock(side_effect=AssertionError("a run was begun"))
    )
    command = ["analyze", "stability", "some/model", "--task", "demo_ner"]
    command += ["--learning-rates", "1e-5,-1"]
    monkeypatch.setattr(
        "biobench.runs.plan.find_checkpoint", lambda model, **_: SimpleNamespace(id=model)
    )
    monkeypatch.setattr("biobench.runs.plan._key", lambda *_: "key")
    with pytest.raises(SpecError, match="should be greater than 0"):
        app(command, standalone_mode=False)


def drawn(chart: Any) -> dict[str, Any]:
    """The chart's Vega-Lite, which holds only what JSON has."""
    text: dict[str, Any] = json.loads(json.dumps(chart.to_dict(), allow_nan=False))
    return text


def test_a_pair_alone_has_its_layers_in_percent_and_noise_a_line_and_a_ratio_without_an_end() -> (
    None
):
    analysis = cka(2)
    alone = analysis | {
        "lines": [line | {"noise": None, "ratio": None} for line in analysis["lines"]]
    }
    chart = drawn(cka_chart(alone))
    assert "vconcat" not in chart
    (rows,) = chart["datasets"].values()
    assert [(r["layer"], r["what"]) for r in rows] == [("0", "the pair"), ("1", "the pair")]
    assert [rows[1][name] for name in ("value", "low", "high")] == pytest.approx([14, 12, 16])
    ratios = next(
        rows
        for rows in drawn(cka_chart(analysis))["datasets"].values()
        if rows[0].get("what") == "ratio"
    )
    assert [(r["layer"], r["value"]) for r in ratios] == [("0", 3.0), ("1", 3.0)]
    analysis["lines"][0]["ratio"]["high"] = None
    text = json.dumps(drawn(cka_chart(analysis)))
    assert text.count('"seed noise"') == 2
    assert "pair / noise" in text
    assert "1e+300" in text
