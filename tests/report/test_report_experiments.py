"""Published experiments are whole, strictly typed, and are read with the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.errors import SpecError
from biobench.report.details.pretraining import read_pretraining
from biobench.report.literature.experiments import experiments_for
from biobench.report.results import fingerprint, load

ROOT = Path(__file__).resolve().parents[2]
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
    counterpart: {what: a run}
"""


def add(results, text, name="mine"):
    folder = results / "published" / "experiments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_results_folder_brings_its_own_with_its_cells_as_printed(tmp_path):
    before = fingerprint(tmp_path)
    add(tmp_path, GOOD)
    assert fingerprint(tmp_path) != before
    (one,) = experiments_for(tmp_path)[-1].experiments
    assert [one.cells(line) for line in one.lines] == [["71.2", "0.50"], ["60.0", "–"]]
    assert one.headings == ["score, %", "p, probability"]
    assert experiments_for(tmp_path)[-1].below(one) == ["Two models, one seed.", "Here: a run."]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[71.25, 0.5]", "[71.25]", "'A' of 'one' has 1 values for 2 columns"),
        ("71.25", "171.25", "171.25 of 'A' is not a percent"),
        ("    counterpart: {what: a run}\n", "", "counterpart"),
        ("id: mine", "id: clm_detour", "the id 'clm_detour' is that of"),
    ],
)
def test_damage_is_refused_with_its_file(tmp_path, old, new, said):
    add(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=r"mine\.yaml") as caught:
        load(tmp_path)
    assert said in str(caught.value)


def test_studies_are_read_and_a_damaged_one_is_a_finding(tmp_path):
    longer = (ROOT / "results/study/longer.json").read_text(encoding="utf-8")
    (tmp_path / "a.json").write_text(longer, encoding="utf-8")
    (tmp_path / "b.json").write_text(longer.replace('"budget": 2400000', '"budget": "much"'), encoding="utf-8")
    read = read_pretraining(tmp_path / "none", tmp_path)
    (study,) = read.studies
    assert [(row.arm, row.spread) for row in study.rows[:2]] == [("twin", "–"), ("detour", "+1.1 to +3.8")]
    assert [(finding.file, finding.hint) for finding in read.findings] == [
        ("b.json", "write it again with `biobench study --table --json`")
    ]
