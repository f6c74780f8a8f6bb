"""Worker processes share a plan without doubling it; a dead one costs nothing but its own run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import make_tiny_encoder

from biobench.errors import UsageError
from biobench.run.api import run_plan, undone
from biobench.run.execute import Silent
from biobench.run.parallel import worker_count
from biobench.run.plan import Request, make_plan
from biobench.store import Store


def test_how_many_workers() -> None:
    cpu = torch.device("cpu")
    assert worker_count("auto", cpu) == 1
    assert worker_count("3", cpu) == 3
    for wrong in ("0", "-1", "many"):
        with pytest.raises(UsageError, match="not a number of workers"):
            worker_count(wrong, cpu)


def test_two_workers_make_each_run_once(tmp_path: Path) -> None:
    model = make_tiny_encoder(tmp_path / "tiny")

    def request(folder: str, parallel: str) -> Request:
        return Request(
            models=(str(model),),
            tasks=("demo_topic",),
            seeds="1-3",
            results_dir=str(tmp_path / folder),
            device="cpu",
            parallel=parallel,
            overrides=("training.epochs=1",),
            limit=20,
        )

    results = run_plan(make_plan(request("shared", "2")), Silent())
    assert [r.status for r in results] == ["done"] * 3
    records = Store(tmp_path / "shared").records()
    assert sorted(r.key for r in records) == sorted(r.key or "" for r in results)
    again = make_plan(request("shared", "2"))
    assert undone(again) == []
    assert [r.status for r in run_plan(again, Silent())] == ["skipped"] * 3
    alone = run_plan(make_plan(request("alone", "1")), Silent())
    assert {r.seed: r.scores for r in alone} == {r.seed: r.scores for r in results}


def test_ray_shares_the_same_plan(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the ray extra is not installed")
    model = make_tiny_encoder(tmp_path / "tiny")
    request = Request(
        models=(str(model),),
        tasks=("demo_topic",),
        seeds="1-2",
        results_dir=str(tmp_path / "results"),
        device="cpu",
        parallel="2",
        executor="ray",
        overrides=("training.epochs=1",),
        limit=20,
    )
    results = run_plan(make_plan(request), Silent())
    assert [r.status for r in results] == ["done"] * 2
    assert len(Store(tmp_path / "results").records()) == 2


def test_ray_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from biobench.run import cluster

    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="ray is not installed"):
        cluster.run_on_ray(Request(models=("m",)), "1", torch.device("cpu"))
