"""Where a task's data comes from and how it is cut: sources, readers, splits, label rules.

Also the two helpers that every part of a spec uses: `descriptive` fields and `fail`ing validators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    PositiveInt,
    StringConstraints,
    model_validator,
)

from biobench.schema.strict import FieldError, Strict, repeated


def descriptive(default: Any = ...) -> Any:
    """A field that describes the task and is left out of its hash."""
    return Field(default, json_schema_extra={"descriptive": True})


def later(default: Any, **limits: Any) -> Any:
    """A field that older specs do not have; at its default it does not enter the hash, so old runs
    stay valid. limits: of `pydantic.Field`.
    """
    return Field(default, json_schema_extra={"later": True}, **limits)


def fail(what: str, hint: str) -> FieldError:
    """A validator's complaint with its remedy."""
    return FieldError(what, hint)


def check_once(kind: str, names: Iterable[str]) -> None:
    """Raise FieldError where a name occurs twice. kind: of the things that they name."""
    repeated_names = repeated(names)
    if repeated_names:
        raise fail(f"{kind} '{repeated_names[0]}' occurs twice", "keep one")


def one_group(value: str) -> str:
    """`value` itself when it is a regular expression with one group; else FieldError."""
    try:
        groups = re.compile(value).groups
    except re.error as error:
        message = f"'{value}' is no regular expression: {error}"
        raise fail(message, r"for example (\w+)\W*$") from None
    if groups != 1:
        hint = "put the label, and nothing else, into round brackets"
        raise fail(f"'{value}' has {groups} groups", hint)
    return value


OneGroup = Annotated[str, AfterValidator(one_group)]
"""A regular expression with one group."""


def below(value: str) -> str:
    """`value` itself when it is a path that stays below its folder; else ValueError."""
    steps = value.replace("\\", "/").split("/")
    problems = (
        value.startswith(("/", "~", "\\")),
        ".." in steps,
        ":" in steps[0],
        not value.isprintable(),
    )
    if any(problems):
        raise fail(f"path '{value}' leaves its folder", "give a relative path without '..'")
    return value


def patterns_of(files: Mapping[Any, str | list[str]]) -> list[str]:
    """All names and patterns of a source's files."""
    names: list[str] = []
    for patterns in files.values():
        if isinstance(patterns, str):
            names.append(patterns)
        else:
            names += patterns
    return names


def _files_below(value: dict[Any, str | list[str]]) -> dict[Any, str | list[str]]:
    for pattern in patterns_of(value):
        below(pattern)
        steps = pattern.split("/")
        other_steps = set(steps) - {"**"}
        if not pattern.strip("/.") or "**" in "/".join(other_steps):
            hint = "for example train.tsv, or texts/*.txt"
            raise fail(f"'{pattern}' is not a file name or a pattern", hint)
    return value


def _three(value: tuple[float, ...]) -> tuple[float, ...]:
    is_sum_one = abs(sum(value) - 1.0) <= 1e-9
    if len(value) != 3 or not is_sum_one or min(value) <= 0:
        message = f"ratios {list(value)} are not three positive numbers that sum to 1"
        raise fail(message, "[0.8, 0.1, 0.1]")
    return value


def _rising(value: tuple[float, ...]) -> tuple[float, ...]:
    bounds = [0.0, *value, 1.0]
    if len(value) not in (1, 2) or bounds != sorted(set(bounds)):
        message = f"cuts {list(value)} are not one or two rising shares"
        raise fail(message, "for example `cuts: [0.7, 0.8]`")
    return value


Address = Annotated[str, StringConstraints(pattern=r"^https?://\S+$")]
Below = Annotated[str, AfterValidator(below)]
"""A path that stays below the folder that it starts from."""
Role = Literal["train", "validation", "test", "all", "texts", "labels"]
"""What a file is for."""
Files = Annotated[dict[Role, str | list[str]], AfterValidator(_files_below)]
Ratios = Annotated[tuple[float, ...], AfterValidator(_three)]
DataHash = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
Release = Annotated[str, StringConstraints(pattern=r"\S", max_length=120)]


