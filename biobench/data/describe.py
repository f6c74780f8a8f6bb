"""A task in words and numbers, as plain data: what `tasks show` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biobench.data.catalog import LoadedTask
from biobench.data.load import read_counted
from biobench.errors import DataUnavailableError
from biobench.schema.document import Document

_SHOWN = (
    *("id", "version", "name", "language", "type", "corpus", "unit", "labels", "seeds", "protocol", "training", "head"),
    *("metric", "gate", "access", "licence", "homepage", "citation", "notes", "deviations", "published_as"),
    *("variant_of", "declared_counts", "sources", "path"),
)


def describe(task: LoadedTask, data_dir: str | Path | None = None, samples: int = 3) -> dict[str, Any]:
    """Everything worth knowing of a task.

    Keys: the spec's descriptive fields, `deviations` from the compared protocol (empty: none known), protocol,
    labels (or their rule, until the data is read), declared counts, `data` (state, source, folder, remedy), and with
    available data `counts` (per split, label supports included), `unexpressed` (mentions that
    are in no score), `count_problems` and `samples` (from train: text, mentions or labels). Samples of data under an
    agreement are left out.
    """
    spec = task.spec
    plain = spec.model_dump() | {
        "corpus": spec.corpus_id,
        "training": spec.training.model_dump(exclude_none=True),
        "metric": spec.metric.model_dump(exclude_none=True),
        "gate": spec.gate.expect,
        "declared_counts": spec.counts,
        "sources": [s.id for s in spec.all_sources],
        "path": str(task.path),
    }
    result = {name: plain[name] for name in _SHOWN}
    try:
        read = read_counted(task, data_dir)
    except DataUnavailableError as error:
        state = "missing" if spec.access == "open" else "agreement"
        return result | {"data": {"state": state, "remedy": error.hint}, "samples": []}
    train = [] if spec.access == "agreement" else read.documents["train"]
    shown = sorted(train, key=lambda d: not (d.spans or d.labels))
    return result | {
        "data": {"state": "ready", "source": read.place.source.id, "folder": str(read.place.folder)},
        "labels": list(read.labels),
        "counts": read.counts,
        "unexpressed": read.unexpressed,
        "count_problems": read.problems,
        "samples": [sample(d) for d in shown[:samples]],
    }


def sample(document: Document, length: int = 400) -> dict[str, Any]:
    """One document for the eye: id, text (cut at `length` characters), mentions with surface, labels."""
    text = document.text if len(document.text) <= length else document.text[: length - 1] + "…"
    return {
        "id": document.id,
        "split": document.split,
        **({"first": document.query[:length]} if document.query else {}),
        "text": text,
        "mentions": [[document.text[s.start : s.end], s.label] for s in document.spans],
        "labels": list(document.labels),
    }
