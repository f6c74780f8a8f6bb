"""Published scores: read from data files, the shipped ones and a results folder's own, checked, and
never edited.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from biobench.errors import SpecError
from biobench.kinds import metric_names
from biobench.schema.source import fail
from biobench.schema.strict import Strict, load_yaml_model, suggest
from biobench.schema.yaml12 import read_text, resolve_scalar
from biobench.stats import Estimand, Interval, t_from_se
from biobench.version import PACKAGE

SUITE_FOLDER = "suites"
"""Folder below the published one with papers whose values stand in the report of a suite alone."""
EXPERIMENTS = "experiments"
"""Folder below it with results beyond the task tables."""
FOLDER = "published"
"""Folder of a results folder that holds papers besides the shipped ones."""
UNDECIDED = "undecided"
"""`average_likely` where the evidence supports no average: comparable with none."""


_HINT = "results/published/README.md says what stands in the columns and in the YAML beside them"


class Paper(Strict):
    """What every file of a publication says of it."""

    id: str
    source: str
    url: str
    citation: str


def _check_average(name: str) -> str:
    averages = [*metric_names(), UNDECIDED]
    if name not in averages:
        raise fail(f"'{name}' is not an average", suggest(name, averages))
    return name


class _Line(Strict):
    """A row of a paper's CSV."""

    model: str
    size: str
    objective: str
    language: str
    task: str
    value_percent: float = Field(ge=0, le=100)
    average_claimed: Annotated[str, AfterValidator(_check_average)]
    average_likely: Annotated[str, AfterValidator(_check_average)]
    seeds: int | None = Field(ge=1)
    """Empty where the publication does not say."""
    sd_percent: float | None = Field(default=None, ge=0)
    """The printed standard deviation over the seeds; the column may be missing."""

    @model_validator(mode="after")
    def _spread_is_over_seeds(self) -> _Line:
        if self.sd_percent is not None and self.seeds is None:
            raise fail(
                f"sd_percent {self.sd_percent:g} of unknown seeds is no spread",
                "give the seeds that it is over, or no spread",
            )
        return self


class PublishedCheckpoint(Strict):
    """Where a published model's weights are to be had."""

    id: str
    """Of the hub: what `biobench run` takes."""
    licence: str | None = None
    """As its card states it; null where none was seen."""
    note: str | None = None


class PublishedHeader(Paper):
    """The YAML beside a paper's values."""

    values: str
    """CSV file beside this one."""
    decimals: int = Field(ge=0)
    """Decimals of the printed percentages."""
    caption: dict[str, str]
    """Language -> what the table's caption says of the average."""
    stated: list[str] | None = None
    """Languages whose caption itself names the claimed average; null: all of `caption`."""
    readings: dict[str, str]
    """Task -> which average we read the numbers as, and why."""
    parameters: dict[str, int] = {}
    """Model -> its number of parameters, where it is known."""
    hub: dict[str, PublishedCheckpoint] = {}
    """Model -> its weights, where they are public and known."""


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """One printed number. value: fraction (0-1); step: to which it was rounded, a fraction."""

    paper: str
    model: str
    size: str
    language: str
    task: str
    value: float
    step: float
    claimed: str
    likely: str
    seeds: int
    """Runs behind the number; 0 where the publication does not say."""
    caption: str
    reading: str
    source: str
    url: str = ""
    """Of the publication."""
    variant: str = ""
    """The paper's id, where several papers print values of one model."""

    parameters: int | None = None
    checkpoint: PublishedCheckpoint | None = None
    sd: float | None = None
    """The printed standard deviation over the seeds, a fraction; None where none is printed."""
    stated: bool = True
    """Whether the caption itself names the claimed average."""

    @property
    def seed_interval(self) -> Interval | None:
        """The 95% t interval over the printed seeds; None without a printed spread."""
        if self.sd is None or self.seeds < 2:
            return None
        return t_from_se(
            self.value,
            self.sd / math.sqrt(self.seeds),
            self.seeds - 1.0,
            n=self.seeds,
            estimand=Estimand.NEW_SEEDS,
        ).interval

    @property
    def is_stated(self) -> bool:
        """Whether the publication states the average that the value most likely is."""
        return self.stated and self.claimed == self.likely

    @property
    def comparable(self) -> str | None:
        """The average beside which it may be shown, None for none."""
        return None if self.likely == UNDECIDED else self.likely


