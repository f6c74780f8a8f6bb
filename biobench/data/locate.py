"""Where a task's data lies: resolving the files that a source names below the data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from itertools import chain, filterfalse
from operator import attrgetter
from pathlib import Path

from biobench.data.catalog import LoadedTask, spec_paths
from biobench.data.readers.base import FilesByRole
from biobench.errors import DataFormatError, DataUnavailableError
from biobench.schema.source import FOLD, CorpusRelease, Source, patterns_of

ENVIRONMENT = "BIOBENCH_DATA_DIR"
DataRoot = str | Path | None
"""A data folder; None stands for the default one."""


_NEEDED = {"agreement": "a signed agreement", "registration": "a registration"}
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
    if data_dir is None:
        data_dir = os.environ.get(ENVIRONMENT) or "data"
    return Path(data_dir)


def locate(source: Source, data_dir: Path, fold: int = 0) -> LocatedFiles:
    """Resolve file names and globs (sorted by name; `._*` and `__MACOSX` skipped) of one source.

    fold: from 0; its number stands where a name has `{fold}`.
    """
    files, missing = _resolve(source, data_dir, str(fold + 1))
    original: FilesByRole = {}
    if source.original is not None:
        original, unmatched = _resolve(source.original, data_dir, str(fold + 1))
        missing += [f"../{source.original.folder}/{name}" for name in unmatched]
    return LocatedFiles(source, data_dir / source.folder, files, missing, original)


def is_pattern(name: str) -> bool:
    """Whether a name stands for all that it matches."""
    return not {"*", "?", "["}.isdisjoint(name)


def _resolve(release: CorpusRelease, data_dir: Path, fold: str) -> tuple[FilesByRole, list[str]]:
    """(files by role, names and patterns that match none)."""
    files: FilesByRole = {}
    missing: list[str] = []
    for role, named in release.files.items():
        files[role] = []
        for name in patterns_of({role: named}):
            pattern = name.replace(FOLD, fold)
            matches = _matches(data_dir / release.folder, pattern)
            if not matches:
                missing.append(pattern)
            files[role] += sorted(matches, key=lambda path: (path.name, path))
    return files, missing


def _matches(folder: Path, pattern: str) -> list[Path]:
    """The files that a name or a glob finds; of a glob without macOS resource files."""
    if not is_pattern(pattern):
        return list(filter(Path.is_file, [folder / pattern]))
    files = filter(Path.is_file, folder.glob(pattern))
    return list(filterfalse(_is_resource, files))


def _is_resource(path: Path) -> bool:
    """Whether macOS put the file into an archive, beside the file itself."""
    return path.name.startswith("._") or "__MACOSX" in path.parts


def no_data(data_dir: Path) -> str:
    """Where nothing is, and whether that is a folder at all."""
    return f"no data below {data_dir}" + ("" if data_dir.is_dir() else " (no such folder)")


def choose(task: LoadedTask, data_dir: Path) -> LocatedFiles:
    """The first source whose files are all at hand.

    Raises DataFormatError when a source is there in part only, DataUnavailableError (with the
    remedy) when none is there.
    """
    locations = [locate(source, data_dir, task.fold) for source in task.spec.all_sources]
    complete = next(filter(attrgetter("complete"), locations), None)
    if complete is not None:
        return complete
    problem = no_data(data_dir)
    for location in locations:
        if location.partial:
            raise _incomplete(task, location, data_dir)
        if any(location.files.values()):  # only the original release lacks files
            missing = data_dir / location.missing[0].removeprefix("../")
            problem = f"file '{missing}' of the original release is missing"
    hint = remedy(task, data_dir)
    raise DataUnavailableError(f"task {task.id}: {problem}", hint=hint, access=task.spec.access)


def _incomplete(task: LoadedTask, location: LocatedFiles, data_dir: Path) -> DataFormatError:
    """Of the first file that is missing, with the line of the spec that names it."""
    source, name = location.source, location.missing[0]
    roles = [role for role, names in source.files.items() if name in patterns_of({role: names})]
    path = [*task.spec.path_of(source), "files", *roles[:1]]
    message = (
        f"task {task.id}: file '{location.folder / name}' is missing, others of source "
        f"'{source.id}' are there"
    )
    hint = "complete the folder, or remove it so that another source is used"
    hint += f"; {remedy(task, data_dir)}"
    line = task.located.line_of(tuple(path))
    return DataFormatError(message, hint=hint, file=task.path, line=line)


def find(task: LoadedTask, data_dir: DataRoot) -> LocatedFiles | None:
    """The source that a run would use, or None. Raises DataFormatError for a folder that is there
    in part.
    """
    try:
        return choose(task, data_folder(data_dir))
    except DataUnavailableError:
        return None


def can_fetch(task: LoadedTask, source: Source) -> bool:
    """Whether `biobench data fetch` gets this source: open data with an address."""
    return task.spec.access == "open" and bool(source.url or source.hub)


def fetch_command(task: LoadedTask, data_dir: Path) -> str:
    """The command that fetches the task's data, with the data folder where it is not the default
    one.
    """
    command = f"biobench data fetch {name_in_commands(task.id, task.path)}"
    return command if data_dir == data_folder() else f"{command} --data-dir {data_dir}"


def remedy(task: LoadedTask, data_dir: Path) -> str:
    """What to do to get the data: fetch it, or which files to put where, and the agreement if there
    is one.
    """
    spec, source = task.spec, preferred(task)
    put = f"put {by_hand(source, data_dir)}"
    status = f"`biobench data status {name_in_commands(task.id, task.path)} --steps`"
    if spec.homepage == HOMEPAGE:  # a task of one's own: its data lies somewhere already
        return f"{put}, or name the folder above it by --data-dir"
    if spec.access != "open":
        needed = _NEEDED[spec.access]
        return f"the data needs {needed}: see {spec.homepage}, then {put} ({status} has the steps)"
    origins = addresses(source)
    if origins:
        listed = f"{status} lists {len(origins)} addresses"
        if len(origins) == 1:
            listed = f"from {origins[0]}"
        return f"run `{fetch_command(task, data_dir)}`, or {put} ({listed})"
    return f"{put} (from {spec.homepage})"


def steps(task: LoadedTask, source: Source, data_dir: Path) -> list[str]:
    """What to do to get the data of this source, from the first page to the check that all is in
    place.
    """
    spec, files = task.spec, by_hand(source, data_dir)
    if can_fetch(task, source):
        return [fetch_command(task, data_dir), f"Or by hand: put {files}"]
    lines: list[str] = []
    if spec.homepage == HOMEPAGE:
        files += ", or name the folder above it by --data-dir"
    elif spec.obtain is None:
        lines.append(f"Ask for the data or download it: {spec.homepage}")
    else:
        if spec.obtain.needs:
            lines.append(f"The data needs {spec.obtain.needs}.")
        lines += [f"Open {', then '.join(spec.obtain.pages)}", *spec.obtain.steps]
    lines.append(f"Put {files}")
    name = name_in_commands(task.id, task.path)
    lines.append(f"Check that all is well: biobench tasks validate {name} --data-dir {data_dir}")
    if spec.access == "agreement":
        lines.append(
            "Keep the files in that folder. BioBench writes no text and no gold of this task "
            "anywhere else."
        )
    return lines


def name_in_commands(task: str, path: str | Path) -> str:
    """What a command is given to mean the task of this id: the file of one that is not shipped."""
    return task if spec_paths().get(task) == Path(path) else str(path)


def preferred(task: LoadedTask) -> Source:
    """The source that a user is sent to: of open data the first that can be fetched, else the
    first.
    """
    sources = task.spec.all_sources
    return next(filter(partial(can_fetch, task), sources), sources[0])


def by_hand(source: Source, data_dir: Path) -> str:
    """Which files belong into which folder; those of an original release have a folder of their
    own.
    """
    places: list[str] = []
    for release in source.releases_read:
        names = ", ".join(patterns_of(release.files))
        places.append(f"{names} into {data_dir / release.folder}")
    return " and ".join(places)


def addresses(source: Source) -> list[str]:
    """Everything that fetching a source downloads."""
    downloads = chain.from_iterable(map(attrgetter("downloads"), source.releases_read))
    result = [download.url for download in downloads]
    if source.hub is not None:
        part = source.hub.config or source.hub.path or "all folders"
        result.append(f"hub dataset {source.hub.repo}@{source.hub.revision}, {part}")
    return result
