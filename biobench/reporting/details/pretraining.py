"""Folders of pretraining runs as data for charts: metrics, ledgers, CKA analyses and studies, each
checked before use.

What does not have the form that the trainer writes becomes a finding with file and line; the rest
is read.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from biobench.reporting.escape import plain
from biobench.store import UnusableFile

METRICS = "metrics.jsonl"
LEDGER = "ledger.json"
FOLDER = "pretraining"
"""Folder of a results folder that is read unless another one is named."""
MOST_POINTS = 400
"""Points that a curve keeps; of longer ones every k-th is taken, the last always."""
_CLOSED = {"checkpoints", "model", "phases", "start", "tensorboard"}
"""Folders of a run that are not entered."""
_OTHER_FILES = ("recipe.json", "progress.json")
_AGAIN = "write it again: `biobench analyze cka --json`, `biobench study --table --json`"
_OTHER_EVENTS = ("spike", "probe")
"""Lines of the metrics that are no points of a curve."""


Shown = Annotated[str, Field(max_length=300), AfterValidator(plain)]
"""A text that is shown, made harmless."""


class _Read(BaseModel):
    """Strict in types, free in fields: writers may add some."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class Point(_Read):
    """One line of the metrics. tokens: input tokens so far, over all phases; loss: nats a
    target."""

    event: Literal["train", "evaluation"]
    phase: str = Field(max_length=200)
    tokens: int = Field(ge=0, lt=2**63)
    loss: float
    learning_rate: float | None = Field(default=None, ge=0)
    tokens_per_second: float | None = Field(default=None, ge=0)


class _Value(_Read):
    value: float
    low: float | None
    high: float | None


class _Line(_Read):
    where: str = Field(max_length=20)
    estimator: Literal["biased", "debiased"]
    divergence: _Value
    noise: _Value | None = None
    ratio: _Value | None = None


class Analysis(_Read):
    """One CKA analysis: what `biobench analyze cka --json` prints, as far as it is shown. name: its
    file.
    """

    name: str
    pair: tuple[Shown, Shown] = Field(strict=False)
    lines: list[_Line]
    texts: int = Field(ge=0)
    states: str = Field(max_length=20)

    @property
    def data(self) -> dict[str, Any]:
        """Plain data for `mechanism.cka_chart`."""
        return self.model_dump(mode="json")


class StudyRow(_Read):
    """An arm under a budget of tokens: mean score and difference to the reference (0 to 1) with its
    95% interval.
    """

    arm: str = Field(max_length=100)
    budget: int = Field(ge=0)
    scores: dict[str, float]
    """Pretraining seed -> mean score."""
    mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    level: float | None = None
    """Of the interval: that at which a correction for all rows decided; None in older tables."""
    shown: bool | None = None
    test_sets: bool = False
    """Whether the noise of test sets is in the interval, beside that of pretraining seeds."""

    @property
    def spread(self) -> str:
        """The interval in points, a dash where there is none."""
        if self.low is None or self.high is None:
            return "–"
        return f"{100 * self.low:+.1f} to {100 * self.high:+.1f}"


