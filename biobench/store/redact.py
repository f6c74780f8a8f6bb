"""Document ids for agreement-bound data: meaningless without the data, equal for everyone who has it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from biobench.schema.document import Document, Prediction


def aliases(documents: Iterable[Document]) -> tuple[dict[str, str], dict[str, str]]:
    """(id -> alias, group -> alias) of a test split, 32 hex digits each.

    An HMAC whose key is a hash of all texts of the split: ids and single sentences cannot be found by
    trying, and two people with the same data get the same aliases, so their runs still pair.
    """
    documents = list(documents)
    digest = hashlib.sha256(b"biobench test split")
    for row in sorted([d.id, d.text] for d in documents):
        digest.update(json.dumps(row).encode())
    secret = digest.digest()

    def alias(kind: str, name: str) -> str:
        return hmac.new(secret, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]

    return (
        {d.id: alias("document", d.id) for d in documents},
        {d.group: alias("group", d.group) for d in documents},
    )


def redacted(gold: Sequence[Document], predictions: Sequence[Prediction]) -> tuple[list[Document], list[Prediction]]:
    """The same runs under aliases, without text, gold or tokens, in an order that tells nothing."""
    by_id, by_group = aliases(gold)
    bare = [Document(id=by_id[d.id], group=by_group[d.group], text="", split=d.split) for d in gold]
    renamed = [replace(p, document=by_id[p.document]) for p in predictions]
    return sorted(bare, key=lambda d: d.id), sorted(renamed, key=lambda p: p.document)


def under_aliases(gold: Sequence[Document]) -> list[Document]:
    """The documents with their gold, named by their aliases: what redacted predictions are scored against."""
    by_id, by_group = aliases(gold)
    return [replace(d, id=by_id[d.id], group=by_group[d.group]) for d in gold]
