"""Which files of a folder are data, and of which split each is, by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from biobench.data.readers.base import FilesByRole
from biobench.data.sniff.base import DataFiles
from biobench.errors import UsageError
from biobench.schema.source import FOLD
from biobench.schema.task import SPLITS

SPLIT_NAMES = {"train": "train", "training": "train", "test": "test"} | dict.fromkeys(
    ("dev", "devel", "develop", "development", "val", "valid", "validation"), "validation"
)
_NO_DATA = {".ann", ".conf", ".html", ".md", ".pdf", ".py", ".sha256", ".sh", ".yaml", ".yml"}
"""Endings of what lies beside data."""
_NO_DATA_NAMES = re.compile(
    r"(readme|licen[cs]e|changelog|citation|manifest|dataset_(infos?|dict))(?![a-z]).*|state\.json",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""Of a name: `CDR_TrainingSet` is CDR, Training and Set."""


Names = dict[str, str | list[str]]
"""Split to its files as a spec names them."""


@dataclass(frozen=True, slots=True)
class Parts:
    """folder: of the task. corpus: its files by split. names: as the spec names them. unused: files
    and endings that were left out.
    """

    folder: Path
    corpus: DataFiles
    names: Names
    folds: int = 0
    """How many numbered folders hold the same files, each a split of the corpus."""
    unused: tuple[str, ...] = ()


def find_parts(path: Path) -> Parts:
    """The files that a data file or a folder stands for.

    A file stands for itself, or for its folder where that names splits in files of its ending. One
    text or .ann of BRAT stands for its folder. Raises UsageError where nothing is there, or not one
    shape.
    """
    if path.with_suffix(".ann").is_file() and path.with_suffix(".txt").is_file():
        path = path.parent
    if not path.is_dir():
        return _of_file(path)
    files: list[Path] = []
    by_ending: FilesByRole = {}
    for file in sorted(path.rglob("*")):
        if file.is_file() and _may_be_data(file.relative_to(path)):
            files.append(file)
            by_ending.setdefault(file.suffix, []).append(file)
    splits = _named_splits(path, by_ending)
    if not splits:
        splits = {"all": _whole(path, by_ending)}
    return _parts(path, splits, files)


def _of_file(path: Path) -> Parts:
    """The file, or it and those of its ending beside it, where these are splits."""
    folder = path.parent
    siblings = sorted(f for f in folder.iterdir() if f.suffix == path.suffix and f.is_file())
    splits = _named_splits(folder, {path.suffix: siblings})
    if any(path in group for group in splits.values()):
        return _parts(folder, splits, siblings)
    return _parts(folder, {"all": [path]}, [path])


def _named_splits(folder: Path, by_ending: FilesByRole) -> FilesByRole:
    """The files of each split, of the same data in several formats those of the one that has every
    split; empty where none names train and test.
    """
    named = [_by_split(folder, files) for files in by_ending.values()]
    named = [splits for splits in named if {"train", "test"} <= splits.keys()]
    return max(named, key=lambda n: (len(n), sum(map(len, n.values()))), default={})


def _may_be_data(path: Path) -> bool:
    hidden = any(name.startswith((".", "__")) for name in path.parts)
    no_data = path.suffix in _NO_DATA or _NO_DATA_NAMES.fullmatch(path.name) is not None
    return not hidden and not no_data


def _by_split(folder: Path, files: Iterable[Path]) -> FilesByRole:
    """Files whose path names a split, in the order of the splits."""
    files_of: FilesByRole = {}
    for file in files:
        split = _split_of(file.relative_to(folder))
        if split is not None:
            files_of.setdefault(split, []).append(file)
    return {name: files_of[name] for name in SPLITS if name in files_of}


def _split_of(path: Path) -> str | None:
    """The split that the outermost folder with such a name, else the file, is called."""
    for name in (*path.parts[:-1], path.stem):
        words = [word.lower().removesuffix("set") for word in _WORDS.findall(name)]
        splits = {SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES}
        if len(splits) == 1:  # `train_test_split` names none
            return splits.pop()
    return None


