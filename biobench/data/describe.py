"""A task in words and numbers, as `tasks show` prints it, and whether its data is what the spec
declares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.checks.findings import Finding, audit_gold, withhold
from biobench.data.counts import Counts
from biobench.data.load import read_counted
from biobench.data.locate import HOMEPAGE, DataRoot
from biobench.errors import DataUnavailableError
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec

_SHOWN = (
    "id",
    "version",
    "name",
    "language",
    "type",
    "corpus",
    "unit",
    "labels",
    "seeds",
    "protocol",
    "training",
    "head",
    "metric",
    "gate",
    "access",
    "licence",
    "homepage",
    "citation",
    "notes",
    "deviations",
    "published_as",
    "variant_of",
    "declared_counts",
    "sources",
    "path",
)
PLACEHOLDERS = {"licence": "unknown", "homepage": HOMEPAGE, "citation": "unknown"}
"""What a new draft says where only its author knows."""
_SAMPLES = 3
_LONGEST_SAMPLE = 400
"""Characters."""
_WITHHELD = "the data is under an agreement, so none of its texts is printed"
State = Literal["ready", "missing", "agreement"]


@dataclass(slots=True)
class Validation:
    """What came out of validating one task. `problems` is empty when all is well."""

    task: str
    path: str
    state: State = "ready"
    source: str | None = None
    labels: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)
    unexpressed: Counts = field(default_factory=dict)
    """Split to label to mentions of the corpus that are in no score."""
    findings: list[Finding] = field(default_factory=list)
    """Of `audit_gold`, those that the spec does not know."""
    unfilled: list[str] = field(default_factory=list)
    """Fields that still hold what a new draft puts there."""
    problems: list[str] = field(default_factory=list)
    remedy: str | None = None


def validate(task: LoadedTask | str | Path, data_dir: DataRoot = None) -> Validation:
    """Open the data of a task (a shipped one by its id, or of a YAML file) where it is at hand,
    compare its counts, and look for gold that is dropped, cut or untrained.

    >>> validate("my_notes.yaml", "corpora").problems  # empty where all is well

    A missing corpus is a state, not a problem. Raises SpecError with file and line where the spec
    is wrong, and DataFormatError when files are there and are wrong.
    """
    task = task if isinstance(task, LoadedTask) else load_task(task)
    try:
        read = read_counted(task, data_dir)
    except DataUnavailableError as error:
        return Validation(
            task.id,
            str(task.path),
            _absent(task),
            unfilled=unfilled(task.spec),
            remedy=error.hint,
        )
    findings = audit_gold(task.spec, read.documents, read.labels, task.spec.findings)
    alarms = [finding for finding in findings if finding.alarms]
    if task.spec.access == "agreement":
        withhold(alarms)
    return Validation(
        task=task.id,
        path=str(task.path),
        source=read.location.source.id,
        labels=list(read.labels),
        counts=read.counts,
        unexpressed=read.unexpressed,
        findings=alarms,
        unfilled=unfilled(task.spec),
        problems=read.problems,
    )


def unfilled(spec: TaskSpec) -> list[str]:
    """The fields that a draft leaves to its author, and the author to others."""
    names = [name for name, value in PLACEHOLDERS.items() if getattr(spec, name) == value]
    if spec.obtain is not None and spec.obtain.needs == PLACEHOLDERS["licence"]:
        names.insert(0, "obtain")
    return names


def _absent(task: LoadedTask) -> State:
    return "missing" if task.spec.access == "open" else "agreement"


def describe(task: LoadedTask, data_dir: DataRoot = None) -> dict[str, Any]:
    """Everything worth knowing of a task.

    Keys: the spec's descriptive fields, `deviations` from the compared protocol (empty: none
    known), protocol, labels (or their rule, until the data is read), declared counts, `data`
    (state, source, folder, remedy), and with available data `counts` (per split, label supports
    included), `unexpressed` (mentions that are in no score), `count_problems` and `samples` (from
    train: text, mentions or labels). Data under an agreement has no samples, and `samples_withheld`
    says why.
    """
    spec = task.spec
    plain = spec.model_dump() | {
        "corpus": spec.corpus_id,
        "training": spec.training.model_dump(exclude_none=True),
        "metric": spec.metric.model_dump(exclude_none=True),
        "gate": spec.gate.expect,
        "declared_counts": spec.counts,
        "sources": [s.id for s in spec.all_sources],
        "path": str(task.path),
    }
    result = {name: plain[name] for name in _SHOWN}
    result |= {"samples": [], "samples_withheld": ""}
    if spec.access == "agreement":
        result["samples_withheld"] = _WITHHELD
    try:
        read = read_counted(task, data_dir)
    except DataUnavailableError as error:
        return result | {"data": {"state": _absent(task), "remedy": error.hint}}
    if spec.access != "agreement":
        marked_first = sorted(read.documents["train"], key=lambda d: not (d.spans or d.labels))
        result["samples"] = list(map(sample, marked_first[:_SAMPLES]))
    return result | {
        "data": {
            "state": "ready",
            "source": read.location.source.id,
            "folder": str(read.location.folder),
        },
        "labels": list(read.labels),
        "counts": read.counts,
        "unexpressed": read.unexpressed,
        "count_problems": read.problems,
    }


def sample(document: Document) -> dict[str, Any]:
    """One document for the eye: id, text (cut at 400 characters), mentions with surface,
    labels.
    """
    shown = {"id": document.id, "split": document.split}
    if document.query:
        shown["first"] = document.query[:_LONGEST_SAMPLE]
    shown["text"] = document.text
    if len(document.text) > _LONGEST_SAMPLE:
        shown["text"] = document.text[: _LONGEST_SAMPLE - 1] + "…"
    mentions = [[document.text[s.start : s.end], s.label] for s in document.spans]
    return {**shown, "mentions": mentions, "labels": list(document.labels)}
