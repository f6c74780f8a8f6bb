"""Stores with needle runs whose answers are chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from biobench.schema.document import Document, Prediction
from biobench.schema.needle import ABSENT, PRESENT, GridCell, cell_of, example_id
from biobench.schema.record import RunRecord
from tests.helpers.spec_make import write_spec
from tests.helpers.store_make import record, save_scored, shipped_identity

LENGTHS = (512, 1024, 2048)
POSITIONS = ("start", "middle", "end")
TEMPLATES = ("drug", "lab")
GENERATED = "{id: made, generated: true}"
PAIRS = 4
"""Pairs of each length, position and template."""


def needle_spec(
    folder: Path, reader: str, probe: str = "", language: str = "fr", source: str = GENERATED
) -> Path:
    """Write the spec of a small needle task. reader: fields of the reader; probe: those of a frozen
    encoder's probe.
    """
    encoder = ", encoder: frozen" if probe else ""
    return write_spec(
        folder / "needle_made.yaml",
        f"probe: {{{probe}}}" if probe else "",
        type="needle",
        language=language,
        source=source,
        reader=f"{{format: needle, {reader}}}",
        labels="[absent, present]",
        unit="document",
        protocol="{max_length: 8192}",
        gate="{expect: chance}",
        training=f"{{epochs: 1, learning_rate: 5e-5, batch_size: 8{encoder}}}",
        metric="{primary: accuracy, paper: accuracy}",
    )


def needle_documents(lengths: tuple[int, ...] = LENGTHS) -> list[Document]:
    """Test examples of these lengths, all cells alike."""
    made: list[Document] = []
    for cell in (
        GridCell(n, p, t)
        for n in lengths
        for p in POSITIONS
        for t in TEMPLATES
        for _ in range(PAIRS)
    ):
        number = len(made) // 2
        made += [
            Document(
                example_id("fr", cell, number, label), f"g{number}", "text", "test", labels=(label,)
            )
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
    gold: list[Document] | None = None,
    lengths: tuple[int, ...] = LENGTHS,
    **fields: Any,
) -> RunRecord:
    """One run that answers as `right` says, on `gold`, else on the lengths that its window
    holds."""
    gold = needle_documents(tuple(n for n in lengths if n <= window)) if gold is None else gold
    other = {PRESENT: ABSENT, ABSENT: PRESENT}
    said = [
        Prediction(d.id, labels=(d.labels[0] if right(d) else other[d.labels[0]],)) for d in gold
    ]
    run = record(model=model, task=task, seed=seed, score=False, **fields)
    run = run.model_copy(
        update={
            "windows": run.windows.model_copy(update={"max_length": window}),
            "protocol": {"reader": {"lengths": list(lengths), "fit": "tokens"}},
        }
    )
    about = shipped_identity(task) | {
        "type": "needle",
        "primary": "accuracy",
        "test_documents": len(gold),
    }
    return save_scored(
        results, run, gold, said, labels=(ABSENT, PRESENT), gold_labels=(ABSENT, PRESENT), **about
    )


def cell(document: Document) -> GridCell | None:
    """The document's cell."""
    return cell_of(document.id)
