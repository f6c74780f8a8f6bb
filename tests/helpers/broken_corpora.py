"""Corpora that the gate must refuse: labels shuffled against the text, mentions moved."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from biobench.schema.document import Document, Span, TaskData
from biobench.schema.tags import tags_to_spans
from tests.helpers.spec_make import local, write_spec


def broken(data: TaskData, change: Callable[[Sequence[Document]], list[Document]]) -> TaskData:
    """The data with `change` applied to every split; the labels with gold are found anew."""
    documents = {name: change(own) for name, own in data.documents.items()}
    gold = {label for d in documents["test"] for label in (*d.labels, *(s.label for s in d.spans))}
    return replace(
        data, documents=documents, gold_labels=tuple(x for x in data.labels if x in gold)
    )


def labels_shuffled(seed: int) -> Callable[[Sequence[Document]], list[Document]]:
    """Every document's labels, or mentions, come from another one.

    Mentions of token formats move as tags, cut or filled with O; others keep their characters where
    they fit.
    """

    def change(documents: Sequence[Document]) -> list[Document]:
        order = list(range(len(documents)))
        random.Random(seed).shuffle(order)
        return [_with_gold_of(d, documents[i]) for d, i in zip(documents, order, strict=True)]

    return change


def types_shuffled(seed: int) -> Callable[[Sequence[Document]], list[Document]]:
    """Mentions stay where they are; their types are permuted among them."""

    def change(documents: Sequence[Document]) -> list[Document]:
        types = [s.label for d in documents for s in d.spans]
        random.Random(seed).shuffle(types)
        permuted = iter(types)
        return [
            replace(
                d,
                spans=tuple(sorted({Span(s.start, s.end, next(permuted)) for s in d.spans})),
                tags=(),
            )
            for d in documents
        ]

    return change


def characters_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All mentions moved by characters; those that leave the text are gone."""

    def moved(d: Document) -> Document:
        spans = (Span(s.start + step, s.end + step, s.label) for s in d.spans)
        return replace(
            d, spans=tuple(s for s in spans if s.start >= 0 and s.end <= len(d.text)), tags=()
        )

    return lambda documents: [moved(d) for d in documents]


def tokens_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All tags moved by tokens, O coming in at the other end."""

    def moved(d: Document) -> Document:
        pad = ("O",) * min(abs(step), len(d.tags))
        tags = (
            (*pad, *d.tags[: len(d.tags) - len(pad)]) if step > 0 else (*d.tags[len(pad) :], *pad)
        )
        return replace(d, tags=tags, spans=tags_to_spans(tags, d.tokens, "lenient"))

    return lambda documents: [moved(d) for d in documents]


def _with_gold_of(document: Document, other: Document) -> Document:
    if document.tokens:
        size = len(document.tokens)
        tags = tuple((*other.tags, *["O"] * size)[:size])
        return replace(document, tags=tags, spans=tags_to_spans(tags, document.tokens, "lenient"))
    spans = tuple(s for s in other.spans if s.end <= len(document.text))
    return replace(document, labels=other.labels, spans=spans)


def write_tsv(root: Path, id: str, data: TaskData) -> Path:
    """A single-label task as files below `root` with its spec; gives the spec's path."""
    for split, documents in data.documents.items():
        rows = ["text\tlabel", *(f"{d.text}\t{d.labels[0]}" for d in documents)]
        _write(root / id / f"{split}.tsv", "\n".join(rows) + "\n")
    return _spec(
        root, id, data, "single_label", "{format: tsv, columns: {text: text, label: label}}"
    )


def write_iob(root: Path, id: str, data: TaskData) -> Path:
    """An entity task as two-column token files with its spec."""
    for split, documents in data.documents.items():
        rows = (
            [(d.text[a:b], tag) for (a, b), tag in zip(d.tokens, d.tags, strict=True)]
            for d in documents
        )
        blocks = ("\n".join("\t".join(row) for row in block) for block in rows)
        _write(root / id / f"{split}.tsv", "\n\n".join(blocks) + "\n")
    return _spec(
        root,
        id,
        data,
        "token_ner",
        "{format: iob, columns: [token, tag], scheme: IOB2, decode: lenient}",
    )


def write_brat(root: Path, id: str, data: TaskData) -> Path:
    """An entity task as standoff files whose surfaces are those at the offsets, right or wrong,
    with its spec.
    """
    for d in (d for documents in data.documents.values() for d in documents):
        rows = (f"{s.label} {s.start} {s.end}\t{d.text[s.start : s.end]}\n" for s in d.spans)
        _write(root / id / d.split / f"{d.id}.txt", d.text)
        _write(
            root / id / d.split / f"{d.id}.ann",
            "".join(f"T{i}\t{row}" for i, row in enumerate(rows, start=1)),
        )
    return _spec(root, id, data, "span_ner", "{format: brat}", "{}/*.txt")


def _spec(
    root: Path, id: str, data: TaskData, type: str, reader: str, files: str = "{}.tsv"
) -> Path:
    named = ", ".join(
        f"{split}: {files.format(split)}" for split in ("train", "validation", "test")
    )
    about = {"labels": list(data.labels), "gate": {"expect": "text_informative"}}
    about |= {"training": {"epochs": 1, "learning_rate": 1e-3}, "source": local(id, f"{{{named}}}")}
    return write_spec(root / f"{id}.yaml", type=type, reader=reader, **about)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
