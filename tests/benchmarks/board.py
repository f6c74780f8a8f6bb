"""What the board costs over a large folder: processor time of page one, memory of comparisons.

    python -m tests.benchmarks.board FOLDER   # makes the folder where it does not exist

265 models on 21 tasks with 9 seeds are 50,085 records.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.app_make import open_app
from tests.helpers.large_make import save_large

MODELS, COMPARISONS, COMPARED = 265, 50, 5
SESSIONS = 5


def made(folder: Path, models: int = MODELS) -> None:
    """Write the folder in a process of its own, whose memory does not count here."""
    writer = multiprocessing.get_context("spawn").Process(target=save_large, args=(folder, models))
    writer.start()
    writer.join()
    if writer.exitcode != 0:
        raise RuntimeError(f"{folder} could not be written")


def seconds_of_page_one(patch: pytest.MonkeyPatch, folder: Path) -> tuple[float, list[float]]:
    """Processor seconds of the first session, then of each later one."""
    seconds = []
    for _ in range(1 + SESSIONS):
        start = time.process_time()
        open_app(patch, folder)
        seconds.append(time.process_time() - start)
    return seconds[0], seconds[1:]


def memory_of_comparisons(
    patch: pytest.MonkeyPatch, folder: Path, comparisons: int = COMPARISONS
) -> Iterator[float]:
    """Peak memory of this process in MB after each comparison of five other models."""
    for number in range(comparisons):
        start = number * COMPARED
        chosen = [f"org/model-{(start + position) % MODELS}" for position in range(COMPARED)]
        app = open_app(patch, folder, "compare", models=chosen)
        assert len(app.header) == COMPARED * (COMPARED - 1), "a heading a pair and language"
        yield resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(folder: Path) -> None:
    """Print the figures."""
    if not folder.exists():
        made(folder)
    with pytest.MonkeyPatch.context() as patch:
        cold, warm = seconds_of_page_one(patch, folder)
        print(f"page one, cold: {cold:.2f} s of CPU", flush=True)
        print("page one, warm: " + ", ".join(f"{value:.2f}" for value in warm), flush=True)
        for number, peak in enumerate(memory_of_comparisons(patch, folder), 1):
            print(f"peak memory after {number} comparisons: {peak:.0f} MB", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
