"""Texts in one place and their labels in another, joined by a name: `files.texts` and
`files.labels`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from biobench.data.readers.base import FileLine, ReaderOptions, Request, numbering, reader
from biobench.data.readers.files import Separator, read_lines, read_text, table
from biobench.errors import DataFormatError
from biobench.schema.document import Document
from biobench.schema.source import later


class MentionTableOptions(ReaderOptions):
    """Options of format `mention_table`: `files.texts` are the texts, `files.labels` a table with
    one row a mention.
    """

    format: Literal["mention_table"]
    separator: Separator = "comma"
    document: str
    """Column with the document's name; a `.ann` or `.txt` ending is cut."""
    code: str
    keep: dict[str, str] = {}
    """Column to the value that a row must have."""
    encoding_errors: Literal["strict", "replace"] = "replace"


@reader(MentionTableOptions)
def read_mention_table(request: Request[MentionTableOptions]) -> Iterator[Document]:
    """Whole texts labelled with the set of codes that a table gives for their mentions.

    Documents need a text file and at least one code; a row that names a text that is not there is
    refused. Order: that of the text files, by name; the table's rows may stand in any.
    """
    options = request.options
    texts, tables = request.texts_and_labels()
    codes: dict[str, set[str]] = {text.path.stem: set() for text in texts}
    columns = [options.document, options.code, *options.keep]
    for location, row in table(tables, options.separator, columns):
        code = row[options.code].strip()
        if code and options.keep.items() <= row.items():
            name = row[options.document].strip()
            stem = name.removesuffix(".ann").removesuffix(".txt")
            location.require(
                stem in codes, "document {} has no text file", "complete the texts folder", stem
            )
            codes[stem].add(code)
    for location in texts:
        stem = location.path.stem
        labels = sorted(codes[stem])
        if labels:
            text = read_text(location, options.encoding_errors)
            yield location.document(stem, text, labels=tuple(labels))


class CsvJoinOptions(ReaderOptions):
    """Options of format `csv_join`: `files.labels` has one 0/1 column per label, `files.texts` the
    texts (also .gz).
    """

    format: Literal["csv_join"]
    key: str
    """Column that both tables have."""
    text: str
    group: str
    """Column of the labels table: what belongs together (a note, a patient)."""
    none: str | None = None
    """0/1 column that says 'no label applies'; rows where it is 1 beside a label are contradictory
    and skipped.
    """


@reader(CsvJoinOptions)
def read_csv_join(request: Request[CsvJoinOptions]) -> Iterator[Document]:
    """Flags per note in one table, texts in another (MIMIC-III phenotypes): one document per row of
    the labels table.

    Order: that of the labels table; rows whose key has no text are skipped. A note that several
    people annotated gives several documents, `<key>-1`, `<key>-2`, ... The texts table is streamed,
    only the texts that are needed are held; its order does not matter.
    """
    options, names = request.options, request.spec.labels
    texts, tables = request.texts_and_labels()
    if not isinstance(names, list):
        raise DataFormatError(
            "format 'csv_join' needs a list of labels", hint="list the columns under `labels`"
        )
    rows = list(_flag_rows(options, names, tables))
    texts_by_key = _needed_texts(options, texts, {row.id for row in rows})
    numbers = numbering()
    for row in rows:
        if row.id in texts_by_key:
            text = texts_by_key[row.id]
            number = next(numbers[row.id])
            yield replace(row, id=f"{row.id}-{number}", text=text)


def _flag_rows(
    options: CsvJoinOptions, names: list[str], tables: list[FileLine]
) -> Iterator[Document]:
    """The rows of labels tables that do not contradict themselves: the key as the id, no text."""
    flags = list(names)
    if options.none is not None:
        flags.append(options.none)
    for location, row in table(tables, "comma", [options.key, options.group, *flags]):
        true_flags = [flag for flag in flags if _is_set(location, row, flag)]
        labels = tuple(flag for flag in true_flags if flag != options.none)
        if labels and options.none in true_flags:
            continue
        key = _key(row[options.key])
        group = row[options.group].strip()
        yield location.document(key, "", group, labels=labels)


def _is_set(location: FileLine, row: dict[str, str], flag: str) -> bool:
    """Whether the row's flag is 1. Raises DataFormatError where it is not 0 either."""
    cell = row[flag].strip()
    location.require(cell in ("0", "1"), f"column '{flag}' holds {{}}", "flags are 0 or 1", cell)
    return cell == "1"


def _needed_texts(options: CsvJoinOptions, texts: list[FileLine], keys: set[str]) -> dict[str, str]:
    """Key to text, of those of the keys that have one. Raises DataFormatError where none has."""
    texts_by_key: dict[str, str] = {}
    for _, row in table(texts, "comma", [options.key, options.text], strict=False):
        key = _key(row[options.key])
        text = row[options.text].strip()
        if key in keys and text:
            texts_by_key[key] = text
    texts[0].at(None).require(
        texts_by_key, f"no '{options.key}' of the labels table is in the texts", "check the pair"
    )
    return texts_by_key


def _key(value: str) -> str:
    """Keys are numbers; tables that went through other programs write them as 123.0."""
    return value.strip().removesuffix(".0")


