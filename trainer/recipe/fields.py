"""What fields of recipes are made of: amounts as people write them (``10B``), and fields that
recipes gained later.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from biobench.schema.strict import FieldError, Strict

_UNITS = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
_AMOUNT = r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kKMBT]?)\s*"
_HINT = "write 10B, 100M, 512k or a whole number"


def parse_amount(value: object) -> object:
    """``10B``, ``2.5M``, ``1_000`` or a whole number to an int. Raises ValueError with its
    remedy."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return value
    match = re.fullmatch(_AMOUNT, str(value))
    number = float(match[1].replace("_", "")) * _UNITS[match[2]] if match is not None else 0.5
    if number != int(number):
        raise FieldError(f"'{value}' is not an amount of tokens", _HINT)
    return int(number)


def _amount(least: int) -> Any:
    schema: dict[str, Any] = {
        "type": ["integer", "string"],
        "pattern": f"^{_AMOUNT}$",
        "minimum": least,
    }
    schema["description"] = f"tokens: {_HINT}"
    return Field(ge=least, json_schema_extra=schema)


Tokens = Annotated[int, BeforeValidator(parse_amount), _amount(1)]
"""An amount of tokens."""

TokensOrNone = Annotated[int, BeforeValidator(parse_amount), _amount(0)]
"""An amount of tokens that may be 0."""


def _file_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise FieldError(
            f"'{value}' is not a name", "use letters, digits, '.', - and _; it names files"
        )
    return value


FileName = Annotated[str, AfterValidator(_file_name)]
"""A name that files and folders have too."""


def human(amount: float) -> str:
    """``3145728`` as ``3.15M``."""
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if amount >= size:
            return f"{amount / size:.3g}{unit}"
    return f"{amount:.3g}"


class Growing(Strict):
    """A group of fields of which some came `later`: at its default such a field is not written, so
    that hashes, ledgers and cached corpora of recipes without it stay what they were.
    """

    @model_serializer(mode="wrap")
    def _without_unused(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            extra = field.json_schema_extra
            is_later = isinstance(extra, dict) and extra.get("later")
            if is_later and getattr(self, name) == field.default:
                written.pop(name, None)
        return written
