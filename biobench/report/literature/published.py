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
EXPERIMENTS = "experiments"
"""Folder below it with results beyond the task tables."""
FOLDER = "published"
"""Folder of a results folder that holds papers besides the shipped ones."""
UNDECIDED = "undecided"
"""`average_likely` where the evidence supports no average: comparable with none."""
_COLUMNS = [*("model", "size", "objective", "language", "task"), "value_percent"]
_COLUMNS += ["average_claimed", "average_likely", "seeds"]


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
    caption: str
    reading: str
    source: str
    citation: str
    variant: str = ""
    """The paper's id, where several papers print values of one model."""

    parameters: int | None = None
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

    value, variant: as of `PublishedValue`. suite: of which the paper's tasks are.
    """

    model: str
    value: float
    suite: str
    paper: str
    seeds: int
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """All papers' values."""

    values: tuple[PublishedValue, ...]
    averages: tuple[PrintedAverage, ...]
    files: Mapping[str, tuple[str, Path]]
    """A paper's id -> its citation and YAML."""


def published_folder() -> Path:
    """The checkout's `results/published`, else the installed wheel's copy."""
    package = Path(biobench.__file__).resolve().parent
    checkout = package.parent / "results" / "published"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    return package / "bundled" / "published"


def published_for(results_dir: Path) -> tuple[tuple[PublishedValue, ...], tuple[PrintedAverage, ...]]:
    """The shipped papers' values and printed averages, and those of the results folder's own papers.

    The values of a model that several papers print stay apart, as lines that bear the paper's id. The same paper in
    both folders (a clone beside an installed package) is one. Raises SpecError for a damaged file and for an id that
    another paper has.
    """
    shipped, *others = (load_published(folder) for folder in _folders(results_dir))
    values, averages = shipped.values, shipped.averages
    for local in others:
        for paper in local.files.keys() & shipped.files.keys():
            (citation, file), (printed, other) = local.files[paper], shipped.files[paper]
            if citation != printed:
                raise _taken(paper, file, other)
        values = (*(v for v in values if v.paper not in local.files), *local.values)
        averages = (*(a for a in averages if a.paper not in local.files), *local.averages)
    papers: dict[str, set[str]] = defaultdict(set)
    for value in values:
        papers[value.model].add(value.paper)
    return (
        tuple(replace(v, variant=v.paper) if len(papers[v.model]) > 1 else v for v in values),
        tuple(replace(a, variant=a.paper) if len(papers[a.model]) > 1 else a for a in averages),
    )


def published_state(results_dir: Path) -> str:
    """Changes when `published_for` or `experiments.experiments_for` would read something else."""
    below = [folder for top in _folders(results_dir) for folder in (top, top / EXPERIMENTS) if folder.is_dir()]
    return " ".join(f"{folder}{_state(folder)}" for folder in below)


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
    files: dict[str, tuple[str, Path]] = {}
    for path in sorted(folder / name for name, *_ in state if name.endswith(".yaml")):
        header = load_yaml_model(path, PublishedHeader)
        if header.id in files:
            raise _taken(header.id, path, files[header.id][1])
        files[header.id] = header.citation, path
        _read(path.parent / header.values, header, values, averages)
    return Published(tuple(values), tuple(averages), files)


def _taken(paper: str, file: Path, other: Path) -> SpecError:
    return SpecError(f"the id '{paper}' is that of {other}", hint="give each paper an id of its own", file=file)


def _read(path: Path, header: PublishedHeader, values: list[PublishedValue], averages: list[PrintedAverage]) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "it holds the values of the YAML beside it"
        raise SpecError(f"cannot be read: {error}", hint=hint, file=path) from error
    reader = csv.DictReader(text.splitlines())

    def wrong(what: str, hint: str) -> SpecError:
        return SpecError(what, hint=hint, file=path, line=max(reader.line_num, 1))

    if reader.fieldnames != _COLUMNS:
        raise wrong("has other columns", "expected: " + ",".join(_COLUMNS))
    step = 10.0**-header.decimals / 100
    known = [*metric_names(), UNDECIDED]
    seen: set[tuple[str, str, str]] = set()
    for row in reader:
        if None in row or None in row.values():
            raise wrong("has too many or too few cells", "quote texts that hold commas")
        model, task, language, seeds = row["model"], row["task"], row["language"], row["seeds"]
        claimed, likely = row["average_claimed"], row["average_likely"]
        if (model, task, likely) in seen:
            raise wrong(f"{model} has two values for {task}", "keep one")
        seen.add((model, task, likely))
        if seeds and (not seeds.isdigit() or seeds == "0"):
            hint = "give how many, or nothing where the publication does not say"
            raise wrong(f"seeds '{seeds}' is not a number", hint)
        try:
            percent = float(row["value_percent"])
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            raise wrong(f"'{row['value_percent']}' is not a percentage", "a number from 0 to 100")
        # fractions that print as they were written: 0.701, not 0.7010000000000001
        value = round(percent / 100, 6)
        if task.startswith("avg_"):
            suite = task.removeprefix("avg_")
            averages.append(PrintedAverage(model, value, suite, header.id, int(seeds or 0)))
            continue
        for column in ("average_claimed", "average_likely"):
            if row[column] not in known:
                raise wrong(f"{column} '{row[column]}' is not an average", suggest(row[column], known))
        if task not in header.readings or language not in header.caption:
            raise wrong(f"no reading or caption for {task} ({language})", "say in the YAML how the numbers are read")
        values.append(
            PublishedValue(
                paper=header.id,
                model=model,
                size=row["size"],
                language=language,
                task=task,
                value=value,
                step=step,
                claimed=claimed,
                likely=likely,
                seeds=int(seeds or 0),
                caption=header.caption[language],
                reading=header.readings[task],
                source=header.source,
                citation=header.citation,
                parameters=header.parameters.get(model),
                stated=header.stated is None or language in header.stated,
            )
        )
