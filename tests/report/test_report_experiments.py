"""Published experiments are whole, strictly typed, and are read with the folder."""

from __future__ import annotations

import pytest

from biobench.errors import SpecError
from biobench.report.literature.experiments import experiments_for
from biobench.report.results import fingerprint, load

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
    assert experiments_for(tmp_path)[-1].below(one)[-1] == "Source: Someone 2027."


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
    add(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(SpecError, match=r"mine\.yaml") as caught:
        load(tmp_path)
    assert said in str(caught.value)
