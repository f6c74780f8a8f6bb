"""What a submission's files may be: layout, manifest, names, sizes, time and memory; and the upload
as a zip file.
"""

import hashlib
import io
import json
import os
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biobench.reporting.entrants import find_entrants
from biobench.reporting.results import load
from biobench.submission import guard
from biobench.submission.guard import verify
from biobench.submission.layout import JSON_BYTES, MOST_FILES, allowed_bytes, check_manifest
from biobench.submission.pack import MANIFEST, submitted_groups
from biobench.submission.unpack import unpack
from biobench.submission.verify import examine
from tests.helpers.cli_make import call
from tests.helpers.processor import budget
from tests.helpers.submission_make import TASK, change_record, codes, honest_run, refused, relist


def with_manifest(packed, **fields):
    manifest = json.loads((packed / MANIFEST).read_text()) | fields
    (packed / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False))


# layout


def test_layout(packed, tmp_path):
    (packed / "runs" / TASK / "notes.html").write_text("<script>alert(1)</script>")
    (packed / "extra").mkdir()
    (packed / "extra" / "x").write_text("")
    os.symlink("/etc/passwd", packed / "runs" / TASK / f"{'a' * 32}.json")
    os.mkfifo(packed / "runs" / TASK / f"{'b' * 32}.json")
    assert refused(packed) == {"L01", "L02"}
    os.symlink(packed, tmp_path / "link")
    assert refused(tmp_path / "link") == {"L05"}
    assert refused(tmp_path / "nowhere") == {"L05"}


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("where", ["submission.json", "runs/*/*.parquet", "."])
def test_special_files_are_refused_at_once_as_what_they_are(packed, kind, where):
    path = packed.with_name("odd") if where == "." else next(packed.glob(where))
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    verification = verify(path if where == "." else packed)
    assert verification.state == "refused"
    assert any(c.code == "L05" if where == "." else kind in c.what for c in verification.checks)


def test_sizes_and_numbers_are_bounded_before_anything_is_read(packed):
    path = next(packed.glob("runs/*/*.json"))
    for size in (2**30, JSON_BYTES + 1):
        with open(path, "wb") as stream:
            stream.truncate(size)
        assert refused(packed) == {"L03"}
    path.unlink()
    for number in range(MOST_FILES):
        (packed / f"d{number}").mkdir()
    began = time.process_time()
    assert refused(packed) == {"L04"}, "folders count as well"
    assert time.process_time() - began < budget(1.0)


@pytest.mark.parametrize(
    "path", ["runs/gad/../../x.json", "/runs/gad/x.json", "floors/gad/x.json", "submission.jsonl"]
)
def test_no_other_path_is_allowed(path):
    assert allowed_bytes(path.replace("x.", "a" * 32 + ".")) is None


# manifest and names


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model": "m" * 10_000}, "M01"),
        ({"model": "evil\u202egnp"}, "M01"),
        ({"notes": "n" * 10_000}, "M01"),
        ({"files": []}, "M03"),
        ({"more": 1}, "M01"),
        ({"version": "one"}, "M01"),
        ({"version": 7}, "M01"),
    ],
)
def test_manifests(packed, fields, code):
    with_manifest(packed, **fields)
    assert code in refused(packed)


def test_lists_that_are_not_of_the_files(packed):
    listed = json.loads((packed / MANIFEST).read_text())["files"]
    foreign = {"path": "../../../etc/passwd", "size": 1, "sha256": "0"}
    with_manifest(packed, files=[*listed, listed[0]])
    assert "M02" in refused(packed)
    with_manifest(packed, files=[*listed, foreign])
    assert "M02" in refused(packed)
    with_manifest(packed, files=[listed[0] | {"size": 1}, *listed[1:]])
    assert "M04" in refused(packed)


def test_a_folder_that_cannot_be_read_is_a_finding(packed, monkeypatch):
    listed = os.scandir

    def scandir(folder):
        if Path(folder).name == TASK:
            raise PermissionError(13, "Permission denied")
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert refused(packed) == {"M02", "R01"}


