"""Hostile submissions, end to end: what the command refuses, and what it prints of what it takes."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.report.frame import build
from biobench.report.printers import render
from biobench.store.records import from_json
from biobench.submission.content import check_content
from biobench.submission.guard import verify
from biobench.submission.layout import MOST_FILES
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.submission_make import change_record, codes, honest_run, relist

"""Processor time that the libraries take to be imported, at most."""
SCRIPT = '<script>alert(1)</script><img src=x onerror="alert(2)">[a](javascript:alert(3))'


def said(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify-submission", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stdout


def test_markup_in_an_accepted_name_and_note_stays_text(tmp_path):
    name = SCRIPT.partition("[")[0]
    honest_run(tmp_path / "results", model=name)
    folder = submit(name, tmp_path / "results", tmp_path / "board" / "submitted" / "x", notes=SCRIPT)
    assert verify(folder).accepted
    page = render(build(tmp_path / "board", "macro", sources=["submitted"]), "html")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page


@pytest.mark.parametrize(
    ("number", "value", "code"),
    [("f1", 0.123, "S03"), ("support", 10**6, "S03"), ("precision", 1.5, "S03"), ("invented", 0.5, "S03")],
)
def test_numbers_of_a_label_that_its_predictions_do_not_give(packed, number, value, code):
    change_record(packed, lambda r: next(iter(r["per_label"].values())).update({number: value}))
    assert codes(packed) == {code}


def _write_labels(path, times, length):
    """The file again, the first document's labels one text of that length, so many times."""
    table = pq.read_table(path)
    at = table.schema.get_field_index("labels")
    places = pa.array(np.zeros(times, np.int32))
    texts = pa.DictionaryArray.from_arrays(places, pa.array(["x" * length]))
    ends = pa.array(np.r_[0, np.full(table.num_rows, times)].astype(np.int32))
    labels = pa.ListArray.from_arrays(ends, texts)
    pq.write_table(
        table.set_column(at, pa.field("labels", labels.type), labels), path, store_schema=False, compression="zstd"
    )


@pytest.mark.parametrize(("times", "length"), [(10_000_000, 1), (100_000, 900), (1, 10**8)])
def test_a_few_bytes_that_unpack_to_much_are_not_taken(packed, times, length):
    """Parquet holds a repeated text once, and a run of places in a few bytes; a label can be 100 MB of one letter."""
    path = next(packed.glob("runs/*/*.parquet"))
    _write_labels(path, times, length)
    assert path.stat().st_size < 200_000
    record = from_json(path.with_suffix(".json").read_bytes(), path)
    assert [c.code for c in check_content(path, "", record)] == ["L03"]


def test_a_footer_of_many_megabytes_costs_little(packed):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    metadata = {str(n): "y" * 100 for n in range(200_000)}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    relist(packed)
    found = verify(packed)
    assert found.state == "refused"
    assert {c.code for c in found.checks if c.grade == "error"} <= {"L03", "L07", "R07"}


def test_more_documents_than_the_task_has_are_not_decoded(packed, monkeypatch):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table] * 1_300), path)
    relist(packed)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    (found,) = (c for c in examine(packed).checks if c.code == "L03")
    assert "104000 documents, the task has at most 1000" in found.what


def test_folders_count_as_well(packed):
    for number in range(MOST_FILES):
        (packed / f"d{number}").mkdir()
    assert "L04" in codes(packed)


def test_what_is_printed_of_damaged_records_is_short_and_visible(packed):
    change_record(packed, lambda r: r.update({"\x1b[31m::error::" + "x" * 100_000: 1}))
    status, text = said(str(packed))
    assert status == 1
    assert "R01 error" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.skipif(os.name != "posix", reason="file names are bytes on POSIX systems only")
def test_file_names_that_are_no_text(packed):
    name = os.path.join(os.fsencode(packed), b"\xff\n::error::.json")
    with open(name, "wb"):
        pass
    status, text = said(str(packed))
    assert status == 1
    assert all(line.startswith(("L02 error: ", "refused: ")) for line in text.splitlines())
    status, text = said(str(packed), "--json")
    assert status == 1
    assert [f["code"] for f in json.loads(text)["findings"]] == ["L02"]


def test_exit_statuses(packed, tmp_path):
    assert said(str(packed))[0] == 0
    (packed / "extra").write_text("")
    assert said(str(packed))[0] == 1
    assert said(str(tmp_path / "nowhere"))[0] == 1
    assert said()[0] == 2
