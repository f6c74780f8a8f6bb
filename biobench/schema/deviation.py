"""What a task does otherwise than the published protocol that its scores are compared with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from biobench.schema.source import fail
from biobench.schema.strict import Strict

Aspect = Literal[
    "data",
    "split",
    "unit",
    "labels",
    "window",
    "truncation",
    "head",
    "selection",
    "patience",
    "epochs",
    "batch",
    "precision",
    "decoding",
    "seeds",
    "code",
]


class Deviation(Strict):
    """One aspect of the protocol, as it is here and as the compared publication has it.

    What the publication leaves open is a deviation too: `compared` then says that it is not stated.
    """

    aspect: Aspect
    here: str
    compared: str


def _once(value: list[Deviation]) -> list[Deviation]:
    aspects = [d.aspect for d in value]
    if len(set(aspects)) < len(aspects):
        raise fail(f"deviation '{max(aspects, key=aspects.count)}' stands twice", "say it in one entry")
    return value


Deviations = Annotated[list[Deviation], AfterValidator(_once)]
"""A spec's list; each aspect stands once."""
