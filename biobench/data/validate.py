"""Counting what was read and holding it against what the spec declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from biobench.data.catalog import LoadedTask
from biobench.data.load import read_source
from biobench.data.locate import Located, choose, default_data_dir, locate
from biobench.errors import DataUnavailableError
from biobench.schema.document import Document
from biobench.schema.task import SPLITS, TaskSpec

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
    problems: list[str] = field(default_factory=list)
    remedy: str | None = None
    looked_for: list[str] = field(default_factory=list)
    """Where the data was looked for and is not: the folder of each source."""


def count(documents: Sequence[Document], labels: Sequence[str], ner: bool) -> dict[str, int]:
    """Documents, groups, and for NER tokens, mentions and mentions per label (distinct ones); else documents
    with any label and per label. Labels without support are left out."""
    result = {"documents": len(documents), "groups": len({d.group for d in documents})}
    per_label = dict.fromkeys(labels, 0)
    if ner:
        result["tokens"] = sum(len(d.tokens) for d in documents)
        result["mentions"] = sum(len(d.spans) for d in documents)
        for d in documents:
            for span in d.spans:
                per_label[span.label] += 1
    else:
        result["labelled"] = sum(bool(d.labels) for d in documents)
        for d in documents:
            for label in d.labels:
                per_label[label] += 1
    return result | {label: n for label, n in per_label.items() if n}


def compare_counts(spec: TaskSpec, counted: Mapping[str, Mapping[str, int]], source: str) -> list[str]:
    """One line per count that differs from the declared one; what is not declared is not compared, and nothing
    is when the counts were made on another source."""
    problems: list[str] = []
    if spec.counts_source not in (None, source):
        return problems
    for split, expected in spec.counts.items():
        if split not in counted:
            problems.append(f"counts.{split}: there is no such split")
            continue
        for name, number in expected.items():
            found = counted[split].get(name, 0)
            if found != number:
                problems.append(f"counts.{split}.{name}: the spec says {number}, source '{source}' has {found}")
    return problems


def validate_task(task: LoadedTask, data_dir: str | Path | None) -> Validation:
    """Open the task's data where it is at hand and compare its counts.

    A missing corpus is a state, not a problem. Raises DataFormatError when files are there and are wrong.
    """
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    result = Validation(task.id, str(task.path), "ready")
    try:
        place = choose(task, folder)
    except DataUnavailableError as error:
        result.state = "missing" if task.spec.access == "open" else "agreement"
        result.remedy = error.hint
        places = (locate(source, folder).folder for source in task.spec.all_sources)
        result.looked_for = list(dict.fromkeys(map(str, places)))
        return result
    labels, documents = read_source(task, place)
    result.source = place.source.id
    result.labels = list(labels)
    result.counts = {name: count(documents[name], labels, task.spec.is_ner) for name in SPLITS}
    result.problems = compare_counts(task.spec, result.counts, place.source.id)
    return result


def data_state(task: LoadedTask, data_dir: str | Path | None) -> State:
    """ready, missing or agreement, judged by the presence of files alone (nothing is read, nothing raised)."""
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    if any(locate(source, folder).complete for source in task.spec.all_sources):
        return "ready"
    return "missing" if task.spec.access == "open" else "agreement"


def find(task: LoadedTask, data_dir: str | Path | None) -> Located | None:
    """The source that a run would use, or None. Raises DataFormatError for a folder that is there in part."""
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    try:
        return choose(task, folder)
    except DataUnavailableError:
        return None


def as_dict(validation: Validation) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {name: getattr(validation, name) for name in validation.__dataclass_fields__}
