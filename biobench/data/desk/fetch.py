"""Fetching a task's data: downloads into a shared cache, unpacks aside, and moves into place when whole."""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import io
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from biobench.core.hub import client_errors, damage, explain, patiently, set_patience
from biobench.data.catalog import LoadedTask
from biobench.data.desk.download import Progress, RangeFile, download
from biobench.data.desk.status import agreement_steps, preferred, urls
from biobench.data.desk.unpack import DamagedArchiveError, unpack
from biobench.data.locate import default_data_dir, locate
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.schema.source import FOLD
from biobench.schema.strict import suggest
from biobench.schema.task import HubSource, Original, Source, UrlSource

WORK = ".biobench"
"""Folder below the data folder for downloads and unpacking; its content can be deleted at any time."""
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
    task: LoadedTask, data_dir: str | Path | None, source_id: str | None = None, progress: Progress | None = None
) -> Fetched:
    """Download one source of an open task (the first that has an address) into its folder.

    A second process waits for the first; what is at hand is not fetched again. Raises DataUnavailableError
    when the data is under an agreement (the hint has the steps), cannot be had, or does not match its hash,
    and DataFormatError when what came is not what the spec says.
    """
    folder = default_data_dir() if data_dir is None else Path(data_dir)
    source = _choose(task, source_id)
    result = Fetched(task.id, source.id, str(folder / source.folder))
    place = locate(source, folder)
    if place.complete:
        result.notes.append("already at hand")
        return result
    if task.spec.access != "open":
        raise DataUnavailableError(
            f"task {task.id}: the data cannot be downloaded without you ({task.spec.access})",
            hint=" ".join(f"({n}) {s}" for n, s in enumerate(agreement_steps(task, place, folder), start=1)),
            access=task.spec.access,
        )
    if not (source.url or source.hub):
        steps = agreement_steps(task, place, folder)
        raise DataUnavailableError(
            f"task {task.id}: source '{source.id}' has no address",
            hint=" ".join(f"({n}) {s}" for n, s in enumerate(steps, start=1)),
        )
    work = folder / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        with FileLock(work / "fetch.lock"):
            for left in work.glob(f"{_UNPACKED}*"):  # by a killed process: living ones have the lock
                shutil.rmtree(left, ignore_errors=True)
            _fetch_source(source, folder, result, progress)
    except OSError as error:
        raise _not_written(error, folder) from None
    lacking = locate(source, folder).missing
    if lacking:
        raise DataFormatError(
            f"task {task.id}: '{lacking[0]}' is not among what was downloaded",
            hint=f"look into {folder / source.folder}; the release may be laid out differently",
            file=task.path,
        )
    return result


def _choose(task: LoadedTask, source_id: str | None) -> Source:
    if source_id is None:
        return preferred(task)
    known = [s.id for s in task.spec.all_sources]
    if source_id not in known:
        raise UsageError(f"task {task.id} has no source '{source_id}'", hint=suggest(source_id, known))
    return task.source(source_id)


def _fetch_source(source: Source, data_dir: Path, result: Fetched, progress: Progress | None) -> None:
    parts: list[Source | Original] = [source] if source.original is None else [source, source.original]
    for part in parts:
        for item in urls(part):
            result.files += _fetch_url(item, data_dir, data_dir / part.folder, result, progress)
    if source.hub is not None and not urls(source):
        result.files += _fetch_hub(source, source.hub, data_dir, result)


def _fetch_url(item: UrlSource, data_dir: Path, target: Path, result: Fetched, progress: Progress | None) -> list[str]:
    work = data_dir / WORK
    with tempfile.TemporaryDirectory(dir=work, prefix=_UNPACKED) as aside:
        staged = Path(aside) / "files"
        name = unquote(Path(urlsplit(item.url).path).name) or "download"
        ranged = _by_ranges(item, staged, result) if item.members else False
        if not ranged:
            key = hashlib.sha256(item.url.encode()).hexdigest()[:16]
            packed = download(item.url, work / "downloads" / key / name, item.sha256, progress)
            if item.unpack == "none":
                staged.mkdir()
                shutil.copyfile(packed, staged / name)
            else:
                try:
                    unpack(packed, item.unpack, staged, subfolder=item.subfolder, members=item.members, name=item.url)
                except DamagedArchiveError:
                    packed.unlink(missing_ok=True)  # else it would be taken for the file again
                    raise
        return _move(staged, target / item.to)


