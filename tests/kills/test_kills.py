"""Commands that write are killed and given again: the same result, and nothing left of the killed
ones.

One kill a command here and fifty in slow mode; `python -m tests.kills` makes more.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.cli_make import call
from tests.kills.__main__ import Field, Figures
from tests.kills.targets import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_command_given_again_ends_as_undisturbed(name: str, field: Field) -> None:
    figures = Figures()
    field.chain(field.targets[name], random.Random(name), figures, kills=1)
    assert figures.wrong == []
    assert (figures.kills, figures.chains) == (1, 1)


@pytest.mark.parametrize(
    "where", ["typer.main.get_params_from_function", "biobench.cli.main.prepare_threads"]
)
def test_an_interrupt_before_the_command_has_begun_is_no_traceback(
    where: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Found by six of 51 kills: typer reads the declarations of all commands first, outside its own
    handlers.
    """

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    ended = call(monkeypatch, capfd, "tasks", "list")
    assert (ended.status, ended.out, ended.err) == (130, "", "")


def test_an_interrupt_that_a_library_turns_into_an_error_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Pydantic's serialiser makes a `PydanticSerializationError` of a Ctrl-C that comes while it
    writes a recipe.
    """

    def turned(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)  # at most: a handler of another test must not make this one wait for ever
        except KeyboardInterrupt:
            raise ValueError("Error calling function: KeyboardInterrupt") from None

    monkeypatch.setattr("biobench.cli.main.prepare_threads", turned)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background ignores it
    try:
        ended = call(monkeypatch, capfd, "tasks", "list")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended.status, ended.out, ended.err) == (130, "", "")


@pytest.mark.parametrize(
    "name", [pytest.param("pretrain", marks=pytest.mark.slow), "data fetch", "rescore", "run"]
)
def test_what_has_vanished_is_told_in_one_line(name: str, field: Field) -> None:
    target = field.targets[name]
    place = target.fresh(field.place())
    gone = target.needs(place)
    aside = gone.with_name(f"{gone.name}.aside")
    gone.rename(aside)
    try:
        child = field.launcher.start(*target.arguments(place))
        assert child.wait() in (1, 2)
    finally:
        aside.rename(gone)
    message = child.err.read_text() + child.out.read_text()
    assert "Traceback" not in message
    assert gone.name in message or gone.stem in message
    child = field.launcher.start(*target.arguments(place))
    assert child.wait() == 0, child.err.read_text()
    assert target.result(place) == field.undisturbed(target)[0]


def unwritable(folder: Path) -> Path:
    """A folder that nobody can make; in the system's own where the tests run as root, who may
    write anywhere.
    """
    if os.geteuid() == 0:
        return Path("/sys/kernel/biobench")
    folder.mkdir(mode=0o500)
    return folder / "new"


@pytest.mark.parametrize("name", ["corpus build", "data fetch", "submit", "run"])
def test_a_folder_that_cannot_be_written_is_told_in_one_line(name: str, field: Field) -> None:
    target = field.targets[name]
    place = target.fresh(field.place())
    closed = unwritable(place / "closed")
    child = field.launcher.start(*target.command(place, closed))
    assert child.wait() == 2, child.err.read_text()
    message = child.err.read_text()
    assert "Traceback" not in message
    assert str(closed) in message
    assert message.splitlines()[-1].startswith("hint: ")


@pytest.mark.parametrize(
    "error", [MemoryError(), ImportError("libx.so: failed to map segment from shared object")]
)
def test_a_limit_of_memory_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As under `ulimit -v`."""

    def refused(*_: object) -> None:
        raise error

    monkeypatch.setattr("biobench.cli.main.prepare_threads", refused)
    ended = call(monkeypatch, capfd, "tasks", "list")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == "memory does not suffice"
    assert len(ended.err.splitlines()) == 2
