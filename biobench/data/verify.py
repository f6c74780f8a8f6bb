"""Verifying a task's data: hash, counts, and findings."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from biobench.data.catalog import LoadedTask
from biobench.data.checks.findings import Finding, audit, withhold
from biobench.data.counts import Counts
from biobench.data.hashing import release_of, release_problem
from biobench.data.load import counted, hashed_parts
from biobench.data.locate import DataRoot, choose, data_folder


@dataclass(slots=True)
class DataReport:
    """The outcome of verifying one task."""

    task: str
    source: str
    folder: str
    data_hash: str
    """As in records: that of the documents, or of those of all splits together where the spec asks
    for several.
    """
    release: str | None
    """The known release that the documents are; None where they are none, or the spec knows none.
    """
    counts: Counts
    unexpressed: Counts
    """Split to label to mentions of the corpus that are in no score."""
    problems: list[str]
    """How counts and release contradict the spec, one line each."""
    findings: list[Finding]

    @property
    def clean(self) -> bool:
        """Counts and release agree. Findings may be so in the official release."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return asdict(self) | {
            "clean": self.clean,
            "alarms": [f.name for f in self.findings if f.alarms],
        }


def verify(task: LoadedTask, data_dir: DataRoot) -> DataReport:
    """Read the task's data whole, re-count it, hash it, and look for leaks.

    Findings, none of which makes the data unclean: `duplicates.A-B` (texts of A that stand in B,
    white space and case aside), `near.A-B` (words overlap by a Jaccard similarity of 0.8; verbatim
    ones included), `groups.A-B` (groups in both), `twice.A` (texts that repeat inside a split),
    `empty.A`, `unsupported.test` (labels without a test document), `unsupported.train` (labels with
    a test document and none to learn from), `dropped.A` (mentions that the decoding of tags drops),
    `edges` (mentions that begin or end inside a word or with a blank), `alike` (labels that look
    alike), `quotes` (quoted fields over several lines). Raises DataUnavailableError and
    DataFormatError as loading does.
    """
    folder = data_folder(data_dir)
    location = choose(task, folder)
    folds, digest = hashed_parts(task, location, folder)
    read = counted(task, location, *folds[task.fold])
    findings = audit(task.spec, read.documents, read.labels, task.spec.findings)
    problem = release_problem(task, location.source.id, digest)
    if task.spec.access == "agreement":
        withhold(findings)
    return DataReport(
        task=task.id,
        source=location.source.id,
        folder=str(location.folder),
        data_hash=digest,
        release=release_of(task, location.source.id, digest),
        counts=read.counts,
        unexpressed=read.unexpressed,
        problems=read.problems if problem is None else [problem, *read.problems],
        findings=findings,
    )
