"""Datasets on the hub as text: which commit is meant, and rows read from several of its parts at once."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from biobench.core.hub import client_errors, explain, patiently, set_patience
from biobench.core.text import first_line
from biobench.errors import DataFormatError, DataUnavailableError
from trainer.recipe.corpus import CorpusSource

STREAMS = 8
"""Parts of a dataset on the hub that are read at the same time; their documents take turns, so it is part of the
order of the documents."""
_AHEAD = 500
"""Documents of each that wait in memory."""


@lru_cache(maxsize=64)
def commit(repository: str, revision: str | None) -> str | None:
    """The commit that a branch or tag (None: the main one) of a dataset stands for; a local folder has none.

    Where the hub does not answer, the revision that the recipe names; DataUnavailableError where it names none.
    """
    if Path(repository).is_dir():
        return revision
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import HfApi

    try:
        info = patiently(lambda: HfApi().dataset_info(repository, revision=revision, timeout=30))
        commit_hash: str | None = info.sha
    except client_errors() as error:
        if revision is not None and getattr(error, "response", None) is None:
            return revision
        what, hint = explain(error, repository, "dataset", revision)
        raise DataUnavailableError(
            f"the hub does not tell the revision of dataset '{repository}': {what}",
            hint=f"{hint}; or write the commit that is meant as the source's `revision`",
        ) from error
    return commit_hash


def stream(source: CorpusSource) -> Iterator[str]:
    """The documents of a dataset, `STREAMS` parts taking turns. Raises DataUnavailableError, DataFormatError."""
    from datasets import load_dataset

    named = {} if source.name is None else {"name": source.name}
    wrong: tuple[type[Exception], ...] = (*client_errors(), ValueError, RuntimeError)  # the last: datasets as scripts
    try:
        set_patience()
        rows = load_dataset(source.hub, **named, revision=source.revision, split=source.split, streaming=True)
    except wrong as error:
        raise DataUnavailableError(
            f"dataset '{source.hub}' is not at hand: {first_line(error)}",
            hint="check the id, its configuration (`name`), the network and, for gated data, your login to the hub",
        ) from error
    count = min(getattr(rows, "num_shards", 1), STREAMS)
    if count > 1:
        rows = _together([rows.shard(num_shards=count, index=number) for number in range(count)])
    try:
        for row in rows:
            if not isinstance(row.get(source.field), str):
                raise DataFormatError(
                    f"dataset '{source.hub}' has no text under '{source.field}' (fields: {', '.join(row)})",
                    hint="set the source's `field`",
                )
            yield row[source.field]
    except client_errors() as error:
        raise DataUnavailableError(
            f"dataset '{source.hub}' broke off: {first_line(error)}",
            hint="start again when the network is back: what was tokenised is kept",
        ) from error


def _together(streams: list[Iterable[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """One row of each stream in turn, all of them being read at the same time."""
    pool = ThreadPoolExecutor(len(streams), thread_name_prefix="hub")
    iterators = [iter(stream) for stream in streams]

    def fetch(rows: Iterator[dict[str, Any]]) -> Future[list[dict[str, Any]]]:
        return pool.submit(lambda: list(itertools.islice(rows, _AHEAD)))

    def ahead(rows: Iterator[dict[str, Any]], waiting: Future[list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        while some := waiting.result():
            waiting = fetch(rows)
            yield from some

    try:
        turns = deque([ahead(rows, waiting) for rows, waiting in [(rows, fetch(rows)) for rows in iterators]])
        while turns:
            for row in itertools.islice(turns[0], 1):
                yield row
                turns.append(turns[0])
            turns.popleft()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
