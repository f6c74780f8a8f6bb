"""`biobench` commands as processes forked from one that has done the imports, which saves seconds
each.

The warm process is `python -m tests.helpers.launching MODULE...`. It runs no torch operation
itself, so that a child begins as a new process would. It reads the arguments of `_run` as one line
of JSON each, answers with the process id of the child, and reports a child's end as `pid status`
(negative: the signal).
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.helpers.cli_make import Said, words

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 240.0
"""Seconds that a command may take before the test gives up."""
MODULES = ("transformers", "biobench.finetune.engine", "biobench.runs.api", "biobench.cli.main")


@dataclass
class Child:
    """A started process; stem: of the files of its first command, `.0.out`, `.0.err` and, at its
    end, `.0.status`.
    """

    pid: int
    stem: Path
    ended: queue.Queue[int]

    @property
    def out(self) -> Path:
        """What its first command printed."""
        return Path(f"{self.stem}.0.out")

    @property
    def err(self) -> Path:
        """What its first command said on stderr."""
        return Path(f"{self.stem}.0.err")

    def wait(self) -> int:
        """Its exit status; minus the signal where one ended it."""
        return self.ended.get(timeout=PATIENCE)

    def rows(self) -> list[dict[str, Any]]:
        """What its first command printed with --json."""
        rows: list[dict[str, Any]] = json.loads(self.out.read_text(encoding="utf-8"))
        return rows

    def said(self, number: int) -> Said:
        """What a command of an ended process said."""
        status, out, err = (
            Path(f"{self.stem}.{number}.{name}").read_text(encoding="utf-8", errors="replace")
            for name in ("status", "out", "err")
        )
        return Said(int(status), out, err)


class Launcher:
    """Starts commands in processes forked from a warm one, which has imported the modules."""

    def __init__(self, folder: Path, modules: Sequence[str] = MODULES) -> None:
        self.folder, self.count = folder, 0
        plain = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("BIOBENCH_", "HF_", "TRANSFORMERS_"))
        }
        plain |= {
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONPATH": str(ROOT),
        }
        self.environment = {k: v for k, v in plain.items() if not k.lower().endswith("_proxy")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.launching", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        self.started: queue.Queue[int] = queue.Queue()
        self.children: dict[int, queue.Queue[int]] = {}
        assert self.process.stdout.readline() == "ready\n"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            pid, _, status = line.strip().partition(" ")
            ended = self.children.setdefault(int(pid), queue.Queue())
            if status:
                ended.put(int(status))
            else:
                self.started.put(int(pid))

    def start(self, *arguments: str | Path) -> Child:
        """`biobench ARGUMENTS` as a process."""
        return self.several([arguments], self.folder)

    def several(self, commands: Sequence[Sequence[str | Path]], folder: Path, **more: str) -> Child:
        """Commands one after the other in one process in the folder. more: of the environment."""
        self.count += 1
        stem = folder / str(self.count)
        for name in ("out", "err"):
            Path(f"{stem}.0.{name}").touch()  # a child may be killed before it has opened them
        texts = [words(*arguments) for arguments in commands]
        self.process.stdin.write(json.dumps([texts, str(stem), self.environment | more]) + "\n")
        self.process.stdin.flush()
        pid = self.started.get(timeout=PATIENCE)
        return Child(pid, stem, self.children[pid])

    def close(self) -> None:
        """End the warm process."""
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE)


def _run(commands: Sequence[Sequence[str]], stem: str, environment: dict[str, str]) -> None:
    """Do the commands in this process, which ends with them."""
    status = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(Path(stem).parent)
        for number, arguments in enumerate(commands):
            for stream, name in ((1, "out"), (2, "err")):
                os.dup2(
                    os.open(
                        f"{stem}.{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
                    ),
                    stream,
                )
            status = _status(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            Path(f"{stem}.{number}.status").write_text(str(status))
    finally:
        os._exit(status)


def _status(arguments: Sequence[str]) -> int:
    """A first word `token=...` is the command's token of the hub; `-c` and Python code run that."""
    key, _, token = arguments[0].partition("=")
    os.environ.pop("HF_TOKEN", None)
    if key == "token":
        os.environ["HF_TOKEN"], arguments = token, arguments[1:]
    try:
        if arguments[0] == "-c":
            exec(compile(arguments[1], "<code>", "exec"), {"__name__": "__main__"})
        else:
            from biobench.cli.main import main

            sys.argv = ["biobench", *arguments]
            main()
    except SystemExit as ended:
        return int(ended.code or 0)
    except BaseException:  # as the interpreter would at the end, which this process does not reach
        traceback.print_exc()
        return 1
    return 0


def _report(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    sys.stdout.write(f"{pid} {os.waitstatus_to_exitcode(status)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        import_module(name)
    early = sys.modules.keys() & {"huggingface_hub", "transformers", "datasets"}
    assert not early or "transformers" in sys.argv, (
        f"{early} would not see the environment of a command"
    )
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _run(*json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        threading.Thread(target=_report, args=(pid,), daemon=True).start()
