"""The shipped published scores are whole and consistent; a damaged file is refused with its line."""

from __future__ import annotations

from collections import defaultdict

import pytest

from biobench.errors import SpecError
from biobench.report.published import load_published, published_folder


def test_the_shipped_values_are_whole():
    published = load_published()
    tasks = defaultdict(set)
    models = defaultdict(set)
    for v in published.values:
        tasks[v.language].add(v.task)
        models[v.language].add(v.model)
        assert v.citation
        assert v.caption
        assert v.reading
    assert {k: len(v) for k, v in tasks.items()} == {"fr": 8, "en": 11}
    assert {k: len(v) for k, v in models.items()} == {"fr": 8, "en": 9}
    assert len(published.values) == 8 * 8 + 9 * 11


def test_printed_averages_are_the_means_of_their_rows():
    published = load_published()
    assert len(published.averages) == 17
    for printed in published.averages:
        values = [v.value for v in published.values if v.model == printed.model and v.language == printed.language]
        # half a step from the printed average's own rounding, half a step at most from those of its row
        assert abs(sum(values) / len(values) - printed.value) <= printed.step + 1e-9, printed.model


def test_what_each_value_may_stand_beside():
    by_task = {v.task: v for v in load_published().values}
    assert by_task["fracco_30"].comparable == "micro_f1"
    assert by_task["diamed"].comparable == "weighted_f1"
    assert by_task["gad"].comparable == "macro_f1"
    assert by_task["hoc"].comparable is None


HEADER = "model,size,objective,language,task,value_percent,average_claimed,average_likely,seeds\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("m,base,mlm,fr,fracco_30,101,macro_f1,micro_f1,9", "paper.csv:2: '101' is not a percentage"),
        ("m,base,mlm,fr,fracco_30,x,macro_f1,micro_f1,9", "'x' is not a percentage"),
        ("m,base,mlm,fr,fracco_30,nan,macro_f1,micro_f1,9", "'nan' is not a percentage"),
        ("m,base,mlm,fr,fracco_30,50,macro,micro_f1,9", "average_claimed 'macro'"),
        ("m,base,mlm,fr,elsewhere,50,macro_f1,micro_f1,9", "no reading or caption"),
        ("m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,0", "seeds '0'"),
        ("m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1", "too few cells"),
        ("m,base,mlm,fr,fracco_30,50,macro_f1,micro_f1,9\n" * 2, "paper.csv:3: m has two values"),
    ],
)
def test_damage_is_refused_with_its_line(tmp_path, rows, said):
    header = (published_folder() / "clm_detour.yaml").read_text().replace("clm_detour.csv", "paper.csv")
    (tmp_path / "paper.yaml").write_text(header)
    (tmp_path / "paper.csv").write_text(HEADER + rows)
    with pytest.raises(SpecError) as caught:
        load_published(tmp_path)
    assert said in str(caught.value)
