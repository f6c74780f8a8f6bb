"""The stores of the board's tests, made once, and one browser and one server a store for all of
them.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from biobench.schema.document import Prediction
from tests.helpers import compare_make
from tests.helpers.baselines_make import play
from tests.helpers.report_make import save_runs
from tests.helpers.server_make import CHROMIUM, served
from tests.helpers.view_make import save_needle, save_pretraining

SHIPPED = Path(__file__).resolve().parents[2] / "results"
HOSTILE = '<img src=x onerror="window.hacked=1">'
TASKS = ("gad", "hoc", "anatem", "bc5cdr")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Three models on four English tasks, one of them above every published score, needle runs,
    pretraining runs.
    """
    results = tmp_path_factory.mktemp("runs")
    for model, level in (("org/high", 0.95), ("org/middle", 0.75), ("org/low", 0.5)):
        compare_make.save_runs(results, model, TASKS, level, (42, 43, 44))
    save_runs(results, HOSTILE, "bc5cdr", {42: 0.7}, windows={"truncated_documents": 1})
    save_runs(results, "org/low", "gad", {42: 0.99}, limit=8)
    save_needle(results, "org/high", 1024, 0.97, pairs=20)
    save_needle(results, "org/low", 512, 0.5, task="needle_en", pairs=20)
    save_pretraining(results / "pretraining", steps=40)
    play(results, "gad", 0.3)
    return results


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """What the demo leaves: three models on two tasks of no suite."""
    results = tmp_path_factory.mktemp("demo")
    for model, level in (("toy-detour", 0.8), ("toy-mlm-twin", 0.6), ("toy-untrained", 0.4)):
        compare_make.save_runs(results, model, ("demo_first", "demo_names"), level, (42, 43, 44))
    return results


@pytest.fixture(scope="session")
def two_orders(tmp_path_factory):
    """Two models of which each leads under one average: the one that never says C in micro F1,
    which publications print of the task, the other in macro F1.
    """
    results = tmp_path_factory.mktemp("orders")
    gold = compare_make.documents("bc5cdr", 60)
    without_c = [
        Prediction(document=d.id, labels=("A" if d.labels == ("C",) else d.labels[0],))
        for d in gold
    ]
    for seed in (42, 43, 44):
        compare_make.save(results, "org/lopsided", "bc5cdr", seed, said=without_c)
        compare_make.save(results, "org/even", "bc5cdr", seed, 0.6)
    return results


@pytest.fixture(scope="session")
def stores(runs, demo, tmp_path_factory):
    """Name -> results folder."""
    return {
        "shipped": SHIPPED,
        "published": tmp_path_factory.mktemp("none"),
        "runs": runs,
        "demo": demo,
    }


@pytest.fixture(scope="session")
def address(stores):
    """Name of a store -> the address of its server, which starts when it is first asked for."""
    with ExitStack() as running:
        yield cache(lambda name: running.enter_context(served(stores[name])))


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
