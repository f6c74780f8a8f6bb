"""Data sets of the hub: their files, and their configurations as tables that `datasets` reads.

A repository is a stranger's. No script of it is run, its card leads nowhere but to its own files,
and `datasets` sees nothing but files that lie here: it asks no network.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from biobench.core.hub import client_errors, damage, explain, patiently
from biobench.core.text import first_line
from biobench.data.sniff.parts import SPLIT_NAMES
from biobench.errors import DataFormatError, DataUnavailableError, UsageError
from biobench.schema.source import HubSource, below

PREFIX = "hub:"
"""What a data set's name begins with where a path may stand too."""
MOST_ROWS = 10_000_000
MOST_BYTES = 20 << 30
"""Of all files of a configuration, and of its rows in memory."""
MOST_FILES = 1_000
_MOST_LISTED = 100_000
"""Tables of a repository, of which a configuration reads some."""
_MOST_CARD_BYTES = 1 << 20
_CARDS = ("README.md", "dataset_infos.json")
"""What says how a repository's files are to be read."""
_ROWS = 1_000
"""Rows that are read and written at a time."""
_TABLES = re.compile(r".+\.(csv|tsv|json|jsonl|ndjson|parquet|arrow)")
_SEPARATORS = (r"\t", r"\s+")
"""Expressions that a card may name; any other sign is a single one."""
_BY_HAND = "download a part of it, and give its folder to `biobench tasks new`"
_CONVERTED = "`--revision refs/convert/parquet` has the hub's own tables of many data sets"


@dataclass(frozen=True, slots=True)
class Repository:
    """A data set's repository at one commit. sizes: its files with their bytes."""

    source: HubSource
    commit: str
    sizes: Mapping[str, int]

    @property
    def tables(self) -> list[str]:
        """The files whose endings are those of tables."""
        tables = filter(_TABLES.fullmatch, self.sizes)
        return [name for name in tables if name not in _CARDS]

    def bad(self, what: str, hint: str) -> DataFormatError:
        """The error for what it holds."""
        return DataFormatError(f"{_shown(self.source)}: {what}", hint=hint)

    def require(self, holds: object, what: str, hint: str = _CONVERTED) -> None:
        """Raise that error unless the condition holds."""
        if not holds:
            raise self.bad(what, hint)


def source_named(name: str, revision: str | None) -> HubSource:
    """What `hub:ORG/NAME[:CONFIG]` means; without a revision `main`. Raises UsageError."""
    match = re.fullmatch(rf"{PREFIX}([\w.-]+/[\w.-]+)(?::(.+))?", name)
    if match is None:
        hint = "write hub:ORG/NAME, or hub:ORG/NAME:CONFIG"
        raise UsageError(f"'{name}' is no data set of the hub", hint=hint)
    return HubSource(repo=match[1], revision=revision or "main", config=match[2])


def look_up(source: HubSource) -> Repository:
    """The commit that the revision stands for now, and its files. Raises DataUnavailableError."""
    from huggingface_hub import HfApi

    ask = partial(HfApi().dataset_info, source.repo, revision=source.revision, files_metadata=True)
    with explained(source):
        info = patiently(ask)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    return Repository(source, info.sha or source.revision, sizes)


def download_files(source: HubSource, commit: str, patterns: list[str]) -> dict[str, Path]:
    """Files of the repository by name, as they lie in the client's cache.

    Raises DataUnavailableError for what cannot be had, or is not what the hub announced.
    """
    from huggingface_hub import snapshot_download

    take = partial(
        snapshot_download,
        source.repo,
        repo_type="dataset",
        revision=commit,
        allow_patterns=patterns,
    )
    with explained(source):
        snapshot = Path(patiently(take))
    paths = filter(Path.is_file, snapshot.rglob("*"))
    files = {path.relative_to(snapshot).as_posix(): path for path in paths}
    matches = [fnmatch.filter(files, pattern) for pattern in patterns]
    wanted = sorted(set(chain.from_iterable(matches)))
    for name in wanted:
        wrong = damage(files[name])
        if wrong is not None:
            hint = f"delete {files[name].resolve()} and fetch again"
            raise DataUnavailableError(f"{_shown(source)}: {name}: {wrong}", hint=hint)
    return {name: files[name] for name in wanted}


def _shown(source: HubSource) -> str:
    """What a data set is called in messages."""
    return f"hub dataset {source.repo}@{source.revision}"


@contextmanager
def explained(source: HubSource) -> Iterator[None]:
    """Errors of the hub's client as DataUnavailableError."""
    try:
        yield
    except client_errors() as error:
        message, hint = explain(error, source.repo, "dataset", source.revision)
        raise DataUnavailableError(
            f"{_shown(source)}: {message}", hint=f"{hint}; or use another source"
        ) from error


