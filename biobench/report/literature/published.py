"""Published scores: read from data files, the shipped ones and a results folder's own, checked, and
never edited.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from biobench.errors import SpecError
from biobench.kinds import metric_names
from biobench.schema.strict import Strict, load_yaml_model, suggest
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
_COLUMNS = [*("model", "size", "objective", "language", "task"), "value_percent"]
_COLUMNS += ["average_claimed", "average_likely", "seeds"]
_NUMBER = re.compile(r"\d+(\.\d+)?")
_SPREAD = "sd_percent"
"""An optional last column: the printed standard deviation over the seeds."""


class Paper(Strict):
    """What every file of a publication says of it."""

    id: str
    source: str
    url: str
    citation: str


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
    package = PACKAGE
    checkout = package.parent / "results" / "published"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return package / "bundled" / "published"


def folders_for(results_dir: Path, below: str = "") -> list[Path]:
    """The shipped folder of papers and the results folder's own, where they are two."""
    folders = [published_folder() / below, results_dir / FOLDER / below]
    return [folder for folder in dict.fromkeys(map(Path.resolve, folders)) if folder.is_dir()]


def published_for(results_dir: Path) -> tuple[PublishedValue, ...]:
    """The values of the shipped papers and of the results folder's own.

    The values of a model that several papers print stay apart, as lines that bear the paper's id.
    Raises SpecError for a damaged file and for an id that another paper has.
    """
    return by_paper(load_published(*folders_for(results_dir)))


def by_paper(values: Iterable[PublishedValue]) -> tuple[PublishedValue, ...]:
    """The values; where several papers print some of a model, its `variant` is the paper's id."""
    values = tuple(values)
    papers = Counter(model for model, _ in {(v.model, v.paper) for v in values})
    return tuple(replace(v, variant=v.paper) if papers[v.model] > 1 else v for v in values)


def published_state(results_dir: Path) -> str:
    """Changes when `published_for` or `experiments.experiments_for` would read something else."""
    return repr(
        [
            _state(folder)
            for below in ("", EXPERIMENTS)
            for folder in folders_for(results_dir, below)
        ]
    )


def _state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    files = sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".csv"))
    return tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in files)


def load_published(*folders: Path) -> tuple[PublishedValue, ...]:
    """Every paper of the folders (default: the shipped one). Raises SpecError with file and
    line."""
    read = papers(folders or (published_folder(),), PublishedHeader)
    return tuple(
        value for header, path in read for value in _values(path.parent / header.values, header)
    )


P = TypeVar("P", bound=Paper)


def papers(folders: Iterable[Path], form: type[P]) -> list[tuple[P, Path]]:
    """The checked YAML files of the folders; a publication that two folders hold (a clone beside a
    wheel) is one.

    Raises SpecError with file and line for a damaged file, and for an id that another publication
    has.
    """
    known: dict[str, tuple[P, Path]] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        paper = _paper(path, form, path.stat().st_mtime_ns, path.stat().st_size)
        other, file = known.get(paper.id, (paper, path))
        if other.citation != paper.citation or (file != path and file.parent == path.parent):
            hint = "give each paper an id of its own"
            raise SpecError(f"the id '{paper.id}' is that of {file}", hint=hint, file=path)
        known[paper.id] = paper, path
    return list(known.values())


@lru_cache(maxsize=64)
def _paper(path: Path, form: type[P], changed: int, size: int) -> P:
    """`changed` and `size` stand for the file's content."""
    return load_yaml_model(path, form)


def _values(path: Path, header: PublishedHeader) -> Iterator[PublishedValue]:
    """The values of a paper's CSV. Its rows `avg_<suite>` are the averages that it prints, which
    are checked alone.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "it holds the values of the YAML file of the same name"
        raise SpecError(f"cannot be read: {error}", hint=hint, file=path) from error
    reader = csv.DictReader(text.splitlines())
    if reader.fieldnames not in (_COLUMNS, [*_COLUMNS, _SPREAD]):
        hint = f"expected: {','.join(_COLUMNS)}, and {_SPREAD} where the paper prints it"
        line = max(reader.line_num, 1)
        raise SpecError("has other columns", hint=hint, file=path, line=line)
    seen: set[tuple[str, str, str]] = set()
    for row in reader:
        for problem, hint in _faults(row, header, seen):
            raise SpecError(problem, hint=hint, file=path, line=reader.line_num)
        seen.add((row["model"], row["task"], row["average_likely"]))
        if not row["task"].startswith("avg_"):
            yield _value(row, header)


def _faults(
    row: dict[str, str], header: PublishedHeader, seen: set[tuple[str, str, str]]
) -> Iterator[tuple[str, str]]:
    """What is wrong with a row, and what mends it; a later fault is looked for only where the
    earlier ones are not there.
    """
    if None in row or None in row.values():
        yield "has too many or too few cells", "quote texts that hold commas"
    model, task = row["model"], row["task"]
    if (model, task, row["average_likely"]) in seen:
        yield f"{model} has two values for {task}", "keep one"
    yield from _number_faults(row)
    if not task.startswith("avg_"):
        yield from _reading_faults(row, header)


def _number_faults(row: dict[str, str]) -> Iterator[tuple[str, str]]:
    seeds, percent, spread = row["seeds"], row["value_percent"], row.get(_SPREAD, "")
    if seeds and (not seeds.isdigit() or seeds == "0"):
        hint = "give how many, or nothing where the publication does not say"
        yield f"seeds '{seeds}' is not a number", hint
    if not _NUMBER.fullmatch(percent) or float(percent) > 100:
        yield f"'{percent}' is not a percentage", "a number from 0 to 100"
    if spread and not (_NUMBER.fullmatch(spread) and seeds):
        problem = f"{_SPREAD} '{spread}' of {seeds or 'unknown'} seeds is no spread"
        yield problem, "give a number in points and the seeds that it is over, or nothing"


def _reading_faults(row: dict[str, str], header: PublishedHeader) -> Iterator[tuple[str, str]]:
    averages = [*metric_names(), UNDECIDED]
    for column in ("average_claimed", "average_likely"):
        if row[column] not in averages:
            problem = f"{column} '{row[column]}' is not an average"
            yield problem, suggest(row[column], averages)
    task, language = row["task"], row["language"]
    if task not in header.readings or language not in header.caption:
        problem = f"no reading or caption for {task} ({language})"
        yield problem, "say in the YAML how the numbers are read"


def _value(row: dict[str, str], header: PublishedHeader) -> PublishedValue:
    """The value of a row without faults."""
    language, spread = row["language"], row.get(_SPREAD)
    return PublishedValue(
        paper=header.id,
        model=row["model"],
        size=row["size"],
        language=language,
        task=row["task"],
        # fractions that print as they were written: 0.701, not 0.7010000000000001
        value=round(float(row["value_percent"]) / 100, 6),
        step=10.0**-header.decimals / 100,
        claimed=row["average_claimed"],
        likely=row["average_likely"],
        seeds=int(row["seeds"] or 0),
        sd=round(float(spread) / 100, 6) if spread else None,
        caption=header.caption[language],
        reading=header.readings[row["task"]],
        source=header.source,
        url=header.url,
        parameters=header.parameters.get(row["model"]),
        stated=header.stated is None or language in header.stated,
    )
