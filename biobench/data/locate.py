"""Where a task's data lies: resolving the files that a source names below the data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from biobench.data.catalog import LoadedTask
from biobench.errors import DataFormatError, DataUnavailableError
from biobench.schema.source import FOLD, Original, Source, UrlSource
from biobench.schema.yaml12 import Path_

ENVIRONMENT = "BIOBENCH_DATA_DIR"


HOMEPAGE = "https://example.org"
"""What a new task has in the place of an address until somebody fills it in."""


@dataclass(frozen=True, slots=True)
class LocatedFiles:
    """A source's files: those found by role, and the names that match nothing."""

    source: Source
    folder: Path
    files: dict[str, list[Path]]
    missing: list[str]
    original: dict[str, list[Path]]
    """Files of the second release, where the source names one."""

    @property
    def complete(self) -> bool:
        """All named files are there."""
        return not self.missing

    @property
    def partial(self) -> bool:
        """Some of the source's own files are there and some are not."""
        names = [name for name in self.missing if not name.startswith("../")]
        return bool(names) and any(self.files.values())


def data_folder(data_dir: str | Path | None = None) -> Path:
    """`data_dir`; None: ``$BIOBENCH_DATA_DIR``, else `data` in the current folder."""
    return Path(data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or "data")


def locate(source: Source, data_dir: Path, fold: int = 0) -> LocatedFiles:
    """Resolve file names and globs (sorted by name; `._*` and `__MACOSX` skipped) of one source.

    fold: from 0; its number stands where a name has `{fold}`.
    """
    folder = data_dir / source.folder
    files, missing = _resolve(folder, source.files, str(fold + 1))
    original: dict[str, list[Path]] = {}
    if source.original is not None:
        original, more = _resolve(
            data_dir / source.original.folder, source.original.files, str(fold + 1)
        )
        missing += [f"../{source.original.folder}/{name}" for name in more]
    return LocatedFiles(source, folder, files, missing, original)


def _resolve(
    folder: Path, named: Mapping[str, str | list[str]], fold: str
) -> tuple[dict[str, list[Path]], list[str]]:
    files: dict[str, list[Path]] = {}
    missing: list[str] = []
    for role, patterns in named.items():
        files[role] = []
        for pattern in (p.replace(FOLD, fold) for p in patterns_of({role: patterns})):
            is_pattern = any(sign in pattern for sign in "*?[")
            paths = [
                p
                for p in (folder.glob(pattern) if is_pattern else [folder / pattern])
                if p.is_file()
            ]
            matches = [
                p
                for p in paths
                if not (is_pattern and (p.name[:2] == "._" or "__MACOSX" in p.parts))
            ]
            missing += [] if matches else [pattern]
            files[role] += sorted(matches, key=lambda p: (p.name, p))
    return files, missing


def choose(task: LoadedTask, data_dir: Path) -> LocatedFiles:
    """The first source whose files are all at hand.

    Raises DataFormatError when a source is there in part only, DataUnavailableError (with the
    remedy) when none is there.
    """
    places = [locate(source, data_dir, task.fold) for source in task.spec.all_sources]
    for location in places:
        if location.complete:
            return location
    for location in places:
        if location.partial:
            at: Path_ = (
                ("sources", task.spec.all_sources.index(location.source))
                if task.spec.sources
                else ("source",)
            )
            named = location.source.files.items()
            role = next(
                (
                    role
                    for role, names in named
                    if location.missing[0] in patterns_of({role: names})
                ),
                "",
            )
            missing = location.folder / location.missing[0]
            message = (
                f"task {task.id}: file '{missing}' is missing, others of source "
                f"'{location.source.id}' are there"
            )
            hint = (
                f"complete the folder, or remove it so that another source is used; "
                f"{remedy(task, data_dir)}"
            )
            line = task.located.line_of((*at, "files", role))
            raise DataFormatError(message, hint=hint, file=task.path, line=line)
    hint = remedy(task, data_dir)
    raise DataUnavailableError(
        f"task {task.id}: no data below {data_dir}", hint=hint, access=task.spec.access
    )


def find(task: LoadedTask, data_dir: str | Path | None) -> LocatedFiles | None:
    """The source that a run would use, or None. Raises DataFormatError for a folder that is there
    in part.
    """
    try:
        return choose(task, data_folder(data_dir))
    except DataUnavailableError:
        return None


def remedy(task: LoadedTask, data_dir: Path) -> str:
    """What to do to get the data: fetch it, or which files to put where, and the agreement if there
    is one.
    """
    spec, source = task.spec, preferred(task)
    put = f"put {by_hand(source, data_dir)}"
    if spec.access != "open":
        kind = "a signed agreement" if spec.access == "agreement" else "a registration"
        steps = f"`biobench data status {task.id} --steps` has the steps"
        return f"the data needs {kind}: see {spec.homepage}, then {put} ({steps})"
    places = ", ".join(addresses(source))
    if places:
        return f"run `biobench data fetch {task.id}`, or {put} (from {places})"
    if spec.homepage == HOMEPAGE:
        return f"{put}, or name the folder above it by --data-dir"
    return f"{put} (from {spec.homepage})"


def steps(task: LoadedTask, source: Source, data_dir: Path) -> list[str]:
    """What to do to get the data of this source, from the first page to the check that all is in
    place.
    """
    spec, put = task.spec, f"ut {by_hand(source, data_dir)}"
    if spec.access == "open" and (source.url or source.hub):
        return [f"biobench data fetch {task.id} --data-dir {data_dir}", f"Or by hand: p{put}"]
    if spec.obtain is None:
        first = [f"Ask for the data or download it: {spec.homepage}"]
    else:
        first = [f"The data needs {spec.obtain.needs}."] if spec.obtain.needs else []
        first += [f"Open {', then '.join(spec.obtain.pages)}", *spec.obtain.steps]
    last = [
        f"P{put}",
        f"Check that all is well: biobench tasks validate {task.id} --data-dir {data_dir}",
    ]
    if spec.access == "agreement":
        last.append(
            "Keep the files in that folder. BioBench writes no text and no gold of this task "
            "anywhere else."
        )
    return first + last


def preferred(task: LoadedTask) -> Source:
    """The source that a user is sent to: of open data the first that can be fetched, else the
    first.
    """
    sources = task.spec.all_sources
    return next((s for s in sources if task.spec.access == "open" and (s.url or s.hub)), sources[0])


def by_hand(source: Source, data_dir: Path) -> str:
    """Which files belong into which folder; those of an original release have a folder of their
    own.
    """
    parts = [part for part in (source, source.original) if part is not None]
    return " and ".join(
        f"{', '.join(patterns_of(part.files))} into {data_dir / part.folder}" for part in parts
    )


def patterns_of(files: Mapping[str, str | list[str]]) -> list[str]:
    """All names and patterns of a source's files."""
    return [
        name for value in files.values() for name in ([value] if isinstance(value, str) else value)
    ]


def urls(part: Source | Original) -> list[UrlSource]:
    """The downloads of a source or of its original release, in the long form."""
    entries = part.url if isinstance(part.url, list) else [part.url]
    return [UrlSource(url=u) if isinstance(u, str) else u for u in entries if u is not None]


def addresses(source: Source) -> list[str]:
    """Everything that fetching a source downloads."""
    result = [u.url for part in (source, source.original) if part is not None for u in urls(part)]
    if source.hub is not None:
        part = source.hub.config or source.hub.path or "all folders"
        result.append(f"hub dataset {source.hub.repo}@{source.hub.revision}, {part}")
    return result
