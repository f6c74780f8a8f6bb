"""Packing specs, data and a model for a machine without network."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from biobench import __version__
from biobench.core.files import file_hash, sha256_of
from biobench.data.catalog import LoadedTask
from biobench.data.locate import choose, data_folder
from biobench.data.status import files_of
from biobench.errors import DataUnavailableError, ModelError, UsageError
from biobench.schema.source import SplitIds

_README = """BioBench bundle

data/    give it as --data-dir
tasks/   the specs, as they were when this was packed; shipped tasks also go by their id
model/   the checkpoint, if one was packed: give its folder as MODEL

    biobench run model/NAME --task TASK --data-dir data --offline

MANIFEST.json lists every file with its SHA-256.
"""


@dataclass(slots=True)
class Bundled:
    """What went into a bundle."""

    path: str
    tasks: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Task to the reason."""
    files: int = 0
    bytes: int = 0


def bundle(
    tasks: Sequence[LoadedTask],
    data_dir: str | Path | None,
    target: str | Path,
    *,
    model: str | Path | None = None,
    include_agreement: bool = False,
) -> Bundled:
    """Write an uncompressed tar of specs, data (one source a task) and, if given, a model folder.

    Tasks whose data is not at hand are left out with the reason, as are those under an agreement unless
    `include_agreement`. Same input, same bytes. Raises UsageError when nothing is left or `target` exists,
    ModelError when the model is no folder.
    """
    folder = data_folder(data_dir)
    target = Path(target)
    if target.exists():
        raise UsageError(f"'{target}' exists", hint="name a new file, or remove it")
    result, entries = Bundled(str(target)), dict[str, Path]()
    for task in tasks:
        reason = _add_task(task, folder, include_agreement, entries)
        if reason is None:
            result.tasks.append(task.id)
        else:
            result.left_out[task.id] = reason
    if not result.tasks:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in result.left_out.items())
        raise UsageError("no task is left to pack", hint=reasons or "name at least one task")
    if model is not None:
        above = Path(model)
        if not above.is_dir():
            raise ModelError(f"'{above}' is not a folder", hint="download the checkpoint first and give its folder")
        entries |= {f"model/{above.name}/{p.relative_to(above).as_posix()}": p for p in above.rglob("*") if p.is_file()}
    hashes = {name: file_hash(path) for name, path in entries.items()} | {"README.txt": sha256_of(_README.encode())}
    manifest = {"biobench": __version__, "tasks": result.tasks, "files": dict(sorted(hashes.items()))}
    texts = {"README.txt": _README, "MANIFEST.json": json.dumps(manifest, indent=1, ensure_ascii=False)}
    part = target.with_name(target.name + ".part")
    try:
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted([*entries, *texts]):
                info = tarfile.TarInfo(name)
                info.mode = 0o644
                with entries[name].open("rb") if name in entries else io.BytesIO(texts[name].encode()) as content:
                    info.size = content.seek(0, io.SEEK_END)
                    content.seek(0)
                    archive.addfile(info, content)
                result.files += 1
                result.bytes += info.size
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        what = f"cannot write {target}: {error.strerror or error}"
        raise UsageError(what, hint="check the disk and the folder") from None
    return result


def _add_task(task: LoadedTask, folder: Path, include_agreement: bool, entries: dict[str, Path]) -> str | None:
    """Put a task's spec and files into `entries`; the reason when it is left out."""
    if task.spec.access == "agreement" and not include_agreement:
        return "its data is under an agreement (say --include-agreement if the receiver may hold it)"
    try:
        place = choose(task, folder)
    except DataUnavailableError as error:
        return error.what
    entries[f"tasks/{task.path.name}"] = task.path
    splits = task.spec.splits_of(place.source)
    if isinstance(splits, SplitIds):
        entries[f"tasks/{splits.ids_file}"] = task.folder / splits.ids_file
    resampled = task.spec.resampled(place.source)
    folds = range(resampled.fold_files if resampled is not None else 1)
    for fold in folds:
        for path in files_of(choose(replace(task, fold=fold), folder)):
            entries[f"data/{path.relative_to(folder).as_posix()}"] = path
    return None
