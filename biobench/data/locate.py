"""Where a task's data lies: resolving the files that a source names below the data folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from biobench.data.catalog import LoadedTask
from biobench.data.readers.base import FilesByRole
from biobench.errors import DataFormatError, DataUnavailableError
from biobench.schema.source import FOLD, Original, Source, UrlSource
from biobench.schema.yaml12 import Path_

ENVIRONMENT = "BIOBENCH_DATA_DIR"
DataRoot = str | Path | None
"""A data folder; None stands for the default one."""


HOMEPAGE = "https://example.org"
"""What a new task has in the place of an address until somebody fills it in."""


@dataclass(frozen=True, slots=True)
class LocatedFiles:
    """A source's files: those found by role, and the names that match nothing."""

    source: Source
    folder: Path
    files: FilesByRole
    missing: list[str]
    original: FilesByRole
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


def data_folder(data_dir: DataRoot = None) -> Path:
    """`data_dir`; None: ``$BIOBENCH_DATA_DIR``, else `data` in the current folder."""
    return Path(data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or "data")


def locate(source: Source, data_dir: Path, fold: int = 0) -> LocatedFiles:
    """Resolve file names and globs (sorted by name; `._*` and `__MACOSX` skipped) of one source.

    fold: from 0; its number stands where a name has `{fold}`.
    """
    folder = data_dir / source.folder
    files, missing = _resolve(folder, source.files, str(fold + 1))
    original: FilesByRole = {}
    if source.original is not None:
        original, unmatched = _resolve(
            data_dir / source.original.folder, source.original.files, str(fold + 1)
        )
        missing += [f"../{source.original.folder}/{name}" for name in unmatched]
    return LocatedFiles(source, folder, files, missing, original)


def _resolve(
    folder: Path, named: Mapping[str, str | list[str]], fold: str
) -> tuple[FilesByRole, list[str]]:
    files: FilesByRole = {}
    missing: list[str] = []
    for role in named:
        files[role] = []
        for name in patterns_of({role: named[role]}):
            pattern = name.replace(FOLD, fold)
            matches = _matches(folder, pattern)
            if not matches:
                missing.append(pattern)
            files[role] += sorted(matches, key=lambda path: (path.name, path))
    return files, missing


def _matches(folder: Path, pattern: str) -> list[Path]:
    """The files that a name or a glob finds; of a glob without macOS resource files."""
    if not any(sign in pattern for sign in "*?["):
        path = folder / pattern
        return [path] if path.is_file() else []
    paths = (path for path in folder.glob(pattern) if path.is_file())
    return [p for p in paths if not p.name.startswith("._") and "__MACOSX" not in p.parts]


def choose(task: LoadedTask, data_dir: Path) -> LocatedFiles:
    """The first source whose files are all at hand.

    Raises DataFormatError when a source is there in part only, DataUnavailableError (with the
    remedy) when none is there.
    """
    locations = [locate(source, data_dir, task.fold) for source in task.spec.all_sources]
    for location in locations:
        if location.complete:
            return location
    for location in locations:
        if location.partial:
            raise _incomplete(task, location, data_dir)
    problem = f"no data below {data_dir}"
    for location in locations:
        if any(location.files.values()):  # only the original release lacks files
            missing = data_dir / location.missing[0].removeprefix("../")
            problem = f"file '{missing}' of the original release is missing"
    hint = remedy(task, data_dir)
    raise DataUnavailableError(f"task {task.id}: {problem}", hint=hint, access=task.spec.access)


def _incomplete(task: LoadedTask, location: LocatedFiles, data_dir: Path) -> DataFormatError:
    """Of the first file that is missing, with the line of the spec that names it."""
    source, name = location.source, location.missing[0]
    at: Path_ = ("source",)
    if task.spec.sources:
        at = ("sources", task.spec.all_sources.index(source))
    roles = [role for role, names in source.files.items() if name in patterns_of({role: names})]
    message = (
        f"task {task.id}: file '{location.folder / name}' is missing, others of source "
        f"'{source.id}' are there"
    )
    hint = (
        f"complete the folder, or remove it so that another source is used; "
        f"{remedy(task, data_dir)}"
    )
    line = task.located.line_of((*at, "files", *roles[:1]))
    return DataFormatError(message, hint=hint, file=task.path, line=line)


def find(task: LoadedTask, data_dir: DataRoot) -> LocatedFiles | None:
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
    places = addresses(source)
    if len(places) > 1:
        listed = f"`biobench data status {task.id} --steps` lists {len(places)} addresses"
        return f"run `biobench data fetch {task.id}`, or {put} ({listed})"
    if places:
        return f"run `biobench data fetch {task.id}`, or {put} (from {places[0]})"
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
    begin: list[str] = []
    if spec.obtain is None:
        begin.append(f"Ask for the data or download it: {spec.homepage}")
    else:
        if spec.obtain.needs:
            begin.append(f"The data needs {spec.obtain.needs}.")
        begin += [f"Open {', then '.join(spec.obtain.pages)}", *spec.obtain.steps]
    end = [
        f"P{put}",
        f"Check that all is well: biobench tasks validate {task.id} --data-dir {data_dir}",
    ]
    if spec.access == "agreement":
        end.append(
            "Keep the files in that folder. BioBench writes no text and no gold of this task "
            "anywhere else."
        )
    return begin + end


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
    releases = [release for release in (source, source.original) if release is not None]
    return " and ".join(
        f"{', '.join(patterns_of(release.files))} into {data_dir / release.folder}"
        for release in releases
    )


def patterns_of(files: Mapping[str, str | list[str]]) -> list[str]:
    """All names and patterns of a source's files."""
    return [
        name for value in files.values() for name in ([value] if isinstance(value, str) else value)
    ]


def urls(release: Source | Original) -> list[UrlSource]:
    """The downloads of a source or of its original release, in the long form."""
    entries = release.url if isinstance(release.url, list) else [release.url]
    return [UrlSource(url=u) if isinstance(u, str) else u for u in entries if u is not None]


def addresses(source: Source) -> list[str]:
    """Everything that fetching a source downloads."""
    result = [
        u.url for release in (source, source.original) if release is not None for u in urls(release)
    ]
    if source.hub is not None:
        part = source.hub.config or source.hub.path or "all folders"
        result.append(f"hub dataset {source.hub.repo}@{source.hub.revision}, {part}")
    return result
