"""Opening a task's data and comparing it with what the spec declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import read_counted
from biobench.errors import DataUnavailableError


@dataclass(slots=True)
class Validation:
    """What came out of validating one task. `problems` is empty when all is well."""

    task: str
    path: str
    state: Literal["ready", "missing", "agreement"] = "ready"
    source: str | None = None
    labels: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    unexpressed: dict[str, dict[str, int]] = field(default_factory=dict)
    """Split to label to mentions of the corpus that are in no score."""
    problems: list[str] = field(default_factory=list)
    remedy: str | None = None


def validate(path_or_id: str | Path, data_dir: str | Path | None = None) -> Validation:
    """`validate_task` of a shipped task or a YAML file. Raises SpecError with file and line where the spec is wrong."""
    return validate_task(load_task(path_or_id), data_dir)


def validate_task(task: LoadedTask, data_dir: str | Path | None) -> Validation:
    """Open the task's data where it is at hand and compare its counts.

    A missing corpus is a state, not a problem. Raises DataFormatError when files are there and are wrong.
    """
    try:
        read = read_counted(task, data_dir)
    except DataUnavailableError as error:
        state: Literal["missing", "agreement"] = "missing" if task.spec.access == "open" else "agreement"
        return Validation(task.id, str(task.path), state, remedy=error.hint)
    labels, source = list(read.labels), read.place.source.id
    return Validation(task.id, str(task.path), "ready", source, labels, read.counts, read.unexpressed, read.problems)
