"""Fields that recipes gained later, and why nobody's hashes change by them."""

from __future__ import annotations

from typing import Any

from pydantic import SerializationInfo, SerializerFunctionWrapHandler, model_serializer

from biobench.schema.strict import Strict

LATER: dict[str, Any] = {"later": True}
"""Marks a field that recipes did not have at first: at its default it is not written, so that hashes, ledgers and
cached corpora of recipes without it stay what they were."""


class Growing(Strict):
    """A group of fields of which some came `LATER`."""

    @model_serializer(mode="wrap")
    def _without_unused(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and extra.get("later") and getattr(self, name) == field.default:
                written.pop(name, None)
        return written
