"""Plan files: parts that are together all of it, however many they are, and runs that no time limit lets end."""

from __future__ import annotations

from itertools import chain

import pytest

from biobench.errors import UsageError
from biobench.runs.jobs.plan_file import PlanFile, PlannedModel, PlannedRun, PlannedTask, keys_of_part
from biobench.runs.jobs.slurm import SlurmJob, without_end

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
