"""What every reader is made of: strict options, the request that it answers, and places in files.

A reader is one function from a `Request` to documents beside an options model with its `format`,
joined by
`@reader(Options)`. Whatever is wrong in a file is raised by `FileLine.bad`, which names file and
line and, for data under an agreement, leaves the value out.

Order is part of a reader's contract, since splits by seed depend on it: documents come in the order
of the files (`Request.places`; several files of a pattern by name) and, inside a file, in the
order of its lines, rows or elements. A reader never sorts them. Each reader's docstring names the
file whose order counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.kind import KINDS
from biobench.schema.source import later
from biobench.schema.strict import Strict, suggest
from biobench.schema.task import SPLITS, TaskSpec

Encoding = Literal["utf-8", "cp1252", "iso-8859-1", "iso-8859-15", "mac-roman", "cp850"]
FilesByRole = dict[str, list[Path]]
"""Files by split, or by `all`, `texts` or `labels`."""
LabelMap = dict[str, str | None]
"""Label in the file to label of the task; null drops it. Unnamed ones stay."""


class ReaderOptions(Strict):
    """Base of all reader options; each reader narrows `format` to its own name."""

    former: ClassVar[dict[str, Any]] = {}
    """Options that the reader had, at the value that every spec gave them: what enters the hash
    stays.
    """
    format: str
    encoding: Encoding = later("utf-8")
    """Of text files. Offsets count the characters of the decoded text. XML declares its own, and
    parquet needs none.
    """


O_co = TypeVar("O_co", bound=ReaderOptions, covariant=True)
_ORDER = (*SPLITS, "all", "labels", "texts")
"""In which files are read, by what they are for."""
_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Request(Generic[O_co]):
    """What a reader gets: its options, the files by split (or `all`, `texts`, `labels`), and the
    spec.
    """

    options: O_co
    files: FilesByRole
    spec: TaskSpec
    redact: bool = False
    """True for data under an agreement: no value from a file may stand in a message."""
    any_label: bool = False
    """True where the labels that are read are replaced afterwards."""
    original: FilesByRole = field(default_factory=dict)
    """Files of the second release, for readers that project from it."""

    @property
    def known_labels(self) -> list[str] | None:
        """The labels that may be read; None where a rule decides, or the kind of task."""
        labels = self.spec.labels
        is_open = self.any_label or KINDS[self.spec.type].numeric
        if is_open or not isinstance(labels, list):
            return None
        return labels

    def places(self, roles: Collection[str] = (*SPLITS, "all")) -> Iterator[FileLine]:
        """The beginning of each file of these roles: train, validation, test, then the others;
        files as the source names them, those of a pattern by name. Raises DataFormatError for a
        role that is none of them.
        """
        for role in sorted(self.files, key=_ORDER.index):
            if role not in roles:
                raise DataFormatError(
                    f"files.{role} does not fit format '{self.options.format}'",
                    hint="use " + ", ".join(roles),
                )
            yield from self._files_of(role)

    def texts_and_labels(self) -> tuple[list[FileLine], list[FileLine]]:
        """The files of `texts` and of `labels`. Raises DataFormatError where others are named, or
        one is not.
        """
        if set(self.files) != {"texts", "labels"}:
            raise DataFormatError(
                f"format '{self.options.format}' needs files.texts and files.labels",
                hint="name both, for example `texts: text/*.txt`",
            )
        return self._files_of("texts"), self._files_of("labels")

    def tables_of(self, split: str, names: str) -> list[FileLine]:
        """The files of a split that has one for each of the names. Raises DataFormatError."""
        tables = [FileLine(self, split, path) for path in self.files.get(split, [])]
        if len(tables) != len(names.split(", ")):
            raise DataFormatError(
                f"files.{split} names {len(tables)} files", hint=f"name {names}, in this order"
            )
        return tables

    def _files_of(self, role: str) -> list[FileLine]:
        split = role if role in SPLITS else ""
        return [FileLine(self, split, path) for path in self.files[role]]


@dataclass(slots=True)
class FileLine:
    """A line of a file that is read: what is wrong there names it, and a document that begins there
    has its split.
    """

    request: Request[Any]
    split: str
    """Empty for `all`, whose documents have none yet."""
    path: Path
    line: int | None = 1

    @property
    def encoding(self) -> str:
        """Of the file's text."""
        encoding: str = self.request.options.encoding
        return encoding

    def at(self, line: int | None) -> FileLine:
        """Another line of the same file; None: no line is known."""
        return replace(self, line=line)

    def bad(self, message: str, hint: str, value: str | None = None) -> DataFormatError:
        """The error for this place. `{}` in `message` stands for the value, which data under an
        agreement withhold.
        """
        error = DataFormatError(message, hint=hint, file=self.path, line=self.line, value=value)
        if self.request.redact:
            error.withhold()
        return error

    def require(self, holds: object, message: str, hint: str, value: str | None = None) -> None:
        """Raise the error of `bad` unless this holds."""
        if not holds:
            raise self.bad(message, hint, value)

    def label(self, label: str) -> str:
        """`label` itself when the task has it (or has a rule instead of a list); else raises
        DataFormatError.
        """
        labels = self.request.known_labels
        if labels is not None and label not in labels:
            raise self.bad(
                "{} is not a label of the task",
                self._nearest(label, labels, "add it to `labels`, or map it"),
                label,
            )
        return label

    def mapped(self, name: str, types: Mapping[str, str | None]) -> str | None:
        """The task's label for a name in the file; None where `types` drops it. Raises
        DataFormatError as `label`.
        """
        label = types.get(name, name)
        if label is not None:
            self.label(label)
        return label

    def need(self, name: str, names: Collection[str], lack: str, remedy: str = "") -> None:
        """Raise DataFormatError with the nearest of the names of columns or fields where this is
        none of them. lack: what the error says before it. remedy: what the hint says besides.
        """
        if name not in names:
            # Where a header is missing, its place is taken by the first row.
            hint = self._nearest(name, names, "check the names in the spec and in the file")
            raise self.bad(f"{lack} '{name}'", hint + remedy)

    def _nearest(self, name: str, names: Collection[str], withheld: str) -> str:
        """The hint that shows the nearest of the names; `withheld` for data under an agreement."""
        if self.request.redact:
            return withheld
        return suggest(name, list(names))

    def check_width(self, fields: Sequence[str], width: int) -> None:
        """Raise DataFormatError for a row or line that has not so many fields."""
        if len(fields) != width:
            raise self.bad(
                f"the row has {len(fields)} fields, not {width}: {{}}",
                "repair it, or check columns, separator and quoting of `reader`",
                fields[0],
            )

    def number(self, text: str) -> int:
        """The number that decimal digits write. Raises DataFormatError for other signs, and for
        more than 18 digits, which count no characters.
        """
        if not text.isdecimal() or len(text) > _DIGITS:
            raise self.bad("{} is no offset", "offsets are whole numbers: repair it", text)
        return int(text)

    @property
    def prefix(self) -> str:
        """What numbered ids begin with: the split, else the file's name without its ending."""
        return self.split or self.path.stem

    @property
    def origin(self) -> str:
        """``file:line`` for `Document.origin`."""
        return f"{self.path}:{self.line or 1}"

    def document(self, id: str, text: str, group: str | None = None, **content: Any) -> Document:
        """A document that begins here; without a group it is one of its own."""
        if group is None:
            group = id
        return Document(
            id=id, group=group, text=text, split=self.split, origin=self.origin, **content
        )


