"""Data that was altered after the spec was written is told before anything is trained on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.errors import DataFormatError, SpecError
from tests.helpers.spec_make import local, write_spec

ROWS = "id\ttext\tlabel\n" + "".join(f"{i}\tsentence {i}\t{'ab'[i % 2]}\n" for i in range(8))


def spec(folder: Path, expect: str = "") -> Path:
    for name in ("train", "validation", "test"):
        path = folder / "data" / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text(ROWS.replace("sentence", f"{name} sentence").replace("\n", f"\n{name}-").rstrip(f"{name}-"))
    files = "{train: train.tsv, validation: validation.tsv, test: test.tsv}"
    reader = "{format: tsv, columns: {id: id, text: text, label: label}}"
    source = local("data", files, f"  {expect}\n")
    return write_spec(folder / "own.yaml", type="single_label", source=source, reader=reader, labels="[a, b]")


def test_altered_data_is_refused_and_the_task_stays_what_it_was(tmp_path: Path) -> None:
    plain = load_task(str(spec(tmp_path)))
    made = load_data(plain, tmp_path)
    told = load_task(str(spec(tmp_path, f"expect: {made.hash}")))
    assert load_data(told, tmp_path, limit=2).hash == made.hash
    assert task_hash(told, "local") == task_hash(plain, "local")
    path = tmp_path / "data" / "train.tsv"
    path.write_text(path.read_text().replace("sentence 3", "sentence 4"))
    assert load_data(plain, tmp_path).hash != made.hash
    with pytest.raises(DataFormatError, match=rf"is not what the spec expects \(hash .*, expected {made.hash}\)"):
        load_data(told, tmp_path)


@pytest.mark.parametrize("expect", ["expect: abc", f"expect: {'A' * 64}", "expect: 7"])
def test_an_expected_hash_that_is_none_is_refused(tmp_path: Path, expect: str) -> None:
    with pytest.raises(SpecError, match="should match pattern"):
        load_task(str(spec(tmp_path, expect)))
