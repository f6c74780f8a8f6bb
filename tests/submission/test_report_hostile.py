"""Hostile submissions, end to end: what the command refuses, and what it prints of what it takes."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from biobench.cli.main import app
from biobench.report.html import to_html
from biobench.report.table import build
from biobench.store.records import canonical_json
from biobench.submission.content import MOST_VALUES
from biobench.submission.guard import MEMORY, SECONDS, verify
from biobench.submission.layout import MOST_FILES
from biobench.submission.pack import MANIFEST, submit
from biobench.submission.verify import examine
from tests.helpers.submission_make import change_record, codes, honest_run, relist

START_SECONDS = 6.0
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
    page = to_html(build(tmp_path / "board", "macro", sources=["submitted"]))
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have(packed, value):
    path = next(packed.glob("runs/*/*.json"))
    record = json.loads(path.read_text())
    record["scores"]["macro_f1"] = "HERE"
    path.write_text(json.dumps(record).replace('"HERE"', value))
    relist(packed)
    assert codes(packed) == {"R01"}


@pytest.mark.parametrize(
    ("number", "value", "code"),
    [("f1", 0.123, "S03"), ("support", 10**6, "S03"), ("precision", 1.5, "S03"), ("invented", 0.5, "S03")],
)
def test_numbers_of_a_label_that_its_predictions_do_not_give(packed, number, value, code):
    change_record(packed, lambda r: next(iter(r["per_label"].values())).update({number: value}))
    assert codes(packed) == {code}


def test_a_label_that_does_not_exist(packed):
    change_record(packed, lambda r: r["per_label"].update({SCRIPT: {"f1": 1.0, "support": 1.0}}))
    assert codes(packed) == {"S03"}


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


_MEASURED = """
import json, resource, sys
from pathlib import Path
from biobench.submission.guard import verify

found = [(c.code, c.where) for c in verify(Path(sys.argv[1])).checks if c.grade == "error"]
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([found, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""


@pytest.mark.parametrize(("times", "length"), [(2 * MOST_VALUES, 1), (100_000, 900), (1, 10**8)])
def test_a_few_bytes_that_unpack_to_much_cost_little(packed, times, length):
    """Parquet holds a repeated text once, and a run of places in a few bytes; a label can be 100 MB of one letter."""
    path = next(packed.glob("runs/*/*.parquet"))
    _write_labels(path, times, length)
    assert path.stat().st_size < 200_000
    relist(packed)
    # in a process of its own: what the children of this one took at most is not told apart
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(packed)], capture_output=True, text=True, check=True, timeout=300
    )
    ((code, where),), seconds, kilobytes = json.loads(done.stdout)
    assert code in ("L03", "L07")
    assert where in (path.relative_to(packed).as_posix(), path.with_suffix(".json").relative_to(packed).as_posix())
    assert seconds < START_SECONDS + 2 * SECONDS + 1
    assert kilobytes * 1024 < MEMORY + 2**29


def test_a_footer_that_lies_about_what_its_pages_hold(packed):
    """Readers allocate by the pages: here 10 million texts, where the footer says one a document."""
    path, *others = packed.glob("runs/*/*.parquet")
    for other in others:
        other.unlink()
        other.with_suffix(".json").unlink()
    _write_labels(path, times=10_000_000, length=1)
    content = path.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rows = pq.ParquetFile(path).metadata.num_rows
    # field num_values, an i64 in Thrift's compact protocol; the false number is padded to the true one's length
    true, false = (b"\x16" + _varint(2 * n, 4) for n in (10_000_000 + rows - 1, rows))
    assert content[begin:].count(true) == 1
    path.write_bytes(content[:begin] + content[begin:].replace(true, false))
    assert sum(_values(path)) < 30 * rows
    relist(packed)
    found = {(c.code, c.where) for c in verify(packed).checks if c.grade == "error"}
    assert found & {(code, path.relative_to(packed).as_posix()) for code in ("R07", "L03", "L07")}


def test_a_footer_of_many_megabytes_costs_little(packed):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    metadata = {str(n): "y" * 100 for n in range(200_000)}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    relist(packed)
    found = verify(packed)
    assert found.state == "refused"
    assert {c.code for c in found.checks if c.grade == "error"} <= {"L03", "L07", "R07"}


def _varint(number, length):
    """`length` bytes of seven bits each, the lowest first, all but the last marked."""
    assert number < 1 << 7 * length
    return bytes(number >> 7 * i & 127 | (128 if i < length - 1 else 0) for i in range(length))


def _values(path):
    metadata = pq.ParquetFile(path).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    return [group.column(i).num_values for group in groups for i in range(group.num_columns)]


def test_more_documents_than_the_task_has_are_not_decoded(packed, monkeypatch):
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table] * 1_300), path)
    relist(packed)
    monkeypatch.setattr(pq.ParquetFile, "read", None)
    (found,) = (c for c in examine(packed).checks if c.code == "L03")
    assert "104000 documents, the task has at most 1000" in found.what


def test_a_predictions_file_with_any_byte_changed_gives_findings_and_no_crash(packed):
    """Thrift and dictionaries that do not hold together raise many kinds of errors in the reader."""
    path = next(packed.glob("runs/*/*.parquet"))
    record, chance = path.with_suffix(".json"), random.Random(3)
    whole, written = path.read_bytes(), json.loads(record.read_text())
    for _ in range(80):
        content = bytearray(whole)
        for _ in range(chance.choice((1, 2, 20))):
            # most of the footer is near the end
            content[-1 - chance.randrange(min(len(content), chance.choice((1_500, len(content)))))] = chance.randrange(
                256
            )
        path.write_bytes(content)
        record.write_bytes(canonical_json(written | {"predictions_sha256": hashlib.sha256(content).hexdigest()}))
        relist(packed)
        found = examine(packed)
        assert found.state != "refused" or {c.code for c in found.checks} & {
            "R07",
            "L03",
            "D01",
            "P01",
            "S01",
            "S02",
            "S03",
        }


def test_a_forged_index_is_refused(packed):
    (packed / "runs" / ".index.parquet").write_bytes(b"PAR1")
    assert codes(packed) == {"L02"}


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


def test_a_manifest_that_points_outside(packed):
    manifest = json.loads((packed / MANIFEST).read_text())
    for path in ("../../etc/passwd", "/etc/passwd", "runs/../../x", "runs\\..\\x"):
        manifest["files"].append({"path": path, "size": 1, "sha256": "0" * 64})
    (packed / MANIFEST).write_text(json.dumps(manifest))
    assert codes(packed) == {"M02"}


def test_exit_statuses(packed, tmp_path):
    assert said(str(packed))[0] == 0
    (packed / "extra").write_text("")
    assert said(str(packed))[0] == 1
    assert said(str(tmp_path / "nowhere"))[0] == 1
    assert said()[0] == 2
