"""Signals that ask to stop: the first one saves, a second Ctrl-C ends at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from biobench.core.stop import RunStoppedError, StopFlag


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As in a terminal: what a shell puts into the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_asks_to_stop(number: signal.Signals, interruptible: None) -> None:
    flag = StopFlag()
    with flag.watching():
        send(number)
        assert flag()
    assert not flag()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_ctrl_c_after_a_request_ends_at_once(first: signal.Signals, interruptible: None) -> None:
    with StopFlag().watching() as flag:
        send(first)
        assert flag()
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_nothing_is_lost_ctrl_c_ends_at_once(interruptible: None) -> None:
    flag = StopFlag()
    with pytest.raises(RunStoppedError), flag.watching(), flag.at_once():
        send(signal.SIGINT)


def test_a_background_job_goes_on_ignoring_ctrl_c() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        flag = StopFlag()
        with flag.watching():
            send(signal.SIGINT)
            assert not flag()
    finally:
        signal.signal(signal.SIGINT, before)
