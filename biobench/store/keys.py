"""The key under which a run is stored: equal decisions, equal key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from biobench.core.files import canonical, sha256_of
from biobench.schema.record import ENGINE_VERSION

_KEY = re.compile(r"[0-9a-f]{32}")
_TASK = re.compile(r"[a-z0-9_]+")


def run_key(
    *,
    model_hash: str,
    task_hash: str,
    data_hash: str,
    seed: int,
    precision: str,
    track: str = "fixed",
    limit: int | None = None,
    protocol: Mapping[str, Any] | None = None,
    engine_version: int = ENGINE_VERSION,
) -> str:
    """32 hex digits of the SHA-256 over the canonical JSON of everything that decides a run's result.

    task_hash covers the spec with its overrides; `protocol` adds resolved fields that are outside it.
    Raises ValueError where `protocol` holds something that is not JSON, or a number that is not finite.
    """
    decided = {
        "model": model_hash,
        "task": task_hash,
        "data": data_hash,
        "seed": seed,
        "precision": precision,
        "track": track,
        "limit": limit,
        "protocol": None if protocol is None else dict(protocol),
        "engine": engine_version,
    }
    return sha256_of(canonical(decided).encode())[:32]


def is_key(text: str) -> bool:
    """Whether `text` can be a run's key; anything else must never become a path."""
    return _KEY.fullmatch(text) is not None


def is_task_id(text: str) -> bool:
    """Whether `text` can be a task's id (and so a folder's name)."""
    return _TASK.fullmatch(text) is not None
