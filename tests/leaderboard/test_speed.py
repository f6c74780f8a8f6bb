"""200 models x all suite tasks x 9 seeds: how long page one takes beside one reading of the
records (run by hand: `pytest -m slow -s`).
"""

from __future__ import annotations

import time

import pytest

from biobench.reporting.results import load
from biobench.reporting.tasks import shipped
from leaderboard.best_runs import verdict_on
from leaderboard.ranking import ranking, views
from tests.helpers.app_make import board, open_app
from tests.helpers.large_make import MODELS, save_large

COLD, WARM = 1 / 5, 1 / 20
"""Processor time of page one, as a share of what reading every record once takes in the same run:
seconds would judge the machine.
"""


def seconds(call):
    """What a call gives, and the processor seconds that it took: other work on the machine counts
    less.
    """
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


@pytest.mark.slow
def test_first_page(monkeypatch, tmp_path):
    save_large(tmp_path)
    _, index = seconds(lambda: load(tmp_path))
    held, read = seconds(lambda: load(tmp_path))
    assert len(held.groups) == MODELS * len([i for i in shipped().values() if i.in_suite])
    ranked, shown = seconds(lambda: [ranking(held, view) for view in views(held)])
    _, verdicts = seconds(
        lambda: [verdict_on(held, best) for one in ranked for best in one.best_runs]
    )
    app, cold = seconds(lambda: open_app(monkeypatch, tmp_path))
    _, warm = seconds(app.run)
    print(f"index {index:.2f} s, read {read:.2f}, rankings {shown:.2f}, verdicts {verdicts:.2f}")
    print(f"page one, cold: {cold:.2f} s, {cold / index:.3f} of the index (limit {COLD})")
    print(f"page one, warm: {warm:.2f} s, {warm / index:.3f} of the index (limit {WARM})")
    assert len(board(app)) == MODELS + 8
    assert cold <= COLD * index
    assert warm <= WARM * index
