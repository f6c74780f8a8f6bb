"""Published scores and experiments are whole and consistent; a damaged file is refused with its
line.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from biobench.comparison.compare import compare
from biobench.data.catalog import load_task
from biobench.errors import SpecError, UsageError
from biobench.reporting.details.pretraining import read_pretraining
from biobench.reporting.frame import build
from biobench.reporting.literature.comparison import other_scores
from biobench.reporting.literature.experiments import experiments_for
from biobench.reporting.literature.published import load_published, published_folder, published_for
from biobench.reporting.results import fingerprint, load
from biobench.reporting.sheets import percent
from biobench.reporting.tasks import shipped


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", "paper"])
def test_published_rows_alone_show_each_task_or_a_reason(tmp_path, average):
    """Of the nineteen tasks: a marked value, or one note that names the task and says why there is
    none.
    """
    report = build(tmp_path, average, sources=["published"])
    shown = {row.task for row in report.rows}
    nineteen = {i.id for i in shipped().values() if i.in_suite and i.suite in ("fr", "en")}
    assert len(nineteen) == 19
    unshown = [n for n in report.notes if n.endswith("not shown under another average.")]
    for task in nineteen - shown:
        assert sum(task in note for note in unshown) == 1, task
    assert shown == nineteen if average == "paper" else shown < nineteen
    assert ("hoc" in shown) == (average in ("macro", "paper"))
    assert all(percent(row).endswith(" ‡") for row in (*report.rows, *report.averages))
    (mark,) = [n for n in report.notes if n.startswith("‡ average by our reading, ")]
    assert all(task in mark for task in shown)


def test_tasks_without_f1_are_named_with_the_score_of_own_rows():
    types = {"gad": "single_label", "biosses": "regression"}
    infos = {task: SimpleNamespace(type=type) for task, type in types.items()}
    rows = [
        SimpleNamespace(task="gad", metric="macro_f1", source="own"),
        SimpleNamespace(task="biosses", metric="pearson", source="own"),
        SimpleNamespace(task="biosses", metric="spearman", source="published"),
    ]
    note = "tasks without F1 have another score: biosses Pearson correlation"
    assert other_scores(rows, infos) == [note]
    assert other_scores(rows[:1], infos) == []


def test_a_stated_average_bears_no_mark(tmp_path):
    add_paper(tmp_path, "someone", ["NewBERT,base,mlm,fr,quaero_emea,71.3,micro_f1,micro_f1,5"])
    add_paper(tmp_path, "other", ["OldBERT,base,mlm,fr,quaero_emea,71.3,macro_f1,micro_f1,5"])
    add_paper(tmp_path, "third", ["NoBERT,base,mlm,fr,quaero_emea,71.3,macro_f1,undecided,5"])
    report = build(tmp_path, "micro")
    cells = {r.model: percent(r) for r in report.rows if r.task == "quaero_emea"}
    assert (cells["NewBERT"], cells["OldBERT"], "NoBERT" in cells) == ("71.3", "71.3 ‡", False)


def test_deviations_from_the_compared_protocol_are_noted_below_published_rows(tmp_path):
    notes = build(tmp_path, "paper").notes
    for task in ("anatem", "jnlpba", "diamed", "quaero_emea"):
        of_task = [note for note in notes if task in note]
        for deviation in load_task(task).spec.deviations:
            begin = f"({deviation.aspect};"
            (said,) = [note for note in of_task if begin in note and deviation.here in note]
            assert deviation.compared in said
    own = build(tmp_path, "paper", sources=["run"])
    assert not any("protocol of the published" in note for note in own.notes)


HEADER = "model,size,objective,language,task,value_percent,average_claimed,average_likely,seeds\n"
SPREAD = HEADER.replace("seeds", "seeds,sd_percent")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "paper.csv:1: has other columns"),
        (HEADER.replace("seeds", "runs"), "paper.csv:1: has other columns"),
        (
            f"{SPREAD}m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,,0.5",
            "paper.csv:2: sd_percent 0.5 of unknown seeds is no spread",
        ),
        (
            f"{HEADER}m,base,mlm,fr,fracco_30,101,macro_f1,micro_f1,9",
            "paper.csv:2: value_percent '101': ",
        ),
        (f"{HEADER}m,base,mlm,fr,fracco_30,x,macro_f1,micro_f1,9", "value_percent 'x'"),
        (f"{HEADER}m,base,mlm,fr,fracco_30,nan,macro_f1,micro_f1,9", "value_percent 'nan'"),
        (f"{HEADER}m,base,mlm,fr,fracco_30,50,macro,micro_f1,9", "average_claimed 'macro'"),
        (f"{HEADER}m,base,mlm,fr,elsewhere,50,macro_f1,micro_f1,9", "no reading or caption"),
        (f"{HEADER}m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,0", "seeds '0'"),
        (f"{HEADER}m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1", "seeds 'missing'"),
        (f"{HEADER}m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,9,9", "unknown key 'more'"),
        (
            HEADER + "m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,9\n" * 2,
            "paper.csv:3: m has two values",
        ),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path, rows, said):
    header = (
        (published_folder() / "clm_detour.yaml").read_text().replace("clm_detour.csv", "paper.csv")
    )
    (tmp_path / "paper.yaml").write_text(header)
    (tmp_path / "paper.csv").write_text(rows)
    with pytest.raises(SpecError) as caught:
        load_published(tmp_path)
    assert said in str(caught.value)


def add_paper(results, name, rows, *, id=None, language="fr"):
    folder = results / "published"
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {row.split(",")[4] for row in rows}
    readings = "".join(f"  {task}: Micro F1, the paper says so.\n" for task in sorted(tasks))
    (folder / f"{name}.yaml").write_text(
        f"id: {id or name}\nsource: Someone 2027\nurl: https://example.org\ncitation: Someone, "
        f"2027.\n"
        f"values: {name}.csv\ndecimals: 1\ncaption:\n  {language}: Micro F1.\nreadings:\n{readings}"
    )
    (folder / f"{name}.csv").write_text(HEADER + "\n".join(rows) + "\n")


def lines(report, task):
    return {
        (r.model, r.variant): r.mean
        for r in report.rows
        if r.source == "published" and r.task == task
    }


def test_a_results_folder_brings_papers_of_its_own(tmp_path):
    before = lines(build(tmp_path, "micro"), "quaero_emea")
    state = fingerprint(tmp_path)
    add_paper(tmp_path, "someone", ["NewBERT,base,mlm,fr,quaero_emea,71.3,micro_f1,micro_f1,5"])
    assert fingerprint(tmp_path) != state
    assert lines(build(tmp_path, "micro"), "quaero_emea") == before | {("NewBERT", ""): 0.713}
    add_paper(tmp_path, "someone", ["NewBERT,base,mlm,fr,quaero_emea,71.35,micro_f1,micro_f1,5"])
    assert lines(build(tmp_path, "micro"), "quaero_emea")[("NewBERT", "")] == 0.7135, (
        "an edited file is read anew"
    )


def test_one_model_in_two_papers_is_two_lines(tmp_path):
    shipped = lines(build(tmp_path, "micro"), "quaero_emea")[("DrBERT", "")]
    means = sorted(r.mean for r in build(tmp_path, "paper").averages)
    add_paper(tmp_path, "someone", ["DrBERT,base,mlm,fr,quaero_emea,71.3,micro_f1,micro_f1,5"])
    report = build(tmp_path, "micro")
    found = {k: v for k, v in lines(report, "quaero_emea").items() if k[0] == "DrBERT"}
    assert found == {("DrBERT", "clm_detour"): shipped, ("DrBERT", "someone"): 0.713}
    assert sorted(r.mean for r in build(tmp_path, "paper").averages) == means, (
        "two papers make no average"
    )
    with pytest.raises(UsageError) as caught:
        compare(["DrBERT", "CamemBERT-bio"], results_dir=tmp_path)
    assert "2 papers print values of 'DrBERT'" in str(caught.value)
    assert "'DrBERT [someone]'" in caught.value.hint
    held = compare(["DrBERT [someone]", "CamemBERT-bio"], results_dir=tmp_path)
    assert (held.models, held.tasks) == (("DrBERT [someone]", "CamemBERT-bio"), ("quaero_emea",))


def test_values_of_tasks_that_no_suite_holds(tmp_path):
    """A task outside the project, and a shipped variant, have a column; no suite average asks for
    them.
    """
    averages = {(r.model, r.task): r.mean for r in build(tmp_path, "paper").averages}
    assert averages
    rows = [
        f"NewBERT,base,mlm,fr,{task},71.3,micro_f1,micro_f1,5"
        for task in ("my_task", "ncbi_disease_single")
    ]
    add_paper(tmp_path, "someone", rows)
    report = build(tmp_path, "micro")
    assert (
        lines(report, "my_task") == lines(report, "ncbi_disease_single") == {("NewBERT", ""): 0.713}
    )
    assert {(r.model, r.task): r.mean for r in build(tmp_path, "paper").averages} == averages


def test_an_id_twice_is_refused(tmp_path):
    row = ["NewBERT,base,mlm,fr,quaero_emea,71.3,micro_f1,micro_f1,5"]
    add_paper(tmp_path, "someone", row, id="clm_detour")
    with pytest.raises(
        SpecError, match=r"someone\.yaml: the id 'clm_detour' is that of .*clm_detour\.yaml"
    ):
        load(tmp_path)
    add_paper(tmp_path, "someone", row)
    add_paper(tmp_path, "twice", row, id="someone")
    with pytest.raises(SpecError, match=r"twice\.yaml: the id 'someone'"):
        load(tmp_path)


def test_the_same_paper_in_the_package_and_in_a_clone_is_one(tmp_path):
    shutil.copytree(published_folder(), tmp_path / "published")
    assert published_for(tmp_path) == published_for(tmp_path / "none")
    assert experiments_for(tmp_path) == experiments_for(tmp_path / "none")


EXPERIMENT = """\
id: mine
source: Someone 2027
url: https://example.org
citation: Someone, 2027.
experiments:
  - id: one
    title: One table
    setting: Two models, one seed.
    columns:
      - {name: score, unit: percent}
      - {name: p, unit: probability, decimals: 2}
    lines:
      - {name: A, values: [71.25, 0.5]}
      - {name: B, values: [60, null]}
    counterpart: {what: a run}
