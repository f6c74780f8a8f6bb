"""A folder of pretraining runs as data for charts: metrics, ledgers and CKA analyses, each checked before use.

Links are not followed, sizes are bounded, and what does not have the form that the trainer writes becomes a finding
with file and line while the rest is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from biobench.report.escape import plain
from biobench.store import UnusableFile

METRICS, LEDGER = "metrics.jsonl", "ledger.json"
FOLDER = "pretraining"
"""Folder of a results folder that is read unless another one is named."""
DEPTH = 4
"""Levels of folders that are read; exports, checkpoints and starts are never entered."""
METRICS_BYTES, JSON_BYTES = 64 * 2**20, 8 * 2**20
MOST_FINDINGS = 5
"""Of one file."""
MOST_POINTS = 400
"""Points that a curve keeps; of longer ones every k-th is taken, the last always."""
_CLOSED = {"checkpoints", "model", "phases", "start", "tensorboard"}
_OTHER_EVENTS = ("spike", "probe")
"""Lines of the metrics that are no points of a curve."""


class _Read(BaseModel):
    """Strict in types, free in fields: writers may add some."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class Point(_Read):
    """One line of the metrics. tokens: input tokens so far, over all phases; loss: nats a target."""

    event: Literal["train", "evaluation"]
    total_step: int = Field(ge=0)
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


class _Pair(_Read):
    pair: tuple[str, str] = Field(strict=False)
    lines: list[_Line]


class _Analysis(_Pair):
    """What `biobench analyze cka --json` prints, as far as it is shown."""

    series: list[_Pair]
    texts: int = Field(ge=0)
    states: str = Field(max_length=20)


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """One run. name: its folder, below the named one; ledger: the file, None where the run has none (yet).

    model_hash: of the exported encoder, as benchmark records name it; None where no ledger tells.
    skipped: how many points of training stand between two that are kept, 0 where all are.
    """

    name: str
    points: tuple[Point, ...]
    ledger: Path | None
    model_hash: str | None
    skipped: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """One CKA analysis. name: its file; data: plain data for `mechanism.cka_chart`."""

    name: str
    pair: tuple[str, str]
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pretraining:
    """Everything that a folder holds."""

    runs: tuple[TrainingRun, ...]
    analyses: tuple[Analysis, ...]
    findings: tuple[UnusableFile, ...]

    def of_model(self, model_hash: str) -> TrainingRun | None:
        """The run that made the encoder with this content hash."""
        return next((run for run in self.runs if run.model_hash == model_hash), None)


def pretraining_fingerprint(folder: str | Path) -> str:
    """Changes when `read_pretraining` would read something else; looks at times and sizes alone."""
    seen = [(str(p), s.st_mtime_ns, s.st_size) for p, s in _files(Path(folder))]
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogatepass")).hexdigest()


def read_pretraining(folder: str | Path) -> Pretraining:
    """The runs and analyses in a folder; nothing where there is no such folder."""
    root = Path(folder)
    runs: list[TrainingRun] = []
    analyses: list[Analysis] = []
    findings: list[UnusableFile] = []
    for path, status in _files(root):
        name = plain(path.relative_to(root).as_posix())
        limit = METRICS_BYTES if path.name == METRICS else JSON_BYTES
        if status.st_size > limit:
            hint = "move it out of the folder"
            findings.append(UnusableFile(name, f"has {status.st_size} bytes, at most {limit} are read", hint))
        elif path.name == METRICS:
            points, problems = _points(path, name)
            findings += problems
            if points:
                runs.append(_run(path, plain(path.parent.relative_to(root).as_posix()), points))
        elif path.name != LEDGER:
            try:
                content = json.loads(path.read_bytes())
                # JSON of another kind, such as a figure, is no finding
                if isinstance(content, dict) and {"pair", "lines"} <= content.keys():
                    data = _Analysis.model_validate(content)
                    first, second = data.pair
                    analyses.append(Analysis(name, (plain(first), plain(second)), data.model_dump(mode="json")))
            except (OSError, ValueError, RecursionError) as error:
                hint = "write it again with `biobench analyze cka --json`"
                findings.append(UnusableFile(name, f"is no CKA analysis: {_reason(error)}", hint))
    return Pretraining(tuple(runs), tuple(analyses), tuple(findings))


def _files(root: Path) -> list[tuple[Path, os.stat_result]]:
    """Metrics and JSON files, sorted; regular files alone, links are not followed."""
    files = []
    for folder, below, names in os.walk(root):
        deep = len(Path(folder).relative_to(root).parts) + 1 >= DEPTH
        below[:] = [] if deep else [name for name in below if name not in _CLOSED and not name.startswith(".")]
        for path in (Path(folder, name) for name in names if name not in ("recipe.json", "progress.json")):
            # a file may be removed after it was listed
            with suppress(OSError):
                if path.name.endswith((".json", METRICS)) and stat.S_ISREG((status := path.lstat()).st_mode):
                    files.append((path, status))
    return sorted(files, key=lambda file: str(file[0]))


def _points(path: Path, file: str) -> tuple[list[Point], list[UnusableFile]]:
    """The points of a file of metrics, and its lines that are none."""
    findings: list[UnusableFile] = []
    points: list[Point] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        return [], [UnusableFile(file, f"cannot be read: {error.strerror}", "check its permissions")]
    for number, line in enumerate(lines, 1):
        try:
            read = json.loads(line)
            if not (isinstance(read, dict) and read.get("event") in _OTHER_EVENTS):
                points.append(Point.model_validate(read))
        except (ValueError, RecursionError) as error:
            # a run that was killed may leave its last line cut short
            if number < len(lines) or isinstance(error, ValidationError):
                findings.append(UnusableFile(f"{file}:{number}", _reason(error), "this line is left out"))
        if len(findings) >= MOST_FINDINGS:
            findings.append(UnusableFile(file, "has more lines of this kind", "the rest of the file is left out"))
            break
    return points, findings


def _run(metrics: Path, name: str, points: Sequence[Point]) -> TrainingRun:
    """With at most `MOST_POINTS` of each event, and the hash that the ledger beside the metrics names."""
    kept: list[Point] = []
    skipped = 0
    for event in ("train", "evaluation"):
        of_event = [p for p in points if p.event == event]
        step = -(-len(of_event) // MOST_POINTS) or 1
        kept += of_event[::step]
        if of_event and (len(of_event) - 1) % step:
            kept.append(of_event[-1])
        skipped = step - 1 if event == "train" else skipped
    ledgers = [f for f in (metrics.parent / LEDGER, metrics.parent / "model" / LEDGER) if f.is_file()]
    ledger = next((f for f in ledgers if not f.is_symlink() and f.stat().st_size <= JSON_BYTES), None)
    model_hash = None
    # a damaged ledger says so where it is shown
    with suppress(OSError, ValueError, RecursionError, AttributeError):
        model_hash = None if ledger is None else json.loads(ledger.read_bytes()).get("model_hash")
    hashed = model_hash if isinstance(model_hash, str) else None
    return TrainingRun(name, tuple(sorted(kept, key=lambda p: (p.tokens, p.event))), ledger, hashed, skipped)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return plain(f"'{where}': {first['msg']}" if where else first["msg"])
    return "is not JSON"
