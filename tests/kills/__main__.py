"""`python -m tests.kills --kills 500 [--minutes 15] [--seed 1] [--command pretrain]`: seeded kills
of commands.

A chain begins with fresh inputs: three times the command is started and killed, by SIGKILL, SIGTERM
or SIGINT, half of them at a seeded moment within the time that it takes undisturbed and half right
after a file has changed, where a kill would hurt most; the fourth time it is left alone. Its result
must then be the undisturbed one, nothing temporary may be left beside it, and no message of a
killed or living command may be a traceback. `tests/cli/test_cli_kill.py` kills `run` in each of its
stages besides.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from tests.helpers.fetch_make import Server
from tests.helpers.launching import PATIENCE, Child, Launcher
from tests.kills.targets import NAMES, Target, targets

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CHAIN = 3
"""Kills before a command is left alone."""


@dataclass
class Figures:
    """Of one command: started and signalled, ended by that before its work was done, chains, what
    was wrong.
    """

    kills: int = 0
    hit: int = 0
    chains: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def left_behind(place: Path) -> list[Path]:
    """What no living process needs: temporary files and folders, probes, and what was only half
    unpacked.
    """
    begins, ends = ("unpack-", ".clock", ".probe"), (".tmp", ".part")
    return [p for p in place.rglob("*") if p.name.startswith(begins) or p.name.endswith(ends)]


def wait_for_changes(place: Path, child: Child, count: int) -> None:
    """Until files below the folder have appeared, vanished or grown `count` times, or the child
    ends.
    """

    def seen() -> list[tuple[str, int]]:
        entries = []
        for root, _, names in os.walk(place):
            for name in names:
                with suppress(FileNotFoundError):
                    entries.append((f"{root}/{name}", os.stat(f"{root}/{name}").st_size))
        return entries

    until = time.monotonic() + PATIENCE
    for _ in range(count):
        before = seen()
        while seen() == before and child.ended.empty() and time.monotonic() < until:
            time.sleep(0.0005)


class Field:
    """Where commands are killed: a warm process, a server, and what the commands read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("shared", "log"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.server = Server()
        self.launcher = Launcher(folder / "log")
        self.targets = targets(folder / "shared", self.server)
        self._expected: dict[str, tuple[Any, float]] = {}
        self._places = 0

    def close(self) -> None:
        """End the processes."""
        self.launcher.close()
        self.server.http.shutdown()
        self.server.http.server_close()

    def place(self) -> Path:
        """A folder that is not there yet."""
        self._places += 1
        return self.folder / f"place-{self._places}"

    def undisturbed(self, target: Target) -> tuple[Any, float]:
        """(result, seconds) of the command when nothing happens to it; made once."""
        if target.name not in self._expected:
            place = target.fresh(self.place())
            began = time.monotonic()
            child = self.launcher.start(*target.arguments(place))
            status = child.wait()
            seconds = time.monotonic() - began
            if status != 0:
                raise RuntimeError(
                    f"{target.name} ended with {status}: {child.err.read_text()[-2000:]}"
                )
            self._expected[target.name] = (target.result(place), seconds)
            shutil.rmtree(place)
        return self._expected[target.name]

    def chain(
        self, target: Target, chance: random.Random, figures: Figures, kills: int = CHAIN
    ) -> None:
        """Kill the command so often, then let it end, and compare."""
        expected, length = self.undisturbed(target)
        place = target.fresh(self.place())
        for _ in range(kills):
            child = self.launcher.start(*target.arguments(place))
            if chance.random() < 0.5:
                time.sleep(chance.uniform(0.0, length * 1.02))
            else:
                wait_for_changes(place, child, chance.randint(1, 12))
            how = chance.choice(SIGNALS)
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(child.pid, how)
            status = child.wait()
            figures.kills += 1
            figures.hit += status != 0 and not target.over(child.err.read_text())
            if "Traceback" in child.err.read_text():
                figures.wrong.append(f"{target.name}, {how.name}: {child.err.read_text()[-600:]}")
        child = self.launcher.start(*target.arguments(place))
        status = child.wait()
        figures.chains += 1
        if status != 0 and not target.over(child.err.read_text()):
            figures.wrong.append(
                f"{target.name} ended with {status}: {child.err.read_text()[-600:]}"
            )
        else:
            try:
                result = target.result(place)
            except (AssertionError, OSError, ValueError) as error:
                result = repr(error)
            if result != expected:
                figures.wrong.append(f"{target.name}: another result than undisturbed")
        figures.wrong += [
            f"{target.name} left {path.relative_to(place)}" for path in left_behind(place)
        ]
        shutil.rmtree(place, ignore_errors=True)


def attack(
    field: Field, names: list[str], kills: int, seed: int, seconds: float = inf
) -> dict[str, Figures]:
    """So many kills in turns of the commands, or as many as the seconds allow; figures by
    command."""
    figures = {name: Figures() for name in names}
    number, until = 0, time.monotonic() + seconds
    while sum(f.kills for f in figures.values()) < kills and time.monotonic() < until:
        name = names[number % len(names)]
        began = time.monotonic()
        field.chain(field.targets[name], random.Random(f"{seed} {number}"), figures[name])
        figures[name].seconds += time.monotonic() - began
        number += 1
    return figures


def main() -> int:
    """Print a line for each command, and what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument(
        "--minutes", type=float, default=inf, help="begin no further chain after so many"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--command", action="append")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="biobench-kills-") as folder,
        closing(Field(Path(folder))) as field,
    ):
        figures = attack(
            field, options.command or list(NAMES), options.kills, options.seed, 60 * options.minutes
        )
    for name, f in figures.items():
        print(
            f"{name}: {f.kills} kills, {f.hit} at work, {f.chains} chains, {f.seconds:.0f} s, "
            f"{len(f.wrong)} wrong"
        )
    wrong = [line for f in figures.values() for line in f.wrong]
    print("\n".join(wrong))
    total, hit = sum(f.kills for f in figures.values()), sum(f.hit for f in figures.values())
    print(f"{total} kills, {hit} at work, {len(wrong)} findings (seed {options.seed})")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
