"""Per task: is its data here, what would be fetched, or which agreement stands before it. No
document is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from biobench.data.catalog import LoadedTask
from biobench.data.locate import (
    DataRoot,
    LocatedFiles,
    addresses,
    can_fetch,
    data_folder,
    locate,
    preferred,
    steps,
)


@dataclass(slots=True)
class Status:
    """Where one task's data stands.

    state: ready, missing, agreement (or registration: files to be put in place by the user),
    generated.
    """

    task: str
    state: Literal["ready", "missing", "agreement", "generated"]
    access: str
    source: str
    folder: str | None = None
    files: int = 0
    bytes: int = 0
    fetch: list[str] = field(default_factory=list)
    """Addresses that `fetch` would download."""
    steps: list[str] = field(default_factory=list)
    """What to do, one step a line."""

    @property
    def line(self) -> str:
        """Where the data stands, and the command or the agreement that comes next."""
        if self.state in ("ready", "generated"):
            if self.folder:
                return f"{self.task}: {self.state} in {self.folder} ({self.files} files)"
            return f"{self.task}: {self.state}"
        if self.access != "open":
            return f"{self.task}: needs your {self.access}"
        if self.fetch:
            # the first step fetches into the folder that was asked about
            return f"{self.task}: missing, {self.steps[0]}"
        return f"{self.task}: missing, by hand"


def status(task: LoadedTask, data_dir: DataRoot) -> Status:
    """The state of the task's data; reads no file, raises nothing for missing data."""
    folder, access = data_folder(data_dir), task.spec.access
    for source in task.spec.all_sources:
        location = locate(source, folder)
        if not location.complete:
            continue
        if source.generated:
            return Status(task.id, "generated", access, source.id)
        paths = files_of(location)
        result = Status(task.id, "ready", access, source.id, str(location.folder), len(paths))
        result.bytes = sum(path.stat().st_size for path in paths)
        return result
    source = preferred(task)
    place = str(folder / source.folder)
    result = Status(task.id, "agreement", access, source.id, place)
    result.steps = steps(task, source, folder)
    if access == "open":
        result.state = "missing"
    if can_fetch(task, source):
        result.fetch = addresses(source)
    return result


def files_of(location: LocatedFiles) -> list[Path]:
    """All files of a source, each once: those it names, those of the original release, and the .ann
    files that lie beside named texts.
    """
    listed: set[Path] = set()
    listed.update(*location.files.values(), *location.original.values())
    annotations = [path.with_suffix(".ann") for path in listed if path.suffix == ".txt"]
    return sorted(listed.union(filter(Path.is_file, annotations)))
