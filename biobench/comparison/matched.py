"""Matched pretraining pairs: what the training ledgers of two models say, where both have one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from biobench.reporting.details.ledgers import FILE, ledger_table
from biobench.reporting.entrants import Entrant

CHECKPOINTS = (
    "This compares checkpoints: what it shows holds for these weights. A claim about how they were "
    "pretrained needs several pretraining seeds of each (`biobench study`)."
)


def matched_pairs(
    names: Sequence[str], entrants: Sequence[Entrant], ledgers: Mapping[str, str | Path]
) -> tuple[str, ...]:
    """A sentence for each pair of models with ledgers: those of `ledgers` (by name), else of the
    models' folders.

    Raises StoreError where a ledger is damaged.
    """
    paths: dict[str, Path] = {}
    for name, entrant in zip(names, entrants, strict=True):
        folder = Path(os.path.expanduser(name))
        if name in ledgers:
            paths[entrant.label] = Path(ledgers[name])
        elif any(os.path.isfile(folder / below / FILE) for below in ("", "model")):
            paths[entrant.label] = folder
    lines = []
    for a, b in combinations(sorted(paths), 2):
        diff = ledger_table(paths[a], paths[b])
        if not diff.matched:
            differing = ", ".join(row.name for row in diff.differing)
            lines.append(
                f"Not matched twins: {a} and {b} differ in {differing} (training ledgers)."
            )
            continue
        relation = "were trained alike but for the objective"
        if diff.noise_pair:
            relation = "differ in the training seed alone"
        lines.append(f"Matched twins: {a} and {b} {relation} (training ledgers).")
    if lines:
        lines.append(CHECKPOINTS)
    return tuple(lines)
