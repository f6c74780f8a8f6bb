"""Where a model comes from: its page on the hub and the licence of its checkpoint."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from biobench.schema.record import RunRecord
from biobench.store import Brief

HUB = "https://huggingface.co/{}/tree/{}"
"""Where a model of a known revision is shown."""


def hub_link(brief: Brief | None) -> str | None:
    """The hub's page of the revision that was run; None where it is not known or the model is a folder."""
    if brief is None or not brief.revision or "/" not in brief.model:
        return None
    return HUB.format(brief.model, brief.revision)


def licence_named(records: Iterable[RunRecord]) -> str | None:
    """The licence that the first of a model's runs to know one has; None where no run recorded it."""
    return next((r.model.licence for r in records if r.model.licence), None)


def licence_link(licence: str) -> str | None:
    """The page of the SPDX list for a licence that stands on it, whatever its case; None for any other text."""
    try:
        name = canonicalize_license_expression(licence)
    except InvalidLicenseExpression:
        return None
    # a reference is to a text of one's own, and what has parts is no licence of the list
    listed = not name.startswith("LicenseRef-") and " " not in name
    return f"https://spdx.org/licenses/{name}.html" if listed else None
