"""A submission: a model's runs under one set of conditions, their predictions and a manifest, in a
folder of its own.

<folder>/submission.json            who, what, and the hash of every file
<folder>/runs/<task>/<key>.json     records
<folder>/runs/<task>/<key>.parquet  predictions
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, ValidationError

from biobench.core.files import file_hash, sha256_of, temporary_folder
from biobench.errors import UsageError
from biobench.reporting.entrants import groups_named, line_name
from biobench.reporting.escape import plain
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results, load
from biobench.schema.record import Version
from biobench.schema.strict import Count, Line, Positive, Strict, suggest
from biobench.store import Store
from biobench.store.records import write_record
from biobench.store.statements import MANIFEST
from biobench.submission.records import why_not_submitted
from biobench.version import __version__

VERSION = 1
_VISIBLE = r"^(\n|[^\p{C}\p{Zl}\p{Zp}])*$"
"""Without control, direction and invisible characters."""


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
    model: str = Field(max_length=200, pattern=_VISIBLE)
    biobench: Version
    notes: str = Field("", max_length=2_000, pattern=_VISIBLE)
    files: tuple[SubmittedFile, ...]


def submit(
    model: str,
    results_dir: str | Path,
    out: Path | None = None,
    *,
    notes: str = "",
) -> Path:
    """Pack the model's runs into a new folder; gives it.

    model: as the report names it, with its conditions in brackets where it was run under several.
    out: the folder to make (default: `submissions/<name>`); it must not hold anything yet. Raises
    UsageError where there is nothing to pack or `out` is not empty, and StoreError where something
    cannot be read or written.
    """
    groups = submitted_groups(load(results_dir), model)
    folder = out or Path("submissions") / slug(_line_of(groups[0]))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"'{folder}' is not empty", hint="give another folder, or remove it")
    try:
        manifest = Manifest(model=groups[0].model, biobench=__version__, notes=notes, files=())
    except ValidationError:
        hint = "write plain text of at most 200 and 2,000 characters"
        raise UsageError(
            "the model's name or the notes are too long, or hold hidden characters", hint=hint
        ) from None
    source = Store(results_dir)
    # The folder is there whole or not at all, so that a killed command can be given again.
    with temporary_folder(folder, "--out") as aside:
        for group in groups:
            for record in group.records:
                Store(aside).copy(source, record)
        files = [packed_file(path, aside) for path in packed_files(aside)]
        write_record(aside / MANIFEST, manifest.model_copy(update={"files": tuple(files)}))
    return folder


def packed_file(path: Path, folder: Path) -> SubmittedFile:
    """What a manifest says of a file of the submission in `folder`."""
    name = path.relative_to(folder).as_posix()
    return SubmittedFile(path=name, size=path.stat().st_size, sha256=file_hash(path))


def packed_files(folder: Path) -> list[Path]:
    """The files of a submission besides its manifest, sorted."""
    return sorted(p for p in folder.glob("runs/*/*") if p.is_file())


def submitted_groups(results: Results, model: str) -> list[RunGroup]:
    """The runs that a name means: of one set of weights, under one set of conditions. Raises
    UsageError.
    """
    groups = [group for group in results.groups if group.source != "submitted"]
    named = groups_named(model, groups)
    of_line = [group for group in named if _line_of(group) == model]
    named = of_line or named
    if not named:
        models = {plain(group.model) for group in groups}
        hint = suggest(plain(model), sorted(models))
        raise UsageError(f"'{plain(model)}' has no full runs here", hint=hint)
    allowed = [group for group in named if not _why_not(group)]
    if not allowed:
        example = named[0]
        reason = f"{example.task} {plain(_why_not(example))}"
        raise UsageError(
            f"no run of '{plain(model)}' can be submitted: {reason}",
            hint="submit models that are trained here: run it without --track ready, --limit or "
            "--no-test; --track tuned or frozen, --protocol small and adapters are allowed",
        )
    lines = {plain(_line_of(group)) for group in allowed}
    if len(lines) > 1:
        quoted = [f"'{line}'" for line in sorted(lines)]
        raise UsageError(
            f"'{plain(model)}' was run with {len(lines)} weights or conditions here",
            hint=f"name one: {', '.join(quoted)}",
        )
    return allowed


def _line_of(group: RunGroup) -> str:
    return line_name(group.model, group.variant)


def _why_not(group: RunGroup) -> str:
    """Why its runs cannot be submitted; empty where they can."""
    reason = why_not_submitted(group.briefs[0])
    if not reason and group.departures.differs_in("version", "engine"):
        return "was run on another spec or by another engine"
    return reason


def slug(name: str) -> str:
    """A folder name for a model: readable, short, different for different models."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60]
    return f"{readable or 'model'}-{sha256_of(name.encode('utf-8', 'surrogatepass'))[:8]}"
