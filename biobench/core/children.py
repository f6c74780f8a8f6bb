"""Processes that this one starts: they do not run its script again, and they end with it."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def bare_main() -> Iterator[None]:
    """Processes that start meanwhile do not run the caller's script again: they need nothing of it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def end_with_parent() -> None:
    """From now on a killed parent takes this process along: nobody would look for it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
