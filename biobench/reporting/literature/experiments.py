"""Published results beyond the task tables: each with its source and what of ours it compares
with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from biobench.reporting.literature.published import EXPERIMENTS, Paper, folders_for, papers
from biobench.schema.source import fail
from biobench.schema.strict import Strict

Unit = Literal[
    "percent", "points", "probability", "ratio", "examples", "steps", "models", "million parameters"
]

HIGHEST = {"percent": 100.0, "probability": 1.0}
"""Unit -> its largest value; the smallest is 0. The others have no bounds."""


class Column(Strict):
    """A column of an experiment's table."""

    name: str
    unit: Unit
    decimals: int = Field(1, ge=0, le=6)
    """Decimals that are printed."""


class ConditionLine(Strict):
    """A condition and its values, one a column; null where none is printed."""

    name: str
    values: list[Annotated[float, Field(allow_inf_nan=False)] | None]


class Counterpart(Strict):
    """What of ours the published values compare with."""

    what: str
    commands: list[str] = []


class Experiment(Strict):
    """One published table or figure. Scores are in the unit of their column, as printed."""

    RENAMED = {"beside": "counterpart"}
    id: str
    title: str
    suite: Literal["fr", "en", "needle"] | None = None
    """Suite under which a report shows it; null: with all of them only."""
    setting: str
    """Models, data, seeds and measure."""
    columns: list[Column] = Field(min_length=1)
    lines: list[ConditionLine] = Field(min_length=1)
    counterpart: Counterpart
    notes: list[str] = []

    @model_validator(mode="after")
    def _rectangular(self) -> Experiment:
        for line in self.lines:
            if len(line.values) != len(self.columns):
                raise fail(
                    f"'{line.name}' of '{self.id}' has {len(line.values)} values for "
                    f"{len(self.columns)} columns",
                    "one value a column, null where none is printed",
                )
            for column, value in zip(self.columns, line.values, strict=True):
                highest = HIGHEST.get(column.unit)
                if value is not None and highest is not None and not 0 <= value <= highest:
                    raise fail(
                        f"{value} of '{line.name}' is not a {column.unit}",
                        f"a number from 0 to {highest:g}",
                    )
        return self

    def cells(self, line: ConditionLine) -> list[str]:
        """The line's values as printed, a dash where there is none."""
        cells = []
        for column, value in zip(self.columns, line.values, strict=True):
            cells.append("–" if value is None else f"{value:,.{column.decimals}f}")
        return cells

    @property
    def headings(self) -> list[str]:
        """Column names with their units."""
        return [f"{column.name}, {column.unit}".replace("percent", "%") for column in self.columns]


class Absent(Strict):
    """A baseline that a publication names without printing a value that compares with ours."""

    model: str
    why: str


class PublishedExperiments(Paper):
    """One file: the experiments of one publication."""

    experiments: list[Experiment] = []
    without_values: list[Absent] = []
    """Baselines that are named but have no values."""

    def below(self, experiment: Experiment) -> list[str]:
        """What stands below an experiment's table: setting, remarks, and what of ours it compares
        with.
        """
        ours = experiment.counterpart
        commands = [f"Command: {command}" for command in ours.commands]
        return [experiment.setting, *experiment.notes, f"Here: {ours.what.rstrip('.')}.", *commands]

    @property
    def absent(self) -> list[str]:
        """A line for each baseline that is named but has no values."""
        return [f"{a.model}: no published values. {a.why}" for a in self.without_values]


def experiments_for(results_dir: Path) -> tuple[PublishedExperiments, ...]:
    """The shipped publications' experiments and those of the results folder's own. Raises as
    `papers`.
    """
    return tuple(
        paper for paper, _ in papers(folders_for(results_dir, EXPERIMENTS), PublishedExperiments)
    )
