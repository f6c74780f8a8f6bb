"""The board ranks checkpoints that answered as they are under a protocol of their own."""

from biobench.report.results import load
from leaderboard.ranking import ranking
from tests.helpers.compare_make import save, save_runs

TASKS = ("gad", "hoc", "anatem", "bc5cdr")


def test_a_ready_made_row_is_ranked_under_its_own_protocol(tmp_path):
    save_runs(tmp_path, "org/trained", TASKS, 0.8, (42, 43, 44))
    for task in TASKS:
        save(tmp_path, "org/ready", task, 0, 0.7, origin="checkpoint", track="ready")
    results = load(tmp_path)
    full, ready = (
        [entry.model for entry in ranking(results, "en", TASKS, protocol).entries]
        for protocol in ("", "ready-made")
    )
    assert "org/trained" in full
    assert "org/ready" in ready
