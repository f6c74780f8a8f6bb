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
    return replace(data, documents=documents, gold_labels=tuple(x for x in data.labels if x in gold))


def labels_shuffled(seed: int) -> Callable[[Sequence[Document]], list[Document]]:
    """Every document's labels, or mentions, come from another one.

    Mentions of token formats move as tags, cut or filled with O; others keep their characters where they fit.
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
            replace(d, spans=tuple(sorted({Span(s.start, s.end, next(permuted)) for s in d.spans})), tags=())
            for d in documents
        ]

    return change


def characters_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All mentions moved by characters; those that leave the text are gone."""

    def moved(d: Document) -> Document:
        spans = (Span(s.start + step, s.end + step, s.label) for s in d.spans)
        return replace(d, spans=tuple(s for s in spans if s.start >= 0 and s.end <= len(d.text)), tags=())

    return lambda documents: [moved(d) for d in documents]


def tokens_moved(step: int) -> Callable[[Sequence[Document]], list[Document]]:
    """All tags moved by tokens, O coming in at the other end."""

    def moved(d: Document) -> Document:
        pad = ("O",) * min(abs(step), len(d.tags))
        tags = (*pad, *d.tags[: len(d.tags) - len(pad)]) if step > 0 else (*d.tags[len(pad) :], *pad)
        return replace(d, tags=tags, spans=tags_to_spans(tags, d.tokens, "lenient"))

    return lambda documents: [moved(d) for d in documents]


def _with_gold_of(document: Document, other: Document) -> Document:
    if document.tokens:
        size = len(document.tokens)
        tags = tuple((*other.tags, *["O"] * size)[:size])
        return replace(document, tags=tags, spans=tags_to_spans(tags, document.tokens, "lenient"))
    spans = tuple(s for s in other.spans if s.end <= len(document.text))
    return replace(document, labels=other.labels, spans=spans)


def write_tsv(root: Path, id: str, data: TaskData, expect: str = "text_informative") -> Path:
    """A single-label task as files below `root` with its spec; gives the spec's path."""
    for split, documents in data.documents.items():
        rows = ["text\tlabel", *(f"{d.text}\t{d.labels[0]}" for d in documents)]
        _write(root / id / f"{split}.tsv", "\n".join(rows) + "\n")
    reader = "{format: tsv, columns: {text: text, label: label}}"
    return _spec(root, id, data, "single_label", reader, "{}.tsv", expect)


def write_iob(root: Path, id: str, data: TaskData) -> Path:
    """An entity task as two-column token files with its spec."""
    for split, documents in data.documents.items():
        blocks = [
            "\n".join(f"{d.text[a:b]}\t{tag}" for (a, b), tag in zip(d.tokens, d.tags, strict=True)) for d in documents
        ]
        _write(root / id / f"{split}.tsv", "\n\n".join(blocks) + "\n")
    reader = "{format: iob, columns: [token, tag], scheme: IOB2, decode: lenient}"
    return _spec(root, id, data, "token_ner", reader, "{}.tsv")


def write_brat(root: Path, id: str, data: TaskData) -> Path:
    """An entity task as standoff files whose surfaces are those at the offsets, right or wrong, with its spec."""
    for split, documents in data.documents.items():
        for d in documents:
            _write(root / id / split / f"{d.id}.txt", d.text)
            lines = [
                f"T{i}\t{s.label} {s.start} {s.end}\t{d.text[s.start : s.end]}\n"
                for i, s in enumerate(d.spans, start=1)
            ]
            _write(root / id / split / f"{d.id}.ann", "".join(lines))
    return _spec(root, id, data, "span_ner", "{format: brat}", "{}/*.txt")


def _spec(
    root: Path, id: str, data: TaskData, type: str, reader: str, files: str, expect: str = "text_informative"
) -> Path:
    named = ", ".join(f"{split}: {files.format(split)}" for split in ("train", "validation", "test"))
    return write_spec(
        root / f"{id}.yaml", type=type, source=local(id, f"{{{named}}}"), reader=reader,
        labels=f"[{', '.join(data.labels)}]", gate=f"{{expect: {expect}}}",
        training="{epochs: 1, learning_rate: 1e-3}",
    )  # fmt: skip


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