class StudyTable(_Read):
    """What `biobench study --table --json` prints, as far as it is shown."""

    study: str = Field(max_length=300)
    rows: list[StudyRow]
    file: Shown
    """The table's file without its ending, by which another study names it."""
    replicates: str = Field(default="", max_length=300)
    """The study that this one repeats; empty: none."""
    slice: str | None = Field(default=None, max_length=40)
    """The part of the gold that is scored; None: all of it."""
    runs: dict[str, dict[Shown, float]] = {}
    """Pretraining run -> task -> score."""

    @property
    def tasks(self) -> list[str]:
        """Those that were scored; secondary ones are not in the means."""
        return sorted(set().union(*self.runs.values()))

    @property
    def title(self) -> str:
        """Its file, what it asks, and on which part of the gold."""
        if self.slice is None:
            return f"{self.file}: {self.study}"
        return f"{self.file}: scores on {self.slice} mentions, of the study “{self.study}”"


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One run. name: its folder, below the named one; ledger: the file, None where the run has none
    (yet).

    model_hash: of the exported encoder, as benchmark records name it; None where no ledger tells.
    """

    name: str
    points: tuple[Point, ...]
    ledger: Path | None
    model_hash: str | None


@dataclass(frozen=True, slots=True)
class Pretraining:
    """Everything that the folders hold."""

    runs: tuple[TrainingRun, ...]
    analyses: tuple[Analysis, ...]
    studies: tuple[StudyTable, ...]
    findings: tuple[UnusableFile, ...]

    def of_model(self, model_hash: str) -> TrainingRun | None:
        """The run that made the encoder with this content hash."""
        for run in self.runs:
            if run.model_hash == model_hash:
                return run
        return None


def pretraining_fingerprint(*folders: str | Path) -> str:
    """Changes when `read_pretraining` would read something else; looks at times and sizes alone."""
    return repr([(str(p), p.stat().st_mtime_ns, p.stat().st_size) for _, p in _files(*folders)])


def read_pretraining(*folders: str | Path) -> Pretraining:
    """The runs, analyses and studies in these folders; nothing where there is no such folder."""
    read: dict[type, list[Any]] = defaultdict(list)
    findings = []
    for root, path in _files(*folders):
        name = plain(path.relative_to(root).as_posix())
        try:
            if path.name == METRICS:
                run, problems = _run(path, root)
                read[type(run)].append(run)
                findings += problems
            elif path.name != LEDGER:  # read beside its metrics
                table = _table(path, name)
                read[type(table)].append(table)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            findings.append(UnusableFile(name, reason, "check its permissions"))
        except (ValueError, RecursionError) as error:
            reason = f"is not what was written: {_reason(error)}"
            findings.append(UnusableFile(name, reason, _AGAIN))
    return Pretraining(
        runs=tuple(read[TrainingRun]),
        analyses=tuple(read[Analysis]),
        studies=tuple(read[StudyTable]),
        findings=tuple(findings),
    )


def _table(path: Path, name: str) -> Analysis | StudyTable | None:
    """What a JSON file holds; None for JSON of another kind, such as a figure."""
    content = json.loads(path.read_bytes())
    if not isinstance(content, dict):
        return None
    if {"pair", "lines"} <= content.keys():
        return Analysis.model_validate(content | {"name": name})
    if {"study", "rows"} <= content.keys():
        return StudyTable.model_validate(content | {"file": path.stem})
    return None


def _files(*roots: str | Path) -> list[tuple[Path, Path]]:
    """Metrics and JSON files, sorted, each behind the root below which it lies."""
    files: list[tuple[Path, Path]] = []
    for root in map(Path, roots):
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in _CLOSED and name[0] != "."]
            for name in names:
                path = Path(folder, name)
                is_read = name.endswith((".json", METRICS)) and name not in _OTHER_FILES
                if is_read and path.is_file():
                    files.append((root, path))
    return sorted(files)


def _run(metrics: Path, root: Path) -> tuple[TrainingRun | None, list[UnusableFile]]:
    """The run of a file of metrics (None without points), with at most `MOST_POINTS` of each event,
    and what is wrong with the file.
    """
    points, problems = _points(metrics, plain(metrics.relative_to(root).as_posix()))
    if not points:
        return None, problems
    drawn: list[Point] = []
    for event in ("evaluation", "train"):
        of_event = [point for point in points if point.event == event]
        step = math.ceil(len(of_event) / MOST_POINTS) or 1
        drawn += of_event[:-1:step] + of_event[-1:]
    drawn.sort(key=lambda point: (point.tokens, point.event))
    ledger, model_hash = _ledger(metrics.parent)
    name = plain(metrics.parent.relative_to(root).as_posix())
    return TrainingRun(name, tuple(drawn), ledger, model_hash), problems


def _points(path: Path, name: str) -> tuple[list[Point], list[UnusableFile]]:
    """The points of a file of metrics; where lines are none, a finding names the first of them."""
    points: list[Point] = []
    wrong: list[tuple[int, str]] = []
    lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            if not (isinstance(event, dict) and event.get("event") in _OTHER_EVENTS):
                points.append(Point.model_validate(event))
        except (ValueError, RecursionError) as error:
            # a run that was killed may leave its last line cut short
            if number < len(lines) or isinstance(error, ValidationError):
                wrong.append((number, _reason(error)))
    if not wrong:
        return points, []
    number, reason = wrong[0]
    return points, [UnusableFile(f"{name}:{number}", reason, f"skipped lines: {len(wrong)}")]


def _ledger(folder: Path) -> tuple[Path | None, str | None]:
    """The ledger of a run's folder, and the hash of the encoder that it names; None without."""
    for path in (folder / LEDGER, folder / "model" / LEDGER):
        if path.is_file():
            # a damaged ledger says so where it is shown
            with suppress(OSError, ValueError, RecursionError, AttributeError):
                return path, json.loads(path.read_bytes()).get("model_hash")
            return path, None
    return None, None


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "is not JSON"
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(map(str, fault["loc"]))
    if not field:
        return plain(fault["msg"])
    return plain(f"'{field}': {fault['msg']}")
