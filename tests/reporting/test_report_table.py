"""Which rows a report has, what they hold, and what is never mixed."""

from __future__ import annotations

import csv

import pytest
from scipy import stats

from biobench.export.formats import export
from biobench.reporting.frame import build
from biobench.reporting.literature.published import published_folder
from biobench.reporting.printers import render
from biobench.reporting.results import load
from biobench.reporting.row import Row
from biobench.reporting.sheets import sheets
from biobench.reporting.tasks import shipped
from biobench.store import Store
from biobench.store.index import FILE, list_files, write_index
from tests.helpers.report_make import save_run, save_runs

SEEDS = {42: 0.60, 43: 0.64, 44: 0.62}


def own(report):
    return [r for r in report.rows if r.source == "run"]


def test_a_row_holds_mean_sd_and_t_interval(tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", SEEDS)
    (row,) = own(build(tmp_path, "micro"))
    low, high = stats.t.interval(0.95, 2, loc=0.62, scale=0.02 / 3**0.5)
    assert (row.model, row.task, row.metric, row.n_seeds) == ("tiny", "bc5cdr", "micro_f1", 3)
    assert (row.mean, row.sd, row.low, row.high) == pytest.approx((0.62, 0.02, low, high))
    assert (row.seeds, row.values) == ((42, 43, 44), (0.60, 0.64, 0.62))
    report = build(tmp_path, "micro", incomplete=True)
    assert list(report.frame.columns) == list(Row.__dataclass_fields__)
    assert len(report.frame) == len(report.rows) + len(report.averages)
    assert report.frame["parameters"].dtype == "Int64"


def test_the_margin_is_not_cut_where_the_interval_is(tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.86, 43: 1.0})
    (row,) = own(build(tmp_path, "micro"))
    assert row.high == 1.0
    assert row.margin == pytest.approx(12.7062047 * 0.14 / 2, rel=1e-6)


def test_published_averages_come_out_as_printed(tmp_path):
    report = build(tmp_path, "paper", suites=["fr"])
    printed = {}
    for row in csv.DictReader((published_folder() / "clm_detour.csv").read_text().splitlines()):
        if row["task"] == "avg_fr":
            printed[row["model"]] = float(row["value_percent"]) / 100
    assert len(report.averages) == 8
    for row in report.averages:
        assert row.task == "avg_fr"
        # papers print the plain mean over tasks; the average here counts a corpus once
        assert row.task_mean == pytest.approx(printed[row.model], abs=0.00101)
        assert row.mean != row.task_mean
        assert row.complete


SOURCE = next(iter(shipped()["jnlpba"].hashes))
OTHER = {"overrides": ("training.epochs=1",)}
CONDITIONS = [
    ("tiny bc5cdr", {}, ""),
    ("tiny bc5cdr", {"limit": 64}, "limit 64"),
    ("tiny bc5cdr", {"track": "tuned"}, "tuned"),
    ("tiny bc5cdr", OTHER | {"spec": "other"}, "training.epochs=1"),
    (
        "tiny bc5cdr",
        {"overrides": ("labels=[A, limit of B]",), "spec": "x"},
        "labels=[A, limit of B]",
    ),
    ("tiny bc5cdr", {"spec": "f" * 64}, "version 1, spec ffffffff"),
    ("tiny anatem", OTHER | {"spec": "a" * 64}, "training.epochs=1, spec aaaaaaaa"),
    ("tiny anatem", OTHER | {"spec": "b" * 64}, "training.epochs=1, spec bbbbbbbb"),
    ("small jnlpba", {"data": "a" * 64}, f"data {SOURCE} aaaaaaaa"),
    ("small jnlpba", {"data": "b" * 64}, f"data {SOURCE} bbbbbbbb"),
    ("same gad", {"weights": "1" * 64}, "weights 11111111"),
    ("same gad", {"weights": "2" * 64}, "weights 22222222"),
]


def test_runs_under_other_conditions_are_rows_of_their_own(tmp_path):
    wanted = {}
    for place, (line, fields, variant) in enumerate(CONDITIONS):
        model, task = line.split()
        save_runs(tmp_path, model, task, {42: place / 100, 43: place / 100}, **fields)
        wanted[line, variant] = (place / 100, 2)
    rows = own(build(tmp_path, "micro"))
    found = {(f"{row.model} {row.task}", row.variant): (row.mean, row.n_seeds) for row in rows}
    assert found == wanted
    assert {row.variant for row in rows if row.partial} == {"limit 64"}