def test_names_that_imitate_a_mark_of_the_board_are_refused(packed):
    sound = [
        "org/tiny",
        "google-bert/bert-base@v1.0",
        "modèle français",
        "Grösse_2 (mlm)",
    ]
    odd = [
        "<b>&'\"",
        ":material/verified:",
        "org/tiny https://evil.example",
        "www.evil.example",
        "a@b.c d",
        "org/tiny@main> <https://evil.example",
        "org/tiny ",
        " org/tiny",
        "org/tiny  verified",
        "org\u00a0tiny",
        "оrg/tiny",
        "org/ｔiny",
        "org/tіny",
        "org/tiny {verified}",
        "org/tiny 〔reproduced〕",
        "org/tiny, reproduced",
        "org/tiny ✓",
    ]
    marks = [
        "[submission a]",
        "[weights 12345678]",
        "(verified)",
        "(Reproduced)",
        "(re-scored)",
        "( published )",
    ]
    marks += ["(verified, 5 seeds)", "\uff3bfrozen\uff3d", "\uff08verified\uff09"]
    for name in [*sound, *odd, *(f"org/tiny {mark}" for mark in marks), "oracle (baseline)", " "]:
        with_manifest(packed, model=name)
        found = {check.code for check in check_manifest(packed)[1]}
        assert found == (set() if name in sound else {"M06"}), name


def test_what_is_printed_of_damaged_records_and_names_is_short_and_visible(
    packed, monkeypatch, capfd
):
    change_record(packed, lambda r: r.update({"\x1b[31m::error::" + "x" * 100_000: 1}))
    shown = call(monkeypatch, capfd, "verify-submission", packed)
    assert (shown.status, "R01 error" in shown.out, "\x1b" in shown.out) == (1, True, False)
    assert max(map(len, shown.out.splitlines())) < 400
    with open(os.path.join(os.fsencode(packed), b"\xff\n::error::.json"), "wb"):
        pass
    (packed / "stray").touch()
    shown = call(monkeypatch, capfd, "verify-submission", packed)
    assert " and 1 more: does not belong here\n" in shown.out, "one line for the same finding"
    assert all(line.startswith(("L02 error: ", "refused: ")) for line in shown.out.splitlines())
    listed = call(monkeypatch, capfd, "verify-submission", packed, "--json").json()
    assert [check["code"] for check in listed["findings"]] == ["L02", "L02"]


@pytest.mark.parametrize("terminal", [True, False])
def test_nobody_takes_a_name_in_csv_for_a_command(tmp_path, monkeypatch, capfd, terminal):
    honest_run(tmp_path / "results", model="evil\x1b[2J")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    options = ("--format", "csv", "--source", "run", "--results-dir", tmp_path / "results")
    printed = call(monkeypatch, capfd, "report", *options).out
    assert "evil\ufffd[2J" in printed
    assert "\x1b" not in printed


# time and memory


