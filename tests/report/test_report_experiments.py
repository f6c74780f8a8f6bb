"""Published experiments are whole, strictly typed, and stand in every format that prints tables."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.errors import SpecError
from biobench.report.frame import build
from biobench.report.literature.experiments import experiments_for
from biobench.report.printers import render, to_text
from biobench.report.results import fingerprint
from trainer.api import load_recipe

GOOD = """\
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
    beside: {what: A run.}
"""


@pytest.fixture
def shipped(tmp_path):
    return {e.id: e for p in experiments_for(tmp_path) for e in p.experiments}


def values(experiment, line):
    return next(x.values for x in experiment.lines if x.name == line)


def test_the_figures_of_the_paper_are_there(shipped):
    needle = shipped["needle"]
    assert " ".join(c.name for c in needle.columns) == "all 512 1,024 2,048 4,096 8,192 start middle end"
    assert values(needle, "CLM detour") == [62.2, 64.3, 76.3, 61.2, 60.0, 52.9, 63.3, 70.3, 54.9]
    assert values(needle, "MLM twin") == [51.6, 57.1, 52.6, 55.1, 51.1, 43.1, 53.3, 52.7, 49.5]
    assert [x.values[0] for x in shipped["freezing"].lines] == [58.9, 61.6, 59.3, 61.2, 61.2]
    assert [x.values[0] for x in shipped["transplants"].lines] == [32.8, 39.9, 31.9, 35.3, 32.4, 33.9, 35.3]
    assert [x.values for x in shipped["cka_final"].lines] == [[56.5, 0.7], [67.2, 0.3], [26.3, 1.0]]
    assert values(shipped["cka_noise"], "layers 0-7") == [5, 44]
    assert [x.values for x in shipped["decay_base"].lines] == [
        [71.6, 72.6, 71.9, 72.1, 71.7],
        [69.1, 70.4, 70.4, 69.7, 70.4],
    ]
    assert [x.values for x in shipped["decay_large"].lines] == [[73.2, 73.5, 72.7], [70.1, 70.5, 70.1]]
    assert values(shipped["biphasic_shares"], "best share of causal steps")[:2] == [25, 50]


def test_needle_cells_add_up_to_the_whole(shipped):
    """The cells of one model are shares of their test examples, of which the notes give the numbers."""
    for model, right in (("CLM detour", 140), ("MLM twin", 116)):
        whole, *cells = values(shipped["needle"], model)
        assert whole == pytest.approx(100 * right / 225, abs=0.05)
        for counts, part in (((42, 38, 49, 45, 51), cells[:5]), ((60, 74, 91), cells[5:])):
            assert sum(counts) == 225
            assert sum(round(n * share / 100) for n, share in zip(counts, part, strict=True)) == right
            assert ", ".join(map(str, counts)) in " ".join(shipped["needle"].notes)


def test_what_goes_beside_exists(shipped):
    """Recipes and tasks that an experiment names are shipped."""
    recipes = json.loads((Path(__file__).parent.parent / "trainer" / "golden_recipe_hashes.json").read_bytes())
    for experiment in shipped.values():
        told = [experiment.beside.what, *experiment.beside.commands]
        words = {w.strip(".,;()") for text in told for w in text.split()}
        for word in words:
            if word.startswith(("fr_base_", "fr_large_", "biphasic_")):
                found = [r for r in recipes if r == word or (word.endswith("*") and r.startswith(word[:-1]))]
                assert found, (experiment.id, word)
                assert all(load_recipe(recipe) for recipe in found)
        for command in experiment.beside.commands:
            parts = command.split()
            assert parts[0] == "biobench"
            for flag, value in pairwise(parts):
                if flag == "--task" and value != "ID":
                    assert load_task(value)


@pytest.mark.parametrize("format", ["table", "md", "latex", "html"])
def test_every_format_with_tables_shows_them_with_source_and_baselines(tmp_path, format):
    report = build(tmp_path, "paper")
    text = to_text(report, experiments=True) if format == "table" else render(report, format)
    for number in ("62.2", "51.6", "58.9", "59.3", "39.9", "56.5", "67.2", "71.6", "73.5"):
        assert number in text, number
    for word in ("2507.00994", "Of ours beside it", "BioBERT: no published values", "SciBERT: no published values"):
        assert word in " ".join(text.split()), word


def test_score_rows_are_alone_in_csv_and_json(tmp_path):
    report = build(tmp_path, "paper")
    count = len(report.rows) + len(report.averages)
    assert len(json.loads(render(report, "json"))) == count
    assert len(list(csv.DictReader(io.StringIO(render(report, "csv"))))) == count


def test_filters_leave_what_was_asked_for(tmp_path):
    def ids(**filters):
        return {e.id for p in build(tmp_path, "paper", **filters).experiments for e in p.experiments}

    assert ids(suites=["needle"]) == {"needle"}
    assert "freezing" in ids(suites=["fr"])
    assert "needle" not in ids(suites=["fr"])
    assert ids(tasks=["diamed"]) == ids(models=["DrBERT"]) == ids(sources=["run"]) == set()
    assert ids() == ids(sources=["published"]) > ids(suites=["fr"])


def add(results, text, name="mine"):
    folder = results / "published" / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_results_folder_brings_its_own_and_no_name_breaks_out(tmp_path):
    before = fingerprint(tmp_path)
    add(tmp_path, GOOD.replace("name: A,", 'name: "<b>|A|_$</b>",'))
    assert fingerprint(tmp_path) != before
    report = build(tmp_path, "paper")
    assert report.experiments[-1].experiments[0].cells(report.experiments[-1].experiments[0].lines[0]) == [
        "71.2",
        "0.50",
    ]
    assert "<b>" not in render(report, "html")
    assert r"\<b\>\|A\|\_\$" in render(report, "md")
    assert r"\textless{}b\textgreater{}" in render(report, "latex")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[71.25, 0.5]", "[71.25]", "'A' of 'one' has 1 values for 2 columns"),
        ("71.25", "171.25", "171.25 of 'A' is not a percent"),
        ("0.5]", "1.5]", "1.5 of 'A' is not a probability"),
        ("71.25", ".nan", "values"),
        ("name: B", "name: A", "'A' stands twice in lines of 'one'"),
        ("unit: percent", "unit: per cent", "unit"),
        ("[60, null]", "[null, null]", "no value"),
        ("    beside: {what: A run.}\n", "", "beside"),
        ("setting:", "settings:", "settings"),
        ("id: mine", "id: clm_detour", "the id 'clm_detour' is that of"),
    ],
)
def test_damage_is_refused_with_its_file(tmp_path, old, new, said):
    assert old in GOOD
    add(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=r"mine\.yaml") as caught:
        build(tmp_path, "paper")
    assert said in str(caught.value)
