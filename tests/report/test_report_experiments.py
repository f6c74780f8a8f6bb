"""Published experiments are whole, strictly typed, and stand in every format that prints tables."""

from __future__ import annotations

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


@pytest.mark.parametrize("format", ["table", "latex", "html"])
def test_every_format_with_tables_shows_them_with_source_and_baselines(tmp_path, format):
    report = build(tmp_path, "paper")
    text = to_text(report, experiments=True) if format == "table" else render(report, format)
    for number in ("62.2", "51.6", "58.9", "59.3", "39.9", "56.5", "67.2", "71.6", "73.5"):
        assert number in text, number
    for word in ("2507.00994", "Of ours beside it", "BioBERT: no published values", "SciBERT: no published values"):
        assert word in " ".join(text.split()), word


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
        ("    beside: {what: A run.}\n", "", "beside"),
        ("id: mine", "id: clm_detour", "the id 'clm_detour' is that of"),
    ],
)
def test_damage_is_refused_with_its_file(tmp_path, old, new, said):
    assert old in GOOD
    add(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=r"mine\.yaml") as caught:
        build(tmp_path, "paper")
    assert said in str(caught.value)