@pytest.mark.parametrize(
    ("what", "words"),
    [("spin", "SIG"), ("die", "SIGSEGV"), ("raise", "OddError: no"), ("eat", "MemoryError")],
)
def test_a_file_that_takes_too_long_or_kills_its_reader_is_a_finding(
    packed, monkeypatch, what, words
):
    paths = [str(Path(__file__).parent / "sitecustom"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    monkeypatch.setenv("BIOBENCH_TEST_READER", what)
    monkeypatch.setattr(guard, "SECONDS", 4 if what == "spin" else guard.SECONDS)
    verification = verify(packed)
    assert (verification.state, [c.code for c in verification.checks]) == ("refused", ["L07"])
    assert words in verification.checks[0].what


def test_modules_in_the_current_folder_are_not_imported(packed, monkeypatch, tmp_path):
    for name in ("json", "resource", "pyarrow", "biobench"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", "", "sub/.."]))
    assert verify(packed).state == "verified"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("times", "length"), [(10_000_000, 1), (1, 10**8)])
def test_a_few_bytes_that_unpack_to_much_are_refused_within_the_limits(packed, times, length):
    """Parquet holds a repeated text once, and a run of places in a few bytes; a label can be 100 MB
    of one letter.
    """
    path = next(packed.glob("runs/*/*.parquet"))
    table = pq.read_table(path)
    texts = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(times, np.int32)), pa.array(["x" * length])
    )
    ends = pa.array(np.r_[0, np.full(table.num_rows, times)].astype(np.int32))
    labels = pa.ListArray.from_arrays(ends, texts)  # of the first document
    table = table.set_column(
        table.schema.get_field_index("labels"), pa.field("labels", labels.type), labels
    )
    pq.write_table(table, path, store_schema=False, compression="zstd")
    assert path.stat().st_size < 200_000
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    change_record(packed, lambda r: r.update(predictions_sha256=digest), path.with_suffix(".json"))
    verification = verify(packed)
    assert verification.state == "refused"
    assert codes(verification) <= {"L07", "R07", "P01"}


def test_a_footer_of_many_megabytes_costs_little(packed):
    path = next(packed.glob("runs/*/*.parquet"))
    metadata = {str(n): "y" * 100 for n in range(200_000)}
    pq.write_table(pq.read_table(path).replace_schema_metadata(metadata), path)
    relist(packed)
    verification = verify(packed)
    assert verification.state == "refused"
    assert codes(verification) <= {"L03", "L07", "R07"}


# the upload


@pytest.mark.parametrize(
    ("names", "packing", "code"),
    [
        ([f"{n}" for n in range(MOST_FILES + 1)], zipfile.ZIP_STORED, "L04"),
        ([MANIFEST, f"runs/{TASK}/{0:032x}.parquet"], zipfile.ZIP_DEFLATED, "L06"),
        ([MANIFEST], zipfile.ZIP_LZMA, "L06"),
        ([f"../{MANIFEST}"], zipfile.ZIP_STORED, "L06"),
    ],
)
def test_an_upload_is_refused_and_leaves_nothing(tmp_path, monkeypatch, names, packing, code):
    monkeypatch.setattr("biobench.submission.unpack.UNPACKED_BYTES", 2_000)
    upload = io.BytesIO()
    with zipfile.ZipFile(upload, "w", packing) as archive:
        for name in names:
            archive.writestr(name, bytes(1_001))
    assert {c.code for c in unpack(upload, tmp_path / "pack")[1]} == {code}
    assert not list(tmp_path.iterdir())
    assert {c.code for c in unpack(io.BytesIO(b"PK"), tmp_path / "pack")[1]} == {"L06"}


@pytest.mark.parametrize("top", ["", "pack/", "../", "/", "C:\\x/", "sub/../../"])
def test_an_upload_does_not_leave_its_folder(packed, tmp_path, top):
    upload = io.BytesIO()
    with zipfile.ZipFile(upload, "w") as archive:
        for path in sorted(p for p in packed.rglob("*") if p.is_file()):
            archive.write(path, top + path.relative_to(packed).as_posix())
    folder, checks = unpack(upload, tmp_path / "a" / "target")
    written = [p for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert all(tmp_path / "a" / "target" in p.resolve().parents for p in written)
    assert checks or examine(folder).state == "verified"
    assert not checks or top not in ("", "pack/")


@pytest.mark.parametrize(
    "name", ["n" * 10_000, "z" + "\u0301" * 500, "~nobody/x", "a\0b", "=1+1", "\\input{x}"]
)
def test_a_model_of_any_name_is_found_by_it(tmp_path, name):
    """Before, a name longer than a file's may be ended the board by the system's error."""
    names = [name, "org/tiny"]
    for model in names:
        honest_run(tmp_path / "results", model=model)
    results = load(tmp_path / "results")
    assert [entrant.model for entrant in find_entrants(names, results)] == names
    assert [group.model for group in submitted_groups(results, name)] == [name]