class UrlSource(Strict):
    """Where a file can be downloaded, and what it must hash to."""

    url: Address
    sha256: str | None = None
    """Hex digest of the downloaded file; null where nobody has published one."""
    unpack: Literal["none", "zip", "tar"] = "none"
    subfolder: Below = ""
    """Folder inside the archive that becomes the task's folder."""
    members: list[Below] = []
    """Of a large zip, the members to take (relative to `subfolder`); read by ranges where the
    server allows.
    """
    to: Below = ""
    """Folder below the task's folder in which the file is put."""


class HubSource(Strict):
    """A dataset repository on the model hub, at a fixed revision."""

    repo: str
    revision: str
    """A commit (40 hex digits); a branch or a tag can move, which `tasks validate` says."""
    path: Below = ""
    """Folder in the repository that the source's `files` are relative to."""
    config: str | None = None
    """Read by `datasets` into `<split>.parquet` instead: the configuration of this name."""

    @model_validator(mode="after")
    def _path_or_config(self) -> HubSource:
        if self.path and self.config is not None:
            raise fail("path and config exclude each other", "leave one of them out")
        return self

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit."""
        return re.fullmatch(r"[0-9a-f]{40}", self.revision) is not None


class ReaderSpec(Strict):
    """The native format and its reader's options; the reader itself declares and checks them."""

    model_config = ConfigDict(extra="allow")

    format: str


class SplitRatios(Strict):
    """Created splits: shuffle, then cut by ratio."""

    ratios: Ratios
    seed: int
    method: Literal["datasets", "sklearn", "random"]
    """datasets: numpy default_rng permutation; sklearn: RandomState permutation; random:
    random.Random shuffle of the sorted ids. Test vectors stand in the tests.
    """
    by: Literal["document", "group"] = "document"
    """What is drawn: single documents, or whole groups (all documents of a patient, a note, a
    report).
    """
    first_cut: Literal["train", "test"] = "train"
    """datasets and sklearn: train is cut first and the rest divided, or test first and validation
    from the rest.
    """
    rounding: Literal["largest_remainder", "truncate"] = "largest_remainder"
    """random: how the three sizes become whole; truncate gives the remainder to test."""

    @model_validator(mode="after")
    def _method_fits(self) -> SplitRatios:
        if self.method == "random":
            foreign = "first_cut"
            is_default = self.first_cut == "train"
        else:
            foreign = "rounding"
            is_default = self.rounding == "largest_remainder"
        if not is_default:
            raise fail(f"{foreign} does not fit method '{self.method}'", "leave it out")
        return self


class SplitIds(Strict):
    """Official splits given as lists of document groups in a JSON file beside the spec."""

    ids_file: Below
    former: str | None = descriptive(None)
    """What an earlier version of the spec called the file. It stands in the hash in its place, so
    that runs stay valid.
    """


class SplitCarve(Strict):
    """A validation set cut from the end of the training file."""

    validation_from_train_tail: PositiveInt
    """How many documents, or with `by: group` how many whole groups (abstracts, patients)."""
    by: Literal["document", "group"] = later("document")


class SplitApart(Strict):
    """Official splits whose training files also hold documents of other splits, which are left out
    of train.
    """

    leave_out_of_train: list[Literal["validation", "test"]] = Field(min_length=1)
    """The splits whose groups train may not hold."""


class SplitShuffled(Strict):
    """Splits by shuffling the ids in the order read several times with one seed; each part keeps
    that order.

    cuts: shares of the documents. Two: train ends at the first and validation at the second, of
    documents without a split. One: validation is what follows it in the training file, beside a
    test file of its own.
    """

    seed: int
    shuffles: PositiveInt
    cuts: Annotated[tuple[float, ...], AfterValidator(_rising)]


