"""`biobench plan` and the parts of it that `run --plan` makes."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biobench.store import Store
from tests.helpers.cli_make import Said

Command = Callable[..., Said]
FAST = ("--limit", "24", "--set", "training.epochs=1", "--device", "cpu")
TASKS = ("--task", "demo_ner", "--task", "demo_topic")


@pytest.fixture
def planned(biobench: Command, tiny: Path) -> dict[str, Any]:
    """A plan of two tasks and three seeds in plan.json, nothing stored."""
    said = biobench("plan", tiny, *TASKS, "--seeds", "1-3", *FAST, "-o", "plan.json")
    assert said.status == 0, said.err
    content: dict[str, Any] = json.loads(Path("plan.json").read_text())
    return content


def rewrite(content: dict[str, Any]) -> None:
    Path("plan.json").write_text(json.dumps(content, indent=1))


def stored() -> set[str]:
    return {path.stem for path in Path("results").glob("runs/*/*.json")}


def test_the_keys_are_those_of_the_dry_run(biobench: Command, tiny: Path, planned: dict[str, Any]) -> None:
    rows = biobench("run", tiny, *TASKS, "--seeds", "1-3", *FAST, "--dry-run", "--json").json()
    assert {run["key"] for run in planned["runs"]} == {row["key"] for row in rows}
    assert {run["seconds_basis"] for run in planned["runs"]} == {"unknown"}
    assert all(run["memory_bytes"] > 0 for run in planned["runs"])
    assert stored() == set(), "a plan makes no run"


def test_costs_say_whether_they_are_measured(biobench: Command, tiny: Path) -> None:
    base = ("--seeds", "1-3", *FAST)
    made = biobench("run", tiny, "--task", "demo_ner", "--seeds", "1", *FAST, "--json").json()
    said = biobench("plan", tiny, *TASKS, *base, "--gpus", "1,2", "--json").json()
    by_task = {run["task"]: run for run in said["runs"]}
    assert by_task["demo_ner"]["seconds_basis"] == by_task["demo_ner"]["memory_basis"] == "measured"
    assert by_task["demo_topic"]["seconds_basis"] == by_task["demo_topic"]["memory_basis"] == "estimated"
    assert by_task["demo_ner"]["seconds"] == pytest.approx(made[0]["seconds"], abs=0.01)
    total = sum(run["seconds"] for run in said["runs"])
    one, two = said["simulated"]
    assert one["makespan_seconds"] == pytest.approx(total, abs=0.1)
    assert total / 2 - 0.1 <= two["makespan_seconds"] < total
    text = biobench("plan", tiny, *TASKS, *base, "--gpus", "1,2", "--gpu-memory", "0.1").out
    assert "costs: 3 measured, 3 estimated" in text
    assert "6 runs need more memory" in text


def test_shards_make_each_run_once(biobench: Command, planned: dict[str, Any]) -> None:
    keys: list[str] = []
    for shard in ("1/4", "2/4", "3/4", "4/4"):
        rows = biobench("run", "--plan", "plan.json", "--shard", shard, "--json").json()
        assert {row["status"] for row in rows} == {"done"}
        keys += [row["key"] for row in rows]
    assert sorted(keys) == sorted(run["key"] for run in planned["runs"])
    assert stored() == set(keys)
    again = biobench("run", "--plan", "plan.json", "--json").json()
    assert {row["status"] for row in again} == {"skipped"}


def test_an_array_index_is_one_run_and_workers_make_no_others(biobench: Command, planned: dict[str, Any]) -> None:
    rows = biobench("run", "--plan", "plan.json", "--array-index", "4", "--parallel", "2", "--json").json()
    assert [row["key"] for row in rows] == [planned["runs"][4]["key"]]
    assert stored() == {planned["runs"][4]["key"]}


def test_a_shard_of_several_runs_with_workers(biobench: Command, planned: dict[str, Any]) -> None:
    said = biobench("run", "--plan", "plan.json", "--shard", "1/2", "--parallel", "2", "--json")
    assert len(said.json()) == 3
    assert stored() == {row["key"] for row in said.json()}


def test_an_empty_shard_says_so(biobench: Command, planned: dict[str, Any]) -> None:
    said = biobench("run", "--plan", "plan.json", "--shard", "8/8", "--json")
    assert said.status == 0
    assert said.json() == []
    assert "shard 8/8 has no runs" in said.err


def test_a_run_that_another_process_makes_is_waited_for_aloud(
    biobench: Command, planned: dict[str, Any], tmp_path: Path
) -> None:
    run, log, claimed = planned["runs"][0], tmp_path / "run.log", threading.Event()
    log.touch()

    def other() -> None:
        with Store(tmp_path / "results").claim(run["task"], run["key"]):
            claimed.set()
            until = time.monotonic() + 60
            while "waiting for" not in log.read_text() and time.monotonic() < until:
                time.sleep(0.02)

    holder = threading.Thread(target=other)
    holder.start()
    assert claimed.wait(20)
    said = biobench("run", "--plan", "plan.json", "--array-index", "0", "--no-gate", "--log-file", str(log), "--json")
    holder.join()
    assert [row["status"] for row in said.json()] == ["done"], said.err
    line = f"waiting for a run that another process makes: {run['task']}, seed {run['seed']} on {socket.gethostname()}"
    assert said.err.count("waiting for") == 1
    assert line in said.err
    assert line in log.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--array-index", "6"), "--array-index 6: the plan has 6 runs"),
        (("--shard", "0/4"), "--shard '0/4' is not a part"),
        (("--shard", "5/4"), "--shard '5/4' is not a part"),
        (("--shard", f"1/{'9' * 5000}"), "is not a part"),
        (("--shard", "1/4", "--array-index", "0"), "exclude each other"),
        (("--seeds", "7"), "--plan says what is run, and --seeds would change it"),
        (("some/model",), "--plan says what is run, and a MODEL would change it"),
    ],
)
def test_what_a_part_refuses(
    biobench: Command, planned: dict[str, Any], arguments: tuple[str, ...], message: str
) -> None:
    assert message in biobench("run", "--plan", "plan.json", *arguments).refusal()


def test_parts_and_models_without_a_plan(biobench: Command, tiny: Path) -> None:
    assert "parts of a plan" in biobench("run", tiny, *TASKS, "--shard", "1/2").refusal()
    assert "no model is named" in biobench("run", *TASKS).refusal()


def test_changed_specs_and_data_are_named(biobench: Command, tiny: Path) -> None:
    data = Path("notes.jsonl")
    rows = [{"text": f"note {n} on {'fever' if n % 2 else 'pain'}", "label": "ab"[n % 2]} for n in range(60)]
    data.write_text("\n".join(map(json.dumps, rows)))
    made = biobench("tasks", "new", data, "--id", "notes", "--output", "notes.yaml")
    assert made.status == 0, made.err
    arguments = ("notes.yaml", "--data-dir", "..", "--seeds", "1", "--set", "training.epochs=1", "--device", "cpu")
    said = biobench("plan", tiny, "--task", *arguments)
    assert said.status == 0, said.err
    spec = Path("notes.yaml").read_text()
    run = ("run", "--plan", "plan.json", "--dry-run")
    Path("notes.yaml").write_text(spec.replace("name: notes", "name: Other words"))
    assert biobench(*run).status == 0, "a name re-runs nothing"
    Path("notes.yaml").write_text(spec.replace("batch_size: 16", "batch_size: 8"))
    assert "the spec of task notes has changed" in biobench(*run).refusal()
    Path("notes.yaml").write_text(spec)
    rows[0]["text"] = "another note"
    data.write_text("\n".join(map(json.dumps, rows)))
    refusal = biobench(*run).refusal()
    assert "plan.json: the plan does not fit what is here: the data of task notes have changed" in refusal
    data.unlink()
    assert biobench(*run).status == 2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("task_hash", "0" * 32, "the spec of task demo_"),
        ("data_hash", "0" * 32, "the data of task demo_"),
        ("precision", None, "was planned in"),
    ],
)
def test_what_has_changed_is_named(
    biobench: Command, planned: dict[str, Any], field: str, value: str | None, message: str
) -> None:
    for run in planned["runs"]:
        run[field] = value or ("fp32" if run["precision"] == "bf16" else "bf16")
        run["key"] = f"{int(run['key'], 16) ^ 1:032x}"
    rewrite(planned)
    assert message in biobench("run", "--plan", "plan.json", "--array-index", "0").refusal()


def test_a_changed_model_is_named(biobench: Command, planned: dict[str, Any], tiny: Path, tmp_path: Path) -> None:
    import shutil

    copy = shutil.copytree(tiny, tmp_path / "copy")
    said = biobench("plan", copy, *TASKS, "--seeds", "1", *FAST)
    assert said.status == 0
    assert "plan.json: replaces a plan of 6 runs" in said.err
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "norm_eps": 1e-4}))
    assert f"the files of model {copy}" in biobench("run", "--plan", "plan.json", "--dry-run").refusal()


def test_another_precision_than_this_machines(biobench: Command, tiny: Path) -> None:
    for precision in ("bf16", "fp32"):
        said = biobench("plan", tiny, *TASKS, "--seeds", "1", *FAST, "--precision", precision, "--json").json()
        assert {run["precision"] for run in said["runs"]} == {precision}
    assert "--precision 'fp8' is not known" in biobench("plan", tiny, *TASKS, "--precision", "fp8").refusal()


DAMAGE: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda p: p.update(format="biobench.plan.9"), "format: "),
    (lambda p: p.pop("runs"), "'runs' is missing"),
    (lambda p: p["runs"][2].update(seed="one"), "runs.2.seed: "),
    (lambda p: p["runs"][2].update(sede=1), "unknown key 'sede'"),
    (lambda p: p["runs"][2].update(key="XYZ"), "runs.2.key: "),
    (lambda p: p["runs"][2].update(seconds=-1), "runs.2.seconds: "),
    (lambda p: p["runs"][2].update(key=p["runs"][1]["key"]), "runs.2.key: "),
    (lambda p: p["runs"][2].update(task="nowhere"), "runs.2.task: 'nowhere'"),
    (lambda p: p["request"].update(sedes="1"), "request: unknown option 'sedes'"),
    (lambda p: p["request"].update(limit="many"), "request.limit: "),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[m for _, m in DAMAGE])
def test_a_damaged_plan_names_file_field_and_fix(
    biobench: Command, planned: dict[str, Any], damage: Callable[[dict[str, Any]], Any], message: str
) -> None:
    damage(planned)
    rewrite(planned)
    said = biobench("run", "--plan", "plan.json", "--array-index", "0")
    assert "plan.json" in said.refusal()
    assert message in said.refusal()
    assert "biobench plan" in said.err or "did you mean" in said.err


def test_a_plan_that_is_none(biobench: Command) -> None:
    assert "cannot be read" in biobench("run", "--plan", "plan.json").refusal()
    Path("plan.json").write_text("runs: [1]\n")
    assert "plan.json:1: the plan is not JSON" in biobench("run", "--plan", "plan.json").refusal()


def test_lines_go_to_the_log_file(biobench: Command, planned: dict[str, Any]) -> None:
    said = biobench("run", "--plan", "plan.json", "--array-index", "0", "--log-file", "logs/a.log", "--json")
    assert said.status == 0
    lines = Path("logs/a.log").read_text().splitlines()
    assert lines[0].endswith(": started")
    assert ": done" in lines[-1]
    assert lines[0].startswith("20"), "each line has its time"
    Path("file").write_text("")
    assert "--log-file" in biobench("run", "--plan", "plan.json", "--log-file", "file/x.log").refusal()
