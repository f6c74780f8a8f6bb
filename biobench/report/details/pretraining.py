"""A folder of pretraining runs as data for charts: metrics, ledgers and CKA analyses, each checked before use.

The folder is somebody else's: links are not followed, sizes are bounded, and what does not have the form that
the trainer writes becomes a finding with file and line while the rest is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from biobench.report.escape import plain
from biobench.store import UnusableFile

METRICS, LEDGER = "metrics.jsonl", "ledger.json"
FOLDER = "pretraining"
"""Folder of a results folder that is read unless another one is named."""
DEPTH = 4
"""Levels of folders below the named one; exports, checkpoints and starts are never entered."""
MOST_FOLDERS, MOST_RUNS, MOST_ANALYSES = 2_000, 100, 50
METRICS_BYTES, JSON_BYTES = 64 * 2**20, 8 * 2**20
OTHER_EVENTS = ("spike", "probe")
"""Lines of the metrics that are no points of a curve."""
MOST_POINTS = 400
"""Points that a curve keeps; of longer ones every k-th is taken, the last always."""
_CLOSED = {"checkpoints", "model", "phases", "start", "tensorboard"}

Text = Annotated[str, StringConstraints(max_length=2_000)]


class _Outside(BaseModel):
    """Strict in types, free in fields: writers may add some."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)


class Point(_Outside):
    """One line of the metrics. tokens: input tokens so far, over all phases; loss: nats a target."""

    event: Literal["train", "evaluation"]
    total_step: int = Field(ge=0)
    phase: Annotated[str, StringConstraints(max_length=200)]
    tokens: int = Field(ge=0, lt=2**63)
    loss: float
    learning_rate: float | None = Field(default=None, ge=0)
    tokens_per_second: float | None = Field(default=None, ge=0)


class _Trained(_Outside):
    """The part of a ledger that ties it to benchmark records."""

    model_hash: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None


class _Value(_Outside):
    value: float
    low: float | None
    high: float | None


class _Line(_Outside):
    where: Annotated[str, StringConstraints(max_length=20)]
    estimator: Literal["biased", "debiased"]
    divergence: _Value
    noise: _Value | None = None
    ratio: _Value | None = None


class _Pair(_Outside):
    pair: list[Text] = Field(min_length=2, max_length=2)
    lines: list[_Line] = Field(max_length=2_000)


class _Analysis(_Pair):
    """What `biobench analyze cka --json` prints, as far as it is shown."""

    series: list[_Pair] = Field(max_length=200)
    texts: int = Field(ge=0)
    states: Annotated[str, StringConstraints(max_length=20)]


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
        elif path.name == METRICS and len(runs) < MOST_RUNS:
            run, problems = _run(path, plain(path.parent.relative_to(root).as_posix()), name)
            runs += [run] if run.points else []
            findings += problems
        elif path.name not in (METRICS, LEDGER) and len(analyses) < MOST_ANALYSES:
            analysis, problems = _analysis(path, name)
            analyses += [analysis] if analysis else []
            findings += problems
    return Pretraining(tuple(runs), tuple(analyses), tuple(findings))


def _files(root: Path) -> list[tuple[Path, os.stat_result]]:
    """Metrics and JSON files, sorted; regular files alone."""
    files = []
    for folder in _folders(root):
        for entry in _entries(folder):
            if not entry.name.endswith((".json", METRICS)) or entry.name in ("recipe.json", "progress.json"):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # removed since it was listed
            if stat.S_ISREG(status.st_mode):
                files.append((Path(entry.path), status))
    return sorted(files, key=lambda f: str(f[0]))


def _folders(root: Path) -> Iterator[Path]:
    level, count = [root], 0
    for _ in range(DEPTH):
        below = []
        for folder in level:
            count += 1
            if count > MOST_FOLDERS:
                return
            yield folder
            below += [
                Path(e.path)
                for e in _entries(folder)
                if e.name not in _CLOSED and not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
            ]
        level = sorted(below)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _run(path: Path, name: str, file: str) -> tuple[TrainingRun, list[UnusableFile]]:
    findings: list[UnusableFile] = []
    points: list[Point] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        lines = []
        findings.append(UnusableFile(file, f"cannot be read: {error.strerror}", "check its permissions"))
    for number, line in enumerate(lines, 1):
        try:
            read = json.loads(line)
            if not (isinstance(read, dict) and read.get("event") in OTHER_EVENTS):
                points.append(Point.model_validate(read))
        except (ValueError, RecursionError) as error:
            # a run that was killed may leave its last line cut short
            if number < len(lines) or isinstance(error, ValidationError):
                findings.append(UnusableFile(f"{file}:{number}", _reason(error), "this line is left out"))
        if len(findings) >= 5:
            findings.append(UnusableFile(file, "has more lines of this kind", "the rest of the file is left out"))
            break
    kept, skipped = _thinned(points)
    ledger = next((f for f in (path.parent / LEDGER, path.parent / "model" / LEDGER) if _is_small(f)), None)
    return TrainingRun(name, kept, ledger, _model_hash(ledger), skipped), findings


def _model_hash(ledger: Path | None) -> str | None:
    """As the ledger has it; None for a damaged one too, which says so where it is shown."""
    try:
        return None if ledger is None else _Trained.model_validate_json(ledger.read_bytes()).model_hash
    except (OSError, ValidationError):
        return None


def _is_small(file: Path) -> bool:
    try:
        status = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= JSON_BYTES


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return plain(f"'{where}': {first['msg']}" if where else first["msg"])
    return "is not JSON"


def _thinned(points: Sequence[Point]) -> tuple[tuple[Point, ...], int]:
    """At most `MOST_POINTS` of each event, and the step between kept points of training less one."""
    kept: list[Point] = []
    skipped = 0
    for event in ("train", "evaluation"):
        of_event = [p for p in points if p.event == event]
        step = -(-len(of_event) // MOST_POINTS) or 1
        kept += of_event[::step]
        if of_event and (len(of_event) - 1) % step:
            kept.append(of_event[-1])
        if event == "train":
            skipped = step - 1
    return tuple(sorted(kept, key=lambda p: (p.tokens, p.event))), skipped


def _analysis(path: Path, name: str) -> tuple[Analysis | None, list[UnusableFile]]:
    """None without a finding for JSON of another kind, such as a figure or another analysis."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None, [UnusableFile(name, "is not JSON", "write it again with `biobench analyze cka --json`")]
    if not isinstance(content, dict) or not {"pair", "lines"} <= content.keys():
        return None, []
    try:
        analysis = _Analysis.model_validate(content)
    except ValidationError as error:
        hint = "write it again with `biobench analyze cka --json`"
        return None, [UnusableFile(name, f"is no CKA analysis: {_reason(error)}", hint)]
    first, second = analysis.pair
    return Analysis(name, (plain(first), plain(second)), analysis.model_dump(mode="json")), []
