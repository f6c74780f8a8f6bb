"""Progress on stderr: several runs at once, each with its own line."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from biobench.cli.console.progress import RunTerminal
from biobench.core.progress import ProgressNote
from biobench.runs.result import RunName, RunResult

ONE, TWO = RunName("k1", "tiny", "demo_topic", 1), RunName("k2", "tiny", "demo_ner", 2)
DONE = RunResult(
    model="tiny",
    task="demo_topic",
    task_version=1,
    seed=1,
    status="done",
    key="k1",
    scores={"macro_f1": 0.5},
    seconds=3.0,
)


def test_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("biobench.cli.console.progress.QUIET", 0.0)
    with RunTerminal() as terminal:
        terminal.start(ONE, 1, 2)
        terminal.start(TWO, 2, 2)
        terminal.step(ONE, 3, 10, "loss 1.000")
        terminal.step(TWO, 4, 20, "loss 2.000")
        terminal.finish(DONE)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] tiny · demo_topic · seed 1: started",
        "[2/2] tiny · demo_ner · seed 2: started",
        "[1/2] tiny · demo_topic · seed 1: step 3/10, loss 1.000",
        "[2/2] tiny · demo_ner · seed 2: step 4/20, loss 2.000",
        "tiny · demo_topic · seed 1: done, macro_f1 50.00 in 3.0 s",
    ]


def test_a_bar_for_each_run_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        "biobench.core.progress.Console", lambda stderr: Console(file=screen, force_terminal=True, width=120)
    )
    with RunTerminal() as terminal:
        assert terminal.bar is not None
        terminal.start(ONE, 1, 2)
        terminal.start(TWO, 2, 2)
        terminal.step(TWO, 3, 20, ProgressNote("continues where it was stopped"))
        terminal.step(TWO, 4, 20, "loss 2.000")
        shown = {task.description: (task.completed, task.total) for task in terminal.bar.tasks}
        assert shown == {
            "[1/2] tiny · demo_topic · seed 1": (0, None),
            "[2/2] tiny · demo_ner · seed 2": (4, 20),
        }
        terminal.finish(DONE)
        assert [task.description for task in terminal.bar.tasks] == ["[2/2] tiny · demo_ner · seed 2"]
        terminal.start(TWO, 2, 2)
        assert len(terminal.bar.tasks) == 1, "a run that a dead worker left and another began again has one bar"
        terminal.finish(replace(DONE, key=None, seed=None, status="unavailable", scores={}, reason="no data"))
    assert "done, macro_f1 50.00 in 3.0 s" in screen.getvalue()
    assert "seed 2: step 3/20, continues where it was stopped\n" in screen.getvalue()
