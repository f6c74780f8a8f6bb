"""Fetching a task's data: downloads into a shared cache, unpacks aside, and moves into place when whole.

Only this part of BioBench downloads corpora, and nothing here runs code that came with data.
"""

from __future__ import annotations

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
from biobench.data.download import NoRangesError, Progress, RangeFile, download, not_written
from biobench.data.locate import default_data_dir, locate, patterns_of, urls
from biobench.data.status import agreement_steps, preferred
from biobench.data.unpack import DamagedArchiveError, unpack
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.schema.source import FOLD, HubSource, Source, UrlSource
from biobench.schema.strict import suggest

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
    known = {source.id: source for source in task.spec.all_sources}
    if source_id is not None and source_id not in known:
        raise UsageError(f"task {task.id} has no source '{source_id}'", hint=suggest(source_id, list(known)))
    source = preferred(task) if source_id is None else known[source_id]
    result = Fetched(task.id, source.id, str(folder / source.folder))
    place = locate(source, folder)
    if place.complete:
        result.notes.append("already at hand")
        return result
    if task.spec.access != "open" or not (source.url or source.hub):
        why = f"source '{source.id}' has no address"
        if task.spec.access != "open":
            why = f"the data cannot be downloaded without you ({task.spec.access})"
        steps = " ".join(f"({n}) {s}" for n, s in enumerate(agreement_steps(task, place, folder), start=1))
        raise DataUnavailableError(f"task {task.id}: {why}", hint=steps, access=task.spec.access)
    work = folder / WORK
    try:
        work.mkdir(parents=True, exist_ok=True)
        with FileLock(work / "fetch.lock"):
            for left in work.glob(f"{_UNPACKED}*"):  # by a killed process: living ones have the lock
                shutil.rmtree(left, ignore_errors=True)
            for part in (source, source.original):
                for item in () if part is None else urls(part):
                    result.files += _fetch_url(item, work, folder / part.folder, result, progress)
            if source.hub is not None and not urls(source):
                result.files += _fetch_hub(source, source.hub, folder, result)
    except OSError as error:
        raise not_written(error, folder) from None
    lacking = locate(source, folder).missing
    if lacking:
        raise DataFormatError(
            f"task {task.id}: '{lacking[0]}' is not among what was downloaded",
            hint=f"look into {folder / source.folder}; the release may be laid out differently",
            file=task.path,
        )
    return result


def _fetch_url(item: UrlSource, work: Path, target: Path, result: Fetched, progress: Progress | None) -> list[str]:
    with tempfile.TemporaryDirectory(dir=work, prefix=_UNPACKED) as aside:
        staged = Path(aside) / "files"
        if not (item.members and item.unpack == "zip" and _by_ranges(item, staged, result)):
            key = hashlib.sha256(item.url.encode()).hexdigest()[:16]
            name = unquote(Path(urlsplit(item.url).path).name) or "download"
            packed = download(item.url, work / "downloads" / key / name, item.sha256, progress)
            try:
                if item.unpack == "none":
                    staged.mkdir()
                    shutil.copyfile(packed, staged / name)
                else:
                    unpack(packed, item.unpack, staged, subfolder=item.subfolder, members=item.members, name=item.url)
            except DamagedArchiveError:
                packed.unlink(missing_ok=True)  # else it would be taken for the file again
                raise
        return [
            _put(path, target / item.to / path.relative_to(staged))
            for path in sorted(p for p in staged.rglob("*") if p.is_file())
        ]


def _by_ranges(item: UrlSource, staged: Path, result: Fetched) -> bool:
    """Take the members of a remote zip by ranges; False where the server does not serve them."""
    try:
        remote = RangeFile(item.url)
    except NoRangesError:
        return False
    with io.BufferedReader(remote, buffer_size=1 << 16) as stream:
        unpack(stream, "zip", staged, subfolder=item.subfolder, members=item.members, name=item.url)
    result.notes.append(f"{remote.received} of {remote.size} bytes read by ranges; the archive's hash was not checked")
    return True


def _put(path: Path, final: Path) -> str:
    """Move a file of the same disk into its place, in one step."""
    final.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, final)
    return str(final)


def _fetch_hub(source: Source, hub: HubSource, data_dir: Path, result: Fetched) -> list[str]:
    """Files of a dataset repository by name, all of one commit; scripts in it are never loaded.

    Where the revision is a name (a branch, a tag), the note says which commit it meant.
    """
    from huggingface_hub import HfApi, hf_hub_download

    prefix = f"{hub.path.strip('/')}/" if hub.path else ""
    patterns = [prefix + pattern.replace(FOLD, "*") for pattern in patterns_of(source.files)]
    repository, at, moved = f"hub dataset {hub.repo}@{hub.revision}", "", list[str]()
    try:
        set_patience()
        commit = hub.revision
        if not hub.pinned:
            info = patiently(lambda: HfApi().dataset_info(hub.repo, revision=hub.revision))
            commit = info.sha or hub.revision
            note = f"'{hub.revision}' was commit {commit}; `revision: {commit}` pins it"
            result.notes.append(f"hub dataset {hub.repo}: {note}")
        listed = patiently(lambda: HfApi().list_repo_files(hub.repo, revision=commit, repo_type="dataset"))
        for name in (n for n in listed if any(fnmatch.fnmatch(n, pattern) for pattern in patterns)):
            at = f"{name}: "
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                raise DataFormatError(f"'{name}' would be written outside the folder", hint="refused", file=hub.repo)
            got = Path(hf_hub_download(hub.repo, name, revision=commit, repo_type="dataset"))
            if (wrong := damage(got)) is not None:
                hint = f"delete {got.resolve()} and fetch again"
                raise DataUnavailableError(f"{repository}: {name}: {wrong}", hint=hint)
            final = data_dir / source.folder / name.removeprefix(prefix)
            try:
                with tempfile.TemporaryDirectory(dir=data_dir / WORK, prefix=_UNPACKED) as aside:
                    moved.append(_put(Path(shutil.copyfile(got, Path(aside) / "file")), final))
            except OSError as error:
                raise not_written(error, final.parent) from None
    except client_errors() as error:
        what, hint = explain(error, hub.repo, "dataset", hub.revision)
        raise DataUnavailableError(f"{repository}: {at}{what}", hint=f"{hint}; or use another source") from error
    return moved
