"""Tasks with several splits: each is a run with a key of its own, and together they are one
result."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import biobench
from biobench.comparison.compare import compare
from biobench.data.bundle import bundle
from biobench.data.catalog import load_task
from biobench.data.hashing import task_identity
from biobench.data.load import load_data, load_folds
from biobench.errors import DataFormatError, SpecError, UsageError
from biobench.reporting.frame import build
from biobench.reporting.rescore import rescore_all, run_documents
from biobench.schema.record import Resampling
from biobench.stats import seed_interval, splits_part
from biobench.store import Store
from tests.helpers.compare_make import save
from tests.helpers.spec_make import local, write_spec

FAST: dict[str, Any] = {
    "device": "cpu",
    "parallel": 1,
    "gate": False,
    "results_dir": "results",
    "data_dir": "data",
}
FILES = '{train: "{fold}/train.tsv", test: "{fold}/test.tsv"}'


def topics(
    folder: Path, splits: str = "{fold_files: 4, validation_from_train_tail: 4}", files: str = FILES
) -> str:
    """The spec of the folds."""
    reader = "{format: tsv, columns: {text: text, label: label, group: patient}}"
    training = {"epochs": 1, "learning_rate": 5e-4, "batch_size": 8}
    about = {
        "source": local("topics", files),
        "reader": reader,
        "splits": splits,
        "training": training,
    }
    about |= {"type": "single_label", "labels": ["heart", "lung"], "protocol": "{max_length: 32}"}
    return str(write_spec(folder / "topics.yaml", **about))


def rows(count: int) -> list[str]:
    words = {"heart": "the valve of the heart", "lung": "the lobe of the lung"}
    labels = ("heart", "lung")
    return [f"{words[labels[i % 2]]} in case {i}\t{labels[i % 2]}\tp{i // 2}" for i in range(count)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four folds of ten documents, each beside the other thirty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    every = rows(40)
    for i in range(4):
        folder = tmp_path / "data" / "topics" / str(i + 1)
        folder.mkdir(parents=True)
        test = every[10 * i : 10 * i + 10]
        for name, part in (("test", test), ("train", [row for row in every if row not in test])):
            (folder / f"{name}.tsv").write_text("\n".join(["text\tlabel\tpatient", *part]) + "\n")
    return tmp_path


def test_folds_lie_in_files(place: Path) -> None:
    task = load_task(topics(place))
    folds = load_folds(task, "data")
    assert [[len(f.documents[s]) for s in ("train", "validation", "test")] for f in folds] == [
        [26, 4, 10]
    ] * 4
    assert len({d.text for f in folds for d in f.test}) == 40
    assert len({f.hash for f in folds}) == 1
    assert load_data(task, "data").test == folds[0].test
    other = load_task(topics(place), ["splits.seed=9"])
    assert task_identity(task, "local") != task_identity(other, "local")
    packed = bundle([task], Path("data").absolute(), place / "all.tar")
    with tarfile.open(packed.path) as archive:
        assert sum(name.endswith("/test.tsv") for name in archive.getnames()) == 4, (
            "the files of every fold"
        )
    (place / "data" / "topics" / "2" / "test.tsv").unlink()
    with pytest.raises(DataFormatError, match=r"2/test\.tsv' is missing"):
        load_folds(task, "data")


def test_runs_have_keys_of_their_own_and_resume_like_any(place: Path, tiny: Path) -> None:
    path, encoder = topics(place), tiny
    planned = biobench.run(encoder, tasks=path, **FAST, dry_run=True)
    assert [row.fold for row in planned] == [0, 1, 2, 3]
    assert "topics: 4 splits of one corpus, a training each" in str(planned)
    results = biobench.run(encoder, tasks=path, **FAST)
    assert [(r.status, r.seed, r.fold) for r in results] == [("done", 42 + i, i) for i in range(4)]
    assert len({r.key for r in results}) == 4
    records = sorted(Store("results").records(), key=lambda r: r.seed)
    assert [r.resampling for r in records] == [
        Resampling(fold=i, folds=4, train_documents=26) for i in range(4)
    ]
    assert len({r.task.hash for r in records}) == len({r.task.data_hash for r in records}) == 1
    for record in records:
        scored_on = {d.id for d in Store("results").load_predictions(record, None)[0]}
        assert scored_on == {d.id for d in run_documents(record, "data", path)}
    assert {row.outcome for row in rescore_all("results", "data", [path])} == {"unchanged"}
    again = biobench.run(encoder, tasks=path, seeds="43", **FAST)
    assert [(r.status, r.fold) for r in again] == [("skipped", 1)]
    some = biobench.run(encoder, tasks=path, seeds="44,42", **FAST, dry_run=True)
    assert [row.fold for row in some] == [0, 2], "the gate looks at the first, in whatever order"
    with pytest.raises(UsageError, match="99 names no split of topics, whose 4 splits"):
        biobench.run(encoder, tasks=path, seeds="99", **FAST)


@pytest.mark.parametrize(
    ("splits", "files", "words"),
    [
        ("{fold_files: 3}", "{all: all.tsv}", "no file of source 'local' names {fold}"),
        ("official", '{all: "{fold}.tsv"}', "without splits.fold_files"),
        ("{fold_files: 1}", '{all: "{fold}.tsv"}', "fold_files"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    place: Path, splits: str, files: str, words: str
) -> None:
    with pytest.raises(SpecError) as error:
        load_task(topics(place, splits, files))
    assert words in str(error.value)


def save_folds(folder: Path, model: str, quality: float, folds: int = 10) -> None:
    for i in range(folds):
        save(
            folder,
            model,
            "gad_folds",
            42 + i,
            quality,
            resampling=Resampling(fold=i, folds=10, train_documents=540),
        )


def test_the_report_widens_the_interval_and_says_what_it_is(tmp_path: Path) -> None:
    save_folds(tmp_path, "a", 0.7)
    report = build(tmp_path, "macro", sources=("run",))
    (row,) = report.rows
    assert (row.n_seeds, row.ratio) == (10, pytest.approx(1 / 9))
    plain = seed_interval(row.values).interval.half_width
    assert row.margin == pytest.approx(plain * np.sqrt(1 + 10 / 9))
    assert any("10 of 10 splits of one corpus, a training each" in text for text in report.notes)


def test_compare_takes_the_corrected_t_and_never_seeds_with_splits(tmp_path: Path) -> None:
    save_folds(tmp_path, "a", 0.8)
    save_folds(tmp_path, "b", 0.6, folds=8)
    result = compare("a", "b", results_dir=tmp_path, tasks="gad_folds", average="macro")
    (line,) = result.pairs[0].tasks
    scores = [
        sorted((r.seed, r.scores["macro_f1"]) for r in Store(tmp_path).records() if r.model.id == m)
        for m in "ab"
    ]
    a, b = ([score for seed, score in s if seed < 50] for s in scores)
    variance, df = splits_part([x - y for x, y in zip(a, b, strict=True)], 1 / 9)
    assert (line.n_first, line.n_second) == (8, 8)
    assert line.splits
    noises = {noise.name: noise for noise in line.total.noises}
    assert noises["seeds"].se == pytest.approx(variance**0.5, rel=0.05)
    assert [noise.df for noise in noises.values()] == pytest.approx([df] * 3)
    assert line.total.p == line.seeds.p
    assert line.documents is None
    assert result.pairs[0].answer.p == pytest.approx(line.total.p)
    assert any("compared on the 8 common splits" in text for text in result.notes)
    assert "seeds a task" not in result.text()
    # seeds of an ordinary run on the same task and data stand under another condition
    for seed in range(42, 47):
        save(tmp_path, "c", "gad_folds", seed, 0.7, spec="other")
    with pytest.raises(UsageError, match="not the same protocol"):
        compare("a", "c", results_dir=tmp_path, tasks="gad_folds", average="macro")


@pytest.mark.real
def test_gads_folds_are_those_of_its_files(data_dir: Path) -> None:
    folds = load_folds(load_task("gad_folds"), data_dir)
    assert [len(f.test) for f in folds] == [534, *[533] * 8, 532]
    assert {len(f.validation) for f in folds} == {535}
    assert sum(len(f.test) for f in folds) == 5330
    single = load_data(load_task("gad"), data_dir)
    assert [d.text for d in folds[0].test] == [d.text for d in single.test]
    assert not folds[0].count_problems
