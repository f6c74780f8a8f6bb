"""Verifying a task's data: hash, counts, and what is the same or nearly the same across splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from biobench.data.catalog import LoadedTask
from biobench.data.hashing import release_of, release_problem
from biobench.data.load import counted, hashed_parts
from biobench.data.locate import choose, data_folder
from biobench.schema.document import Document
from biobench.schema.kind import is_numeric, traits_of
from biobench.schema.task import SPLITS, TaskSpec

_WORD = re.compile(r"\w+")
JACCARD = 0.8
"""Two texts whose sets of words overlap this much are near-duplicates."""
_FEWEST = 5
"""Texts with fewer distinct words are too short to be called near-duplicates."""
_ROWS = 256
"""Texts that are compared with all others at once."""


def normalised(text: str) -> str:
    """Lower case, white space collapsed: what 'verbatim' means here."""
    return " ".join(text.lower().split())


def same(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Places of texts in `left` that also stand in `right`; empty ones aside."""
    known = {normalised(text) for text in right} - {""}
    return [i for i, text in enumerate(left) if normalised(text) in known]


def near(left: Sequence[str], right: Sequence[str], threshold: float = JACCARD) -> list[int]:
    """Places of texts in `left` whose words and those of a text in `right` have a Jaccard
    similarity of `threshold`.
    """
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer

    sides = (left, right)
    if not all(any(_WORD.search(text) for text in side) for side in sides):
        return []
    vectorizer = CountVectorizer(binary=True, token_pattern=_WORD.pattern, dtype=np.int32).fit(
        [*left, *right]
    )
    ours, theirs = (vectorizer.transform(side) for side in sides)
    sizes, others = (np.asarray(words.sum(axis=1)).ravel() for words in (ours, theirs))
    columns, places = theirs.T.tocsr(), list[int]()
    for begin in range(0, len(left), _ROWS):
        rows = slice(begin, begin + _ROWS)
        shared = (ours[rows] @ columns).toarray()
        alike = shared >= threshold * (sizes[rows, None] + others - shared)
        alike &= (sizes[rows, None] >= _FEWEST) & (others >= _FEWEST)
        places += (begin + np.flatnonzero(alike.any(axis=1))).tolist()
    return places


_PAIRS = (("test", "train"), ("validation", "train"), ("test", "validation"))


@dataclass(slots=True)
class Finding:
    """Something in the data that a reader of the scores should know."""

    name: str
    number: int
    known: int
    """The number that the spec's `findings` already knows of."""
    what: str
    examples: list[str] = field(default_factory=list)
    """Ids, never text."""

    @property
    def alarms(self) -> bool:
        """More of it than the spec knows."""
        return self.number > self.known


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
    counts: dict[str, dict[str, int]]
    unexpressed: dict[str, dict[str, int]]
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


def verify(task: LoadedTask, data_dir: str | Path | None) -> DataReport:
    """Read the task's data whole, re-count it, hash it, and look for leaks.

    Findings, none of which makes the data unclean: `duplicates.A-B` (texts of A that stand in B,
    white space and case aside), `near.A-B` (words overlap by a Jaccard similarity of 0.8; verbatim
    ones included), `groups.A-B` (groups in both), `twice.A` (texts that repeat inside a split),
    `empty.A`, `unsupported.test` (labels without a test document). Raises DataUnavailableError and
    DataFormatError as loading does.
    """
    folder = data_folder(data_dir)
    place = choose(task, folder)
    parts, digest = hashed_parts(task, place, folder)
    read = counted(task, place, *parts[task.fold])
    findings = audit(task.spec, read.documents, read.labels, task.spec.findings)
    if task.spec.access == "agreement":
        for finding in findings:
            finding.examples = []  # ids of patients and notes stay in the folder
    return DataReport(
        task=task.id,
        source=place.source.id,
        folder=str(place.folder),
        data_hash=digest,
        release=release_of(task, place.source.id, digest),
        counts=read.counts,
        unexpressed=read.unexpressed,
        problems=[*filter(None, [release_problem(task, place.source.id, digest)]), *read.problems],
        findings=findings,
    )


def audit(
    spec: TaskSpec,
    documents: dict[str, list[Document]],
    labels: tuple[str, ...],
    known: dict[str, int],
) -> list[Finding]:
    """All findings with a number above 0, in the order of the docstring of `verify`.

    Tasks that ask for a number have no labels that could lack a test document.
    """
    texts = {name: [d.reading for d in documents[name]] for name in SPLITS}
    findings: list[Finding] = []

    def add(name: str, examples: list[str], what: str) -> None:
        if examples:
            findings.append(Finding(name, len(examples), known.get(name, 0), what, examples[:5]))

    for a, b in _PAIRS:
        ids = [documents[a][i].id for i in same(texts[a], texts[b])]
        add(f"duplicates.{a}-{b}", ids, f"{a} texts that occur verbatim in {b}")
    for a, b in _PAIRS:
        ids = [documents[a][i].id for i in near(texts[a], texts[b])]
        add(f"near.{a}-{b}", ids, f"{a} texts that are nearly the same as one in {b}")
    for a, b in _PAIRS:
        shared = {d.group for d in documents[a]} & {d.group for d in documents[b]}
        add(f"groups.{a}-{b}", sorted(shared), f"groups with documents in {a} and {b}")
    for name in SPLITS:
        first: dict[str, str] = {}
        repeats = [d.id for d in documents[name] if first.setdefault(d.reading, d.id) != d.id]
        add(f"twice.{name}", repeats, f"{name} texts that repeat another")
    for name in SPLITS:
        add(
            f"empty.{name}",
            [d.id for d in documents[name] if not d.text.strip()],
            f"{name} documents without text",
        )
    gold = {s.label for d in documents["test"] for s in d.spans} | {
        x for d in documents["test"] for x in d.labels
    }
    if (
        not is_numeric(spec.type) and not traits_of(spec.type).ranked
    ):  # concepts without a query are no mistake
        add(
            "unsupported.test",
            [label for label in labels if label not in gold],
            "labels without gold in test",
        )
    return findings
