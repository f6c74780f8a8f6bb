"""The state of a fine-tuning run on disk, so that a killed run continues where it stood.

A run writes its state every few minutes; short runs never do. The file is complete or not there,
and is only resumed by the same run (the store's key names it) under the same torch and device, and
on a CPU with the same number of threads, which is set for the rest of the run: the scores are those
of a run that nobody killed. It is no result: where it cannot be written, the run continues without,
and says so.
"""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from biobench.core.files import commit, temporary_file
from biobench.core.progress import ProgressNote
from biobench.core.text import first_line
from biobench.errors import StoreError

EVERY_SECONDS = 300.0
"""Seconds of work between two writes, unless the user says otherwise."""
_SHARE = 50.0
"""A write that took a second is followed by at least this many seconds of work."""
_FORMAT = 3
_UNREADABLE = (
    *(OSError, RuntimeError, EOFError, UnpicklingError, zipfile.BadZipFile),
    *(ValueError, KeyError, TypeError, AttributeError),
)


class Savepoint:
    """The state file of one run, which only the process that holds the run may touch.

    path: the file. every: seconds of work between two writes; a slow disk makes it longer. command:
    stands for the command that makes the run. anew: the state that another command left is not
    used.
    """

    def __init__(
        self,
        path: Path,
        device: torch.device,
        *,
        every: float = EVERY_SECONDS,
        command: float = 0.0,
        anew: bool = False,
    ) -> None:
        self.path = path
        self.device = device
        self.every = every
        self.command = command
        self.anew = anew
        self.seconds = 0.0
        """What writing has cost in this process."""
        self.problem: str | None = None
        """Why the state is no longer written."""
        self.refusal: str | None = None
        """Why a file that is there was not used."""
        self._last = time.perf_counter()
        self._wait = every

    def part(self, name: str) -> Savepoint:
        """The savepoint of a part of the run, in a file of its own."""
        path = self.path.with_name(f"{self.path.name}.{name}")
        return Savepoint(path, self.device, every=self.every, command=self.command, anew=self.anew)

    def due(self) -> bool:
        """Whether enough work was done since the last write."""
        return self.problem is None and time.perf_counter() - self._last >= self._wait

    def is_due(self, *, stops: bool) -> bool:
        """Whether a state is to be written now. stops: the run is about to stop."""
        return stops or self.due()

    def load(self) -> dict[str, Any] | None:
        """What `save` was given last, on the CPU.

        None where there is nothing that this process may continue from; `refusal` says why there is
        no using a file.
        """
        try:
            command, origin, state = self._read()
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            self.refusal = f"the state on disk cannot be read: {_reason(error)}"
            return None
        if self.anew and command != self.command:
            return None
        threads = origin.pop("threads", 0)
        here = self._origin()
        differing = [
            f"{name} {origin.get(name)}" for name in here if origin.get(name) != here[name]
        ]
        if threads > _cores():
            differing.append(f"threads {threads}")
        if differing:
            self.refusal = f"the state on disk was made with {', '.join(differing)}"
            return None
        if threads:
            # Sums depend on their number; the caller restores its own.
            torch.set_num_threads(threads)
        return state

    def _read(self) -> tuple[float, dict[str, Any], dict[str, Any]]:
        """The command that wrote the file, what it was made with, and the state."""
        with zipfile.ZipFile(self.path) as archive:
            broken = archive.testzip()  # torch reads without looking at the checksums
        if broken is not None:
            raise ValueError(f"{broken} is damaged")
        content = torch.load(self.path, map_location="cpu", weights_only=True)
        return content["command"], dict(content["made_with"]), dict(content["state"])

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write what `state` gives (tensors, numbers, text, lists and dicts of them) in place of
        the last one.
        """
        began = time.perf_counter()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._remove_temporary()
            with temporary_file(self.path) as stream:
                origin = self._origin()
                if self.device.type == "cpu":
                    origin["threads"] = torch.get_num_threads()
                torch.save({"made_with": origin, "command": self.command, "state": state()}, stream)
            commit(Path(stream.name), self.path)
        except (OSError, RuntimeError, StoreError) as error:
            # torch reports a full disk as a RuntimeError of its writer
            self.problem = _reason(error)
        self._last = time.perf_counter()
        self.seconds += self._last - began
        self._wait = max(self.every, _SHARE * (self._last - began))

    def remove(self) -> None:
        """Forget the state and those of the parts. A file that cannot be removed is left."""
        try:
            for path in (self.path, *self.path.parent.glob(f"{self.path.name}.*")):
                path.unlink(missing_ok=True)
            self._remove_temporary()
        except OSError as error:
            self.problem = error.strerror or str(error)

    def _remove_temporary(self) -> None:
        """What a process left that was killed while it wrote."""
        for path in self.path.parent.glob(f".{self.path.name}.*.tmp"):
            path.unlink(missing_ok=True)

    def _origin(self) -> dict[str, str | int]:
        device = self.device.type
        if device == "cuda":
            device = torch.cuda.get_device_name(self.device)
        return {
            "format": _FORMAT,
            "torch": str(torch.__version__),
            "transformers": metadata.version("transformers"),
            "device": device,
        }


class NoSavepoint(Savepoint):
    """In the place of a savepoint where the state of a run is not kept."""

    def __init__(self) -> None:
        super().__init__(Path(), torch.device("cpu"))

    def part(self, name: str) -> Savepoint:
        """Of a part nothing is kept either."""
        return self

    def due(self) -> bool:
        """Never."""
        return False

    def is_due(self, *, stops: bool) -> bool:
        """Never."""
        return False

    def load(self) -> dict[str, Any] | None:
        """There is nothing to continue from."""
        return None

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write nothing."""

    def remove(self) -> None:
        """There is nothing to forget."""


NOT_KEPT = NoSavepoint()


def _cores() -> int:
    return os.cpu_count() or 1


def _reason(error: BaseException) -> str:
    return first_line(getattr(error, "strerror", None) or error, 120)


def resumed_state(
    keep: Savepoint, progress: Callable[[int, int, str], None], total: int = 1
) -> dict[str, Any] | None:
    """What the savepoint holds, None where there is nothing to continue from; says why a file is
    not used.
    """
    saved = keep.load()
    if keep.refusal is not None:
        progress(0, total, ProgressNote(f"starts again: {keep.refusal}"))
    return saved
