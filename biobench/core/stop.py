"""A signal asks long work to stop at the next place where nothing is lost."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED_EXIT = 75
"""Exit status of a command that was asked to stop and can be continued (EX_TEMPFAIL of sysexits.h).
"""


class StopFlag:
    """Set by SIGTERM or SIGUSR1 (what clusters send before they take a machine away), and by
    Ctrl-C. A further Ctrl-C ends the work at once, by KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.set = False
        self._at_once = False

    def __call__(self) -> bool:
        return self.set

    @contextmanager
    def watching(self, logger: str | None = "biobench") -> Iterator[StopFlag]:
        """Inside, the signals set it; only a main thread can watch them. logger: which one says
        that they came.
        """
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if number == signal.SIGINT and self.set:
                signal.default_int_handler(number, frame)
            self.set = True
            if logger is not None:
                line = "stop requested: finishing the current step, then saving"
                if number == signal.SIGINT:
                    line += "; Ctrl-C once more ends at once"
                logging.getLogger(logger).warning(line)
            if self._at_once:
                raise RunStoppedError

        signals = [signal.SIGTERM, signal.SIGUSR1]
        # a background job of a shell ignores Ctrl-C, and so does a worker, whose parent hears it
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signals.append(signal.SIGINT)
        handlers = [signal.signal(s, ask) for s in signals]
        try:
            yield self
        finally:
            self.set = False
            for s, handler in zip(signals, handlers, strict=True):
                signal.signal(s, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal ends the work at once, by `RunStoppedError`: nothing is lost there."""
        self._at_once = True
        try:
            yield
        except Exception as error:
            if self.set:  # whatever code that catches everything has made of it
                raise RunStoppedError from error
            raise
        finally:
            self._at_once = False
        if self.set:
            raise RunStoppedError


STOP = StopFlag()
"""Of the fine-tuning runs of this process: while it is watched they end at a savepoint, by
`RunStoppedError`.
"""


class RunStoppedError(Exception):
    """The process was asked to stop; the state of the run under way is saved where it can be
    resumed.
    """
