"""Published scores: read from data files, the shipped ones and a results folder's own, checked, and never edited."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pydantic import Field

import biobench
from biobench.errors import SpecError
from biobench.kinds import metric_names
from biobench.schema.strict import Strict, load_yaml_model, suggest

SUITE_FOLDER = "suites"
"""Folder below the published one with papers whose values stand in the report of a suite alone."""
FOLDER = "published"
"""Folder of a results folder that holds papers besides the shipped ones."""
UNDECIDED = "undecided"
"""`average_likely` where the evidence supports no average: comparable with none."""
_COLUMNS = (
    "model",
    "size",
    "objective",
    "language",
    "task",
    "value_percent",
    "average_claimed",
    "average_likely",
    "seeds",
)


class PublishedHeader(Strict):
    """The YAML beside a paper's values."""

    id: str
    source: str
    url: str
    citation: str
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


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """One printed number. value: fraction (0-1); step: to which it was rounded, a fraction."""

    paper: str
    model: str
    size: str
    objective: str
    language: str
    task: str
    value: float
    step: float
    claimed: str
    likely: str
    seeds: int
    caption: str
    reading: str
    source: str
    citation: str
    variant: str = ""
    """The paper's id, where several papers print values of one model."""

    stated: bool = True
    """Whether the caption itself names the claimed average."""

    @property
    def is_stated(self) -> bool:
        """Whether the publication states the average that the value most likely is."""
        return self.stated and self.claimed == self.likely

    @property
    def comparable(self) -> str | None:
        """The average beside which it may be shown, None for none."""
        return None if self.likely == UNDECIDED else self.likely


@dataclass(frozen=True, slots=True)
class PrintedAverage:
    """An average over a suite's tasks as the paper prints it: each task once, by the average that it is printed in.

    value, step, variant: as of `PublishedValue`. suite: of which the paper's tasks are.
    """

    model: str
    language: str
    value: float
    step: float
    suite: str = ""
    paper: str = ""
    seeds: int = 0
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """All papers' values."""

    values: tuple[PublishedValue, ...]
    averages: tuple[PrintedAverage, ...]
    files: Mapping[str, Path]
    """A paper's id -> its YAML."""


def published_folder() -> Path:
    """The checkout's `results/published`, else the installed wheel's copy."""
    package = Path(biobench.__file__).resolve().parent
    checkout = package.parent / "results" / "published"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return package / "bundled" / "published"


def published_for(results_dir: Path) -> tuple[tuple[PublishedValue, ...], tuple[PrintedAverage, ...]]:
    """The shipped papers' values and printed averages, and those of the results folder's own papers.

    The values of a model that several papers print stay apart, as lines that bear the paper's id. Raises SpecError
    for a damaged file and for an id that is taken.
    """
    file_of: dict[str, Path] = {}
    papers: dict[str, set[str]] = defaultdict(set)
    values: list[PublishedValue] = []
    averages: list[PrintedAverage] = []
    for folder in _folders(results_dir):
        loaded = load_published(folder)
        for paper, file in loaded.files.items():
            if paper in file_of:
                raise _taken(paper, file, file_of[paper])
            file_of[paper] = file
        values += loaded.values
        averages += loaded.averages
    for value in values:
        papers[value.model].add(value.paper)
    return (
        tuple(replace(v, variant=v.paper) if len(papers[v.model]) > 1 else v for v in values),
        tuple(replace(a, variant=a.paper) if len(papers[a.model]) > 1 else a for a in averages),
    )


def published_state(results_dir: Path) -> str:
    """Changes when `published_for` would read something else."""
    return " ".join(f"{folder}{_state(folder)}" for folder in _folders(results_dir))


def _folders(results_dir: Path) -> list[Path]:
    shipped, local = published_folder(), results_dir / FOLDER
    return [shipped, local] if local.is_dir() and local.resolve() != shipped.resolve() else [shipped]