def test_a_seed_run_in_two_precisions_counts_once(tmp_path):
    save_runs(tmp_path, "tiny", "bc5cdr", SEEDS, precision="bf16")
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.1, 45: 0.1}, precision="fp32")
    save_run(tmp_path, "tiny", "gad", 42, 0.5, precision="bf16")
    save_run(tmp_path, "tiny", "gad", 43, 0.6, precision="fp32")
    report = build(tmp_path, "micro")
    assert {r.task: r.values for r in own(report)} == {
        "bc5cdr": (0.60, 0.64, 0.62),
        "gad": (0.5, 0.6),
    }
    assert any("more than once; the 3 in bf16 are shown" in note for note in report.notes)
    notes = [n for n in report.notes if "precisions" in n]
    assert notes == ["tiny on gad: seeds were run in different precisions (bf16, fp32)"]


def test_labels_of_a_group_are_means_over_its_seeds(tmp_path):
    for seed, f1 in ((42, 0.2), (43, 0.6)):
        made = save_run(tmp_path, "m", "gad", seed, 0.5)
        rows = {label: row | {"f1": f1, "support": 7.0} for label, row in made.per_label.items()}
        Store(tmp_path).update(made.model_copy(update={"per_label": rows}))
    (group,) = load(tmp_path).groups
    assert group.labels() == dict.fromkeys(("Disease", "Drug", "Other"), (7, pytest.approx(0.4)))
    assert group.unit == pytest.approx(1 / 21)


def test_rows_are_by_task_then_source_then_name_and_suites_in_their_order(tmp_path):
    for task in ("gad", "anatem", "needle_fr", "diamed"):
        for model in ("b", "a"):
            save_run(tmp_path, model, task, 42, 0.5)
            save_run(tmp_path / "submitted" / "theirs", model, task, 42, 0.5)
    report = build(tmp_path, "micro")
    place = {task: i for i, task in enumerate(shipped())}
    keys = [(place[r.task], r.source, r.model, r.variant) for r in report.rows if r.task in place]
    assert keys == sorted(keys)
    assert len({key[1] for key in keys}) == 3
    titles = [sheet.title for sheet in sheets(report)]
    assert titles == ["French", "English", "Needle in a haystack"]


def test_footnotes_tell_of_the_window(tmp_path):
    cut = {"truncated_documents": 2, "lost_gold": 5, "ceiling": {"macro_f1": 0.9}}
    save_run(tmp_path, "tiny", "bc5cdr", 42, 0.5, windows=cut)
    report = build(tmp_path, "macro")
    said = "2 of 3 test documents are longer than its window of 128 tokens; 5 gold mentions"
    assert any(said in note for note in report.notes)
    (oracle,) = [row for row in report.rows if row.source == "oracle"]
    assert (oracle.model, oracle.mean, oracle.task) == ("oracle through 128 tokens", 0.9, "bc5cdr")
    assert not any("window" in n for n in build(tmp_path, "macro", tasks=["gad"]).notes)


def test_mentions_in_no_score_and_counts_that_contradict_are_noted_once_a_task(tmp_path):
    lost = {
        "train": {"Chemical": 8},
        "validation": {"Disease": 1, "Chemical": 1},
        "test": {"Disease": 1},
    }
    wrong = (
        "counts.test.documents: the spec says 4, source 'mtl' has 3",
        "counts.train.mentions: ...",
    )
    for model in ("one", "two"):
        save_runs(tmp_path, model, "bc5cdr", SEEDS, unexpressed_gold=lost, count_problems=wrong)
    save_runs(tmp_path, "one", "ncbi_disease", SEEDS)
    notes = [
        n
        for n in build(tmp_path, "macro").notes
        if "mentions of the corpus" in n or n.startswith("warning")
    ]
    assert notes == [
        "warning: bc5cdr, source mtl_pubtator: 2 counts of the data contradict its spec "
        "(counts.test.documents: the "
        "spec says 4, source 'mtl' has 3)",
        "bc5cdr, source mtl_pubtator: 11 gold mentions of the corpus, 1 of them in test, cannot "
        "be expressed in its units and tokens, or are dropped by the decoding of its tags, and are "
        "in no score",
    ]


