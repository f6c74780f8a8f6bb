"""Clocks that jump a day: while a command works, and between its killed half and the other.

With libfaketime (`apt-get install libfaketime`) every call for the time of day jumps, in slow mode; else `time.time`
alone does. The files that are there age by the jump.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from biobench.store.claims import Heartbeat, read_heartbeat
from tests.helpers.jumping_clock import DAY, JumpingClock, faketime
from tests.helpers.launching import Child
from tests.kills.__main__ import Field, left_behind, prepared, wait_for_changes
from tests.kills.targets import Target

SLOW = ("pretrain", "corpus build", "rescore", "submit", "index", "gate")
CLOCKS = (
    "time.time",
    pytest.param(
        "libfaketime",
        marks=[pytest.mark.slow, pytest.mark.skipif(faketime() is None, reason="libfaketime is not installed")],
    ),
)


class Jumping:
    """A field whose commands live by a clock that jumps."""

    def __init__(self, field: Field, clock: JumpingClock) -> None:
        self.field, self.clock, self.targets = field, clock, field.targets

    def start(self, target: Target, place: Path) -> Child:
        """The command."""
        return self.field.launcher.start(*target.arguments(place))

    def jump(self, days: int, place: Path) -> None:
        """The clock shows so many days more, or fewer."""
        self.clock.jump(days * DAY, [place, self.field.folder / "shared"])


@pytest.fixture(scope="module", params=CLOCKS)
def jumping(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jumping]:
    """One warm process a clock."""
    folder = tmp_path_factory.mktemp("clock")
    clock = JumpingClock(folder, faketime() if request.param == "libfaketime" else None)
    with prepared(folder / "field", clock.environment) as field:
        yield Jumping(field, clock)


@pytest.mark.slow
def test_the_clock_of_the_commands_jumps_and_the_monotonic_one_does_not(jumping: Jumping, tmp_path: Path) -> None:
    """Else the tests below would show nothing."""
    target, beats = jumping.targets["run"], list[Heartbeat]()
    for days in (0, 1):
        jumping.jump(days, tmp_path)
        place = target.fresh(tmp_path / f"place-{days}")
        child = jumping.start(target, place)
        while len(beats) <= days and child.ended.empty():
            paths = place.glob("results/locks/*/*.running")
            beats += [beat for path in paths if (beat := read_heartbeat(path)) is not None][:1]
        assert child.wait() == 0, child.err.read_text()
    jumping.jump(-1, tmp_path)
    first, second = beats
    assert DAY <= second.started - first.started < 2 * DAY
    assert 0 < second.began - first.began < DAY / 2


@pytest.mark.parametrize("days", [1, pytest.param(-1, marks=pytest.mark.slow)], ids=["forward", "back"])
@pytest.mark.parametrize("name", ["run", "data fetch", *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW)])
def test_a_jump_between_a_killed_command_and_its_repetition_changes_nothing(
    name: str, days: int, jumping: Jumping, tmp_path: Path
) -> None:
    """And another one, the other way, within the repetition."""
    target, chance = jumping.targets[name], random.Random(f"{name} {days} killed")
    jumping.field.undisturbed(target)
    place = target.fresh(tmp_path / "place")
    child = jumping.start(target, place)
    wait_for_changes(place, child, chance.randint(1, 4))
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(child.pid, signal.SIGKILL)
    child.wait()
    jumping.jump(days, place)
    child = jumping.start(target, place)
    wait_for_changes(place, child, chance.randint(1, 4))
    jumping.jump(-days, place)
    status, message = child.wait(), child.err.read_text()
    assert "Traceback" not in message
    assert status == 0 or target.over(message), message
    assert target.result(place) == jumping.field.undisturbed(target)[0]
    assert left_behind(place) == [], "nothing of dead processes is left"
