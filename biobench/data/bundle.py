"""Packing specs, data and a model for a machine without network."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from biobench.core.checkpoint_safety import check_links
from biobench.data.catalog import LoadedTask
from biobench.data.locate import DataRoot, choose, data_folder
from biobench.data.splits import ids_path
from biobench.data.status import files_of
from biobench.errors import DataUnavailableError, ModelError, UsageError
from biobench.schema.source import SplitIds


@dataclass(slots=True)
class Bundled:
    """What went into a bundle."""

    path: str
    tasks: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Task to the reason."""
    files: int = 0
    bytes: int = 0


def bundle(
    tasks: Sequence[LoadedTask],
    data_dir: DataRoot,
    target: str | Path,
    *,
    model: DataRoot = None,
    include_agreement: bool = False,
) -> Bundled:
    """Write an uncompressed tar of `tasks/`, `data/` (one source a task) and, if given,
    `model/NAME/`.

    Tasks whose data is not available are skipped with the reason, as are those under an agreement
    unless
    `include_agreement`. Same input, same bytes. Raises UsageError when nothing is left or `target`
    exists, ModelError when the model is no folder.
    """
    folder, target = data_folder(data_dir), Path(target)
    if target.exists():
        raise UsageError(f"'{target}' exists", hint="name a new file, or remove it")
    if model is not None and not Path(model).is_dir():
        hint = "download the checkpoint first and give its folder"
        raise ModelError(f"'{model}' is not a folder", hint=hint)
    result = Bundled(str(target))
    entries: dict[str, Path] = {}
    for task in tasks:
        try:
            entries |= _entries(task, folder, include_agreement)
            result.tasks.append(task.id)
        except DataUnavailableError as error:
            result.skipped[task.id] = error.what
    if not result.tasks:
        reasons = "; ".join(map(": ".join, result.skipped.items()))
        raise UsageError("no task is left to pack", hint=reasons or "name at least one task")
    if model is not None:
        check_links(Path(model), "**/*")
        prefix = f"model/{Path(model).resolve().name}"
        for path in filter(Path.is_file, Path(model).rglob("*")):
            entries[f"{prefix}/{path.relative_to(model).as_posix()}"] = path
    result.files, result.bytes = len(entries), _pack(entries, target)
    return result


def _pack(entries: dict[str, Path], target: Path) -> int:
    """Write the files by their names in the archive, and give their bytes. Raises UsageError."""
    unfinished = target.with_name(target.name + ".part")
    size = 0
    try:
        with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(entries):
                info = tarfile.TarInfo(name)  # without times and owners
                info.size = entries[name].stat().st_size
                with entries[name].open("rb") as content:
                    archive.addfile(info, content)
                size += info.size
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        message = f"cannot write {target}: {error.strerror or error}"
        raise UsageError(message, hint="check the disk and the folder") from None
    return size


def _entries(task: LoadedTask, folder: Path, include_agreement: bool) -> dict[str, Path]:
    """A task's spec and files by their names in the archive. Raises DataUnavailableError."""
    if task.spec.access == "agreement" and not include_agreement:
        message = (
            "its data is under an agreement (--include-agreement, if the receiver may hold it)"
        )
        raise DataUnavailableError(message, hint="", access="agreement")
    location = choose(task, folder)
    paths = {f"tasks/{task.path.name}": task.path}
    splits = task.spec.splits_of(location.source)
    if isinstance(splits, SplitIds):
        paths[f"tasks/{splits.ids_file}"] = ids_path(splits, task.folder)
    resampled = task.spec.resampled(location.source)
    files = files_of(location)
    if resampled is not None:
        for fold in range(1, resampled.fold_files):
            files += files_of(choose(replace(task, fold=fold), folder))
    for path in files:
        paths[f"data/{path.relative_to(folder).as_posix()}"] = path
    return paths
