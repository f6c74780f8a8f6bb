"""Which of a task's baseline records the report shows, and their rows."""

from __future__ import annotations

import pytest

from biobench.reporting.baselines import baseline_rows, no_skill, shown
from biobench.reporting.frame import build
from biobench.reporting.results import load
from biobench.reporting.tasks import shipped, task_infos
from biobench.schema.baseline import SKILLED, GateCheck
from biobench.store.baselines import save_baseline, scan_baselines
from tests.helpers.baselines_make import play
from tests.helpers.report_make import save_run

METRICS = {"gad": "macro_f1", "diamed": "micro_f1"}


def test_every_policy_of_every_task_is_a_row(tmp_path):
    for task, score in (("gad", 0.3), ("diamed", 0.1)):
        play(tmp_path, task, score)
    rows = baseline_rows(scan_baselines(tmp_path)[0], (), shipped(), METRICS)
    assert {(r.task, r.model, r.source, r.mean, r.metric, r.suite) for r in rows} == {
        ("gad", "oracle", "oracle", 1.0, "macro_f1", "en"),
        ("gad", "majority", "baseline", 0.3, "macro_f1", "en"),
        ("diamed", "oracle", "oracle", 1.0, "micro_f1", "fr"),
        ("diamed", "majority", "baseline", 0.1, "micro_f1", "fr"),
    }
    assert not baseline_rows(
        scan_baselines(tmp_path)[0], (), shipped(), dict.fromkeys(METRICS, "accuracy")
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_the_record_on_the_data_of_the_runs_is_shown_then_of_the_shipped_spec_then_the_newest(
    tmp_path, reverse
):
    save_run(tmp_path, "m", "gad", 42, 0.5, data="of the runs")
    groups = load(tmp_path).groups
    play(tmp_path, "gad", 0.3)
    (made,) = scan_baselines(tmp_path)[0]

    def one(data: str, spec: str, day: int):
        stamp = f"2026-01-0{day}T00:00:00+00:00"
        return made.model_copy(update={"data_hash": data, "task_hash": spec, "made": stamp})

    ours, newest = one("of the runs", "another spec", 1), one("d", "another spec", 4)
    newer, new = one("d2", made.task_hash, 3), one("d3", made.task_hash, 2)
    order = [newest, ours, newer, new][:: -1 if reverse else 1]
    assert shown(order, groups, shipped()) == [ours]
    assert shown(order, (), shipped()) == [newer]
    assert shown([r for r in order if r in (newest, ours)], (), shipped()) == [newest]


def test_a_task_that_only_the_gate_knows_is_its_own_corpus_unless_it_names_one(tmp_path):
    play(tmp_path, "gad", 0.3)
    (made,) = scan_baselines(tmp_path)[0]
    mine = made.model_copy(update={"task": "mine", "language": "fr", "corpus": ""})
    named = mine.model_copy(update={"task": "named", "corpus": "shared"})
    needle = mine.model_copy(update={"task": "hay", "type": "needle"})
    found = task_infos([], [], [made, mine, named, needle])
    rows = [(i.id, i.suite, i.corpus, i.in_suite) for i in found.values() if i.id not in shipped()]
    assert sorted(rows) == [
        ("hay", "needle", "hay", False),
        ("mine", "fr", "mine", False),
        ("named", "fr", "shared", False),
    ]


def test_policies_with_skill_or_with_order_and_length_are_no_bar_for_failed_runs(tmp_path):
    """A run no better than the training dictionary has learnt something; one no better than a
    constant has not.
    """
    play(tmp_path, "gad", 0.3)
    (record,) = scan_baselines(tmp_path)[0]
    bar = no_skill([record])["gad", "macro_f1"]
    blind = next(p for p in record.policies if p.kind == "floor")

    def with_policy(name):
        skilled = blind.model_copy(update={"name": name, "scores": {"macro_f1": 0.9}})
        return record.model_copy(update={"policies": (*record.policies, skilled)})

    for name in SKILLED:
        assert no_skill([with_policy(name)])["gad", "macro_f1"] == bar
    rows = baseline_rows([with_policy("id order")], (), shipped(), METRICS)
    assert "id order" not in {row.model for row in rows}


def test_what_the_gate_flags_is_a_note_of_the_report(tmp_path):
    save_run(tmp_path, "m", "gad", 42, 0.5)
    play(tmp_path, "gad", 0.3)
    (record,) = scan_baselines(tmp_path)[0]
    words = "of 60 test documents 9 are of groups"
    flag = GateCheck(name="overlap", passed=True, words=words, flagged=True)
    save_baseline(tmp_path, record.model_copy(update={"checks": (flag,)}))
    notes = [n for n in build(tmp_path, "macro", tasks=["gad"]).notes if "the gate flags gad" in n]
    assert notes == [f"the gate flags gad: {words}"]


def test_models_below_a_baseline_are_named_first(tmp_path):
    for task in ("gad", "hoc"):
        play(tmp_path, task, 0.3)
        save_run(tmp_path, "weak", task, 42, 0.29)
        save_run(tmp_path, "good", task, 42, 0.31)
    save_run(tmp_path, "equal", "gad", 42, 0.3)
    save_run(tmp_path, "part", "gad", 42, 0.1, limit=200)  # the baseline saw all texts
    bar = "29.0, below the baseline 30.0 (majority)"
    text = f"weak learnt less than a baseline: gad {bar}; hoc {bar}"
    assert build(tmp_path).notes[0] == text
    assert [n for n in build(tmp_path).notes if "learnt less" in n] == [text]
    assert text in build(tmp_path, sources=["run"]).notes, "where baselines are not shown"
    assert not any("below the baseline" in n for n in build(tmp_path, sources=["baseline"]).notes)
