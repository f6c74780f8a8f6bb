"""`biobench` commands as processes forked from one that has done the imports, which saves seconds each."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAUNCHER = Path(__file__).with_name("launcher.py")
PATIENCE = 240.0
"""Seconds that a command may take before the test gives up."""


@dataclass
class Child:
    """A started command."""

    pid: int
    out: Path
    err: Path
    ended: queue.Queue[int]

    def wait(self) -> int:
        """Its exit status; minus the signal where one ended it."""
        return self.ended.get(timeout=PATIENCE)

    def rows(self) -> list[dict[str, Any]]:
        """What it printed with --json."""
        rows: list[dict[str, Any]] = json.loads(self.out.read_text(encoding="utf-8"))
        return rows


class Launcher:
    """Starts commands in processes forked from a warm one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        env = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
        self.process = subprocess.Popen(
            [sys.executable, str(LAUNCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**env, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        )
        self.started: queue.Queue[int] = queue.Queue()
        self.children: dict[int, queue.Queue[int]] = {}
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            pid, _, status = line.strip().partition(" ")
            ended = self.children.setdefault(int(pid), queue.Queue())
            if status:
                ended.put(int(status))
            else:
                self.started.put(int(pid))

    def start(self, *arguments: str | Path) -> Child:
        """`biobench ARGUMENTS` as a process."""
        self.count += 1
        out, err = self.folder / f"{self.count}.out", self.folder / f"{self.count}.err"
        for path in (out, err):
            path.touch()  # a child may be killed before it has opened them
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([str(out), str(err), *map(str, arguments)]) + "\n")
        self.process.stdin.flush()
        pid = self.started.get(timeout=PATIENCE)
        return Child(pid, out, err, self.children[pid])

    def close(self) -> None:
        """End the warm process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)
