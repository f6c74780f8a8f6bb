"""The relation between two mentions that the text marks; with a negative label that does not count."""

from __future__ import annotations

from biobench.kinds.base import register
from biobench.kinds.labels import SingleLabel


@register
class Relation(SingleLabel):
    """One label a document, from a list."""

    name, label_rules, heading = "relation", False, "relations"
