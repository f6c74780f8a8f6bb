"""Contamination: how much of a task's validation and test text stands in a folder of training
text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

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


def overlap(
    corpus: Iterable[str], tasks: Mapping[str, Mapping[str, list[Document]]]
) -> tuple[dict[tuple[str, str], SplitOverlap], str]:
    """(task, split) to exact and 13-gram overlap of the texts of `corpus` (read once), for
    validation and test; and the sha256 of the corpus, which is over those of its texts.

    Words are runs of word characters; case and the encoding of accents and ligatures (NFKC) do not
    matter, as in what pretraining keeps out. Memory holds the 13-grams of the tasks, not of the
    corpus.
    """
    grams: dict[int, bool] = {}
    whole: dict[int, bool] = {}
    rows_of: dict[tuple[str, str], list[tuple[int, list[int]]]] = {}
    for task, splits in tasks.items():
        for split in _SPLITS:
            rows_of[task, split] = rows = [
                (_whole(d.reading), _grams(d.reading)) for d in splits[split]
            ]
            for reading, parts in rows:
                whole[reading] = False
                grams.update(dict.fromkeys(parts, False))
    digest = hashlib.sha256()
    for text in corpus:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
        reading = _whole(text)
        if reading in whole and text.strip():
            whole[reading] = True
        grams.update((gram, True) for gram in _grams(text) if gram in grams)
    counts: dict[tuple[str, str], SplitOverlap] = {}
    for key, rows in rows_of.items():
        seen = [sum(grams[g] for g in parts) for _, parts in rows]
        counts[key] = SplitOverlap(
            documents=len(rows),
            exact=sum(whole[reading] for reading, _ in rows),
            touched=sum(n > 0 for n in seen),
            ngrams=sum(len(parts) for _, parts in rows),
            ngrams_seen=sum(seen),
            short=sum(not parts for _, parts in rows),
            seen=sum(whole[reading] or n > 0 for (reading, _), n in zip(rows, seen, strict=True)),
        )
    return counts, digest.hexdigest()


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
    known = [p for p in files if p.suffix in (".txt", ".jsonl", ".parquet")]
    if not known:
        raise UsageError(
            f"'{root}' holds no .txt, .jsonl or .parquet file",
            hint="convert the text to one of them",
        )
    empty = True
    for file in known:
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
