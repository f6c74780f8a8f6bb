"""Folders are found in whatever letter case they are written; files are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from biobench.data.catalog import LoadedTask
from biobench.data.load import load_data
from biobench.data.locate import locate
from biobench.schema.source import ReaderSpec, Source

READER = ReaderSpec(format="brat")


def source(folder: str, pattern: str) -> Source:
    return Source(id="x", folder=folder, files={"all": pattern}, reader=READER)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")
    return path


def test_the_folder_of_a_source(tmp_path: Path) -> None:
    there = touch(tmp_path / "FRASIMED" / "Corpus_A" / "a.txt")
    place = locate(source("Frasimed/corpus_a", "*.txt"), tmp_path)
    assert (place.complete, place.folder, place.files["all"]) == (True, there.parent, [there])
    assert not locate(source("Frasimed/corpus_a", "A.txt"), tmp_path).complete, "a file's name is taken as it is"


def test_folders_in_a_pattern(tmp_path: Path) -> None:
    there = touch(tmp_path / "frasimed" / "Frasimed-Cantemist" / "a.txt")
    assert locate(source("frasimed", "**/*CANTEMIST*/*.txt"), tmp_path).files["all"] == [there]
    assert locate(source("frasimed", "frasimed-CANTEMIST/a.txt"), tmp_path).files["all"] == [there]


def test_the_exact_name_comes_first_and_two_others_are_none(tmp_path: Path) -> None:
    exact = touch(tmp_path / "corpus" / "a.txt")
    touch(tmp_path / "Corpus" / "a.txt")
    touch(tmp_path / "CORPUS" / "a.txt")
    assert locate(source("corpus", "*.txt"), tmp_path).files["all"] == [exact]
    exact.unlink()
    exact.parent.rmdir()
    assert not locate(source("corpus", "*.txt"), tmp_path).complete


def test_a_task_is_read_from_such_a_folder(make_task: Callable[..., LoadedTask], tmp_path: Path) -> None:
    files = "{train: train.tsv, validation: devel.tsv, test: test.tsv}"
    reader = "{format: iob, columns: [token, tag]}"
    task = make_task(type="token_ner", folder="my_corpus", files=files, reader=reader, labels="[X]")
    for name in ("train.tsv", "devel.tsv", "test.tsv"):
        touch(tmp_path / "My_Corpus" / name).write_text("gout\tB-X\n", encoding="utf-8")
    assert len(load_data(task, tmp_path).test) == 1
