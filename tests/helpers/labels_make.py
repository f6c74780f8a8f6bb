"""A multi-label spec whose labels are a rule."""

from __future__ import annotations

from typing import Any

from biobench.schema.task import TaskSpec


def multi_label_spec(**changes: Any) -> TaskSpec:
    """A multi-label spec whose labels are a rule, so that any label set fits it."""
    fields: dict[str, Any] = {
        "id": "m",
        "version": 1,
        "name": "m",
        "language": "en",
        "type": "multi_label",
        "labels": {"top_k": 2},
        "source": {"id": "s", "folder": "f", "files": {"all": "x"}, "reader": {"format": "tsv"}},
        "unit": "document",
        "training": {"epochs": 1, "learning_rate": 1e-3, "positive_weights": "ratio"},
        "head": {"kind": "sequence", "threshold": "tuned"},
        "metric": {"paper": "micro_f1"},
        "access": "open",
        "licence": "l",
        "homepage": "https://example.org",
        "citation": "c",
    }
    return TaskSpec.model_validate({**fields, **changes})
