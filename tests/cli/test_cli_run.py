"""`run`, `rescore` and the Python face: statuses, exit codes, keys, and what is never done
twice."""

from pathlib import Path

import pytest

import biobench as library
from biobench.errors import DataUnavailableError
from biobench.store import Store
from tests.helpers.cli_make import FAST, Said
from tests.helpers.spec_make import write_spec

FIELDS = {
    *(
        "model",
        "task",
        "task_version",
        "seed",
        "status",
        "reason",
        "key",
        "scores",
        "primary",
        "seconds",
    ),
    *("peak_memory_bytes", "truncated_documents", "lost_gold", "predictions"),
}
"""What `run --json` promises of each run."""


def records(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file below runs/ with the time of its writing and its bytes."""
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.glob("runs/*/[!.]*")}


def statuses(said: Said) -> list[str]:
    """The status of each row."""
    return [row["status"] for row in said.json()]


def suite_of(folder: Path, *tasks: str) -> Path:
    """The file of a suite of these tasks."""
    file = folder / "suite.yaml"
    file.write_text(f"id: mine\ntasks: [{', '.join(tasks)}]\n")
    return file


def test_json_stands_alone_on_stdout_and_the_same_command_trains_nothing_again(
    biobench, tiny, tmp_path
):
    arguments = (
        "run",
        tiny,
        "--task demo_ner --task demo_topic --seeds 1,2 --json",
        *FAST,
    )
    said = biobench(*arguments).ok()
    rows = said.json()
    assert statuses(said) == ["done"] * 4
    for row in rows:
        assert set(row) >= FIELDS
        assert set(row["scores"]) >= {"macro_f1", "micro_f1", "weighted_f1", row["primary"]}
        assert all(0.0 <= v <= 1.0 for v in row["scores"].values())
        assert min(row["seconds"], row["peak_memory_bytes"]) > 0
        assert (tmp_path / row["predictions"]).is_file()
    assert len({row["key"] for row in rows}) == 4
    assert "\r" not in said.err, "no progress bar where there is no terminal"
    before = records(tmp_path / "results")
    again = biobench(*arguments).ok()
    assert statuses(again) == ["skipped"] * 4
    assert all(row["reason"] for row in again.json())
    assert [(r["key"], r["scores"]) for r in again.json()] == [
        (r["key"], r["scores"]) for r in rows
    ]
    assert records(tmp_path / "results") == before


def test_a_changed_protocol_and_a_limit_have_keys_of_their_own(biobench, tiny):
    changes = ("--no-gate", "--set training.learning_rate=3e-5", "--limit 32")
    same = "--set training.learning_rate=0.00003"
    base = ("run", tiny, "--task demo_topic --seeds 1 --dry-run --json")
    plain, rate, limit, written_otherwise = (
        biobench(*base, change).json()[0]["key"] for change in (*changes, same)
    )
    assert len({plain, rate, limit}) == 3
    assert written_otherwise == rate


def test_dry_run_trains_nothing(biobench, tiny, tmp_path):
    base = ("run", tiny, "--suite", suite_of(tmp_path, "demo_ner", "gad"), "--json", *FAST)
    assert sorted(statuses(biobench(*base, "--seeds 1,2 --dry-run").ok())) == ["planned"] * 2 + [
        "unavailable"
    ]
    assert not (tmp_path / "results").exists()
    made = biobench(*base, "--seeds 1").json()
    said = biobench(*base, "--seeds 1,2 --dry-run")
    assert sorted(statuses(said)) == ["planned", "skipped", "unavailable"]
    assert {r["key"] for r in made if r["key"]} <= {r["key"] for r in said.json()}
    shown = biobench(*base[: -len(FAST) - 1], *FAST, "--dry-run").out
    (line,) = [line.split() for line in shown.splitlines() if "demo_ner" in line]
    assert line[2:5] == ["42-43", "planned", "2"]
    assert float(line[5]) > 0, "tokens"
    assert line[-4:] == ["s", "limit", "24,", "training.epochs=1"]


def test_a_task_of_a_suite_without_data_fails_nothing_unless_strict(biobench, tiny, tmp_path):
    base = (
        "run",
        tiny,
        "--suite",
        suite_of(tmp_path, "gad", "demo_topic", "deid"),
        "--seeds 1 --json",
        *FAST,
    )
    rows = {row["task"]: row for row in biobench(*base).ok().json()}
    wanted = {"demo_topic": "done", "gad": "unavailable", "deid": "unavailable"}
    assert {task: row["status"] for task, row in rows.items()} == wanted
    assert "biobench data fetch gad" in rows["gad"]["reason"]
    assert "agreement" in rows["deid"]["reason"]
    assert rows["gad"]["scores"] == {}
    assert "gad" in biobench(*base, "--strict").refusal()


def test_named_tasks_without_data_are_listed_with_their_steps(biobench, tmp_path):
    said = biobench("run org/m --task gad --task demo_topic --task deid")
    assert said.refusal() == "tasks gad, deid: no data below data (no such folder)"
    hint = said.err.splitlines()[-1]
    assert "gad: run `biobench data fetch gad`" in hint
    assert "deid: the data needs a signed agreement" in hint
    with pytest.raises(DataUnavailableError, match="task gad: no data") as caught:
        library.run("org/m", ["gad"], results_dir=tmp_path / "results")
    assert "hint: run `biobench data fetch gad`" in caught.value.__notes__[0]
    assert not (tmp_path / "results").exists()


def own_task(folder: Path, documents: int) -> Path:
    """A BRAT corpus of six notes, cut 2 / 2 / 2, one mention in test and two in train without a
    whole token.
    """
    corpus = folder / "store" / "own"
    corpus.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        own = "T2\tDisease 8 13\tthrax\n" if number in (0, 1, 5) else ""
        (corpus / f"{number}.txt").write_text("gout; anthrax today\n" * 2)
        (corpus / f"{number}.ann").write_text(f"T1\tDisease 0 4\tgout\n{own}")
    files = {"train": "[01].txt", "validation": "[23].txt", "test": "[45].txt"}
    return write_spec(
        folder / "own.yaml",
        source={
            "id": "notes",
            "folder": "own",
            "reader": {"format": "brat", "tokens": "words"},
            "files": files,
        },
        unit="document",
        counts={"train": {"documents": 2, "mentions": 2}, "test": {"documents": documents}},
    )


def test_data_that_contradict_the_spec_are_told_and_refused_by_strict(biobench, tiny, tmp_path):
    fast = ("--set training.epochs=1 --device cpu --parallel 1 --seeds 1 --no-gate",)
    spec = own_task(tmp_path, documents=3)
    base = ("run", tiny, "--task", spec, "--data-dir", tmp_path / "store", "--json", *fast)
    problem = "counts.test.documents: the spec says 3, source 'notes' has 2"
    for extra in (("--dry-run",), ("--limit 1",), ()):
        said = biobench(*base, *extra).ok()
        assert said.err.count(f"warning: own: {problem}") == 1
    held = Store("results").records()
    assert [list(record.count_problems) for record in held] == [[problem]] * 2
    assert [record.unexpressed_gold for record in held] == [
        {"train": {"Disease": 2}, "test": {"Disease": 1}}
    ] * 2
    report = " ".join(biobench("report").out.split())
    assert (
        f"warning: own, source notes: 1 counts of the data contradict its spec ({problem})"
        in report
    )
    assert (
        "own, source notes: 3 gold mentions of the corpus, 1 of them in test, cannot be expressed"
        in report
    )
    refused = biobench(*base, "--strict").refusal()
    assert (f"{spec}:" in refused, problem in refused) == (True, True)
    # What stands in the spec's counts is no part of a run's identity: the right ones make nothing
    # anew.
    own_task(tmp_path, documents=2)
    again = biobench(*base, "--strict")
    assert (statuses(again), "warning" in again.err) == (["skipped"], False)