def _state(folder: Path) -> tuple[tuple[str, int, int], ...]:
    files = sorted(p for p in folder.iterdir() if p.suffix in (".yaml", ".csv"))
    return tuple((p.name, p.stat().st_mtime_ns, p.stat().st_size) for p in files)


def load_published(folder: Path | None = None) -> Published:
    """Every paper of the folder (default: the shipped one). Raises SpecError with file and line."""
    folder = folder or published_folder()
    return _load(folder, _state(folder))


@lru_cache(maxsize=8)
def _load(folder: Path, state: tuple[tuple[str, int, int], ...]) -> Published:
    """`state` stands for the folder's content: another one reads it anew."""
    values: list[PublishedValue] = []
    averages: list[PrintedAverage] = []
    files: dict[str, Path] = {}
    for path in sorted(folder / name for name, *_ in state if name.endswith(".yaml")):
        header = load_yaml_model(path, PublishedHeader)
        if header.id in files:
            raise _taken(header.id, path, files[header.id])
        files[header.id] = path
        _read(path.parent / header.values, header, values, averages)
    return Published(tuple(values), tuple(averages), files)


def _taken(paper: str, file: Path, other: Path) -> SpecError:
    return SpecError(f"the id '{paper}' is that of {other}", hint="give each paper an id of its own", file=file)


def _read(path: Path, header: PublishedHeader, values: list[PublishedValue], averages: list[PrintedAverage]) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"cannot be read: {error}", hint="it holds the values of the YAML beside it", file=path
        ) from error
    reader = csv.DictReader(text.splitlines())
    if tuple(reader.fieldnames or ()) != _COLUMNS:
        raise SpecError("has other columns", hint="expected: " + ",".join(_COLUMNS), file=path, line=1)
    step = 10.0**-header.decimals / 100
    seen: set[tuple[str, str, str]] = set()
    for row in reader:
        line = reader.line_num
        if None in row or None in row.values():
            raise SpecError("has too many or too few cells", hint="quote texts that hold commas", file=path, line=line)
        name = (row["model"], row["task"], row["average_likely"])
        if name in seen:
            raise SpecError(f"{row['model']} has two values for {row['task']}", hint="keep one", file=path, line=line)
        seen.add(name)
        value = _percent(row["value_percent"], path, line)
        if row["task"].startswith("avg_"):
            suite, seeds = row["task"].removeprefix("avg_"), int(row["seeds"] or 0)
            averages.append(PrintedAverage(row["model"], row["language"], value, step, suite, header.id, seeds))
            continue
        known = [*metric_names(), UNDECIDED]
        for column in ("average_claimed", "average_likely"):
            if row[column] not in known:
                raise SpecError(
                    f"{column} '{row[column]}' is not an average",
                    hint=suggest(row[column], known),
                    file=path,
                    line=line,
                )
        if row["task"] not in header.readings or row["language"] not in header.caption:
            raise SpecError(
                f"no reading or caption for {row['task']} ({row['language']})",
                hint="say in the YAML how the numbers are read",
                file=path,
                line=line,
            )
        if row["seeds"] and (not row["seeds"].isdigit() or row["seeds"] == "0"):
            hint = "give how many, or nothing where the publication does not say"
            raise SpecError(f"seeds '{row['seeds']}' is not a number", hint=hint, file=path, line=line)
        values.append(
            PublishedValue(
                paper=header.id,
                model=row["model"],
                size=row["size"],
                objective=row["objective"],
                language=row["language"],
                task=row["task"],
                value=value,
                step=step,
                claimed=row["average_claimed"],
                likely=row["average_likely"],
                seeds=int(row["seeds"] or 0),
                caption=header.caption[row["language"]],
                reading=header.readings[row["task"]],
                source=header.source,
                citation=header.citation,
                stated=header.stated is None or row["language"] in header.stated,
            )
        )


def _percent(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise SpecError(f"'{text}' is not a percentage", hint="a number from 0 to 100", file=path, line=line)
    # fractions that print as they were written: 0.701, not 0.7010000000000001
    return round(value / 100, 6)