ReadFunction = Callable[[Request[Any]], Iterator[Document]]


@dataclass(frozen=True, slots=True)
class Reader:
    """A registered native format."""

    options: type[ReaderOptions]
    read: ReadFunction


REGISTRY: dict[str, Reader] = {}


def reader(options: type[ReaderOptions]) -> Callable[[ReadFunction], ReadFunction]:
    """Register the decorated function as the reader of the format that `options.format` names."""

    def decorate(function: ReadFunction) -> ReadFunction:
        name = str(get_args(options.model_fields["format"].annotation)[0])
        if name in REGISTRY:
            raise ValueError(f"two readers are called '{name}'")
        REGISTRY[name] = Reader(options, function)
        return function

    return decorate


Ids = Literal["name", "split_and_name", "repeated"]
"""What a document's id and group are, where files name documents. name: the name, which stands once
in the task.
split_and_name: the split before it, where each split numbers anew; equal names are not the same
document.
repeated: a document may stand in several splits, and several times in one. Its ids are
``<split>/<name>``, then
``<split>/<name>#2``; its group stays the name, so that what is the same document is known to be.
"""


class DocumentNames:
    """Ids and groups of named documents by a declared policy, in the order in which they are
    read."""

    def __init__(self, policy: Ids) -> None:
        self._policy = policy
        self._times = numbering()

    def of(self, split: str, name: str) -> tuple[str, str]:
        """(id, group) of the next document of this name in `split`."""
        if self._policy == "name":
            return name, name
        document_id = f"{split}/{name}"
        if self._policy == "split_and_name":
            return document_id, document_id
        times = next(self._times[document_id])
        if times > 1:
            document_id = f"{document_id}#{times}"
        return document_id, name


def numbering() -> dict[str, Iterator[int]]:
    """Counts from 1 by name: ``next(numbers[name])`` is how often the name has come by now."""
    return defaultdict(partial(count, 1))


T = TypeVar("T")


def in_shares(items: Sequence[T], shares: Mapping[str, float]) -> dict[str, list[T]]:
    """The items, in their order, divided among the splits in these shares (which sum to 1)."""
    divided: dict[str, list[T]] = {}
    begin, total = 0, 0.0
    for split, share in shares.items():
        total += share
        end = round(total * len(items))
        divided[split] = list(items[begin:end])
        begin = end
    return divided
