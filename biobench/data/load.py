"""From a task and a data folder to documents, checked, split and hashed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from biobench.core.files import sha256_of
from biobench.core.grouped import grouped
from biobench.data.catalog import LoadedTask
from biobench.data.counts import Counts, compare_counts, count, count_unexpressed, label_occurrences
from biobench.data.hashing import documents_hash
from biobench.data.labels import apply_rule
from biobench.data.locate import DataRoot, LocatedFiles, choose, data_folder
from biobench.data.readers import Request, get_reader
from biobench.data.readers.base import FileLine
from biobench.data.splits import SplitDocuments, assign_splits
from biobench.errors import DataFormatError, withholding
from biobench.kinds import get_kind
from biobench.schema.document import Document, TaskData
from biobench.schema.record import RunRecord
from biobench.schema.task import SPLITS

_LIMIT_SEED = 20250101
"""Seed of the shuffle behind `limit`: the same documents for every model and every training seed.
"""


def load_data(task: LoadedTask, data_dir: DataRoot, limit: int | None = None) -> TaskData:
    """The task's documents from the first source at hand below `data_dir` (None: the default
    folder).

    limit keeps that many training documents after a fixed shuffle, validation and test in
    proportion (at least one each; needle examples in whole pairs); `hash`, `gold_labels` and what
    was counted are those of the full data all the same. Nothing is downloaded. Raises
    DataUnavailableError when no source is at hand and DataFormatError when the files are not what
    the spec says.
    """
    return load_folds(task, data_dir, limit)[task.fold]


def load_folds(task: LoadedTask, data_dir: DataRoot, limit: int | None = None) -> list[TaskData]:
    """As `load_data`, for each of the splits where the spec asks for several; else a single one.

    `hash` is of all splits together, so that the runs of one protocol name the same data.
    """
    folder = data_folder(data_dir)
    location = choose(task, folder)
    folds, digest = hashed_parts(task, location, folder)
    options = task.options[location.source.id]
    result = []
    for fold, (labels, documents) in enumerate(folds):
        full = counted(replace(task, fold=fold), location, labels, documents)
        data = TaskData(
            documents=documents,
            gold_labels=labels,
            labels=labels,
            source=location.source.id,
            hash=digest,
            decode=str(getattr(options, "decode", "strict")),
            unexpressed=full.unexpressed,
            count_problems=full.problems,
        )
        if not get_kind(task.spec.type).numeric:
            data.gold_labels = _with_gold(labels, data.test)
        if limit is not None:
            data.documents = limited(documents, limit)
        result.append(data)
    return result


def _with_gold(labels: tuple[str, ...], documents: Iterable[Document]) -> tuple[str, ...]:
    """Those of the labels that some document has."""
    gold = set(label_occurrences(documents))
    return tuple(filter(gold.__contains__, labels))


Part = tuple[tuple[str, ...], SplitDocuments]
"""Labels in order, and all documents by split."""


def hashed_parts(
    task: LoadedTask, location: LocatedFiles, data_dir: Path
) -> tuple[list[Part], str]:
    """What a source holds, once for each of the splits that the spec asks for, and the data hash of
    them together.

    Raises DataUnavailableError where the files of a further split are not there, and
    DataFormatError.
    """
    resampled = task.spec.resampled(location.source)
    source_id = location.source.id
    if resampled is None:
        part = read_source(task, location)
        return [part], _hash_of(part, source_id)
    folds: list[Part] = []
    for number in range(resampled.fold_files):
        fold = replace(task, fold=number)
        folds.append(read_source(fold, choose(fold, data_dir)))
    digests = [_hash_of(part, source_id) for part in folds]
    return folds, sha256_of("\n".join(digests).encode())


def _hash_of(part: Part, source_id: str) -> str:
    """The hash of all documents, in the order of the splits."""
    documents = part[1]
    return documents_hash(chain(*(documents[name] for name in SPLITS)), source_id)


class CountedSource(NamedTuple):
    """One source of a task, read whole and counted."""

    location: LocatedFiles
    labels: tuple[str, ...]
    documents: SplitDocuments
    counts: Counts
    unexpressed: Counts
    """Split to label to mentions of the corpus that are in no score."""
    problems: list[str]
    """How the counts contradict the spec, one line each; what a spec counts is its first split."""


def counted(
    task: LoadedTask,
    location: LocatedFiles,
    labels: tuple[str, ...],
    documents: SplitDocuments,
) -> CountedSource:
    """What was read of a source, with its numbers."""
    counts = {name: count(documents[name], labels, task.spec.is_ner) for name in SPLITS}
    problems: list[str] = []
    if task.fold == 0:
        problems = compare_counts(task.spec, counts, location.source.id)
    unexpressed = count_unexpressed(documents, labels)
    return CountedSource(location, labels, documents, counts, unexpressed, problems)


def read_counted(task: LoadedTask, data_dir: DataRoot) -> CountedSource:
    """The first source at hand, read and counted. Raises as `load_data`, whatever the counts
    are."""
    location = choose(task, data_folder(data_dir))
    return counted(task, location, *read_source(task, location))


def data_of(record: RunRecord, task: LoadedTask, data_dir: DataRoot) -> TaskData:
    """The data at hand that `record`'s run saw, if they are still the same (`hash` tells); raises
    as `load_data`.
    """
    fold = 0 if record.resampling is None else record.resampling.fold
    return load_data(replace(task, fold=fold), data_dir, record.limit)


def without_test(data: TaskData) -> TaskData:
    """The data with the validation documents where the test documents were, so that nothing reads
    these.

    gold_labels becomes the labels with gold in validation; the hash stays that of the full data.
    """
    documents = {**data.documents, "test": data.validation}
    return replace(data, documents=documents, gold_labels=_with_gold(data.labels, data.validation))


def read_source(task: LoadedTask, location: LocatedFiles) -> Part:
    """(labels in order, all documents by split) of one source. Raises DataFormatError."""
    options, redact = task.options[location.source.id], task.spec.access == "agreement"
    request = Request(options, location.files, task.spec, redact, original=location.original)
    read = get_reader(options.format).read
    sound = list(_checked(request, read(request)))
    labels, labelled = apply_rule(task.spec.labels, sound)
    splits = task.spec.splits_of(location.source)
    with withholding(redact):
        split = assign_splits(labelled, splits, task.folder)
    documents = get_kind(task.spec.type).arranged(split)
    _check_filled(task, location, documents)
    return labels, documents


def _check_filled(task: LoadedTask, location: LocatedFiles, documents: SplitDocuments) -> None:
    """Refuse a split without a document, and a test split without a mention or label."""
    for name in SPLITS:
        if not documents[name]:
            files = location.files.get(name) or location.files.get("all")
            message = f"task {task.id}: split '{name}' is empty"
            hint = "check the file and `files`, or set `splits`"
            if not files:
                raise DataFormatError(message, hint=hint)
            raise DataFormatError(message, hint=hint, file=files[0], line=1)
    if next(label_occurrences(documents["test"]), None) is not None:
        return
    gold = "mention" if task.spec.is_ner else "label"
    origin = documents["test"][0].origin
    message = f"task {task.id}: no document of the test split has a {gold}"
    hint = (
        "without gold there is no score; check the label column, the type map, or take another "
        "split"
    )
    file = Path(origin.rpartition(":")[0] or "generated data")
    raise DataFormatError(message, hint=hint, file=file)


def _checked(request: Request[Any], documents: Iterable[Document]) -> Iterator[Document]:
    """The documents with duplicate spans removed and spans in order of position; refuses what
    cannot be.
    """
    kind = get_kind(request.spec.type)
    ids: set[str] = set()
    for document in documents:
        location = _location(request, document)
        if document.id in ids:
            raise _repeated_id(location, document.id)
        ids.add(document.id)
        _check_characters(location, document)
        _check_spans(location, document)
        for label in label_occurrences([document]):
            location.label(label)
        _check_form(location, document)
        spans = tuple(sorted(set(document.spans)))
        if spans != document.spans:
            document = replace(document, spans=spans)
        yield kind.labelled(document)


def _check_spans(location: FileLine, document: Document) -> None:
    """Refuse a span that holds no character of the text."""
    length = len(document.text)
    for start, end, _ in document.spans:
        message = f"span {start}-{end} leaves the text (length {length})"
        location.require(0 <= start < end <= length, message, "check offsets")


def _location(request: Request[Any], document: Document) -> FileLine:
    """Where the document begins, of which a reader may know the file alone, or nothing."""
    file, _, line = document.origin.rpartition(":")
    if line.isdecimal():
        return FileLine(request, document.split, Path(file), int(line))
    return FileLine(request, document.split, Path(document.origin or "generated data"), None)


def _repeated_id(location: FileLine, document_id: str) -> DataFormatError:
    hint = "ids must be unique in the task"
    if hasattr(location.request.options, "ids"):
        hint += (
            "; if each split numbers its files from the start, set `reader.ids: split_and_name`, "
            "and if a document is repeated, `reader.ids: repeated`"
        )
    return location.bad("document id {} occurs twice", hint, document_id)


def _check_form(location: FileLine, document: Document) -> None:
    """Refuse a document without text, and one that is not as the kind of task wants it."""
    spec = location.request.spec
    kind = get_kind(spec.type)
    text = document.text if kind.tagged else document.reading
    hint = "remove it, or set `reader.drop_missing` or `reader.segment: line` where it has them"
    location.require(text.strip(), "document {} has no text", hint, document.id)
    hint = f"{spec.type} needs a token format, or `reader.tokens`"
    has_tokens = not kind.tagged or document.tokens
    location.require(has_tokens, "document {} has no tokens", hint, document.id)
    number = len(document.labels)
    message = f"{number} labels in a single-label task"
    fits = not kind.single or number == 1
    location.require(fits, message, "each document needs exactly one")
    problem = kind.problem(spec, document)
    if problem is not None:
        raise location.bad(*problem)


def _check_characters(location: FileLine, document: Document) -> None:
    """Refuse what is no Unicode text, which tokenizers drop or fall over: NUL, and half of a
    surrogate pair.
    """
    texts = {
        "text": document.text,
        "first text": document.query,
        "id": document.id,
        "group": document.group,
        "labels": "".join(sorted(set(label_occurrences([document])))),
    }
    for name, text in texts.items():
        match = _NO_TEXT.search(text)
        if match is not None:
            wrong = "a NUL character" if match[0] == "\0" else "half of a surrogate pair"
            message = f"the document's {name} has {wrong} at character {match.start()}"
            hint = "remove it; text that was cut or written in another encoding has such"
            raise location.bad(message, hint)


_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def limited(documents: SplitDocuments, limit: int) -> SplitDocuments:
    """`limit` training documents drawn by a fixed shuffle, the other splits in proportion; corpus
    order kept.

    Needle examples are drawn in whole pairs, so that there are at most as many, and never fewer
    than one pair.
    """
    if limit < 1:
        raise DataFormatError(f"limit {limit} leaves no training document", hint="give at least 1")
    share = min(1.0, limit / len(documents["train"]))
    drawn: SplitDocuments = {}
    for name in SPLITS:
        size = round(share * len(documents[name]))
        drawn[name] = _draw(documents[name], size)
    drawn["train"] = _draw(documents["train"], limit)
    return drawn


def subset(
    documents: Sequence[Document], share: float = 1.0, most: int | None = None
) -> list[Document]:
    """That share of the documents and at most so many (at least one; needle examples in whole
    pairs, as `limited`), corpus order kept.

    Smaller parts are part of larger ones.
    """
    size = round(share * len(documents))
    if most is not None:
        size = min(size, most)
    return _draw(documents, size)


def _draw(documents: Sequence[Document], size: int) -> list[Document]:
    """The first of the fixed shuffle, `size` at most but never none."""
    units = grouped(range(len(documents)), partial(_unit_of, documents))
    order = list(units.values())
    random.Random(_LIMIT_SEED).shuffle(order)
    drawn: list[int] = []
    for unit in order:
        if drawn and len(drawn) + len(unit) > size:
            break
        drawn += unit
    return [documents[place] for place in sorted(drawn)]


def _unit_of(documents: Sequence[Document], place: int) -> str:
    """What is drawn as a whole: half a pair of a needle would let the query or the document alone
    tell the answer.
    """
    document = documents[place]
    return document.id if document.plan is None else document.group
