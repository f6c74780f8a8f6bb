"""The end of a run: means over seeds, where results lie, the next command, and what an interrupt keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biobench.runs import RunResult
from biobench.runs.table import end_of_run
from tests.helpers.cli_make import FAST, Run
from tests.helpers.compare_make import save_runs


def result(model: str, seed: int, score: float, **fields: object) -> RunResult:
    return RunResult(model, "gad", 1, seed, "done", scores={"macro_f1": score}, **fields)  # type: ignore[arg-type]


def test_means_words_and_next_command() -> None:
    results = [result("a", s, v, truncated_documents=3, lost_gold=0) for s, v in ((1, 0.5), (2, 0.6), (3, 0.7))]
    lines = list(end_of_run([*results, result("b c", 1, 0.4)], "my results"))
    assert lines == [
        "a on gad: macro_f1 60.00 ± 24.84 over 3 seeds",
        "cut: test documents longer than the model's window; what lies beyond it is not read",
        "Results: my results. Next: `biobench report --results-dir 'my results'`, "
        "`biobench compare a 'b c' --results-dir 'my results'`",
    ]


def test_scores_below_a_baseline_say_so() -> None:
    low = {"baseline": ("majority class", 0.397)}
    assert next(end_of_run([result("a", 1, 0.0, **low)], "results")) == (
        "a on gad: macro_f1 0.00, below the baseline 39.70 (majority class)"
    )
    (line, _) = end_of_run([result("a", 1, 0.0, **low), result("a", 2, 0.6)], "results")
    assert line.endswith("over 2 seeds, 1 of 2 runs below the baseline 39.70 (majority class)")


def test_an_interrupt_says_what_is_kept(biobench: Run, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("biobench.runs.api.run_plan", stopped)
    said = biobench("run", tiny, "--task", "demo_ner", "--seeds", "1", *FAST)
    assert said.status == 130
    assert "give the same command again" in said.err


def test_what_was_run_is_compared_with_a_pulled_model(biobench: Run, tiny: Path) -> None:
    same = ("--task", "demo_topic", "--seeds", "1-3", *FAST[2:])  # of limited runs none is shared
    pulled = "results/submitted/org--theirs"
    biobench("run", "dummy", "--name", "org/theirs", *same, "--results-dir", pulled).ok()
    command = ("run", tiny, *same, "--against")
    said = biobench(*command, "org/their")
    assert said.status == 2
    assert "org/theirs" in said.err, "the nearest name"
    assert not Path("results/runs").exists(), "refused before anything is trained"

    said = biobench(*command, "org/theirs").ok()
    table, sign, verdict = said.out.partition("Results: results.")
    assert sign
    assert "demo_topic" in table
    first = verdict.splitlines()[1]
    assert "tiny" in first
    assert "org/theirs" in first
    assert "Shown for this task" in first
    assert "Not tested for other tasks like these: one corpus." in first
    as_json = biobench(*command, "org/theirs", "--json")
    assert first in as_json.err
    assert [row["status"] for row in json.loads(as_json.out)] == ["skipped"] * 3


def test_runs_that_cannot_be_compared_are_shown_with_the_reason(biobench: Run, tiny: Path) -> None:
    save_runs(Path("results"), "org/theirs", ("demo_ner",), 0.9, (1, 2, 3))
    said = biobench("run", tiny, "--task", "demo_topic", "--seeds", "1", *FAST, "--against", "org/theirs")
    assert said.status == 0, "the runs are made and stored"
    assert "tiny and org/theirs are not compared: " in said.out
    assert "demo_topic" in said.out