"""


def add_experiment(results, text, name="mine"):
    folder = results / "published" / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_results_folder_brings_experiments_with_their_cells_as_printed(tmp_path):
    before = fingerprint(tmp_path)
    add_experiment(tmp_path, EXPERIMENT)
    assert fingerprint(tmp_path) != before
    (one,) = experiments_for(tmp_path)[-1].experiments
    assert [one.cells(line) for line in one.lines] == [["71.2", "0.50"], ["60.0", "–"]]
    assert one.headings == ["score, %", "p, probability"]
    assert experiments_for(tmp_path)[-1].below(one) == ["Two models, one seed.", "Here: a run."]
    # its name in earlier versions
    add_experiment(tmp_path, EXPERIMENT.replace("counterpart", "beside"))
    assert experiments_for(tmp_path)[-1].experiments == [one]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[71.25, 0.5]", "[71.25]", "'A' of 'one' has 1 values for 2 columns"),
        ("71.25", "171.25", "171.25 of 'A' is not a percent"),
        ("0.5]", "1.5]", "1.5 of 'A' is not a probability"),
        ("    counterpart: {what: a run}\n", "", "counterpart"),
        ("id: mine", "id: clm_detour", "the id 'clm_detour' is that of"),
    ],
)
def test_a_damaged_experiment_is_refused_with_its_file(tmp_path, old, new, said):
    add_experiment(tmp_path, EXPERIMENT.replace(old, new, 1))
    with pytest.raises(SpecError, match=r"mine\.yaml") as caught:
        load(tmp_path)
    assert said in str(caught.value)


def test_studies_are_read_and_a_damaged_one_is_a_finding(tmp_path):
    longer = (Path(__file__).parents[2] / "results/study/longer.json").read_text(encoding="utf-8")
    (tmp_path / "a.json").write_text(longer, encoding="utf-8")
    (tmp_path / "b.json").write_text(
        longer.replace('"budget": 2400000', '"budget": "much"'), encoding="utf-8"
    )
    read = read_pretraining(tmp_path / "none", tmp_path)
    (study,) = read.studies
    assert [(row.arm, row.spread) for row in study.rows[:2]] == [
        ("twin", "–"),
        ("detour", "+0.5 to +4.5"),
    ]
    assert [(finding.file, finding.hint) for finding in read.findings] == [
        ("b.json", "write it again: `biobench analyze cka --json`, `biobench study --table --json`")
    ]
