"""Crafted archives, what fuzzing found before, and a few new inputs each time; 100,000 by `python
-m tests.fuzz`.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path

import pytest

from biobench.data.unpack import unpack
from biobench.errors import BioBenchError, DataFormatError
from biobench.submission.layout import check_layout
from biobench.submission.unpack import unpack as unpack_submission
from tests.fuzz import zips
from tests.fuzz.targets import targets

ROOT = Path(__file__).resolve().parents[2]
FOUND = sorted((ROOT / "tests" / "fixtures" / "fuzz").iterdir())
CRAFTED = dict(zips.crafted())


@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_zip_files_are_read_or_refused_by_name(tmp_path: Path, what: str) -> None:
    (tmp_path / "a.zip").write_bytes(CRAFTED[what])
    refused, written = None, list[Path]()
    try:
        written = unpack(tmp_path / "a.zip", "zip", tmp_path / "out")
    except DataFormatError as error:
        refused = error
    if refused is not None:
        assert refused.file == str(tmp_path / "a.zip")
        assert not (tmp_path / "out").exists()
    else:
        assert all(p.is_file() and p.resolve().is_relative_to(tmp_path / "out") for p in written)
        assert all(p.read_bytes() == zips.CONTENT for p in written), (
            "another content than was packed"
        )
    folder, checks = unpack_submission(io.BytesIO(CRAFTED[what]), tmp_path / "upload")
    assert checks or check_layout(folder)
    assert {p.name for p in tmp_path.iterdir()} <= {"a.zip", "out", "upload"}


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.name)
def test_what_fuzzing_found_is_read_or_refused(path: Path) -> None:
    with contextlib.suppress(BioBenchError):
        targets()[path.name.partition("-")[0]].read(path.read_bytes())


@pytest.mark.parametrize("name", targets())
def test_a_target_begins_with_input_that_is_read(name: str) -> None:
    """Else damage is looked for behind an error that ends the reading before: recipes were none for
    long.
    """
    target, read = targets()[name], 0
    for content in target.seeds:
        with contextlib.suppress(BioBenchError):
            target.read(content)
            read += 1
    assert read >= (len(target.seeds) if name not in ("zip", "upload") else 1)


def test_two_thousand_new_inputs() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", "2000", "--out", "fuzz-findings"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