class MeddialogOptions(ReaderOptions):
    """Options of format `meddialog`: `files.labels` has id, split, labels; `files.texts` has id and
    the text.
    """

    format: Literal["meddialog"]
    text: str = "post-edited"
    """Column of the texts table."""
    question_word: str = "Question:"
    answer_word: str = "Réponse:"
    """Written before the question and before the answer."""


_SPLITS = {
    "train": "train",
    "dev": "validation",
    "validation": "validation",
    "val": "validation",
    "test": "test",
}


@reader(MeddialogOptions)
def read_meddialog(request: Request[MeddialogOptions]) -> Iterator[Document]:
    """MedDialog-FR: question and answer in one text; the answer's id is the question's with ``_a``
    in place of ``_q``.

    Rows without labels or without a question are skipped; a label cell that is no list of texts is
    refused. Order: that of the table of labels.
    """
    options = request.options
    texts, tables = request.texts_and_labels()
    texts_by_id: dict[str, str] = {}
    for _, row in table(texts, "tab", ["id", options.text]):
        texts_by_id[row["id"]] = row[options.text].strip()
    for location, row in table(tables, "tab", ["id", "split", "labels"]):
        document_id = row["id"].strip()
        question = texts_by_id.get(document_id, "")
        codes = _listed(location, row["labels"])
        if not codes or not question:
            continue
        split = row["split"]
        location.require(split in _SPLITS, "split {} is not known", "train, dev or test", split)
        location.split = _SPLITS[split]
        text = f"{options.question_word} {question}"
        answer_id = document_id.removesuffix("_q") + "_a"
        answer = texts_by_id.get(answer_id)
        if answer:
            text += f"\n\n{options.answer_word} {answer}"
        yield location.document(document_id, text, labels=codes)


def _listed(location: FileLine, cell: str) -> tuple[str, ...]:
    """The texts of a list literal such as ``['C0001', 'C0002']``, read without evaluating
    anything."""
    value = None
    with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(cell.strip() or "[]")
    location.require(
        isinstance(value, list) and all(isinstance(text, str) for text in value),
        "labels {} are no list of texts",
        "write ['A', 'B']",
        cell,
    )
    labels = [location.label(text.strip()) for text in value or ()]
    return tuple(dict.fromkeys(labels))


class PairedOptions(ReaderOptions):
    """Options of format `paired`: `files` names `texts` and `labels`."""

    format: Literal["paired"]
    segment: str = "<"
    """Begins each sentence's part of the label line; whatever stands before the first is dropped.
    """
    joined_by: str = " AND"
    """Stands between several labels of one sentence."""
    level: str = "--"
    """Stands between the levels of one label; the first level is kept."""
    nothing: list[str] = ["NULL"]
    """Written for 'no label' beside the usual empty part."""
    lower: bool = True
    unit: Literal["sentence", "file"] = later("sentence")
    """file: all sentences of a file as one text, with the labels of all of them."""


@reader(PairedOptions)
def read_paired(request: Request[PairedOptions]) -> Iterator[Document]:
    """Sentence files beside label files of the same name (Hallmarks of Cancer).

    One sentence per line in `texts`; one line of labels for the whole file in `labels`. Sentence
    ids are
    ``<file stem>_<number from 0>``; the group is the file stem. Order: text files by name, then
    their lines.
    """
    options = request.options
    texts, labels = request.texts_and_labels()
    partners = {location.path.stem: location for location in labels}
    for location in texts:
        stem = location.path.stem
        location.at(None).require(
            stem in partners, "has no label file of the same name", "complete the labels folder"
        )
        sentences = list(_sentences(options, location, partners.pop(stem)))
        if options.unit == "sentence":
            yield from sentences
            continue
        file_labels: dict[str, None] = {}
        for sentence in sentences:
            file_labels.update(dict.fromkeys(sentence.labels))
        text = " ".join(sentence.text for sentence in sentences)
        yield location.document(stem, text, labels=tuple(file_labels))
    for location in partners.values():
        raise location.at(None).bad("has no text file of the same name", "complete the text folder")


def _sentences(options: PairedOptions, location: FileLine, partner: FileLine) -> Iterator[Document]:
    lines = [(number, line) for number, line in read_lines(location) if line.strip()]
    segments = read_text(partner).split(options.segment)[1:]
    partner.require(
        len(segments) == len(lines),
        f"labels {len(segments)} sentences, the text has {len(lines)}",
        "the pair must agree",
    )
    stem = location.path.stem
    for index, ((number, line), segment) in enumerate(zip(lines, segments, strict=True)):
        labels = _labels_of(options, partner, segment)
        yield location.at(number).document(
            f"{stem}_{index}",
            line.strip(),
            stem,
            labels=tuple(labels),
        )


def _labels_of(options: PairedOptions, partner: FileLine, segment: str) -> dict[str, None]:
    """The distinct labels of a sentence's part of the label line."""
    labels: dict[str, None] = {}
    for levels in segment.split(options.joined_by):
        name = levels.split(options.level, 1)[0].strip()
        if not name or name in options.nothing:
            continue
        if options.lower:
            name = name.lower()
        labels[partner.label(name)] = None
    return labels
