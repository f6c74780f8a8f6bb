"""What a pair shows does not depend on a third model; runs that the gate refuses take part in nothing."""

from __future__ import annotations

import numpy as np
import pytest

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from tests.helpers.baselines_make import play
from tests.helpers.compare_make import save_runs

TASKS = ("gad", "diamed", "meddialog_fr")


@pytest.mark.parametrize(("third", "seeds"), [("two seeds", (1, 2)), ("other seeds", (3, 4, 5, 6))])
def test_fewer_or_other_seeds_of_a_third_take_nothing_from_a_pair(tmp_path, third, seeds):
    save_runs(tmp_path, "a", TASKS, 0.8, (1, 2, 3, 4, 5))
    save_runs(tmp_path, "b", TASKS, 0.7, (1, 2, 3, 4, 5))
    save_runs(tmp_path, third, TASKS, 0.6, seeds)
    alone = compare("a", "b", results_dir=tmp_path, pooled=True)
    many = compare("a", "b", third, results_dir=tmp_path, pooled=True)
    assert [(p.first, p.second) for p in many.pairs] == [("a", "b"), ("a", third), ("b", third)]
    assert many.pairs[0].tasks == alone.pairs[0].tasks
    assert (many.pairs[0].here, many.pairs[0].beyond) == (alone.pairs[0].here, alone.pairs[0].beyond)
    assert all(line.documents is not None and line.n_first == line.n_second == 5 for line in many.pairs[0].tasks)
    ranked = next(m for m in many.ranking if m.model == "a")
    assert ranked.score == pytest.approx(np.mean([line.first for line in alone.pairs[0].tasks]))
    notes = [n for n in many.notes if n not in alone.notes]
    assert notes, "what is said of the other pairs names them"
    assert all(f"(a and {third}; b and {third})" in n for n in notes)
    assert {line.n_second for line in many.pairs[1].tasks} == {2 if third == "two seeds" else 3}


def test_runs_that_the_gate_refuses_are_named_with_the_reason(tmp_path):
    for model in ("a", "b"):
        save_runs(tmp_path, model, ("gad", "diamed"), 0.7)
    play(tmp_path, "gad", 0.3)
    play(tmp_path, "diamed", 0.1, why="offsets are shifted", made="2026-02-01T00:00:00+00:00")
    held = compare("a", "b", results_dir=tmp_path)
    assert held.tasks == ("gad",)
    line = "diamed fails its gate, its runs are not compared: offsets are shifted"
    assert held.text().count(line) == 1
    assert not any("diamed" in note for note in compare("a", "b", results_dir=tmp_path, tasks=["gad"]).notes)
    with pytest.raises(UsageError) as caught:
        compare("a", "b", results_dir=tmp_path, tasks=["diamed"])
    assert line in caught.value.hint
    play(tmp_path, "gad", 0.3, why="labels are shuffled", made="2026-02-01T00:00:00+00:00")
    with pytest.raises(UsageError, match="all runs of 'a' \\(diamed, gad\\) are on data that fails its gate") as caught:
        compare("a", "b", results_dir=tmp_path)
    assert caught.value.hint == "offsets are shifted; labels are shuffled"
