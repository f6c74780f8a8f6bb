"""A signal asks the run to stop after the step in hand."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StoppedError(Exception):
    """The run was asked to stop before its training began: nothing of a state is to be saved."""


class StopFlag:
    """Set by SIGTERM or SIGUSR1 (what clusters send before they take a machine away)."""

    def __init__(self) -> None:
        self.set = False

    def __call__(self) -> bool:
        return self.set

    @contextmanager
    def watching(self) -> Iterator[StopFlag]:
        """Watch the signals; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def ask(*_: object) -> None:
            self.set = True
            logging.getLogger("trainer").warning("asked to stop: finishing what is in hand, then saving")

        signals = (signal.SIGTERM, signal.SIGUSR1)
        before = [signal.signal(s, ask) for s in signals]
        try:
            yield self
        finally:
            for s, handler in zip(signals, before, strict=True):
                signal.signal(s, handler)
