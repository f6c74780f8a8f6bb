"""Declared protocols: named, fixed changes of a task's recipe, so that a whole suite fits a small
machine.

A protocol caps training and validation documents and steps, and sets the rates for so few steps;
the test split is always whole and nothing else of the recipe changes. Its overrides stand in every
record, so its runs have keys and rows of their own, and are never mixed with runs of the spec's own
recipe. A protocol never changes: another choice gets another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

Grain: TypeAlias = Literal["text", "document", "needle"]
"""What a task's examples are: short texts, long documents that bear labels, or needle examples (a
frozen encoder).
"""


def _capped(train: int, validation: int, steps: int | None = None) -> tuple[str, ...]:
    documents = (f"training.train_documents={train}", f"training.validation_documents={validation}")
    if steps is None:
        return documents
    length = ("training.epochs=null", f"training.max_steps={steps}", "training.patience=null")
    rates = (
        "training.learning_rate=1e-4",
        "training.head_learning_rate=1e-3",
        "training.warmup_ratio=0.1",
    )
    return (*documents, *length, f"training.evaluate_every={steps // 3}", *rates)


PROTOCOLS: dict[str, dict[Grain, tuple[str, ...]]] = {
    "small": {
        "text": _capped(2000, 500, 600),
        "document": _capped(300, 100, 240),
        "needle": _capped(600, 120),
    }
}
"""Name to overrides (``KEY=VALUE``) by what a task's examples are; one rate serves all."""


def protocol_overrides(name: str, *, kind: str, unit: str) -> tuple[str, ...]:
    """The overrides of a declared protocol for a task of this kind (`type` of its spec) and
    unit."""
    grain: Grain = "text"
    if kind == "needle":
        grain = "needle"
    elif unit == "document" and kind.endswith("_label"):
        grain = "document"
    return PROTOCOLS[name][grain]


FROZEN = (
    "training.encoder=frozen",
    "probe={kind: linear, pooling: mean, dropout: 0.0, learning_rates: [3e-4, 1e-3, 3e-3, 1e-2], "
    "epochs: 20}",
)
"""What `--track frozen` sets before any override: a linear layer on the mean of the frozen
encoder's states.
"""


def protocol_named_by(overrides: Iterable[str]) -> str | None:
    """The name of the declared protocol whose overrides these are exactly; None where there is
    none.
    """
    names = set(overrides)
    for name, protocol in PROTOCOLS.items():
        if names in map(set, protocol.values()):
            return name
    return None
