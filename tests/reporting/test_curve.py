"""Learning curves: what belongs to one, what doubling gives, and where two cross."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from biobench.reporting.curve import answer, as_text, crossing, curves_of, doublings
from biobench.reporting.results import load
from biobench.store import Store
from tests.helpers.report_make import run_of
from tests.helpers.store_make import documents, predictions

TASK = "my_task"
FIRST = {0.125: (0.40, 0.42, 0.44), 0.25: (0.50, 0.51, 0.52), 1.0: (0.60, 0.61, 0.62)}
SECOND = {0.125: (0.30, 0.32, 0.34), 0.25: (0.50, 0.52, 0.51), 1.0: (0.70, 0.71, 0.72)}


def save_curve(
    results: Path, model: str, scores: Mapping[float, Sequence[float]], epochs: int = 1
) -> None:
    for share, of_seeds in scores.items():
        training = {"epochs": epochs} | ({} if share == 1 else {"train_fraction": share})
        for seed, score in enumerate(of_seeds, start=42):
            run = run_of(
                model,
                TASK,
                seed,
                score,
                spec=f"{share} {epochs}",
                protocol={"training": training},
                train_documents=round(1600 * share),
            )
            large = {"Drug": {"f1": score, "support": 1e6}}
            Store(results).save(
                run.model_copy(update={"per_label": large}), documents(), predictions()
            )


def test_the_answer_has_texts_score_and_gain_with_their_intervals(tmp_path: Path) -> None:
    save_curve(tmp_path, "tiny", FIRST)
    (curve,) = curves_of(load(tmp_path), TASK)
    assert [(p.share, p.documents) for p in curve.points] == [(0.125, 200), (0.25, 400), (1, 1600)]
    rounded = replace(curve.points[0], documents=199)
    assert curve.texts(rounded) == "199 of 1,600 texts", "one whole for all shares"
    ((point, gain),) = doublings(curve)
    assert point.documents == 200, "the half of the last point was not run"
    assert gain.interval is not None
    expected = stats.ttest_ind(FIRST[0.25], FIRST[0.125], equal_var=False).confidence_interval()
    assert (gain.interval.low, gain.interval.high) == pytest.approx(tuple(expected), abs=1e-9)
    assert answer(curve) == (
        "tiny: with 200 of 1,600 texts: 42.0 (37.0 to 47.0); "
        f"doubling from there gives +9.0 ({100 * expected.low:.1f} to {100 * expected.high:.1f})"
    )


def test_two_seeds_give_neither_interval_nor_gain(tmp_path: Path) -> None:
    save_curve(tmp_path, "tiny", {share: scores[:2] for share, scores in FIRST.items()})
    (curve,) = curves_of(load(tmp_path), TASK)
    assert {point.low for point in curve.points} == {None}
    assert "no answer on doubling" in answer(curve)


def test_runs_of_another_recipe_are_another_curve_and_one_point_is_none(tmp_path: Path) -> None:
    save_curve(tmp_path, "tiny", FIRST)
    save_curve(tmp_path, "tiny", {0.5: (0.9, 0.9, 0.9)}, epochs=7)
    (curve,) = curves_of(load(tmp_path), TASK)
    assert [point.share for point in curve.points] == [0.125, 0.25, 1]


def test_a_crossing_is_told_only_where_both_leads_are_shown(tmp_path: Path) -> None:
    save_curve(tmp_path, "steady", FIRST)
    save_curve(tmp_path, "hungry", SECOND)
    hungry, steady = sorted(curves_of(load(tmp_path), TASK), key=lambda curve: curve.model)
    told = "steady leads with 200 of 1,600 texts, hungry with 1,600 of 1,600 texts"
    assert crossing(steady, hungry) == crossing(hungry, steady) == f"the curves cross: {told}"
    assert told in as_text([steady, hungry])
    noisy = {0.125: (0.2, 0.4, 0.6), 1.0: (0.70, 0.71, 0.72)}
    save_curve(tmp_path, "noisy", noisy)
    of_noisy = next(c for c in curves_of(load(tmp_path), TASK) if c.model == "noisy")
    assert crossing(steady, of_noisy) is None


def test_the_drawing_has_a_line_a_point_with_the_mean_inside_its_interval(tmp_path: Path) -> None:
    save_curve(tmp_path, "tiny", FIRST)
    lines = as_text(curves_of(load(tmp_path), TASK)).splitlines()
    drawn = [line.partition("texts")[2] for line in lines if " texts  " in line]
    assert len(drawn) == 3
    columns = [line.index("-o") for line in drawn]
    assert columns == sorted(columns)
