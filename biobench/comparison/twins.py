"""Matched twins or not: what the training ledgers of two models say, where both have one."""

from __future__ import annotations

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
        names = {"first": self.first, "second": self.second}
        if not self.matched:
            form = "Not matched twins: {first} and {second} differ in {what} (training ledgers)."
            return form.format(what=", ".join(self.differing), **names)
        if self.noise_pair:
            return "Matched twins: {first} and {second} differ in the training seed alone (training ledgers).".format(
                **names
            )
        form = "Matched twins: {first} and {second} were trained alike but for the objective (training ledgers)."
        return form.format(**names)


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
        folder = Path(text).expanduser()
        if entrant.label not in paths and any((folder / part / FILE).is_file() for part in ("", "model")):
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
    from trainer.ledger.fields import read_ledger
    from trainer.ledger.twins import compare

    read = {label: read_ledger(path) for label, path in ledgers.items()}
    pairs = []
    for a, b in combinations(read, 2):
        diff = compare(read[a], read[b])
        pairs.append(Twins(a, b, diff.matched, diff.noise_pair, tuple(row.name for row in diff.differing)))
    return tuple(pairs)
