"""Declared protocols: named, fixed changes of a task's recipe, so that a whole suite fits a small machine.

A protocol caps training and validation documents and epochs; the test split is always whole and nothing else of
the recipe changes. Its overrides stand in every record, so its runs have keys and rows of their own, and are never
mixed with runs of the spec's own recipe. A protocol never changes: another choice gets another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Grain: TypeAlias = Literal["sentence", "document", "needle"]
"""What a task's examples are: sentences or lines, whole documents, or needle examples (their encoder is frozen)."""


@dataclass(frozen=True, slots=True)
class DeclaredProtocol:
    """Overrides (``KEY=VALUE``) by what a task's examples are."""

    name: str
    summary: str
    overrides: dict[Grain, tuple[str, ...]]

    def of(self, *, kind: str, unit: str) -> tuple[str, ...]:
        """The overrides for a task of this kind (`type` of its spec) and unit."""
        if kind == "needle":
            return self.overrides["needle"]
        return self.overrides["document" if unit == "document" else "sentence"]


def _capped(train: int, validation: int, epochs: int | None) -> tuple[str, ...]:
    documents = (f"training.train_documents={train}", f"training.validation_documents={validation}")
    if epochs is None:
        return documents
    recipe = (f"training.epochs={epochs}", "training.max_steps=null", "training.patience=null")
    return (*documents, *recipe, "training.evaluate_every=epoch")


SMALL = DeclaredProtocol(
    name="small",
    summary="at most 1,000 training sentences (5 epochs), 300 documents (2 epochs) or 600 needle examples; "
    "whole test splits",
    overrides={
        "sentence": _capped(1000, 500, 5),
        "document": _capped(300, 100, 2),
        "needle": _capped(600, 120, None),
    },
)
PROTOCOLS = {p.name: p for p in (SMALL,)}


def protocol_named_by(overrides: Iterable[str]) -> str | None:
    """The name of the declared protocol whose overrides these are exactly; None where there is none."""
    names = set(overrides)
    for protocol in PROTOCOLS.values():
        if any(names == set(each) for each in protocol.overrides.values()):
            return protocol.name
    return None