def test_submissions_of_one_name_never_share_a_line(tmp_path):
    members = [i.id for i in shipped().values() if i.suite == "en" and i.in_suite]
    wanted = {("", members[0]): pytest.approx(0.62)}
    for name, tasks, level in (("mine", members[:-2], 0.6), ("theirs", members[:2], 0.9)):
        for task in tasks:
            save_runs(tmp_path / "submitted" / name, "org/x", task, {42: level, 43: level})
            wanted[f"submission {name}", task] = pytest.approx(level)
    save_runs(tmp_path, "org/x", members[0], SEEDS)
    report = build(tmp_path, "macro", sources=["run", "submitted"])
    assert {(r.variant, r.task): r.mean for r in report.rows} == wanted
    assert not report.averages, "as many scores as the suite has tasks, but of neither submission"
    alone = build(tmp_path, "macro", sources=["submitted"], models=["org/x"])
    assert len(alone.rows) == len(members)


def test_a_missing_score_is_said_not_guessed(tmp_path):
    save_runs(tmp_path, "tiny", "anatem", SEEDS)
    made = save_run(tmp_path, "tiny", "bc5cdr", 42, 0.5)
    Store(tmp_path).update(made.model_copy(update={"scores": {"micro_f1": 0.5}}))
    path = next(tmp_path.glob("runs/anatem/*.json"))
    path.write_text("{")
    report = build(tmp_path, "macro")
    assert [(row.task, row.n_seeds) for row in own(report)] == [("anatem", 2)]
    assert any("has no macro_f1" in n for n in report.notes)
    assert [f.file for f in report.findings] == [str(path)]


def test_nothing_is_written_into_a_submission_and_no_index_in_it_is_believed(tmp_path):
    theirs = tmp_path / "submitted" / "theirs"
    save_runs(theirs, "tiny", "bc5cdr", {42: 0.5})
    before = sorted(theirs.rglob("*"))
    (row,) = (r for r in build(tmp_path, "micro").rows if r.source == "submitted")
    assert sorted(theirs.rglob("*")) == before
    assert (tmp_path / ".indexes" / "theirs.parquet").is_file()
    # An index that claims other scores for the very same files.
    store = Store(theirs)
    briefs = [b._replace(scores=dict.fromkeys(b.scores, 0.99)) for b in store.briefs()[0]]
    seen = list(list_files(theirs / "runs"))
    write_index(theirs / "runs" / FILE, [(s.state, b) for s, b in zip(seen, briefs, strict=True)])
    assert Store(theirs).briefs()[0][0].scores["micro_f1"] == 0.99
    (again,) = (r for r in build(tmp_path, "micro").rows if r.source == "submitted")
    assert row.mean == again.mean == pytest.approx(0.5)


def test_seeds_of_equal_scores_are_not_shown_as_certainty(tmp_path):
    save_runs(tmp_path, "same", "gad", {42: 0.62, 43: 0.62})
    report = build(tmp_path, "micro")
    (row,) = own(report)
    assert (row.sd, row.low, row.high, row.margin) == (0.0, None, None, None)
    text = render(report, "md")
    assert (
        "same on gad: 2 seeds gave exactly the same score, which tells nothing of the spread over "
        "others" in text
    )
    assert "±0.0" not in text + export("same", "model-card", tmp_path)


@pytest.mark.parametrize(
    ("kind", "step"), [("single_label", 1), ("relation", 1), ("needle", 1), ("multi_label", 0)]
)
def test_nearly_equal_seeds_are_no_surer_than_one_answer(tmp_path, kind, step):
    for seed, score in ((42, 0.62), (43, 0.62 + 1e-6)):
        made = save_run(tmp_path, "m", "chemprot", seed, score)
        about = made.task.model_copy(update={"type": kind, "test_documents": 3000})
        Store(tmp_path).update(made.model_copy(update={"task": about}))
    (row,) = own(build(tmp_path, "micro"))
    assert row.sd == pytest.approx(1e-6 / 2**0.5)
    # rounding to one of 3,000 answers has the sd of a uniform of that width
    sd = max(row.sd, step / 3000 / 12**0.5)
    ends = stats.t.interval(0.95, 1, scale=sd / 2**0.5)
    assert (row.low - row.mean, row.high - row.mean) == pytest.approx(ends)


def test_a_submission_s_words_on_its_data_are_said_to_be_its_own(tmp_path):
    told = {"count_problems": ("the best of all models",)}
    save_run(tmp_path, "mine", "bc5cdr", 42, 0.5, **told)
    save_run(tmp_path / "submitted" / "theirs", "theirs", "gad", 42, 0.5, **told)
    warnings = [note for note in build(tmp_path, "micro").notes if "contradict its spec" in note]
    assert [note.rpartition("spec ")[2] for note in warnings] == [
        "(the best of all models)",
        "(its submitter says: the best of all models)",
    ]