def read_tables(source: HubSource, work: Path) -> tuple[HubSource, Path]:
    """Download a configuration's files and read them with `datasets`.

    source: a configuration of None means the default or only one. work: a new folder. Gives the
    source at its commit and with its configuration, and the folder with `<split>.parquet` of each
    split that has rows, features kept. Raises DataUnavailableError for what cannot be had,
    DataFormatError for a repository that names no tables of its own, or too large ones.
    """
    repository = look_up(source)
    script = f"{source.repo.partition('/')[2]}.py"
    repository.require(script not in repository.sizes, f"its script {script} is never run")
    number = len(repository.tables)
    files = f"it holds {number:,} csv, tsv, json, parquet or arrow files"
    is_looked_at = 0 < number <= _MOST_LISTED
    repository.require(is_looked_at, f"{files}; 1 to {_MOST_LISTED:,} are looked at")
    copy, target = (work / "repository").resolve(), work / "tables"
    copy.mkdir(parents=True)
    target.mkdir()
    _bring_cards(repository, copy)
    with _readable(repository, copy):
        configurations = named_configurations(repository, copy)
    config, data_dir = _configuration(repository, configurations)
    arguments = {"path": str(copy), "cache_dir": str(work / "cache")}
    arguments |= {"name": config} if data_dir is None else {"data_dir": data_dir}
    with _readable(repository, copy):
        _download(repository, copy, arguments)
        _write(repository, target, arguments)
    return HubSource(repo=source.repo, revision=repository.commit, config=config), target


def folder_name(source: HubSource) -> str:
    """The folder below the data folder for a configuration at a commit."""
    name = f"{source.repo}--{source.config}--{source.revision[:8]}"
    return re.sub(r"[^\w.-]+", "--", name)


def _download(repository: Repository, copy: Path, arguments: Mapping[str, str]) -> None:
    """Bring the files that the configuration reads.

    Until `datasets` has said which they are, empty files stand for all tables.
    """
    from datasets import load_dataset_builder

    for name in repository.tables:
        _must_lie_below(repository, name)
        stand_in = copy / name
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.touch()
    splits = load_dataset_builder(**arguments).config.data_files or {}
    paths = map(Path, chain(*splits.values()))
    names = [path.relative_to(copy).as_posix() for path in paths]
    size = sum(map(repository.sizes.__getitem__, names))
    fits = len(names) <= MOST_FILES and size <= MOST_BYTES
    message = f"{len(names):,} files with {size:,} bytes; at most {MOST_FILES:,} with"
    repository.require(fits, f"{message} {MOST_BYTES:,} are read", _BY_HAND)
    exact_names = list(map(glob.escape, names))
    _link(copy, download_files(repository.source, repository.commit, exact_names))


def _write(repository: Repository, target: Path, arguments: Mapping[str, str]) -> None:
    """Write the rows of each split. Raises DataFormatError where they are too many."""
    import pyarrow.parquet as pq
    from datasets import Features, load_dataset

    rows, size = 0, 0
    too_many = f"more than {MOST_ROWS:,} rows or {MOST_BYTES:,} bytes of them"
    for split, stream in load_dataset(**arguments, streaming=True).items():
        tables = stream.with_format("arrow").iter(batch_size=_ROWS)
        head = next(tables, None)
        if head is None:
            continue
        features = stream.features or Features.from_arrow_schema(head.schema)
        with pq.ParquetWriter(target / f"{split}.parquet", features.arrow_schema) as writer:
            for table in chain([head], tables):
                rows, size = rows + table.num_rows, size + table.nbytes
                fits = rows <= MOST_ROWS and size <= MOST_BYTES
                repository.require(fits, too_many, _BY_HAND)
                writer.write_table(table.cast(writer.schema))


def _link(folder: Path, files: Mapping[str, Path]) -> None:
    """Let the files of the client's cache stand in the folder."""
    for name, path in files.items():
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve())


def _bring_cards(repository: Repository, copy: Path) -> None:
    """Bring the files that say something of the others. Raises DataFormatError for large ones."""
    cards = [name for name in _CARDS if name in repository.sizes]
    for name in cards:
        is_small = repository.sizes[name] <= _MOST_CARD_BYTES
        repository.require(is_small, f"its card has more than {_MOST_CARD_BYTES:,} bytes")
    if cards:
        _link(copy, download_files(repository.source, repository.commit, cards))