def _whole(folder: Path, by_ending: FilesByRole) -> list[Path]:
    """All files of a folder without splits, where they are of one ending. Raises UsageError."""
    texts = by_ending.get(".txt", [])
    annotated = {text.parent for text in texts if text.with_suffix(".ann").is_file()}
    if annotated:
        return [text for text in texts if text.parent in annotated]
    if not by_ending:
        raise UsageError(f"'{folder}' holds no data files", hint="give a data file")
    parents = {file.parent for files in by_ending.values() for file in files}
    if len(by_ending) > 1 or len(parents) > 1:
        endings = ", ".join(
            f"{len(files)} {name or 'without ending'}" for name, files in by_ending.items()
        )
        folders = sorted({parent.relative_to(folder).as_posix() for parent in parents})[:5]
        message = f"'{folder}' holds no train and test files, and not one shape of data: {endings}"
        if len(parents) > 1:
            message += f" in {', '.join(folders)}"
        hint = (
            "give one data file, or a folder whose files name train, dev and test; where texts and "
            "labels lie apart, write the spec by hand (docs/tasks.md, Readers)"
        )
        raise UsageError(message, hint=hint)
    (files,) = by_ending.values()
    return files


def _parts(folder: Path, splits: FilesByRole, files: list[Path]) -> Parts:
    folds = _folds(folder, splits)
    if folds:
        fold_files = {name: paths[:1] for name, paths in splits.items()}
        patterns: Names = {name: f"{FOLD}/{path.name}" for name, (path,) in fold_files.items()}
        return Parts(folder, DataFiles(fold_files), patterns, folds)
    names = {name: _named(folder, paths) for name, paths in splits.items()}
    taken = {path for paths in splits.values() for path in paths}
    unused = [str(file.relative_to(folder)) for file in files if file not in taken]
    if len(unused) > 5:
        unused[5:] = ["…"]
    return Parts(folder, DataFiles(splits), names, unused=tuple(unused))


def name_files(parts: Parts, files: FilesByRole) -> Parts:
    """The same folder with these files of each split, in this order."""
    names: Names = {
        split: [path.relative_to(parts.folder).as_posix() for path in paths]
        for split, paths in files.items()
    }
    return Parts(parts.folder, DataFiles(files), names, unused=parts.unused)


def _folds(folder: Path, splits: FilesByRole) -> int:
    """How many folders 1, 2, ... each hold one file of each split, of the same name; else 0."""
    numbers = len(next(iter(splits.values())))
    for paths in splits.values():
        wanted = {folder / str(number + 1) / paths[0].name for number in range(numbers)}
        if numbers < 2 or set(paths) != wanted:
            return 0
    for paths in splits.values():
        paths.sort(key=lambda path: int(path.parent.name))
    return numbers


def _named(folder: Path, paths: list[Path]) -> str | list[str]:
    """A file's name, a pattern that finds exactly these files, or their names.

    Patterns: by the folder that they share, how deep they lie below it, and their ending; then by
    how their names begin.
    """
    names = [path.relative_to(folder).as_posix() for path in paths]
    if len(names) == 1:
        return names[0]
    shared = Path(os.path.commonpath([path.parent for path in paths]))
    within = shared.relative_to(folder).parts
    depths = {len(path.relative_to(shared).parts) - 1 for path in paths}
    below = ["*"] * depths.pop() if len(depths) == 1 else ["**"]
    stem = os.path.commonprefix([path.name for path in paths])  # noqa: RUF071 (letters are meant)
    ending = f"*{paths[0].suffix}"
    for steps in ([*within, *below, ending], [*within, f"{stem}{ending}"]):
        pattern = "/".join(steps)
        if set(folder.glob(pattern)) == set(paths):
            return pattern
    return names
