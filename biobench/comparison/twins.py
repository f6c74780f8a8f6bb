"""Matched twins or not: what the training ledgers of two models say, where both have one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from biobench.core.packages import check_ours
from biobench.errors import UsageError
from biobench.report.details.ledgers import FILE
from biobench.report.entrants import Entrant
from biobench.report.escape import plain


@dataclass(frozen=True, slots=True)
class Twins:
    """matched: every quantity on which twins must agree is equal. differing: the others, by name.
    noise_pair: matched with equal objectives too, so that only the training seed differs."""

    first: str
    second: str
    matched: bool
    noise_pair: bool
    differing: tuple[str, ...]

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        pair = f"{self.first} and {self.second}"
        if not self.matched:
            return f"Not matched twins: {pair} differ in {', '.join(self.differing)} (training ledgers)."
        how = "differ in the training seed alone" if self.noise_pair else "were trained alike but for the objective"
        return f"Matched twins: {pair} {how} (training ledgers)."


def find_ledgers(
    texts: Sequence[str], entrants: Sequence[Entrant], named: Mapping[str, str | Path] | None
) -> dict[str, Path]:
    """Label -> ledger: as named (by text or label), else the one in the model's folder.

    Models without one are left out. Raises UsageError for a name or a path that does not exist.
    """
    paths: dict[str, Path] = {}
    left = dict(named or {})
    for text, entrant in zip(texts, entrants, strict=True):
        for key in (text, entrant.label, entrant.model):
            if key in left:
                paths[entrant.label] = Path(left.pop(key)).expanduser()
        folder = Path(os.path.expanduser(text))
        if entrant.label not in paths and any(os.path.isfile(folder / part / FILE) for part in ("", "model")):
            paths[entrant.label] = folder
    if left:
        raise UsageError(
            f"--ledger names '{plain(next(iter(left)))}', which is not compared here",
            hint="write --ledger MODEL=PATH with a model of this comparison",
        )
    for path in paths.values():
        if not path.exists():
            raise UsageError(f"there is no ledger at '{path}'", hint=f"give a {FILE} or the folder that holds it")
    return paths


def compare_ledgers(ledgers: Mapping[str, Path]) -> tuple[Twins, ...]:
    """A verdict for each pair that has ledgers. Raises StoreError where a ledger is damaged."""
    if len(ledgers) < 2:
        return ()
    check_ours("trainer")
    from trainer.ledger import compare, read_ledger

    read = {label: read_ledger(path) for label, path in ledgers.items()}
    pairs = []
    for a, b in combinations(read, 2):
        diff = compare(read[a], read[b])
        pairs.append(Twins(a, b, diff.matched, diff.noise_pair, tuple(row.name for row in diff.differing)))
    return tuple(pairs)
