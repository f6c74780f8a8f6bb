"""What `verify-submission --against` costs beside many earlier runs.

    python -m tests.benchmarks.earlier_runs FOLDER   # makes the folder where it does not exist

Prints processor seconds of the first check, which reads every record, and of the second, which
finds the index. At most 20 s are allowed for 1,500 runs.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from biobench.submission.guard import verify
from biobench.submission.pack import submit
from tests.helpers.submission_make import honest_run

MODELS, SEEDS = 167, range(42, 51)


def make(folder: Path) -> None:
    """Results of many models, and a submission of another."""
    for number in range(MODELS):
        for seed in SEEDS:
            weights = f"{number:064x}"
            honest_run(folder / "results", seed, model=f"org/model-{number}", weights=weights)
    for seed in SEEDS:
        honest_run(folder / "own", seed)
    submit("org/tiny", folder / "own", folder / "submission")


def seconds_of_children() -> float:
    """Processor time of ended child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main(folder: Path) -> None:
    """Print the figures."""
    if not folder.exists():
        make(folder)
    for check in ("first", "second"):
        before = seconds_of_children()
        verification = verify(folder / "submission", None, folder / "results")
        seconds = seconds_of_children() - before
        print(f"{check} check beside {MODELS * len(SEEDS)} runs: {seconds:.1f} s of CPU")
        print(f"  {verification.summary()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
