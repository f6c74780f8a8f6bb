"""What is to be compared, declared before looking."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from biobench.errors import SpecError
from biobench.reporting.row import AverageName
from biobench.schema.strict import Strict, load_yaml_model

if TYPE_CHECKING:
    from biobench.comparison.tasks import CommonTasks


class DeclaredPlan(Strict):
    """A declared comparison. What it does not name is exploratory."""

    pairs: tuple[tuple[str, str], ...] = Field(min_length=1)
    """The pairs to be tested, by the models' names as in the report; corrected for each other
    alone.
    """
    average: AverageName | None = None
    suite: str | None = None
    """fr, en, needle or all."""
    seeds: tuple[int, ...] = ()
    """The seeds that every run has; empty: whichever there are."""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    rope: float = Field(default=0.0, ge=0, lt=100)
    """Points within which two models count as the same."""
    pooled: bool = False
    """One verdict over several languages."""

    @property
    def models(self) -> tuple[str, ...]:
        """Every model named, in order."""
        return tuple(dict.fromkeys(name for pair in self.pairs for name in pair))

    @property
    def hash(self) -> str:
        """sha256 of what is declared, whatever the layout of the file; its first 16 digits."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def declares(self, first: str, second: str) -> bool:
        """Whether this pair is declared, in either order."""
        return {first, second} in map(set, self.pairs)

    def departures(self, common: CommonTasks) -> list[str]:
        """Where the runs are not those that were declared."""
        if not self.seeds:
            return []
        lines = []
        for label in sorted(common.labels):
            tasks = []
            for cell in common.cells_of(label):
                if cell.group is not None and set(cell.seeds) != set(self.seeds):
                    tasks.append(cell.info.id)
            if tasks:
                lines.append(
                    f"exploratory: {label} has other seeds than the plan declares on "
                    f"{', '.join(tasks)}"
                )
        return lines


def load_plan(path: str | Path) -> DeclaredPlan:
    """The plan in a YAML file. Raises SpecError with file, line, value and fix."""
    document = load_yaml_model(path, DeclaredPlan)
    for pair in document.pairs:
        if len(set(pair)) < 2:
            raise SpecError(
                f"{path}: pair {list(pair)} names one model twice", hint="name two models"
            )
    return document
