"""Contamination: how much of a task's validation and test text stands in a folder of training
text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from biobench.core.text import folded, runs, words
from biobench.data.checks.similar import normalised
from biobench.data.readers.base import ReaderOptions, Request
from biobench.data.readers.files import decoded
from biobench.data.readers.tables import table_rows
from biobench.errors import DataFormatError, UsageError
from biobench.schema.contamination import SplitOverlap
from biobench.schema.document import Document
from biobench.schema.task import TaskSpec

N = 13
"""Words in a row that count as seen; the length that contamination studies of language models use.
"""
_SPLITS = ("validation", "test")


class _Hashes(NamedTuple):
    """Of a text: the whole of it, and its 13-grams."""

    text: int
    grams: list[int]


def overlap(
    corpus: Iterable[str], tasks: Mapping[str, Mapping[str, list[Document]]]
) -> tuple[dict[tuple[str, str], SplitOverlap], str]:
    """(task, split) to exact and 13-gram overlap of the texts of `corpus` (read once), for
    validation and test; and the sha256 of the corpus, which is over those of its texts.

    Words are runs of word characters; case and the encoding of accents and ligatures (NFKC) do not
    matter, as in what pretraining keeps out. Memory holds the 13-grams of the tasks, not of the
    corpus.
    """
    hashes_of: dict[tuple[str, str], list[_Hashes]] = {}
    texts: set[int] = set()
    grams: set[int] = set()
    for task, splits in tasks.items():
        for split in _SPLITS:
            hashes = [_Hashes(_whole(d.reading), _grams(d.reading)) for d in splits[split]]
            hashes_of[task, split] = hashes
            texts.update(document.text for document in hashes)
            grams.update(*(document.grams for document in hashes))
    seen_texts: set[int] = set()
    seen_grams: set[int] = set()
    digest = hashlib.sha256()
    for text in corpus:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        if text.strip():
            seen_texts |= texts & {_whole(text)}
        seen_grams |= grams.intersection(_grams(text))
    counts = {key: _counted(hashes, seen_texts, seen_grams) for key, hashes in hashes_of.items()}
    return counts, digest.hexdigest()


def _counted(hashes: list[_Hashes], texts: set[int], grams: set[int]) -> SplitOverlap:
    """The overlap of a split's documents with the texts and 13-grams that were seen."""
    exact = [document.text in texts for document in hashes]
    seen = [sum(gram in grams for gram in document.grams) for document in hashes]
    return SplitOverlap(
        documents=len(hashes),
        exact=sum(exact),
        touched=sum(number > 0 for number in seen),
        ngrams=sum(len(document.grams) for document in hashes),
        ngrams_seen=sum(seen),
        short=sum(not document.grams for document in hashes),
        seen=sum(text_seen or number > 0 for text_seen, number in zip(exact, seen, strict=True)),
    )


def _grams(text: str) -> list[int]:
    """Hashes of the 13-grams; a chance collision is about 1 in 10^10 a comparison."""
    grams: list[int] = runs(words(text), N).tolist()
    return grams


def _whole(text: str) -> int:
    """Hash of a whole text, white space collapsed."""
    return hash(normalised(folded(text)))


def corpus_texts(path: str | Path) -> Iterator[str]:
    """Texts of a file or folder: .txt (a file is a text), .jsonl (field `text`), .parquet (column
    `text`).

    Raises UsageError when nothing readable or no text is there, DataFormatError for a line without
    a text.
    """
    root = Path(path)
    if not root.exists():
        raise UsageError(
            f"there is no file or folder '{root}'", hint="give training text, or a manifest of it"
        )
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    readable = [p for p in files if p.suffix in (".txt", ".jsonl", ".parquet")]
    if not readable:
        raise UsageError(
            f"'{root}' holds no .txt, .jsonl or .parquet file",
            hint="convert the text to one of them",
        )
    empty = True
    for file in readable:
        for text in _texts(file):
            empty = empty and not text.strip()
            yield text
    if empty:
        raise UsageError(
            f"'{root}' holds no text",
            hint="give the training text itself; an empty one overlaps nothing",
        )


def _texts(file: Path) -> Iterator[str]:
    if file.suffix == ".txt":
        yield file.read_text(encoding="utf-8", errors="replace")
    elif file.suffix == ".parquet":
        request = Request(ReaderOptions(format="texts"), {"all": [file]}, cast(TaskSpec, None))
        for row in table_rows(request, ["text"]):
            yield str(row.values["text"] or "")
    else:
        with file.open("rb") as stream:  # a training text may be larger than the memory
            for number, raw in enumerate(stream, start=1):
                line = decoded(file, raw, line=number)
                try:
                    if line.strip():
                        yield str(json.loads(line)["text"])
                except (ValueError, RecursionError, KeyError, TypeError):
                    hint = "one object a line"
                    raise DataFormatError(
                        "has no field 'text'", hint=hint, file=file, line=number
                    ) from None
