"""The steps and how they are run: each in a process of its own with a limit of its own.

`python -m tests.benchmarks.gpu.steps MODULE ROWS DEVICE OUT WORK [tiny]` is such a process. It
measures what the module's `measurements` yields, and writes a row a measurement at once, so that a
step over its limit leaves the rows that it had.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.gpu.setting import RESULTS, Setting, append_line, read_lines

ROOT = Path(__file__).resolve().parents[3]
OUTPUT_LINES = 20
"""Of a failed step's output, the last ones."""
TINY_SECONDS, TINY_AT_ONCE = 300, 2
"""A tiny step's limit on a loaded machine, and how many run at the same time."""
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "KINETO_LOG_LEVEL": "99",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""A step's environment: no network is tried, and its last lines are those of an error."""


class Step(NamedTuple):
    """A step of the script. seconds: its limit. module: where its `measurements` stand."""

    name: str
    seconds: float
    module: str


LIMITS = {
    "machine": 20,
    "correct": 60,
    "one-seed": 120,
    "seeds": 120,
    "pretrain": 180,
    "long": 150,
    "large": 180,
    "whole": 200,
    "traces": 120,
}
"""Seconds. Every step begins with an empty cache of compiled code, and its rows are in the order of
what they are worth: one over its limit leaves those that it had.
"""
STEPS = tuple(
    Step(name, seconds, f"tests.benchmarks.gpu.{name.replace('-', '_')}")
    for name, seconds in LIMITS.items()
)


def run_steps(
    steps: Sequence[Step], setting: Setting, *, minutes: float, only: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Run the steps that are left, one line of the results each; the last line of each step.

    Left are those without a line; with `only` those named that are not done. A step whose limit is
    longer than the time that is left is skipped; one that is named alone may take all of it.
    """
    end = time.monotonic() + 60 * minutes
    lines, running = setting.results(), set[subprocess.Popen[bytes]]()

    def is_left(step: Step) -> bool:
        status = lines.get(step.name, {"status": "skipped"})["status"]
        return (step.name in only and status != "done") if only else status == "skipped"

    def attempt(step: Step) -> dict[str, Any]:
        limit, left = setting.pick(step.seconds, TINY_SECONDS), end - time.monotonic()
        if len(only) == 1:
            limit = max(limit, left)
        if limit <= left:
            return run_step(step, setting, limit, running)
        reason = f"its limit is {limit:.0f} s and {left:.0f} s are left"
        return {"step": step.name, "status": "skipped", "seconds": 0.0, "reason": reason}

    pool = ThreadPoolExecutor(setting.pick(1, TINY_AT_ONCE))
    try:
        for line in pool.map(attempt, filter(is_left, steps)):
            append_line(setting.out / RESULTS, line)
            lines[line["step"]] = line
            print(f"{line['step']}: {line['status']} after {line['seconds']} s", flush=True)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(running):  # none may hold the device after this call
            end_process(process)
    return lines


def run_step(
    step: Step, setting: Setting, limit: float, running: set[subprocess.Popen[bytes]]
) -> dict[str, Any]:
    """Run one step in a process; its line of the results. limit: seconds."""
    setting.work.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=step.name, dir=setting.work))
    rows, log = folder / "rows.jsonl", folder / "log"
    words = [step.module, rows, setting.device, setting.out, setting.work]
    command = [sys.executable, "-m", __name__, *map(str, words), *setting.pick([], ["tiny"])]
    environment = {**os.environ, **QUIET, "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")}
    if setting.tiny:  # threads that wait for each other would fill the cores of other steps
        environment["OMP_NUM_THREADS"] = "1"
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )
        running.add(process)
        try:
            status = "failed" if process.wait(timeout=limit) else "done"
        except subprocess.TimeoutExpired:
            status = "timed out"
        end_process(process)
        running.discard(process)
    seconds = round(time.monotonic() - began, 1)
    line = {"step": step.name, "status": status, "seconds": seconds, "rows": read_lines(rows)}
    if status != "done":
        text = log.read_text(encoding="utf-8", errors="replace")
        line["output"] = text.splitlines()[-OUTPUT_LINES:]
    return line


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a step, with what it started itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def measure_step(module: str, rows: Path, setting: Setting) -> int:
    """Measure what the module yields, a row each; 1 where a measurement failed or was unsound."""
    failed = False
    for name, measure in import_module(module).measurements(setting):
        try:
            row = {"name": name, **measure()}
        except Exception as error:  # one way to do it may fail in any way; the others go on
            traceback.print_exc()
            row = {"name": name, "error": f"{type(error).__name__}: {error}"[:500]}
        failed = failed or "error" in row or row.get("sound") is False
        append_line(rows, row)
    return int(failed)


def table(steps: Sequence[Step], lines: dict[str, dict[str, Any]]) -> str:
    """The results as text: a line a step, and below it a line a row."""
    shown: list[str] = []
    for line in (lines[step.name] for step in steps if step.name in lines):
        reason = f": {line['reason']}" if "reason" in line else ""
        shown.append(f"{line['step']}: {line['status']}, {line['seconds']} s{reason}")
        for row in line.get("rows", []):
            fields = [f"{key} {value}" for key, value in row.items() if key != "name"]
            shown.append(f"  {row['name']}: {', '.join(fields)}")
    return "\n".join(shown)


if __name__ == "__main__":
    _, module, rows, device, out, work, *tiny = sys.argv
    setting = Setting(device, bool(tiny), Path(out), Path(work))
    if device == "cpu" and tiny:
        from tests.benchmarks.gpu.stand_in import pass_for_accelerator

        pass_for_accelerator()
    raise SystemExit(measure_step(module, Path(rows), setting))
