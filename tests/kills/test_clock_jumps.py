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
from tests.kills.victims import Victim

NAMES = ("pretrain", "corpus build", "data fetch", "rescore", "submit", "index", "run", "gate")
CLOCKS = (
    "time.time",
    pytest.param(
        "libfaketime",
        marks=[pytest.mark.slow, pytest.mark.skipif(faketime() is None, reason="libfaketime is not installed")],
    ),
)


class Ground:
    """A field whose commands live by a clock that jumps."""

    def __init__(self, field: Field, clock: JumpingClock) -> None:
        self.field, self.clock, self.victims = field, clock, field.victims

    def start(self, victim: Victim, place: Path) -> Child:
        """The command."""
        return self.field.launcher.start(*victim.arguments(place))

    def jump(self, days: int, place: Path) -> None:
        """The clock shows so many days more, or fewer."""
        self.clock.jump(days * DAY, [place, self.field.folder / "shared"])


@pytest.fixture(scope="module", params=CLOCKS)
def ground(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One warm process a clock."""
    folder = tmp_path_factory.mktemp("clock")
    clock = JumpingClock(folder, faketime() if request.param == "libfaketime" else None)
    with prepared(folder / "field", clock.environment) as field:
        yield Ground(field, clock)


@pytest.mark.slow
def test_the_clock_of_the_commands_jumps_and_the_monotonic_one_does_not(ground: Ground, tmp_path: Path) -> None:
    """Else the tests below would show nothing."""
    victim, beats = ground.victims["run"], list[Heartbeat]()
    for days in (0, 1):
        ground.jump(days, tmp_path)
        place = victim.fresh(tmp_path / f"place-{days}")
        child = ground.start(victim, place)
        while len(beats) <= days and child.ended.empty():
            paths = place.glob("results/locks/*/*.running")
            beats += [beat for path in paths if (beat := read_heartbeat(path)) is not None][:1]
        assert child.wait() == 0, child.err.read_text()
    ground.jump(-1, tmp_path)
    first, second = beats
    assert DAY <= second.started - first.started < 2 * DAY
    assert 0 < second.began - first.began < DAY / 2


def whole(ground: Ground, victim: Victim, place: Path, child: Child) -> None:
    """The command has ended well with the undisturbed result, and nothing of dead processes is left."""
    status = child.wait()
    message = child.err.read_text()
    assert "Traceback" not in message
    assert status == 0 or victim.over(message), message
    assert victim.result(place) == ground.field.undisturbed(victim)[0]
    assert left_behind(place) == []


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, -1], ids=["forward", "back"])
@pytest.mark.parametrize("name", NAMES)
def test_a_jump_within_a_command_changes_nothing(name: str, days: int, ground: Ground, tmp_path: Path) -> None:
    victim, chance = ground.victims[name], random.Random(f"{name} {days}")
    ground.field.undisturbed(victim)
    place = victim.fresh(tmp_path / "place")
    child = ground.start(victim, place)
    wait_for_changes(place, child, chance.randint(1, 4))
    ground.jump(days, place)
    whole(ground, victim, place, child)
    ground.jump(-days, place)


@pytest.mark.parametrize("days", [1, pytest.param(-1, marks=pytest.mark.slow)], ids=["forward", "back"])
@pytest.mark.parametrize("name", [pytest.param("pretrain", marks=pytest.mark.slow), *NAMES[1:]])
def test_a_jump_between_a_killed_command_and_its_repetition_changes_nothing(
    name: str, days: int, ground: Ground, tmp_path: Path
) -> None:
    """And another one, the other way, within the repetition."""
    victim, chance = ground.victims[name], random.Random(f"{name} {days} killed")
    ground.field.undisturbed(victim)
    place = victim.fresh(tmp_path / "place")
    child = ground.start(victim, place)
    wait_for_changes(place, child, chance.randint(1, 4))
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(child.pid, signal.SIGKILL)
    child.wait()
    ground.jump(days, place)
    child = ground.start(victim, place)
    wait_for_changes(place, child, chance.randint(1, 4))
    ground.jump(-days, place)
    whole(ground, victim, place, child)
