"""`verdict` in French: the same sentences in the same order with the same numbers."""

from __future__ import annotations

from biobench.comparison.result import Compared
from biobench.comparison.verdict import verdict
from biobench.report.languages.notes_fr import in_french


def verdict_fr(comparison: Compared) -> tuple[str, ...]:
    """The sentences of `verdict`, in French."""
    return tuple(in_french(sentence) for sentence in verdict(comparison))