def named_configurations(repository: Repository, copy: Path) -> list[dict[str, Any]]:
    """The configurations that the card in this folder names, as they stand there.

    Raises DataFormatError for a card that leads out of its repository, or may grow in memory.
    """
    import yaml

    head = _head_of_card(copy)
    tokens = set(map(type, yaml.scan(head)))
    has_aliases = yaml.AliasToken in tokens
    repository.require(not has_aliases, "its card has YAML aliases, which are not read")
    configurations = (yaml.safe_load(head) or {}).get("configs") or []
    for configuration in configurations:
        for name in _paths_of(configuration):
            _must_lie_below(repository, name)
        _check_separator(repository, configuration)
    return list(configurations)


def _head_of_card(copy: Path) -> str:
    """The YAML that the card in this folder begins with; empty where there is none."""
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    card = copy / _CARDS[0]
    if not card.is_file():
        return ""
    with card.open(encoding="utf-8", newline="") as stream:
        # the same expression as that of `datasets`: another might not see all that it sees
        head = REGEX_YAML_BLOCK.search(stream.read())
    if head is None:
        return ""
    return str(head[2])


def _check_separator(repository: Repository, configuration: Mapping[str, Any]) -> None:
    """Raise DataFormatError where columns are parted by an expression, which may take for ever."""
    for field in ("sep", "delimiter"):
        sign = str(configuration.get(field, ","))
        is_tried = len(sign) <= 1 or sign in _SEPARATORS
        problem = f"its card parts columns by the expression '{sign}', which is not tried"
        repository.require(is_tried, problem)


def _paths_of(configuration: Mapping[str, Any]) -> Iterator[str]:
    """The files and the folder that a configuration of a card names."""
    yield configuration.get("data_dir") or "."
    for entry in _listed(configuration.get("data_files") or []):
        yield from _listed(entry["path"] if isinstance(entry, Mapping) else entry)


def _listed(names: str | list[Any]) -> list[Any]:
    return [names] if isinstance(names, str) else names


def _must_lie_below(repository: Repository, path: str) -> None:
    """Raise DataFormatError for a path that leaves the repository, or names an archive's member."""
    lies_below = "::" not in path
    try:
        below(path)
    except ValueError:
        lies_below = False
    repository.require(lies_below, f"it names '{path}', which is no file of its own")


def _configuration(repository: Repository, card: list[dict[str, Any]]) -> tuple[str, str | None]:
    """(name, folder) of the wanted configuration, else of the default or only one; a folder where
    the card names none. Raises DataFormatError, with the names.
    """
    if not card:
        return _folder_configuration(repository)
    names: list[str] = []
    marked: list[str] = []
    for entry in card:
        names.append(str(entry.get("config_name")))
        if entry.get("default") is True:
            marked.append(names[-1])
    return _one_of(repository, names, marked), None


def _folder_configuration(repository: Repository) -> tuple[str, str | None]:
    """(name, folder) where the card names no configuration: each folder with tables is one, as in
    the hub's own conversions, but for those that are called like a split.
    """
    folders: set[str] = set()
    for name in repository.tables:
        folder, _, inside = name.partition("/")
        if inside and folder.lower() not in SPLIT_NAMES:
            folders.add(folder)
    wanted = repository.source.config
    if wanted in folders:
        return str(wanted), wanted
    names = ["default"]
    if len(folders) > 1:
        names = sorted(folders)
    return _one_of(repository, names, []), None


def _one_of(repository: Repository, names: list[str], marked: list[str]) -> str:
    """The wanted one of these configurations, else the first that is marked as the default, the
    only one, or that of this name. Raises DataFormatError, with the names.
    """
    wanted = repository.source.config
    problem = f"no configuration '{wanted}'"
    if wanted is None:
        problem = "several configurations"
        only = names if len(names) == 1 else []
        wanted = [*marked, *only, "default"][0]
    hint = f"name one as hub:{repository.source.repo}:CONFIG: {', '.join(names)}"
    repository.require(wanted in names, f"it has {problem}", hint)
    return wanted


@contextmanager
def _readable(repository: Repository, copy: Path) -> Iterator[None]:
    """What `datasets` and the parsers below it raise of the copy, as DataFormatError."""
    import pyarrow as pa
    import yaml
    from datasets.exceptions import DatasetsError

    of_libraries = (DatasetsError, pa.ArrowException, yaml.YAMLError, FileNotFoundError, EOFError)
    of_values = (LookupError, ValueError, TypeError, AttributeError, RuntimeError, ArithmeticError)
    try:
        yield
    except (*of_libraries, *of_values) as error:
        message = first_line(error).replace(str(copy), repository.source.repo)[:200]
        raise repository.bad(f"its tables are not read: {message}", _CONVERTED) from error
