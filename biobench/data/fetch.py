"""Fetching a task's data: downloads into a shared cache, unpacks aside, and moves into place when
whole.

Only this part of BioBench downloads corpora, and nothing here runs code that came with data.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from biobench.data.catalog import LoadedTask
from biobench.data.download import Progress, download, not_written
from biobench.data.hub import (
    download_files,
    explained,
    folder_name,
    look_up,
    read_tables,
    source_named,
)
from biobench.data.locate import can_fetch, data_folder, locate, preferred, steps
from biobench.data.unpack import DamagedArchiveError, unpack
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.schema.source import FOLD, HubSource, Source, UrlSource, patterns_of
from biobench.schema.strict import suggest

WORK = ".biobench"
"""Folder below the data folder for downloads and unpacking; its content can be deleted at any time.
"""
_UNPACKED = "unpack-"
"""Begin of the names of folders below it where archives are unpacked."""


@dataclass(slots=True)
class Fetched:
    """What a fetch did."""

    task: str
    source: str
    folder: str
    files: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fetch(
    task: LoadedTask,
    data_dir: str | Path | None,
    source_id: str | None = None,
    progress: Progress | None = None,
) -> Fetched:
    """Download one source of an open task (the first that has an address) into its folder.

    A second process waits for the first; what is at hand is not fetched again. Raises
    DataUnavailableError when the data is under an agreement (the hint has the steps), cannot be
    had, or does not match its hash, and DataFormatError when what came is not what the spec says.
    """
    folder = data_folder(data_dir)
    source = _chosen(task, source_id)
    result = Fetched(task.id, source.id, str(folder / source.folder))
    if locate(source, folder).complete:
        _clean(folder / WORK)
        result.notes.append("already available")
        return result
    if not can_fetch(task, source):
        raise _by_hand(task, source, folder)
    with _working(folder) as work:
        for release in source.releases_read:
            for item in release.downloads:
                result.files += _fetch_url(item, work, folder / release.folder, result, progress)
        if source.hub is not None and not source.downloads:
            result.files += _fetch_hub(source, source.hub, folder, result)
    lacking = locate(source, folder).missing
    if lacking:
        message = f"task {task.id}: '{lacking[0]}' is not among what was downloaded"
        hint = f"look into {folder / source.folder}; the release may be laid out differently"
        raise DataFormatError(message, hint=hint, file=task.path)
    return result


def _chosen(task: LoadedTask, source_id: str | None) -> Source:
    """The source of this id, else the first that can be fetched. Raises UsageError."""
    if source_id is None:
        return preferred(task)
    names = [source.id for source in task.spec.all_sources]
    if source_id not in names:
        hint = suggest(source_id, names)
        raise UsageError(f"task {task.id} has no source '{source_id}'", hint=hint)
    return task.source(source_id)


def _by_hand(task: LoadedTask, source: Source, folder: Path) -> DataUnavailableError:
    """The error for a source that only the user can bring, with the steps."""
    why = f"source '{source.id}' has no address"
    if task.spec.access != "open":
        why = f"the data cannot be downloaded without you ({task.spec.access})"
    hint = ""
    for number, step in enumerate(steps(task, source, folder), start=1):
        hint += f"({number}) {step} "
    message = f"task {task.id}: {why}"
    return DataUnavailableError(message, hint=hint.strip(), access=task.spec.access)


def _clean(work: Path) -> None:
    """Remove what killed fetches left; not while another is at work, or where nothing can be
    written.
    """
    if work.is_dir():
        with suppress(OSError), _alone(work, timeout=0):
            pass


@contextmanager
def _working(folder: Path) -> Iterator[Path]:
    """The folder for downloads, of this fetch alone. Raises DataUnavailableError where the data
    folder takes no file.
    """
    work = folder / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        with _alone(work):
            yield work
    except OSError as error:
        raise not_written(error, folder) from None


@contextmanager
def _alone(work: Path, timeout: float = -1) -> Iterator[None]:
    """The lock of all fetches into a folder, without what killed ones left unpacked: living ones
    have the lock.
    """
    with FileLock(work / "fetch.lock", timeout=timeout):
        for left in work.glob(f"{_UNPACKED}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


_ON_THE_HUB = re.compile(r"https://huggingface\.co/datasets/([^/]+/[^/]+)/resolve/([^/]+)/([^?]+)")


def _fetch_url(
    item: UrlSource, work: Path, target: Path, result: Fetched, progress: Progress | None
) -> list[str]:
    """Files of one download, unpacked where the spec says so. Of a large zip on the hub its members
    alone are read.
    """
    inside = _ON_THE_HUB.fullmatch(item.url)
    with tempfile.TemporaryDirectory(dir=work, prefix=_UNPACKED) as aside:
        staged = Path(aside) / "files"
        if item.members and item.unpack == "zip" and inside is not None:
            repo, revision, path = inside.groups()
            _unpack_from_hub(item, HubSource(repo=repo, revision=revision), path, staged)
            result.notes.append("only the members were read; the archive's hash was not checked")
            return _put(staged, target / item.to)
        key = hashlib.sha256(item.url.encode()).hexdigest()[:16]
        name = unquote(Path(urlsplit(item.url).path).name) or "download"
        packed = download(item.url, work / "downloads" / key / name, item.sha256, progress)
        if item.unpack == "none":
            staged.mkdir()
            shutil.copyfile(packed, staged / name)
        else:
            _unpack(packed, item, staged)
        return _put(staged, target / item.to)


def _unpack_from_hub(item: UrlSource, hub: HubSource, path: str, target: Path) -> None:
    """Unpack members of an archive on the hub, of which no other part is downloaded."""
    from huggingface_hub import HfFileSystem

    place = f"datasets/{hub.repo}@{hub.revision}/{path}"
    with explained(hub), HfFileSystem().open(place, "rb") as stream:
        _unpack(stream, item, target)


def _unpack(archive: Path | IO[bytes], item: UrlSource, target: Path) -> None:
    try:
        unpack(
            archive,
            item.unpack,
            target,
            subfolder=item.subfolder,
            members=item.members,
            name=item.url,
        )
    except DamagedArchiveError:
        if isinstance(archive, Path):
            archive.unlink(missing_ok=True)  # else it would be taken for the file again
        raise


def _put(staged: Path, target: Path) -> list[str]:
    """Move the files below a folder of the same disk into their places, each in one step."""
    moved = []
    for path in sorted(filter(Path.is_file, staged.rglob("*"))):
        final = target / path.relative_to(staged)
        final.parent.mkdir(parents=True, exist_ok=True)
        moved.append(str(path.replace(final)))
    return moved


def _fetch_hub(source: Source, hub: HubSource, data_dir: Path, result: Fetched) -> list[str]:
    """Files of a dataset repository by name, or the tables of a configuration, all of one commit.

    Where the revision is a name (a branch, a tag), the note says which commit it meant.
    """
    with tempfile.TemporaryDirectory(dir=data_dir / WORK, prefix=_UNPACKED) as aside:
        if hub.config is not None:
            pinned, staged = read_tables(hub, Path(aside))
            commit = pinned.revision
        else:
            commit, staged = hub.revision, Path(aside)
            if not hub.pinned:
                commit = look_up(hub).commit
            _copy_files(source, hub, commit, staged)
        if not hub.pinned:
            note = f"'{hub.revision}' was commit {commit}; `revision: {commit}` pins it"
            result.notes.append(f"hub dataset {hub.repo}: {note}")
        return _put(staged, data_dir / source.folder)


def _copy_files(source: Source, hub: HubSource, commit: str, target: Path) -> None:
    """Copy the files that the source names out of the cache of the hub's client."""
    prefix = f"{hub.path.strip('/')}/" if hub.path else ""
    patterns = [prefix + pattern.replace(FOLD, "*") for pattern in patterns_of(source.files)]
    for name, path in download_files(hub, commit, patterns).items():
        copy = target / name.removeprefix(prefix)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def fetch_named(
    name: str, revision: str | None, data_dir: str | Path | None
) -> tuple[HubSource, Path]:
    """Fetch `hub:ORG/NAME[:CONFIG]`: (its source at a commit, its folder below the data folder).

    Raises UsageError for what is no such name, and what `fetch` raises.
    """
    hub, folder = source_named(name, revision), data_folder(data_dir)
    with (
        _working(folder) as work,
        tempfile.TemporaryDirectory(dir=work, prefix=_UNPACKED) as aside,
    ):
        pinned, staged = read_tables(hub, Path(aside))
        target = folder / folder_name(pinned)
        _put(staged, target)
    return pinned, target
