"""Stores with needle runs whose answers are chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from biobench.schema.document import Document, Prediction
from biobench.schema.needle import ABSENT, PRESENT, GridCell, cell_of, example_id
from biobench.schema.record import RunRecord
from biobench.score import scored
from biobench.store import Store, run_key
from tests.helpers.store_make import record

_SPEC = """
id: needle_made
version: 1
name: Made by a test
language: {language}
type: needle
source: {{id: made, generated: true}}
reader: {{format: needle, {reader}}}
labels: [absent, present]
unit: document
protocol: {{max_length: 8192}}
training: {{epochs: 1, learning_rate: 5e-5, batch_size: 8{encoder}}}
head: {{kind: sequence}}
{probe}
metric: {{primary: accuracy, paper: accuracy}}
gate: {{expect: chance}}
access: open
licence: none
homepage: https://example.org
citation: none
"""

LENGTHS = (512, 1024, 2048)
POSITIONS = ("start", "middle", "end")
TEMPLATES = ("drug", "lab")
PAIRS = 4
"""Pairs of each length, position and template."""


def needle_spec(folder: Path, reader: str, probe: str = "", language: str = "fr") -> Path:
    """Write the spec of a small needle task. reader: fields of the reader; probe: those of a frozen encoder's probe."""
    path = folder / "needle_made.yaml"
    encoder, probe = (", encoder: frozen", f"probe: {{{probe}}}") if probe else ("", "")
    path.write_text(_SPEC.format(language=language, reader=reader, encoder=encoder, probe=probe), encoding="utf-8")
    return path


def needle_documents(lengths: tuple[int, ...] = LENGTHS) -> list[Document]:
    """Test examples of these lengths, all cells alike."""
    made: list[Document] = []
    for cell in (GridCell(n, p, t) for n in lengths for p in POSITIONS for t in TEMPLATES for _ in range(PAIRS)):
        number = len(made) // 2
        made += [
            Document(example_id("fr", cell, number, label), f"g{number}", "text", "test", labels=(label,))
            for label in (PRESENT, ABSENT)
        ]
    return made


def always(label: str) -> Callable[[Document], bool]:
    """Right where the answer is this label."""
    return lambda document: document.labels == (label,)


def save_needle(
    results: Path,
    model: str,
    seed: int,
    right: Callable[[Document], bool],
    *,
    window: int = 1024,
    task: str = "my_needle",
    **fields: Any,
) -> RunRecord:
    """One run that answers as `right` says, on the lengths that its window holds."""
    gold = needle_documents(tuple(n for n in LENGTHS if n <= window))
    other = {PRESENT: ABSENT, ABSENT: PRESENT}
    said = [Prediction(d.id, labels=(d.labels[0] if right(d) else other[d.labels[0]],)) for d in gold]
    base = record(model=model, task=task, seed=seed, score=False, **fields)
    identity = base.task.model_copy(
        update={"type": "needle", "labels": (ABSENT, PRESENT), "gold_labels": (ABSENT, PRESENT), "primary": "accuracy"}
    )
    key = run_key(model_hash=model, task_hash=task, data_hash="d", seed=seed, precision="fp32", limit=base.limit)
    made = base.model_copy(
        update={
            "key": key,
            "task": identity,
            "windows": base.windows.model_copy(update={"max_length": window}),
            "protocol": {"reader": {"lengths": list(LENGTHS), "fit": "tokens"}},
        }
    )
    return Store(results).save(scored(made, gold, said), gold, said)


def cell(document: Document) -> GridCell:
    """The document's cell."""
    found = cell_of(document.id)
    assert found is not None
    return found
