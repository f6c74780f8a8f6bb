"""The whole suite (127 runs of a model: nine seeds French, five English) on devices, from a plan with measured costs.

    biobench plan MODEL --suite fr --task EN_TASKS -o plan.json --costs RESULTS
    python -m tests.benchmarks.suite_plan plan.json 1,4,32

Tasks whose data are not here are not in the plan; their runs take the median seconds and the largest memory of the
plan's tasks in their language, and the output says how many these are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from biobench.core.progress import in_words
from biobench.data.suite import suite_tasks
from biobench.runs.jobs.packing import Load, pack, shards
from biobench.runs.jobs.plan_file import PlanFile, read_plan
from biobench.schema.task import parse_seeds


def whole(plan: PlanFile) -> tuple[list[Load], int]:
    """All runs of the suites fr and en, and how many of them have a stand-in's cost."""
    loads, stand_ins = {load.key: load for load in plan.loads()}, 0
    result: list[Load] = []
    for name in ("fr", "en"):
        tasks = suite_tasks(name)
        planned = {t.id: [loads[run.key] for run in plan.runs if run.task == t.id] for t in tasks}
        known = [load for members in planned.values() for load in members]
        seconds = median(members[0].seconds for members in planned.values() if members)
        memory = max(load.memory_bytes for load in known)
        for task in tasks:
            seeds = parse_seeds(task.spec.seeds)
            members = planned[task.id] or [Load(f"{task.id}-{seed}", seconds, memory) for seed in seeds]
            assert len(members) == len(seeds), f"the plan has {len(members)} runs of {task.id}"
            stand_ins += 0 if planned[task.id] else len(seeds)
            result += members
    return result, stand_ins


def main() -> None:
    """Print one line for each number of devices."""
    plan = read_plan(Path(sys.argv[1]))
    runs, stand_ins = whole(plan)
    total = sum(load.seconds for load in runs)
    print(f"{len(runs)} runs, {in_words(total)} in all; {stand_ins} with a stand-in's cost; {plan.costs_in_words()}")
    seconds = {load.key: load.seconds for load in runs}
    for devices in map(int, sys.argv[2].split(",")):
        packing = pack(runs, devices)
        longest = max(sum(seconds[key] for key in part) for part in shards(runs, devices))
        print(
            f"{devices:>4} devices: {in_words(packing.makespan)}, idle {100 * packing.idle_share:.1f}%; "
            f"as shards {in_words(longest)}"
        )


if __name__ == "__main__":
    main()
