"""BaselineRecord: what policies without skill reach on a task, what the oracle reaches, and the
gate's verdict.

Scores are fractions (0-1). The record holds no text, no document ids and no gold, so it may be kept
for agreement-bound data too.
"""

from __future__ import annotations

from typing import Literal

from biobench.schema.record import SliceScores
from biobench.schema.strict import Strict

BASELINE_VERSION = 4
"""Bumped by hand when a policy, a test or a threshold of the gate changes; older verdicts are made
anew.
"""


UNITS = 8
"""Groups (or documents) that a test of the gate needs: fewer have too few orders for a small p."""
LENGTH, ORDER = "length only", "id order"
"""Policies by what is not in the words: the length of a text, and the ids and order of the
documents. The second is no baseline of an encoder, which sees neither: reports leave it out.
"""
READERS = ("bag of words", "training dictionary", "token overlap", "option words", "letter n-grams")
"""Policies that read the words of the test texts; a test finds them by what they predict."""
SKILLED = (*READERS, LENGTH, ORDER, "length difference")
"""Policies that may have skill: a model at their score need not be guessing. The last two stand in
older verdicts alone.
"""


AFTER_FAILED_GATE = (
    "if the test split is too small, fetch all of it or add documents; if its text is not meant to "
    "tell the labels, declare `gate: {expect: chance}` in the spec"
)
"""What a user can do after a verdict that refuses the runs."""


class PolicyScores(Strict):
    """One policy's scores on the full test split."""

    name: str
    words: str
    """What the policy does, in a line."""
    kind: Literal["floor", "ceiling"]
    draws: int
    """How often a random policy was drawn; its scores are means over the draws. 1: nothing is
    random.
    """
    scores: dict[str, float]
    known: dict[str, float] = {}
    """Scores whose value is known beforehand, from label counts alone."""
    slices: dict[str, SliceScores] = {}
    """Its scores on the parts of the gold that the full training data make."""


class GateCheck(Strict):
    """One question that the gate asks."""

    name: str
    passed: bool
    words: str
    """The answer with its figures."""
    p: float | None = None
    """Of the permutation test, where there is one."""
    flagged: bool = False
    """Nothing to refuse the task for, but a reader of its scores must know it."""


class BaselineRecord(Strict):
    """The gate of one task on one state of its data."""

    floor_version: int = BASELINE_VERSION
    task: str
    task_version: int
    task_hash: str
    data_hash: str
    source: str
    language: str = ""
    corpus: str = ""
    paper: str = "micro_f1"
    """The average that published scores are compared with."""
    type: str
    labels: tuple[str, ...]
    gold_labels: tuple[str, ...]
    expect: Literal["text_informative", "chance", "beyond_words"]
    passed: bool
    policies: tuple[PolicyScores, ...]
    checks: tuple[GateCheck, ...]
    test_documents: int
    test_groups: int
    seed: int
    permutations: int
    seconds: float
    """Wall seconds without reading the data."""
    biobench: str
    packages: dict[str, str]
    made: str
    """ISO 8601, UTC."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the gate fails, a line each; empty where it passes."""
        return tuple(check.words for check in self.checks if not check.passed)

    @property
    def flags(self) -> tuple[str, ...]:
        """What a reader of the scores must know though the task passes, a line each."""
        return tuple(check.words for check in self.checks if check.passed and check.flagged)
