"""Datasets on the hub as text: which commit is meant, and their rows as they are streamed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from biobench.core.hub import client_errors, explain, patiently, set_patience
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError
from trainer.recipe.corpus import CorpusSource


@lru_cache(maxsize=64)
def commit(repository: str, revision: str | None) -> str | None:
    """The commit that a branch or tag (None: the main one) of a dataset stands for; a local folder
    has none.

    Where the hub does not answer, the revision that the recipe names; DataUnavailableError where it
    names none.
    """
    if Path(repository).is_dir() or (
        revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision)
    ):
        return revision
    from huggingface_hub import HfApi

    try:
        commit_hash: str | None = patiently(
            lambda: HfApi().dataset_info(repository, revision=revision, timeout=30)
        ).sha
    except client_errors() as error:
        if revision is not None and getattr(error, "response", None) is None:
            return revision
        reason, hint = explain(error, repository, "dataset", revision)
        raise DataUnavailableError(
            f"the hub does not tell the revision of dataset '{repository}': {reason}",
            hint=f"{hint}; or write the commit that is meant as the source's `revision`",
        ) from error
    return commit_hash


def stream(source: CorpusSource) -> Iterator[str]:
    """The documents of a dataset. Raises DataUnavailableError, DataFormatError."""
    from datasets import load_dataset

    # RuntimeError: datasets as scripts
    wrong: tuple[type[Exception], ...] = (*client_errors(), ValueError, RuntimeError)
    try:
        set_patience()
        rows = load_dataset(
            source.hub, source.name, revision=source.revision, split=source.split, streaming=True
        )
    except wrong as error:
        raise DataUnavailableError(
            f"dataset '{source.hub}' is not available: {first_line(error)}",
            hint="check the id, its configuration (`name`), the network and, for gated data, your "
            "login to the hub",
        ) from error
    try:
        for row in rows:
            if not isinstance(row.get(source.field), str):
                raise DataFormatError(
                    f"dataset '{source.hub}' has no text under '{source.field}' (fields: "
                    f"{', '.join(row)})",
                    hint="set the source's `field`",
                )
            yield row[source.field]
    except client_errors() as error:
        raise DataUnavailableError(
            f"dataset '{source.hub}' broke off: {first_line(error)}",
            hint="run the same command when the network is back: what was tokenised is kept",
        ) from error
