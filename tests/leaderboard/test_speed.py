"""200 models x all suite tasks x 9 seeds: how long page one takes (run by hand: `pytest -m slow -s`)."""

from __future__ import annotations

import time

import pytest

from biobench.comparison.ranking import ranking, verdict_on, views
from biobench.report.results import fingerprint, load
from biobench.report.tasks import shipped
from tests.helpers.app_make import board, open_app
from tests.helpers.large_make import MODELS, save_large

COLD, WARM = 5.0, 2.0
"""Seconds of processor time of page one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    results = tmp_path_factory.mktemp("big")
    save_large(results)
    return results


def timed(what, call):
    # processor time: other work on the machine counts less
    start = time.process_time()
    result = call()
    taken = time.process_time() - start
    print(f"{what}: {taken:.2f} s")
    return result, taken


@pytest.mark.slow
def test_first_page(monkeypatch, folder):
    timed("first read, index made", lambda: load(folder))
    timed("fingerprint", lambda: fingerprint(folder))
    held, _ = timed("read from the index", lambda: load(folder))
    assert len(held.groups) == MODELS * len([i for i in shipped().values() if i.in_suite])
    for view in views(held):
        one, _ = timed(f"ranking, {view}", lambda view=view: ranking(held, view))
        timed(f"verdict, {view}", lambda one=one: [verdict_on(held, best) for best in one.best_runs])
    app, cold = timed("page one, cold", lambda: open_app(monkeypatch, folder))
    _, warm = timed("page one, warm", app.run)
    assert len(board(app)) == MODELS + 8
    assert cold <= COLD
    assert warm <= WARM
