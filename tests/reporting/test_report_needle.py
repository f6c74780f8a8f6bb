"""The needle grid: as text and as a tinted table in the HTML report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.comparison.compare import compare
from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash, task_identity
from biobench.errors import UsageError
from biobench.reporting.details.needle import needle_grids, render_grid
from biobench.reporting.frame import build
from biobench.schema.document import Prediction, TaskData
from biobench.schema.needle import PRESENT, NeedlePlan
from biobench.score.needle import wilson
from biobench.submission.pack import submit
from biobench.submission.verify import examine as verify
from tests.helpers.needle_make import (
    LENGTHS,
    PAIRS,
    POSITIONS,
    TEMPLATES,
    always,
    cell,
    needle_documents,
    save_needle,
)
from tests.helpers.store_make import record, save_scored, shipped_identity

EVERY_CELL = 2 * PAIRS * len(TEMPLATES)
"""Examples in a cell of length and position."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that reads 1,024 tokens and finds what stands at the start; one that reads all and
    guesses.
    """
    folder = tmp_path_factory.mktemp("needle")
    for seed in (42, 43):
        save_needle(
            folder, "short", seed, lambda d: cell(d).position == "start" or d.labels == (PRESENT,)
        )
        save_needle(folder, "long", seed, always(PRESENT), window=8192)
    return folder


def test_the_grid_has_every_cell_and_margin_of_every_model(results: Path) -> None:
    grids = {g.model: g for g in needle_grids(results)}
    short = grids["short"]
    assert (short.lengths, short.positions) == (LENGTHS, POSITIONS)
    assert short.share(512, "start").mean == 1.0
    assert short.share(512).mean == pytest.approx(2 / 3)
    assert short.share(512, "start").groups == EVERY_CELL // 2
    assert short.share().documents == 2 * 3 * EVERY_CELL
    ends = (short.share(512, "start").low, short.share(512, "start").high)
    assert ends == pytest.approx(wilson(1.0, EVERY_CELL, 1 - 0.05 / 6)), (
        "six cells have 95% together"
    )
    assert {(g.seeds, g.majority) for g in grids.values()} == {((42, 43), 0.5)}


def test_lengths_beyond_the_window_have_no_number_anywhere(results: Path) -> None:
    grids = {g.model: g for g in needle_grids(results)}
    for position in (*POSITIONS, None):
        assert grids["short"].share(2048, position) is None
        for length in (*LENGTHS, None):
            assert grids["long"].share(length, position) is not None
    line = next(x for x in render_grid(grids["short"]).splitlines() if x.startswith("2048"))
    assert line.split() == ["2048", "n/a", "n/a", "n/a", "n/a", "0"]


def test_a_model_reads_up_to_the_last_length_above_guessing(results: Path) -> None:
    reach = {g.model: g.reads_up_to for g in needle_grids(results)}
    assert reach == {"short": 1024, "long": None}


def test_the_text_has_heat_margins_intervals_and_the_majority(results: Path) -> None:
    held = {g.model: g for g in needle_grids(results)}
    text = render_grid(held["short"])
    lines = text.splitlines()
    assert lines[0] == (
        "short · my_needle: accuracy in %, 2 seeds, window 1024, most frequent answer 50.0"
    )
    assert lines[2].split() == ["tokens", "start", "middle", "end", "all", "positions", "n"]
    low, high = wilson(1.0, EVERY_CELL, 1 - 0.05 / 6)
    assert f"██ 100.0 ±{50 * (high - low):.1f}" in lines[4]
    assert lines[4].endswith(f" {3 * EVERY_CELL}")
    assert "all: of the lengths, 512, 1024 only" in text
    assert "of the lengths" not in render_grid(held["long"])
    assert re.search(r"^drug +66\.7 \[\d+\.\d, \d+\.\d\]$", text, re.MULTILINE)


def test_limited_runs_are_grids_of_their_own(tmp_path: Path) -> None:
    for limit in (None, 8):
        save_needle(tmp_path, "long", 42, always(PRESENT), window=8192, limit=limit)
    assert [grid.variant for grid in needle_grids(tmp_path)] == ["", "limit 8"]


def test_needle_runs_hold_the_lengths_of_their_window(tmp_path, monkeypatch):
    """A short window is honest; a document of a length that it holds may not be left out."""
    task = load_task("needle_en")
    source, labels = task.spec.all_sources[0].id, tuple(task.spec.labels)
    plan = NeedlePlan(0, 0.5, "n", (), (), (), (), "g", "tokens")
    test = [
        replace(d, plan=plan._replace(length=cell(d).length), text="")
        for d in needle_documents((512, 1024))
    ]
    data = TaskData({"test": test}, labels, labels, source, "e" * 64)
    monkeypatch.setattr("biobench.submission.verify.load_folds", lambda *_, **__: [data])
    right = [
        Prediction(d.id, labels=d.labels, label_scores=tuple(float(n in d.labels) for n in labels))
        for d in test
    ]

    def packed(window, documents, name):
        base = record(model="org/tiny", task="needle_en", score=False)
        about = shipped_identity("needle_en") | {
            "hash": task_hash(task, source),
            "data_hash": "e" * 64,
        }
        about |= {
            "type": "needle",
            "primary": task.spec.metric.primary,
            "test_documents": len(test),
            "source": source,
        }
        fields = {
            "protocol": task_identity(task, source),
            "windows": base.windows.model_copy(update={"max_length": window}),
            "cost": base.cost.model_copy(update={"peak_memory_bytes": 4 * base.model.parameters}),
        }
        said = [p for p in right if p.document in {d.id for d in documents}]
        run = base.model_copy(update=fields)
        save_scored(
            tmp_path / name, run, documents, said, labels=labels, gold_labels=labels, **about
        )
        return submit("org/tiny", tmp_path / name, tmp_path / f"{name} pack")

    def refused(folder):
        return {c.code for c in verify(folder).checks if c.grade == "error"}

    short = [d for d in test if d.plan.length == 512]
    # whole, and as good as the oracle: a person looks at it
    assert verify(packed(512, short, "short")).state == "person"
    assert verify(packed(1024, test, "long")).state == "person"
    assert refused(packed(512, short[1:], "picked")) == {"D01"}
    assert refused(packed(1024, short, "shortened")) == {"D01"}
    monkeypatch.undo()
    (row,) = build(tmp_path / "short", sources=["run"]).rows
    assert row.notes == ("org/tiny on needle_en: over the lengths 512, window 512",)


def test_needle_scores_over_other_lengths_are_not_compared(tmp_path):
    """One model reads 1,024 tokens, another 2,048: their scores are over other documents."""
    for seed in (42, 43, 44):
        save_needle(tmp_path, "short", seed, always(PRESENT))
        save_needle(tmp_path, "other short", seed, lambda d: cell(d).position == "start")
        save_needle(tmp_path, "long", seed, always(PRESENT), window=2048)
    with pytest.raises(UsageError, match="no task has the scores to compare") as caught:
        compare("short", "long", results_dir=tmp_path)
    assert "long: 512, 1024, 2048; short: 512, 1024" in caught.value.hint
    held = compare("short", "other short", results_dir=tmp_path)
    assert held.tasks == ("my_needle",)
    assert not any("windows cut" in note for note in held.notes)
