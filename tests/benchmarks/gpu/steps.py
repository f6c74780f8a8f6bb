"""The steps and how they are run: each in a process of its own with a limit of its own.

`python -m tests.benchmarks.gpu.steps MODULE ROWS DEVICE OUT WORK [tiny]` is such a process. It
measures what the module's `measurements` yields, and writes a row a measurement at once, so that a
step over its limit leaves the rows that it had.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.benchmarks.gpu.setting import Setting

ROOT = Path(__file__).resolve().parents[3]
OUTPUT_LINES = 20
"""Of a failed step's output, the last ones."""
TINY_SECONDS = 300
"""A tiny step's limit is at least this long: a loaded machine may run it."""
TINY_AT_ONCE = 2
"""Tiny steps that run at the same time: their figures mean nothing."""
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "KINETO_LOG_LEVEL": "99",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""A step's environment: no network is tried, and its last lines are those of an error."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Of a tiny step: threads that wait for each other would fill the cores of other steps."""


@dataclass(frozen=True)
class Step:
    """A step of the script. seconds: its limit. module: where its `measurements` stand."""

    name: str
    seconds: float
    module: str


STEPS = tuple(
    Step(name, seconds, f"tests.benchmarks.gpu.{name.replace('-', '_')}")
    for name, seconds in (
        ("machine", 40),
        ("correct", 100),
        ("one-seed", 120),
        ("seeds", 120),
        ("pretrain", 180),
        ("long", 150),
        ("large", 180),
        ("whole", 200),
        ("traces", 120),
    )
)


def run_steps(
    steps: Sequence[Step], setting: Setting, *, minutes: float, only: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Run the steps that are left, one line of the results each; the last line of each step.

    Left are those without a line; with `only` those named that are not done. A step whose limit is
    longer than the time that is left is skipped.
    """
    end = time.monotonic() + 60 * minutes
    lines = {line["step"]: line for line in setting.results()}

    def is_left(step: Step) -> bool:
        status = lines.get(step.name, {"status": "skipped"})["status"]
        return (step.name in only and status != "done") if only else status == "skipped"

    def attempt(step: Step) -> dict[str, Any]:
        limit, left = max(step.seconds, setting.pick(0, TINY_SECONDS)), end - time.monotonic()
        if limit <= left:
            return run_step(step, setting, limit)
        reason = f"its limit is {limit:.0f} s and {left:.0f} s are left"
        return {"step": step.name, "status": "skipped", "seconds": 0.0, "reason": reason}

    pool = ThreadPoolExecutor(setting.pick(1, TINY_AT_ONCE))
    try:
        for line in pool.map(attempt, filter(is_left, steps)):
            setting.write(line)
            lines[line["step"]] = line
            print(f"{line['step']}: {line['status']} after {line['seconds']} s", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    return lines


def run_step(step: Step, setting: Setting, limit: float) -> dict[str, Any]:
    """Run one step in a process; its line of the results. limit: seconds."""
    setting.work.mkdir(parents=True, exist_ok=True)
    rows, log = setting.work / f"{step.name}.rows", setting.work / f"{step.name}.log"
    rows.write_text("")
    words = [step.module, rows, setting.device, setting.out, setting.work]
    command = [sys.executable, "-m", __name__, *map(str, words)]
    if setting.tiny:
        command.append("tiny")
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **QUIET, **setting.pick({}, ONE_THREAD)},
            start_new_session=True,
        )
        try:
            status = "failed" if process.wait(timeout=limit) else "done"
        except subprocess.TimeoutExpired:
            status = "timed out"
        finally:
            with suppress(ProcessLookupError):  # with what it started itself
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    line: dict[str, Any] = {
        "step": step.name,
        "status": status,
        "seconds": round(time.monotonic() - began, 1),
        "rows": whole_lines(rows),
    }
    if status != "done":
        text = log.read_text(encoding="utf-8", errors="replace")
        line["output"] = text.splitlines()[-OUTPUT_LINES:]
    return line


def whole_lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a file; a last one that a kill cut off is left out."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def measure_step(module: str, rows: Path, setting: Setting) -> int:
    """Measure what the module yields, a row each; 1 where a measurement failed or was unsound."""
    failed = False
    with rows.open("a", encoding="utf-8") as file:
        for name, measure in import_module(module).measurements(setting):
            try:
                row = {"name": name, **measure()}
            except Exception as error:  # one way to do it may fail in any way; the others go on
                traceback.print_exc()
                row = {"name": name, "error": f"{type(error).__name__}: {error}"[:500]}
            failed = failed or "error" in row or row.get("sound") is False
            file.write(json.dumps(row) + "\n")
            file.flush()
    return int(failed)


def table(steps: Sequence[Step], lines: dict[str, dict[str, Any]]) -> str:
    """The results as text: a line a step, and below it a line a row."""
    shown: list[str] = []
    for step in steps:
        line = lines.get(step.name)
        if line is None:
            continue
        reason = f": {line['reason']}" if "reason" in line else ""
        shown.append(f"{step.name}: {line['status']}, {line['seconds']} s{reason}")
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
