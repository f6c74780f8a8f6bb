"""Per task: is its data here, what would be fetched, or which agreement stands before it. No document is read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from biobench.core.files import file_hash
from biobench.data.catalog import LoadedTask
from biobench.data.locate import LocatedFiles, addresses, by_hand, data_folder, locate, preferred
from biobench.schema.source import Source


@dataclass(slots=True)
class Status:
    """Where one task's data stands.

    state: ready, missing, agreement (or registration: files to be put in place by the user), generated.
    """

    task: str
    state: Literal["ready", "missing", "agreement", "generated"]
    access: str
    source: str | None = None
    folder: str | None = None
    files: int = 0
    bytes: int = 0
    fetch: list[str] = field(default_factory=list)
    """Addresses that `fetch` would download."""
    lacking: list[str] = field(default_factory=list)
    """Files of the preferred source that are not there, with their folder."""
    steps: list[str] = field(default_factory=list)
    """What to do, one step a line."""


def status(tasks: Sequence[LoadedTask], data_dir: str | Path | None) -> list[Status]:
    """The state of every task's data; reads no file, raises nothing for missing data."""
    return [_of(task, data_folder(data_dir)) for task in tasks]


def _of(task: LoadedTask, folder: Path) -> Status:
    places = [locate(source, folder) for source in task.spec.all_sources]
    ready = next((place for place in places if place.complete), None)
    if ready is not None:
        if ready.source.generated:
            return Status(task.id, "generated", task.spec.access, ready.source.id)
        paths = files_of(ready)
        size = sum(path.stat().st_size for path in paths)
        return Status(task.id, "ready", task.spec.access, ready.source.id, str(ready.folder), len(paths), size)
    source = preferred(task)
    place = places[task.spec.all_sources.index(source)]
    result = Status(task.id, "missing", task.spec.access, source.id, str(place.folder))
    result.lacking = [str(place.folder / name) for name in place.missing]
    if task.spec.access == "open" and (source.url or source.hub):
        result.fetch = addresses(source)
        result.steps = [
            f"biobench data fetch {task.id} --data-dir {folder}",
            f"Or by hand: put {by_hand(source, folder)}",
        ]
        return result
    result.state = "missing" if task.spec.access == "open" else "agreement"
    result.steps = agreement_steps(task, source, folder)
    return result


def agreement_steps(task: LoadedTask, source: Source, data_dir: Path) -> list[str]:
    """Instructions from the first page to the check that all is in place, one step a line."""
    spec = task.spec
    steps: list[str] = []
    if spec.obtain is None:
        steps.append(f"Ask for the data or download it: {spec.homepage}")
    else:
        if spec.obtain.needs:
            steps.append(f"The data needs {spec.obtain.needs}.")
        steps.append(f"Open {', then '.join(spec.obtain.pages)}")
        steps += spec.obtain.steps
    steps.append(f"Put {by_hand(source, data_dir)}, in the folders that the names have")
    steps.append(f"Check that all is well: biobench tasks validate {task.id} --data-dir {data_dir}")
    if spec.access == "agreement":
        steps.append(
            "Keep the files in that folder. BioBench writes no text and no gold of this task anywhere else, and"
            " `biobench data bundle` leaves it out unless you say --include-agreement."
        )
    return steps


def files_of(place: LocatedFiles) -> list[Path]:
    """All files of a source, each once: those it names, those of the original release, and the .ann files
    that lie beside named texts."""
    listed = {p for files in (place.files, place.original) for paths in files.values() for p in paths}
    beside = {p.with_name(p.name.removesuffix(".txt") + ".ann") for p in listed if p.suffix == ".txt"}
    return sorted(listed | {p for p in beside if p.is_file()})


def files_hash(place: LocatedFiles, data_dir: Path) -> str:
    """SHA-256 (hex) over the sorted relative names and contents of a source's files."""
    digest = hashlib.sha256()
    for path in files_of(place):
        digest.update(f"{path.relative_to(data_dir).as_posix()}\0{file_hash(path)}\n".encode())
    return digest.hexdigest()


def in_a_line(state: Status) -> str:
    """Where one task's data stands, and the command or the agreement that comes next."""
    if state.state in ("ready", "generated"):
        return f"{state.task}: {state.state}" + (f" in {state.folder} ({state.files} files)" if state.folder else "")
    if state.access != "open":
        return f"{state.task}: needs your {state.access}"
    return f"{state.task}: missing" + (f", biobench data fetch {state.task}" if state.fetch else ", by hand")
