"""What formats of tokens with tags share: the letters of a scheme, and the document that tokens and tags make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from biobench.schema.document import Document
from biobench.schema.tags import Mode, iob1_to_iob2, split_tag, tags_to_spans

Scheme = Literal["IOB1", "IOB2", "IOBES"]
"""IOBES, also with BILOU's letters: S and U are read as B, E and L as I."""
_LETTERS = {"S-": "B-", "U-": "B-", "E-": "I-", "L-": "I-"}


def prefix_and_type(tag: str, scheme: Scheme) -> tuple[str, str]:
    """``B-Disease`` to (``B``, ``Disease``), ``O`` to (``O``, ````). Raises ValueError: what the scheme's tags are."""
    try:
        return split_tag(_LETTERS.get(tag[:2], tag[:2]) + tag[2:] if scheme == "IOBES" else tag)
    except ValueError:
        known = "O, B-, I-, E- or S-<type>" if scheme == "IOBES" else "O, B-<type> or I-<type>"
        raise ValueError(known) from None


def tagged_document(
    words: Sequence[str],
    tags: Sequence[str],
    scheme: Scheme,
    decode: Mode,
    *,
    id: str,
    group: str,
    split: str,
    origin: str,
    types: Mapping[str, str | None] | None = None,
) -> Document:
    """Words joined by single blanks, and what their tags say.

    tags: as many, with the letters B, I and O and the file's own types. types: what these become; None drops one,
    unnamed ones stay. IOB1 begins a mention where the type changes, so it is read before types become one.
    """
    read = iob1_to_iob2(tags) if scheme == "IOB1" else list(tags)
    if types:
        read = [_relabelled(tag, types) for tag in read]
    tokens: list[tuple[int, int]] = []
    position = 0
    for word in words:
        tokens.append((position, position + len(word)))
        position += len(word) + 1
    return Document(
        id=id,
        group=group,
        text=" ".join(words),
        split=split,
        spans=tags_to_spans(read, tokens, decode),
        tokens=tuple(tokens),
        tags=tuple(read),
        origin=origin,
    )


def _relabelled(tag: str, types: Mapping[str, str | None]) -> str:
    prefix, kind = split_tag(tag)
    label = types.get(kind, kind)
    return "O" if prefix == "O" or label is None else f"{prefix}-{label}"
