"""`biobench analyze variance` on stored runs and on a design that is really run."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from typer.testing import CliRunner

import biobench
from biobench.cli.main import app
from biobench.comparison.variance import planned_commands, variance_report
from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.errors import UsageError
from biobench.store import Store
from tests.helpers.compare_make import save
from tests.helpers.tiny import make_tiny_encoder

HEADS, ORDERS = (1, 2, 3), (1, 2, 3)


def save_design(results, task="gad", *, without=(), spread=0.05, seeds=(42,)):
    """Runs whose quality follows the head seed and, less, the order seed."""
    rng = np.random.default_rng(5)
    head, order = spread * rng.normal(size=len(HEADS)), 0.2 * spread * rng.normal(size=len(ORDERS))
    for (i, h), (j, o), seed in product(enumerate(HEADS), enumerate(ORDERS), seeds):
        if (h, o) in without:
            continue
        training = {"epochs": 1, "head_seed": h, "order_seed": o}
        quality = 0.7 + float(head[i] + order[j])
        save(
            results, "m", task, seed, quality, count=400, spec=f"{task} {h} {o}", protocol={"training": training},
            overrides=(f"training.head_seed={h}", f"training.order_seed={o}"),
        )  # fmt: skip


def test_a_stored_design_is_read_and_the_larger_source_found(tmp_path):
    save_design(tmp_path)
    save(tmp_path, "m", "gad", 42, 0.7, count=400)  # an ordinary run takes no part
    report = variance_report("m", tmp_path)
    parts = {p.part: p for p in report.components}
    assert set(parts) == {"head initialisation", "data order", "rest", "test sampling"}
    assert (report.heads, report.orders, report.seeds) == (3, 3, 1)
    assert parts["head initialisation"].sd > parts["data order"].sd
    # accuracy of 0.7 on 400 documents: a binomial standard error of about 2.3 points, a little less over nine runs
    assert 0.008 < parts["test sampling"].sd < 0.03
    lines = report.text().splitlines()
    assert lines[0] == "m: 3 head initialisations x 3 data orders x 1 training seed, on gad"
    assert max(map(len, lines)) <= 100
    shown = CliRunner().invoke(app, ["analyze", "variance", "m", "--results-dir", str(tmp_path), "--json"])
    assert json.loads(shown.output)["components"][0]["part"] == "head initialisation"


def test_tasks_are_a_source_of_their_own(tmp_path):
    save_design(tmp_path, "gad")
    save_design(tmp_path, "hoc", spread=0.03)
    report = variance_report("m", tmp_path)
    assert report.components[0].part == "task"
    assert report.tasks == ("gad", "hoc")
    assert variance_report("m", tmp_path, tasks=["hoc"]).tasks == ("hoc",)


def test_a_design_with_holes_or_of_two_shapes_is_refused_with_the_command_that_fills_it(tmp_path):
    save_design(tmp_path / "holes", without=[(2, 3), (3, 1)])
    with pytest.raises(UsageError, match="lacks head 2 order 3, head 3 order 1") as error:
        variance_report("m", tmp_path / "holes")
    assert "biobench analyze variance m --task gad --plan" in error.value.hint
    save_design(tmp_path / "two")
    save_design(tmp_path / "two", "hoc", seeds=(42, 43))
    with pytest.raises(UsageError, match="the designs differ: gad 3 x 3 x 1; hoc 3 x 3 x 2"):
        variance_report("m", tmp_path / "two")
    save(tmp_path / "none", "m", "gad", 42, 0.7)
    with pytest.raises(UsageError, match="'m' has no crossed runs in this folder"):
        variance_report("m", tmp_path / "none")


def test_new_seed_fields_change_no_key_while_they_are_not_set():
    task = load_task("demo_topic")
    source = load_data(task, None).source
    plain = task_hash(task, source)
    again = load_task("demo_topic", ["training.head_seed=null", "training.order_seed=null"])
    other = load_task("demo_topic", ["training.head_seed=1"])
    assert task_hash(again, source) == plain != task_hash(other, source)


def test_a_small_design_that_is_really_run(tmp_path):
    """Two heads x two orders; heads and orders each change the run, the run's own seed gives the ordinary run."""
    model = make_tiny_encoder(tmp_path / "m")
    commands = planned_commands(str(model), ["demo_topic"], heads=2, orders=2, seeds="42")
    assert len(commands) == 4
    assert all(
        c.startswith(f"biobench run {model} --task demo_topic --seeds 42 --set training.head_seed=") for c in commands
    )

    def scores(*fields: str, results: str) -> list[float]:
        runs = biobench.run(
            str(model), tasks="demo_topic", seeds="42", limit=48, device="cpu", results_dir=tmp_path / results,
            overrides=["training.epochs=1", *fields], gate=False,
        )  # fmt: skip
        (record,) = [r for r in Store(tmp_path / results).records() if r.key == runs[0].key]
        return [point.train_loss for point in record.training.curve]

    for h, o in product((1, 2), (1, 2)):
        scores(f"training.head_seed={h}", f"training.order_seed={o}", results="design")
    report = variance_report("m", tmp_path / "design")
    assert {p.part for p in report.components} == {"head initialisation", "data order", "rest", "test sampling"}
    plain = scores(results="single")
    assert scores("training.head_seed=42", "training.order_seed=42", results="single") == plain
    assert scores("training.head_seed=7", results="single") != plain
    assert scores("training.order_seed=7", results="single") != plain
