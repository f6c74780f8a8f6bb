"""How the tests call the command line: in this process (fast) or as the installed console script
(the truth).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(sys.executable).parent / "biobench"
FAST = ("--limit", "24", "--set", "training.epochs=1", "--device", "cpu", "--parallel", "1")
"""Options that make a run of a demo task a matter of tenths of a second."""

QUICK: dict[str, Any] = {
    "limit": 24,
    "overrides": "training.epochs=1",
    "device": "cpu",
    "parallel": 1,
    "gate": False,
}
"""The same as keywords of `biobench.run`."""


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    def ok(self) -> Said:
        """Itself; fails where the command did."""
        assert self.status == 0, self.err
        return self

    def json(self) -> Any:
        """stdout as one JSON document."""
        return json.loads(self.out)

    def refusal(self) -> str:
        """The one line of an input error; fails where the form is not `what` then `hint: ...`."""
        assert self.status == 2, (self.status, self.err)
        assert "Traceback" not in self.err
        lines = [line for line in self.err.splitlines() if not line.startswith("reading ")]
        assert len(lines) == 2, self.err
        assert lines[1].startswith("hint: ")
        assert len(lines[1]) > len("hint: ")
        assert self.out == ""
        return lines[0]


Run = Callable[..., Said]
"""The fixture `biobench`: a command's arguments to what it said."""


def words(*arguments: str | Path) -> list[str]:
    """The words of a command. The text that begins it, and one that begins with --, may hold
    several, written as in a shell.
    """
    split: list[str] = []
    for place, argument in enumerate(arguments):
        if isinstance(argument, str) and (place == 0 or argument.startswith("--")):
            split += shlex.split(argument)
        else:
            split.append(str(argument))
    return split


def call(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str | Path
) -> Said:
    """`biobench ARGUMENTS` in this process."""
    from biobench.cli.main import main

    monkeypatch.setattr(sys, "argv", ["biobench", *words(*arguments)])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capfd.readouterr()
    return Said(int(ended.value.code or 0), out, err)


def process(*arguments: str | Path, cwd: Path, **environment: str) -> Said:
    """`biobench ARGUMENTS` as a process of its own, through the installed console script."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BIOBENCH_")}
    env |= {"OMP_NUM_THREADS": "1", **environment}
    command = [SCRIPT, *words(*arguments)]
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)
