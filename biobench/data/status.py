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
    locations = (locate(source, folder) for source in task.spec.all_sources)
    ready = next((location for location in locations if location.complete), None)
    if ready is None:
        source = preferred(task)
        return Status(
            task.id,
            "missing" if access == "open" else "agreement",
            access,
            source.id,
            str(folder / source.folder),
            fetch=addresses(source) if can_fetch(task, source) else [],
            steps=steps(task, source, folder),
        )
    result = Status(task.id, "generated", access, ready.source.id)
    if not ready.source.generated:
        paths = files_of(ready)
        result.state, result.folder, result.files = "ready", str(ready.folder), len(paths)
        result.bytes = sum(path.stat().st_size for path in paths)
    return result


def files_of(location: LocatedFiles) -> list[Path]:
    """All files of a source, each once: those it names, those of the original release, and the .ann
    files that lie beside named texts.
    """
    listed: set[Path] = set()
    for paths in (*location.files.values(), *location.original.values()):
        listed.update(paths)
    for path in [path for path in listed if path.suffix == ".txt"]:
        annotation = path.with_suffix(".ann")
        if annotation.is_file():
            listed.add(annotation)
    return sorted(listed)