def published_folder() -> Path:
    """The checkout's `results/published`, else the installed wheel's copy."""
    checkout = PACKAGE.parent / "results" / "published"
    if (PACKAGE.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return PACKAGE / "bundled" / "published"


def folders_for(results_dir: Path, below: str = "") -> list[Path]:
    """The shipped folder of papers and the results folder's own, where they are two."""
    folders = []
    for folder in (published_folder() / below, results_dir / FOLDER / below):
        if folder.is_dir() and folder.resolve() not in folders:
            folders.append(folder.resolve())
    return folders


def published_for(results_dir: Path) -> tuple[PublishedValue, ...]:
    """The values of the shipped papers and of the results folder's own.

    The values of a model that several papers print stay apart, as lines that bear the paper's id.
    Raises SpecError for a damaged file and for an id that another paper has.
    """
    return by_paper(load_published(*folders_for(results_dir)))


def by_paper(values: Iterable[PublishedValue]) -> tuple[PublishedValue, ...]:
    """The values; where several papers print some of a model, its `variant` is the paper's id."""
    values = tuple(values)
    sources: dict[str, set[str]] = defaultdict(set)
    for value in values:
        sources[value.model].add(value.paper)
    named = []
    for value in values:
        if len(sources[value.model]) > 1:
            value = replace(value, variant=value.paper)
        named.append(value)
    return tuple(named)


def published_state(results_dir: Path) -> str:
    """Changes when `published_for` or `experiments.experiments_for` would read something else."""
    state = []
    for below in ("", EXPERIMENTS):
        for folder in folders_for(results_dir, below):
            for path in sorted(folder.iterdir()):
                if path.suffix in (".yaml", ".csv"):
                    state.append((str(path), path.stat().st_mtime_ns, path.stat().st_size))
    return repr(state)


def load_published(*folders: Path) -> tuple[PublishedValue, ...]:
    """Every paper of the folders (default: the shipped one). Raises SpecError with file and
    line."""
    values: list[PublishedValue] = []
    for header, path in papers(folders or (published_folder(),), PublishedHeader):
        values += _values(path.parent / header.values, header)
    return tuple(values)


P = TypeVar("P", bound=Paper)


def papers(folders: Iterable[Path], form: type[P]) -> list[tuple[P, Path]]:
    """The checked YAML files of the folders; a publication that two folders hold (a clone beside a
    wheel) is one.

    Raises SpecError with file and line for a damaged file, and for an id that another publication
    has.
    """
    by_id: dict[str, tuple[P, Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")):
            paper = _paper(path, form, path.stat().st_mtime_ns, path.stat().st_size)
            namesake, file = by_id.get(paper.id, (paper, path))
            is_twice = file != path and file.parent == folder
            if namesake.citation != paper.citation or is_twice:
                hint = "give each paper an id of its own"
                raise SpecError(
                    f"the id '{paper.id}' is that of {file}",
                    hint=hint,
                    file=path,
                )
            by_id[paper.id] = paper, path
    return list(by_id.values())


@lru_cache(maxsize=64)
def _paper(
    path: Path,
    form: type[P],
    changed: int,
    size: int,
) -> P:
    """`changed` and `size` stand for the file's content."""
    return load_yaml_model(path, form)


def _values(path: Path, header: PublishedHeader) -> Iterator[PublishedValue]:
    """The values of a paper's CSV but for its rows `avg_<suite>`, the averages that it prints."""
    reader = csv.DictReader(
        read_text(path).splitlines(),
        restkey="more",
        restval="missing",
    )
    *columns, spread = _Line.model_fields
    if reader.fieldnames not in (columns, [*columns, spread]):
        hint = f"expected: {','.join(columns)}, and {spread} where the paper prints it"
        raise SpecError("has other columns", hint=hint, file=path, line=1)
    seen: set[tuple[str, str, str]] = set()
    for row in reader:
        if row.get("task", "").startswith("avg_"):
            continue
        try:
            line = _Line.model_validate({c: resolve_scalar(f"{cell}") for c, cell in row.items()})
            if (line.model, line.task, line.average_likely) in seen:
                raise ValueError(f"{line.model} has two values for {line.task}")
            if line.task not in header.readings or line.language not in header.caption:
                raise ValueError(f"no reading or caption for {line.task} ({line.language})")
        except ValueError as error:
            problem = _in_words(error, row)
            raise SpecError(problem, hint=_HINT, file=path, line=reader.line_num) from None
        seen.add((line.model, line.task, line.average_likely))
        yield PublishedValue(
            paper=header.id,
            model=line.model,
            size=line.size,
            language=line.language,
            task=line.task,
            value=_fraction(line.value_percent),
            step=10.0**-header.decimals / 100,
            claimed=line.average_claimed,
            likely=line.average_likely,
            seeds=line.seeds or 0,
            sd=None if line.sd_percent is None else _fraction(line.sd_percent),
            caption=header.caption[line.language],
            reading=header.readings[line.task],
            source=header.source,
            url=header.url,
            parameters=header.parameters.get(line.model),
            checkpoint=header.hub.get(line.model),
            stated=header.stated is None or line.language in header.stated,
        )


def _in_words(error: ValueError, row: Mapping[str, str]) -> str:
    """What is wrong with a row, its column and cell first where one is to blame."""
    if not isinstance(error, ValidationError):
        return str(error)
    fault = error.errors()[0]
    problem = str(fault["msg"].removeprefix("Value error, "))
    for column in fault["loc"]:
        problem = f"{column} '{row.get(str(column))}': {problem}"
    return problem


def _fraction(percent: float) -> float:
    """One that prints as it was written: 0.701, not 0.7010000000000001."""
    return round(percent / 100, 6)
