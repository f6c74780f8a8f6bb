"""Which files of a folder are data, and of which split each is, by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path

from biobench.core.grouped import grouped
from biobench.data.readers.base import FilesByRole
from biobench.data.sniff.base import DataFiles, first_names
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
_HIDDEN = re.compile(r"\.|__")
"""How the names of files and folders begin that programs keep for themselves."""
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
"""Of a name: `CDR_TrainingSet` is CDR, Training and Set."""
_MOST_UNUSED = 5
"""Files without a place that are named."""


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
    found = filter(Path.is_file, sorted(path.rglob("*")))
    files = list(filter(partial(_may_be_data, path), found))
    by_ending = grouped(files, attrgetter("suffix"))
    splits = _named_splits(path, by_ending.values()) or {"all": _whole(path, by_ending)}
    return _parts(path, splits, files)


def _of_file(path: Path) -> Parts:
    """The file, or it and those of its ending beside it, where these are splits."""
    folder = path.parent
    siblings = sorted(f for f in folder.iterdir() if f.suffix == path.suffix and f.is_file())
    splits = _named_splits(folder, [siblings])
    if path in DataFiles(splits).paths:
        return _parts(folder, splits, siblings)
    return _parts(folder, {"all": [path]}, [path])


def _relative(folder: Path, paths: Iterable[Path]) -> list[str]:
    """Their names from the folder."""
    return [path.relative_to(folder).as_posix() for path in paths]


def _may_be_data(folder: Path, file: Path) -> bool:
    names = file.relative_to(folder).parts
    is_hidden = any(map(_HIDDEN.match, names))
    is_no_data = file.suffix in _NO_DATA or _NO_DATA_NAMES.fullmatch(file.name)
    return not (is_hidden or is_no_data)


def _named_splits(folder: Path, same_endings: Iterable[list[Path]]) -> FilesByRole:
    """The files of each split, of the same data in several formats those of the one that has every
    split; empty where none names train and test.
    """
    of_formats = [_by_split(folder, files) for files in same_endings]
    whole = [splits for splits in of_formats if {"train", "test"} <= splits.keys()]
    return max(whole, key=_numbers, default={})


def _numbers(splits: FilesByRole) -> tuple[int, int]:
    """(how many splits, how many files)."""
    return len(splits), len(DataFiles(splits).paths)


def _by_split(folder: Path, files: Iterable[Path]) -> FilesByRole:
    """Files whose path names a split, in the order of the splits."""
    by_split = grouped(files, partial(_split_of, folder))
    return {name: by_split[name] for name in SPLITS if name in by_split}


def _split_of(folder: Path, file: Path) -> str | None:
    """The split that the outermost folder with such a name, else the file, is called."""
    path = file.relative_to(folder)
    for name in (*path.parts[:-1], path.stem):
        words = [word.lower().removesuffix("set") for word in _WORDS.findall(name)]
        splits = set(map(SPLIT_NAMES.get, words)) - {None}
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
    files = DataFiles(by_ending).paths
    folders = set(map(attrgetter("parent"), files))
    if len(by_ending) == len(folders) == 1:
        return files
    raise _not_one_shape(folder, by_ending, sorted(_relative(folder, folders)))


def _not_one_shape(folder: Path, by_ending: FilesByRole, folders: list[str]) -> UsageError:
    """The error with the endings, and the folders where these are several."""
    endings = [f"{len(files)} {ending or 'without ending'}" for ending, files in by_ending.items()]
    message = f"'{folder}' holds no train and test files, and not one shape of data: "
    message += ", ".join(endings)
    if len(folders) > 1:
        message += f" in {', '.join(folders[:5])}"
    hint = (
        "give one data file, or a folder whose files name train, dev and test; where texts and "
        "labels lie apart, write the spec by hand (docs/tasks.md, Readers)"
    )
    return UsageError(message, hint=hint)


def _parts(folder: Path, splits: FilesByRole, files: list[Path]) -> Parts:
    folds = _folds(folder, splits)
    if folds:
        files_of_first: FilesByRole = {}
        patterns: Names = {}
        for name, paths in splits.items():
            files_of_first[name] = [folder / "1" / paths[0].name]
            patterns[name] = f"{FOLD}/{paths[0].name}"
        return Parts(folder, DataFiles(files_of_first), patterns, folds)
    corpus = DataFiles(splits)
    names = {name: _named(folder, paths) for name, paths in splits.items()}
    unused = _relative(folder, sorted(set(files).difference(corpus.paths)))
    return Parts(folder, corpus, names, unused=tuple(first_names(unused, _MOST_UNUSED)))


def name_files(parts: Parts, files: FilesByRole) -> Parts:
    """The same folder with these files of each split, in this order."""
    names: Names = {split: _relative(parts.folder, paths) for split, paths in files.items()}
    return Parts(parts.folder, DataFiles(files), names, unused=parts.unused)


def _folds(folder: Path, splits: FilesByRole) -> int:
    """How many folders 1, 2, ... each hold one file of each split, of the same name; else 0."""
    folds = len(next(iter(splits.values())))
    numbers = list(map(str, range(1, folds + 1)))
    for paths in splits.values():
        name = paths[0].name
        wanted = {folder / number / name for number in numbers}
        if folds < 2 or set(paths) != wanted:
            return 0
    return folds


def _named(folder: Path, paths: list[Path]) -> str | list[str]:
    """A file's name, a pattern that finds exactly these files, or their names.

    Patterns: by the folder that they share, how deep they lie below it, and their ending; then by
    how their names begin.
    """
    names = _relative(folder, paths)
    if len(names) == 1:
        return names[0]
    shared = Path(os.path.commonpath([path.parent for path in paths]))
    within = shared.relative_to(folder)
    depths = {len(path.relative_to(shared).parts) - 1 for path in paths}
    below = ["**"]
    if len(depths) == 1:
        below = ["*"] * depths.pop()
    file_names = list(map(attrgetter("name"), paths))
    stem = os.path.commonprefix(file_names)  # noqa: RUF071 (letters are meant)
    ending = f"*{paths[0].suffix}"
    for path in (within.joinpath(*below, ending), within / f"{stem}{ending}"):
        pattern = path.as_posix()
        if set(folder.glob(pattern)) == set(paths):
            return pattern
    return names