class SplitFoldFiles(Strict):
    """The corpus brings its folds as files: `{fold}` in the names of `files` stands for 1, 2, ...
    `fold_files`.

    Each fold is a run of its own, trained with `seed` + its number less one.
    """

    fold_files: int = Field(ge=2, le=100)
    seed: int = Field(42, ge=0)
    validation_from_train_tail: PositiveInt | None = None
    """Documents at the end of a fold's training file that are validated on; null: `files` names a
    validation file.
    """


FOLD = "{fold}"
"""In a file's name: the fold's number, from 1."""

Splits = (
    Literal["official"]
    | SplitRatios
    | SplitIds
    | SplitCarve
    | SplitApart
    | SplitShuffled
    | SplitFoldFiles
)


class TopLabels(Strict):
    """Label rule: the most frequent codes of the corpus.

    Document frequency is counted over all documents before splitting; ties keep the order of first
    appearance in documents sorted by id, then the code's. Labels are sorted as texts. Documents
    without any of them are dropped before the split, other codes are ignored.
    """

    top_k: PositiveInt


class CollectedLabels(Strict):
    """Label rule: every label that the data holds, sorted as texts; there must be exactly this
    many.
    """

    collected: PositiveInt


Labels = list[str] | TopLabels | CollectedLabels


class CorpusRelease(Strict):
    """Files of a corpus in a folder of their own, and where they can be downloaded."""

    folder: Below = ""
    """Folder below --data-dir (and the place where a download is put)."""
    files: Files = {}
    """Split name (or `all`) to a file, a list of files, or a glob, relative to `folder`."""
    url: str | UrlSource | list[UrlSource] | None = None

    @property
    def downloads(self) -> list[UrlSource]:
        """Every `url`, in the long form."""
        if self.url is None:
            return []
        if isinstance(self.url, str):
            return [UrlSource(url=self.url)]
        if isinstance(self.url, UrlSource):
            return [self.url]
        return self.url


class Original(CorpusRelease):
    """A second release of the same texts beside a source's files, from which ids or types are
    taken.
    """

    folder: Below
    files: Files


class Source(CorpusRelease):
    """One place and format in which the corpus can be had."""

    id: str = "local"
    """Enters the run's key. May be left out where the task has a single source."""
    generated: bool = False
    """The reader makes the documents itself; there are no files and the data is always at hand."""
    hub: HubSource | None = None
    original: Original | None = None
    """For readers that project from another release; its files must be at hand too."""
    reader: ReaderSpec | None = None
    splits: Splits | None = None
    """Overrides the task's `splits` where this source cuts the corpus differently."""
    counts: dict[str, dict[str, int]] | None = descriptive(None)
    """Counted facts of this source; null: the task's `counts`."""
    releases: dict[Release, DataHash] = descriptive({})
    """Name of a known release to the hash of its documents as read (`data_hash` of a record); data
    that equal none are warned of, and refused under `--strict`.
    """
    notes: str | None = descriptive(None)

    @model_validator(mode="after")
    def _has_files(self) -> Source:
        if self.generated:
            self._check_generated()
        elif not self.folder or not self.files:
            hint = "name the folder below --data-dir, and the file of each split in it"
            raise fail("'folder' or 'files' is missing", hint)
        return self

    def _check_generated(self) -> None:
        if any((self.folder, self.files, self.url, self.hub)):
            message = "generated data has no folder, files, url or hub"
            raise fail(message, "leave them out, or drop `generated`")

    @property
    def has_folds(self) -> bool:
        """Whether a file's name holds the number of a fold."""
        return any(FOLD in pattern for pattern in patterns_of(self.files))

    @property
    def releases_read(self) -> list[CorpusRelease]:
        """The files of the source itself, then those of the original release."""
        return [self] if self.original is None else [self, self.original]


def sources_named(sources: Sequence[Source]) -> None:
    """Raise FieldError where one of several sources has no id, or that of another."""
    if len(sources) < 2:
        return
    for index, source in enumerate(sources):
        if "id" not in source.model_fields_set:
            message = f"sources.{index}.id is missing; each of several sources needs one"
            raise fail(message, "add `id: ...` to it")
    check_once("source", [source.id for source in sources])
