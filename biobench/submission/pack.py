"""A submission: a model's full runs, their predictions and a manifest, in a folder of its own.

<folder>/submission.json            who, what, and the hash of every file
<folder>/runs/<task>/<key>.json     records
<folder>/runs/<task>/<key>.parquet  predictions
<folder>/floors/<task>/<key>.json   the gate's floors and verdict on the same data, where it was asked
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import biobench
from biobench.core.files import choose_another, temporary_folder, write_atomic
from biobench.errors import UsageError
from biobench.report.baselines import verdict_on
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.results import Results, load
from biobench.schema.record import Version
from biobench.schema.strict import Count, Line, Positive, Strict, Text, suggest
from biobench.store import Store
from biobench.store.floors import save_floor

MANIFEST = "submission.json"
VERSION = 1
NAME_LIMIT, NOTES_LIMIT = 200, 2_000
"""Characters."""


class SubmittedFile(Strict):
    """One file of a submission."""

    path: Line
    """Relative to the folder, with forward slashes."""
    size: Count
    """Bytes."""
    sha256: Line


class Manifest(Strict):
    """What a submission says of itself."""

    version: Positive = VERSION
    model: Text
    biobench: Version
    notes: Text = ""
    files: tuple[SubmittedFile, ...]


def submit(model: str, results_dir: str | Path = "results", out: str | Path | None = None, *, notes: str = "") -> Path:
    """Pack the model's full runs into a new folder; gives it.

    out: the folder to make (default: `submissions/<name>`); it must not hold anything yet. Limited, overridden
    and tuned runs are left out. Raises UsageError where there is nothing to pack or `out` is not empty, and
    StoreError where something cannot be read or written.
    """
    if len(notes) > NOTES_LIMIT:
        raise UsageError(f"the notes have {len(notes)} characters", hint=f"at most {NOTES_LIMIT}")
    if not notes.replace("\n", "").isprintable():
        raise UsageError(
            "the notes hold control or invisible characters", hint="write plain text, in several lines at most"
        )
    results = load(results_dir)
    groups = full_runs(results, model)
    name = groups[0].model
    folder = Path(out) if out is not None else Path("submissions") / slug(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"'{folder}' is not empty", hint="give another folder, or remove it")
    source = Store(results_dir)
    # The folder is there whole or not at all, so that a killed command can be given again.
    with temporary_folder(folder, _REMEDY) as aside:
        store = Store(aside)
        for group in groups:
            for record in group.records:
                store.copy(source, record)
            verdict = verdict_on(group, results.floors)
            if verdict is not None:
                save_floor(aside, verdict)
        files = [_described(aside, path) for path in packed_files(aside)]
        manifest = Manifest(model=name, biobench=biobench.__version__, notes=notes, files=tuple(files))
        write_atomic(aside / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode(), _REMEDY)
    return folder


_REMEDY = choose_another("--out")


def packed_files(folder: Path) -> list[Path]:
    """The files of a submission besides its manifest, sorted."""
    return sorted(p for part in ("runs", "floors") for p in folder.glob(f"{part}/*/*") if p.is_file())


def full_runs(results: Results, model: str) -> list[RunGroup]:
    """The model's own runs on the shipped protocols, of one set of weights. Raises UsageError where there are none."""
    whole = [g for g in results.groups if g.source == "run" and g.departures.whole]
    plain_runs = [g for g in whole if not g.variant]
    for reading in (model, Path(model).expanduser().resolve().name):
        exact = [g for g in whole if line_name(g.model, g.variant) == reading]
        if exact:
            return exact
        several = sorted({line_name(g.model, g.variant) for g in whole if g.model == reading})
        if several:
            raise UsageError(
                f"'{plain(reading)}' names {len(several)} different weights here",
                hint="name one: " + ", ".join(f"'{plain(name)}'" for name in several),
            )
        bare = [g for g in plain_runs if g.model.partition("@")[0] == reading]
        if len({g.model for g in bare}) == 1:
            return bare
    others = sorted({g.variant for g in results.groups if g.model in (model, Path(model).name) and g.variant})
    if others:
        what = "has only limited or overridden runs"
        hint = f"run it in full; only such runs are submitted (here: {plain('; '.join(others))})"
    else:
        what, hint = "has no full runs here", suggest(plain(model), sorted({plain(g.model) for g in plain_runs}))
    raise UsageError(f"'{plain(model)}' {what}", hint=hint)


def slug(name: str) -> str:
    """A folder name for a model: readable, short, different for different models."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{readable or 'model'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def _described(folder: Path, path: Path) -> SubmittedFile:
    content = path.read_bytes()
    return SubmittedFile(
        path=path.relative_to(folder).as_posix(), size=len(content), sha256=hashlib.sha256(content).hexdigest()
    )
