"""Opening a task's data and comparing it with what the spec declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import read_counted
from biobench.data.locate import LocatedFiles, choose, data_folder, locate
from biobench.errors import DataUnavailableError

State = Literal["ready", "missing", "agreement"]


@dataclass(slots=True)
class Validation:
    """What came out of validating one task. `problems` is empty when all is well."""

    task: str
    path: str
    state: State
    source: str | None = None
    labels: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    unexpressed: dict[str, dict[str, int]] = field(default_factory=dict)
    """Split to label to mentions of the corpus that are in no score."""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What may become wrong without a change of the spec: hub revisions that are names."""
    remedy: str | None = None
    looked_for: list[str] = field(default_factory=list)
    """Where the data was looked for and is not: the folder of each source."""


def validate(path_or_id: str | Path, data_dir: str | Path | None = None) -> Validation:
    """`validate_task` of a shipped task or a YAML file. Raises SpecError with file and line where the spec is wrong."""
    return validate_task(load_task(path_or_id), data_dir)


def validate_task(task: LoadedTask, data_dir: str | Path | None) -> Validation:
    """Open the task's data where it is at hand and compare its counts.

    A missing corpus is a state, not a problem. Raises DataFormatError when files are there and are wrong.
    """
    result = Validation(task.id, str(task.path), "ready")
    result.warnings = [
        f"source '{s.id}': revision '{s.hub.revision}' of hub dataset {s.hub.repo} can move; "
        "name its commit (40 hex digits, which `biobench data fetch` prints)"
        for s in task.spec.all_sources
        if s.hub is not None and not s.hub.pinned
    ]
    try:
        read = read_counted(task, data_dir)
    except DataUnavailableError as error:
        result.state, result.remedy = data_state(task, data_dir), error.hint
        places = (locate(source, data_folder(data_dir)).folder for source in task.spec.all_sources)
        result.looked_for = list(dict.fromkeys(map(str, places)))
        return result
    result.source, result.labels, result.counts = read.place.source.id, list(read.labels), read.counts
    result.unexpressed, result.problems = read.unexpressed, read.problems
    return result


def data_state(task: LoadedTask, data_dir: str | Path | None) -> State:
    """ready, missing or agreement, judged by the presence of files alone (nothing is read, nothing raised)."""
    if any(locate(source, data_folder(data_dir)).complete for source in task.spec.all_sources):
        return "ready"
    return "missing" if task.spec.access == "open" else "agreement"


def find(task: LoadedTask, data_dir: str | Path | None) -> LocatedFiles | None:
    """The source that a run would use, or None. Raises DataFormatError for a folder that is there in part."""
    try:
        return choose(task, data_folder(data_dir))
    except DataUnavailableError:
        return None
