"""Hashes of large files, computed once: a file whose name, size and time are as they were is not read again."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from biobench.core.files import file_hash
from biobench.errors import StoreError
from trainer.disk import write_json

_THREADS = 8
"""Hashing lets other threads run, and several files keep a disk busier than one."""
_SETTLED = 2.0
"""Seconds: a file that was changed this short a time before it was hashed may change again within one tick of its
file system's clock, and is hashed anew the next time. One with a time in the future, by a clock that was ahead, is not
changing now either."""


class Digests:
    """sha256 of files, remembered in `memory` (JSON). A memory that cannot be read or written costs time alone."""

    def __init__(self, memory: Path) -> None:
        self.memory = memory
        try:
            known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list[object]] = known if isinstance(known, dict) else {}

    def of(self, files: Sequence[Path]) -> list[str]:
        """The hash of each file. Raises OSError for one that cannot be read."""
        states = [self._state(file) for file in files]
        names = [str(file.absolute()) for file in files]
        old = [n for n, (name, state) in enumerate(zip(names, states, strict=True)) if not self._has(name, state)]
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            computed = dict(zip(old, pool.map(file_hash, [files[n] for n in old]), strict=True))
        digests = [computed[n] if n in computed else str(self._known[name][2]) for n, name in enumerate(names)]
        now = time.time_ns()
        for n, digest in computed.items():
            if abs(now - states[n][1]) > _SETTLED * 1e9 and self._state(files[n]) == states[n]:
                self._known[names[n]] = [*states[n], digest]
        if computed:
            with contextlib.suppress(StoreError):
                write_json(self.memory, self._known)
        return digests

    def _has(self, name: str, state: tuple[int, int]) -> bool:
        entry = self._known.get(name)
        return isinstance(entry, list) and len(entry) == 3 and entry[:2] == list(state)

    @staticmethod
    def _state(file: Path) -> tuple[int, int]:
        state = file.stat()
        return state.st_size, state.st_mtime_ns