def _by_ranges(item: UrlSource, staged: Path, result: Fetched) -> bool:
    """Take the members of a remote zip by ranges; False where the server does not serve them."""
    if item.unpack != "zip":
        return False
    try:
        remote = RangeFile(item.url)
    except DataUnavailableError as error:
        if "serves no ranges" in error.what:
            return False
        raise
    with io.BufferedReader(remote, buffer_size=1 << 16) as stream:
        unpack(stream, "zip", staged, subfolder=item.subfolder, members=item.members, name=item.url)
    result.notes.append(f"{remote.received} of {remote.size} bytes read by ranges; the archive's hash was not checked")
    return True


def _move(staged: Path, target: Path) -> list[str]:
    """Put every staged file into the target folder, each in one step."""
    moved: list[str] = []
    for path in sorted(p for p in staged.rglob("*") if p.is_file()):
        final = target / path.relative_to(staged)
        final.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, final)
        moved.append(str(final))
    return moved


def _copy(file: Path, final: Path) -> str:
    """Copy a file into its place in one step; DataUnavailableError where that cannot be written."""
    aside = final.with_name(final.name + ".part")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, aside)
        aside.replace(final)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise _not_written(error, final.parent) from None
    return str(final)


def _not_written(error: OSError, folder: Path) -> DataUnavailableError:
    """What to say where the data folder takes no file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DataUnavailableError(f"the disk of {folder} is full", hint="free some space, or use another --data-dir")
    return DataUnavailableError(
        f"{error.filename or folder}: {error.strerror or error}", hint="check the folder's permissions"
    )


def _fetch_hub(source: Source, hub: HubSource, data_dir: Path, result: Fetched) -> list[str]:
    """Files of a dataset repository by name, all of one commit; scripts in it are never loaded.

    Where the revision is a name (a branch, a tag), the note says which commit it meant.
    """
    from huggingface_hub import HfApi, hf_hub_download

    named = [p for value in source.files.values() for p in ([value] if isinstance(value, str) else value)]
    patterns = [p.replace(FOLD, "*") for p in named]
    prefix = f"{hub.path.strip('/')}/" if hub.path else ""
    moved: list[str] = []
    at = ""
    try:
        set_patience()
        commit = hub.revision
        if not hub.pinned:
            info = patiently(lambda: HfApi().dataset_info(hub.repo, revision=hub.revision))
            commit = info.sha or hub.revision
            result.notes.append(
                f"hub dataset {hub.repo}: '{hub.revision}' was commit {commit}; `revision: {commit}` pins it"
            )
        listed = patiently(lambda: HfApi().list_repo_files(hub.repo, revision=commit, repo_type="dataset"))
        names = [n for n in listed if any(fnmatch.fnmatch(n, prefix + p) for p in patterns)]
        for name in names:
            at = f"{name}: "
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                raise DataFormatError(f"'{name}' would be written outside the folder", hint="refused", file=hub.repo)
            got = Path(hf_hub_download(hub.repo, name, revision=commit, repo_type="dataset"))
            if (wrong := damage(got)) is not None:
                raise DataUnavailableError(
                    f"hub dataset {hub.repo}@{hub.revision}: {name}: {wrong}",
                    hint=f"delete {got.resolve()} and fetch again",
                )
            moved.append(_copy(got, data_dir / source.folder / name.removeprefix(prefix)))
    except client_errors() as error:
        what, hint = explain(error, hub.repo, "dataset", hub.revision)
        raise DataUnavailableError(
            f"hub dataset {hub.repo}@{hub.revision}: {at}{what}", hint=f"{hint}; or use another source"
        ) from error
    return moved
