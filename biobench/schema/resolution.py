"""What a field wants of YAML's scalars: the text as it was written, or the value."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import singledispatch
from itertools import chain
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from biobench.schema.yaml12 import Scalar


@singledispatch
def resolve(value: Any, annotation: Any) -> Any:
    """Replace `Scalar`s by what the field wants: text as written, or the core-schema value.

    A field that takes both numbers and text gets the value; ``null`` is None where the field allows
    it. Nested models resolve their own fields.
    """
    return value


_TAKEN_BY: Mapping[type, set[type]] = {int: {int, float}}
"""The fields that take a value of this type, where fields of another type do too."""


@resolve.register
def _resolved_scalar(scalar: Scalar, annotation: Any) -> Any:
    members = list(_members(annotation))
    value_type = type(scalar.value)
    fitting_types = _TAKEN_BY.get(value_type, {value_type})
    if str in members and fitting_types.isdisjoint(members):
        return scalar.text
    return scalar.value


@resolve.register
def _resolved_list(items: list, annotation: Any) -> Any:  # type: ignore[type-arg]
    arguments = _arguments_by_container(annotation)
    if tuple in arguments:
        item_type = arguments[tuple][0]
        return tuple(resolve(item, item_type) for item in items)
    item_type, *_ = arguments.get(list, (Any,))
    return [resolve(item, item_type) for item in items]


@resolve.register
def _resolved_mapping(fields: dict, annotation: Any) -> Any:  # type: ignore[type-arg]
    arguments = _arguments_by_container(annotation)
    if dict not in arguments:
        return fields
    _, value_type = arguments[dict]
    return {key: resolve(value, value_type) for key, value in fields.items()}


def _arguments_by_container(annotation: Any) -> dict[Any, tuple[Any, ...]]:
    """The containers that the field takes (list, tuple, dict), and the types of what they hold."""
    return {get_origin(member): get_args(member) for member in _members(annotation)}


def _members(annotation: Any) -> Iterator[Any]:
    """The types and containers that a field takes; a Literal takes the types of its values."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _members(arguments[0])
    elif origin in (Union, types.UnionType):
        yield from chain.from_iterable(map(_members, arguments))
    elif origin is Literal:
        yield from map(type, arguments)
    else:
        yield annotation
