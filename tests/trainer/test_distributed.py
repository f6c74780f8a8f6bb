"""Two processes give the golden curve, under DDP and FSDP2, and hand a run over to one and back."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.trainer_make import ledger_of, train
from tests.helpers.two_processes import GOLDEN, curve, two_processes
from trainer import api
from trainer.ledger import read_ledger
from trainer.train.progress import Tick


def test_ddp_gives_the_golden_curve_and_one_process_takes_over(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "ddp"
    two_processes(out, small)
    assert curve(out) == pytest.approx(GOLDEN, abs=1e-5)
    taken = tmp_path / "taken"
    shutil.copytree(out, taken)
    shutil.rmtree(taken / "model")
    (taken / "ledger.json").unlink()
    (taken / "checkpoints" / "latest").write_text("end-1-detour")
    assert ledger_of(train(taken, small, resume=True)).world_sizes == (2, 1)
    assert curve(taken) == pytest.approx(GOLDEN, abs=1e-5)
    a, b = load_file(out / "model" / "model.safetensors"), load_file(taken / "model" / "model.safetensors")
    for name, value in a.items():
        torch.testing.assert_close(value, b[name], rtol=1e-4, atol=1e-4)


def test_fsdp2_continues_a_stopped_single_process_on_the_golden_curve(small: list[str], tmp_path: Path) -> None:
    out = tmp_path / "fsdp"

    def listen(tick: Tick) -> None:
        if tick.done == 9:
            os.kill(os.getpid(), signal.SIGTERM)

    assert train(out, small, progress=listen).status == "preempted"
    assert len(curve(out)) == 10
    two_processes(out, [*small, "engine.distributed=fsdp2", "batch.micro=2"], "--resume")
    assert curve(out) == pytest.approx(GOLDEN, abs=1e-5)


@pytest.mark.parametrize("strategy", [pytest.param("ddp", marks=pytest.mark.slow), "fsdp2"])
def test_freezing_thawing_and_isolation_are_the_same_on_two_processes(
    strategy: str, small: list[str], tmp_path: Path
) -> None:
    parts = ("phases.0.freeze={layers: '0-1'}", "phases.1.isolate_documents=true", f"engine.distributed={strategy}")
    overrides = [*small, *parts]
    one = ledger_of(train(tmp_path / "one", overrides))
    two_processes(tmp_path / "two", overrides)
    assert curve(tmp_path / "two") == pytest.approx(curve(tmp_path / "one"), abs=1e-5)
    frozen = load_file(tmp_path / "two" / "phases" / "detour" / "model.safetensors")
    final = load_file(tmp_path / "two" / "model" / "model.safetensors")
    same = load_file(tmp_path / "one" / "phases" / "detour" / "model.safetensors")
    for name, value in frozen.items():
        if name.startswith(("model.layers.0.", "model.layers.1.")):
            assert torch.equal(value, same[name])
            assert not torch.equal(value, final[name])
    assert api.ledger_diff(tmp_path / "one", tmp_path / "two").matched
    two = read_ledger(tmp_path / "two")
    assert (two.world_sizes, two.distributed) == ((2,), strategy)
    for mine, theirs in zip(one.phases, two.phases, strict=True):
        assert mine.targets == theirs.targets, "of both processes"
        assert mine.validation_loss == pytest.approx(theirs.validation_loss, abs=1e-5)
        assert mine.train_loss == pytest.approx(theirs.train_loss, abs=1e-5)
