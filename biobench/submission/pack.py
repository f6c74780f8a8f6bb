"""A submission: a model's runs under one set of conditions, their predictions and a manifest, in a folder of its own.

<folder>/submission.json            who, what, and the hash of every file
<folder>/runs/<task>/<key>.json     records
<folder>/runs/<task>/<key>.parquet  predictions
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from biobench.core.files import temporary_folder, write_atomic
from biobench.errors import UsageError
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.results import Results, load
from biobench.schema.record import Version
from biobench.schema.strict import Count, Line, Positive, Strict, Text, suggest
from biobench.store import Store
from biobench.store.statements import MANIFEST
from biobench.submission.records import why_not_submitted
from biobench.version import __version__

VERSION = 1
NAME_LIMIT, NOTES_LIMIT = 200, 2_000
"""Characters."""
_PLACE = "--out"


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
    """Pack the model's runs into a new folder; gives it.

    model: as the report names it, with its conditions in brackets where it was run under several.
    out: the folder to make (default: `submissions/<name>`); it must not hold anything yet. Raises UsageError where
    there is nothing to pack or `out` is not empty, and StoreError where something cannot be read or written.
    """
    if len(notes) > NOTES_LIMIT or not notes.replace("\n", "").isprintable():
        hint = f"write plain text of at most {NOTES_LIMIT} characters"
        raise UsageError("the notes are too long, or hold control or invisible characters", hint=hint)
    groups = submitted_groups(load(results_dir), model)
    name = line_name(groups[0].model, groups[0].variant)
    folder = Path(out) if out is not None else Path("submissions") / slug(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"'{folder}' is not empty", hint="give another folder, or remove it")
    source = Store(results_dir)
    # The folder is there whole or not at all, so that a killed command can be given again.
    with temporary_folder(folder, _PLACE) as aside:
        for group in groups:
            for record in group.records:
                Store(aside).copy(source, record)
        files = []
        for path in packed_files(aside):
            content, where = path.read_bytes(), path.relative_to(aside).as_posix()
            files.append(SubmittedFile(path=where, size=len(content), sha256=hashlib.sha256(content).hexdigest()))
        manifest = Manifest(model=groups[0].model, biobench=__version__, notes=notes, files=tuple(files))
        write_atomic(aside / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode(), _PLACE)
    return folder


def packed_files(folder: Path) -> list[Path]:
    """The files of a submission besides its manifest, sorted."""
    return sorted(p for p in folder.glob("runs/*/*") if p.is_file())


def submitted_groups(results: Results, model: str) -> list[RunGroup]:
    """The runs that a name means: of one set of weights, under one set of conditions. Raises UsageError."""
    groups = [(g, line_name(g.model, g.variant)) for g in results.groups if g.source != "submitted"]
    folder = os.path.basename(os.path.abspath(os.path.expanduser(model)))
    named = [g for g, line in groups if line == model]
    named = named or [g for g, _ in groups if g.model in (model, folder) or g.model.partition("@")[0] == model]
    reasons = [
        why_not_submitted(g.briefs[0])
        or "was run on another spec or by another engine" * bool(g.departures.version or g.departures.engine)
        for g in named
    ]
    allowed = [g for g, reason in zip(named, reasons, strict=True) if not reason]
    lines = sorted({plain(line_name(g.model, g.variant)) for g in allowed})
    if len(lines) > 1:
        raise UsageError(
            f"'{plain(model)}' was run with {len(lines)} weights or conditions here",
            hint="name one: " + ", ".join(f"'{line}'" for line in lines),
        )
    if named and not allowed:
        what = f"no run of '{plain(model)}' can be submitted: {named[0].task} {plain(reasons[0])}"
        raise UsageError(what, hint="run it in full, with --track, --protocol small or an adapter")
    if not allowed:
        hint = suggest(plain(model), sorted({plain(g.model) for g, _ in groups}))
        raise UsageError(f"'{plain(model)}' has no full runs here", hint=hint)
    return allowed


def slug(name: str) -> str:
    """A folder name for a model: readable, short, different for different models."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{readable or 'model'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
