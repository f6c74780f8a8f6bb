"""Probe scores while training, through the benchmark's own engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.errors import TrainingError
from biobench.report.details.pretraining import read_pretraining
from trainer import api
from trainer.train.progress import read_metrics

PROBE = {"every": 3072, "tasks": ["demo_ner"], "documents": 24}


def test_scores_stand_in_the_metrics_and_the_weights_do_not_notice(small: list[str], tmp_path: Path) -> None:
    plain = api.pretrain("toy_detour", out=tmp_path / "plain", overrides=small, progress="none")
    sets = [part for override in (*small, f"logging.probe={json.dumps(PROBE)}") for part in ("--set", override)]
    result = CliRunner().invoke(app, ["pretrain", "toy_detour", "--quiet", "--out", str(tmp_path / "probed"), *sets])
    assert result.exit_code == 0, result.output
    lines = [line for line in read_metrics(tmp_path / "probed" / "metrics.jsonl") if line["event"] == "probe"]
    assert [(line["phase"], line["step"]) for line in lines] == [("detour", 8), ("detour", 12), ("decay", 8)]
    assert all(0 <= line["scores"]["demo_ner"] <= 1 for line in lines)
    assert not (tmp_path / "probed" / "probe").exists()
    ledger = json.loads((tmp_path / "probed" / "ledger.json").read_text(encoding="utf-8"))
    assert plain.ledger is not None
    assert ledger["model_hash"] == plain.ledger.model_hash
    read = read_pretraining(tmp_path)
    assert len(read.runs) == 2
    assert not read.findings


def test_a_probe_that_fails_does_not_end_the_training(
    small: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(model: Path) -> dict[str, float]:
        raise TrainingError("no memory for the probe", hint="a smaller one")

    changes = [*small, f"logging.probe={json.dumps(PROBE)}"]
    result = api.pretrain("toy_detour", out=tmp_path / "run", overrides=changes, progress="none", probe=failing)
    assert result.status == "done"
    assert "no memory for the probe" in caplog.text
    lines = [x for x in read_metrics(tmp_path / "run" / "metrics.jsonl") if x["event"] == "probe"]
    assert [line["scores"] for line in lines] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("tasks", "message"), [(["no_such_task"], "names no task"), (["e3c_fr"], "agreement"), ([], "no tasks")]
)
def test_wrong_probes_are_refused_at_once(small: list[str], tmp_path: Path, tasks: list[str], message: str) -> None:
    from biobench.data import catalog

    closed = next(task.id for task in catalog.list_tasks() if task.spec.access != "open")
    named = [closed if task == "e3c_fr" else task for task in tasks]
    probe = json.dumps({**PROBE, "tasks": named})
    result = CliRunner().invoke(
        app, ["pretrain", "toy_detour", "--out", str(tmp_path / "run"), "--set", f"logging.probe={probe}"]
    )
    assert result.exit_code != 0
    assert message in result.output + str(result.exception)
    assert not (tmp_path / "run" / "start").exists()
