"""Plan files: parts that are together all of it, however many they are, and runs that no time limit lets end."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from biobench.errors import BioBenchError, SpecError, UsageError
from biobench.runs.jobs import plan_file
from biobench.runs.jobs.plan_file import (
    PlanFile,
    PlannedModel,
    PlannedRun,
    PlannedTask,
    keys_of_part,
    read_plan,
    replaced_plan,
    request_of,
    write_plan,
)
from biobench.runs.jobs.slurm import SlurmJob, without_end
from biobench.runs.options import RunRequest

HASH = "0" * 32


@pytest.fixture
def plan() -> PlanFile:
    """Seven runs of a task, of one to seven seconds."""
    runs = tuple(
        PlannedRun(
            key=f"{number:032x}",
            model=HASH,
            task="demo_ner",
            task_hash=HASH,
            data_hash=HASH,
            precision="fp32",
            seed=number,
            seconds=float(number),
            seconds_basis="measured",
            memory_bytes=1,
            memory_basis="measured",
            work=1.0,
        )
        for number in range(7, 0, -1)
    )
    return PlanFile(
        format="biobench.plan.1",
        biobench="1",
        engine=1,
        created=0.0,
        device="none",
        request={},
        models=(PlannedModel(name="tiny", id="tiny", hash=HASH),),
        tasks=(PlannedTask(id="demo_ner", spec="demo_ner"),),
        runs=runs,
    )


@pytest.mark.parametrize("count", [1, 3, 7, 8, 100])
def test_parts_together_are_the_plan(plan: PlanFile, count: int) -> None:
    parts = [keys_of_part(plan, None, f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(chain(*parts)) == sorted(run.key for run in plan.runs)
    assert max(map(len, parts)) <= -(-7 // count) + 1


def test_a_number_of_parts_beyond_all_memory(plan: PlanFile) -> None:
    many = 999_999_999
    assert [len(keys_of_part(plan, None, f"{part}/{many}")) for part in (1, 7, 8, many)] == [1, 1, 0, 0]


@pytest.mark.parametrize("shard", ["0/0", "0/3", "4/3", "1/0", "1", "1/2/3", "-1/2", "a/b", "²/³", "1/" + "9" * 5000])
def test_what_is_no_part(plan: PlanFile, shard: str) -> None:
    with pytest.raises(UsageError, match="is not a part"):
        keys_of_part(plan, None, shard)


@pytest.mark.parametrize("index", [-1, 7])
def test_an_index_out_of_range(plan: PlanFile, index: int) -> None:
    with pytest.raises(UsageError, match=f"--array-index {index}: the plan has 7 runs"):
        keys_of_part(plan, index, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"seconds": 7.0', '"seconds": NaN', "runs.0.seconds: input should be a valid number, got 'NaN'"),
        ('"seconds": 7.0', '"seconds": 1e400', "runs.0.seconds: input should be a finite number"),
        ('"work": 1.0', '"work": Infinity', "runs.0.work: input should be a valid number"),
        ('"seed": 7', '"seed": true', "runs.0.seed: input should be a valid integer"),
        ('"engine": 1', '"engine": ' + "9" * 5_000, "a number is too large"),
        ('"request": {}', '"request": ' + "[" * 100_000, "nested too deeply"),
        ('"request": {}', '"request": {}, "request": {}', "duplicate key 'request'"),
        ('"task": "demo_ner"', '"task": "../demo_ner"', "runs.0.task: '../demo_ner' is none of the plan's tasks"),
        ('"runs": [', '"runs": [[], ', "runs.0: "),
    ],
)
def test_a_plan_of_another_hand_is_refused(plan: PlanFile, tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, plan)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BioBenchError, match=f"^{re.escape(str(path))}.*{re.escape(message)}"):
        read_plan(path)


def test_a_plan_without_runs_or_with_a_task_twice_is_refused(plan: PlanFile, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for content, message in (({"runs": ()}, "runs: there is none"), ({"tasks": plan.tasks * 2}, "stands twice")):
        write_plan(path, plan.model_copy(update=content))
        with pytest.raises(SpecError, match=message):
            read_plan(path)


def test_code_of_a_checkpoint_is_not_run_by_a_plan_alone(plan: PlanFile) -> None:
    trusting = plan.model_copy(update={"request": {"trust_remote_code": True}})
    with pytest.raises(UsageError, match="asks for the checkpoint's own code") as raised:
        request_of(trusting, RunRequest())
    assert "--trust-remote-code" in str(raised.value.hint)
    assert request_of(trusting, RunRequest(trust_remote_code=True)).trust_remote_code
    assert not request_of(plan, RunRequest()).trust_remote_code
    assert request_of(plan, RunRequest(trust_remote_code=True)).trust_remote_code


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_plan_that_was_cut_is_refused(plan: PlanFile, tmp_path: Path, share: float) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, plan)
    text = path.read_text()
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(UsageError, match="the plan is not JSON"):
        read_plan(path)


def test_what_a_plan_replaces(plan: PlanFile, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert replaced_plan(path, plan) == 0
    write_plan(path, plan)
    assert replaced_plan(path, plan) == 0
    # another run first: a job of an array would make another one than it was submitted for
    assert replaced_plan(path, plan.model_copy(update={"runs": plan.runs[::-1]})) == 7
    path.write_text("theirs")
    with pytest.raises(UsageError, match="the file is there and is no plan"):
        replaced_plan(path, plan)


def test_a_file_beyond_any_plan_is_not_read(plan: PlanFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plan.json"
    write_plan(path, plan)
    monkeypatch.setattr(plan_file, "_LARGEST", path.stat().st_size)
    assert read_plan(path) == plan
    path.write_text(path.read_text() + " ")
    with pytest.raises(UsageError, match="the plan is larger than"):
        read_plan(path)


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("3", 180),
        ("3:30", 210),
        ("02:03:30", 7_410),
        ("1-2", 93_600),
        ("1-02:03", 93_780),
        ("1-02:03:30", 93_810),
    ],
)
def test_time_limits_as_sbatch_reads_them(time: str, seconds: int) -> None:
    assert SlurmJob(time=time, grace=60).seconds == seconds - 60


def test_a_run_that_begins_anew_in_every_job_is_named(plan: PlanFile) -> None:
    hours = plan.model_copy(
        update={"runs": tuple(run.model_copy(update={"seconds": 3600.0 * run.seed}) for run in plan.runs)}
    )
    limit = SlurmJob(time="05:00:00")
    assert without_end(hours, limit) == {}, "what resumes ends"
    (task,) = hours.tasks
    bound = hours.model_copy(update={"tasks": (task.model_copy(update={"resumes": False}),)})
    assert without_end(bound, limit) == {"demo_ner": 7 * 3600.0}
    assert without_end(bound, SlurmJob(time="07:05:00")) == {}
