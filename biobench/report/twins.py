"""Matched twins or not: what the training ledgers of two models say, where both have one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import biobench
from biobench.errors import StoreError, UsageError
from biobench.report.entrants import Entrant
from biobench.report.escape import plain

FILE = "ledger.json"


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
        if self.noise_pair:
            return f"Matched twins: {pair} differ in the training seed alone (training ledgers)."
        return f"Matched twins: {pair} were trained alike but for the objective (training ledgers)."


def find_ledgers(
    given: Sequence[str], entrants: Sequence[Entrant], named: Mapping[str, str | Path] | None
) -> dict[str, Path]:
    """Label -> ledger: as named (by the text given or the label), else the one in the model's folder.

    Models without one are left out. Raises UsageError for a name or a path that does not exist.
    """
    found: dict[str, Path] = {}
    left = dict(named or {})
    for text, entrant in zip(given, entrants, strict=True):
        for key in (text, entrant.label, entrant.model):
            if key in left:
                found[entrant.label] = Path(left.pop(key)).expanduser()
        folder = Path(text).expanduser()
        if entrant.label not in found and any((folder / part / FILE).is_file() for part in ("", "model")):
            found[entrant.label] = folder
    if left:
        raise UsageError(
            f"--ledger names '{plain(next(iter(left)))}', which is not compared here",
            hint="write --ledger MODEL=PATH with a model of this comparison",
        )
    for path in found.values():
        if not path.exists():
            raise UsageError(f"there is no ledger at '{path}'", hint=f"give a {FILE} or the folder that holds it")
    return found


def compare_ledgers(ledgers: Mapping[str, Path]) -> tuple[Twins, ...]:
    """A verdict for each pair that has ledgers. Raises StoreError where a ledger is damaged."""
    if len(ledgers) < 2:
        return ()
    read_ledger, compare = _trainer()
    read = {label: read_ledger(path) for label, path in ledgers.items()}
    found = []
    for a, b in combinations(read, 2):
        diff = compare(read[a], read[b])
        found.append(Twins(a, b, diff.matched, diff.noise_pair, tuple(row.name for row in diff.differing)))
    return tuple(found)


def _trainer() -> tuple[Any, Any]:
    """`read_ledger` and `compare` of our trainer. Raises UsageError where another package has its name."""
    import trainer

    # other distributions use the import name too
    if Path(trainer.__file__ or "").resolve().parents[1] != Path(biobench.__file__).resolve().parents[1]:
        raise UsageError(
            f"the import name 'trainer' belongs to another package here ({trainer.__file__})",
            hint="uninstall that package, or install biobench in an environment of its own",
        )
    from trainer.ledger import read_ledger
    from trainer.twins import compare

    return read_ledger, compare


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """Two ledgers side by side. rows: (quantity, first, second, whether twins must agree on it)."""

    verdict: str
    matched: bool
    rows: tuple[tuple[str, str, str, bool], ...]


def ledger_table(first: Path, second: Path) -> LedgerTable:
    """Every quantity of two ledgers, and the verdict in one line. Raises StoreError where one is damaged."""
    read_ledger, compare = _trainer()
    try:
        diff = compare(read_ledger(first), read_ledger(second))
    except KeyError as error:
        raise StoreError(
            f"a ledger names no {error} seed", hint="export the run again with --resume", file=first
        ) from error
    return LedgerTable(diff.verdict, diff.matched, tuple((r.name, r.first, r.second, r.binding) for r in diff.rows))
