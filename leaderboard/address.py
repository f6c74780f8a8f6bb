"""The address that a reader asked for."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote, urlsplit


def unknown_page(address: str, paths: Collection[str]) -> str:
    """The last part of an address's path where it is none of `paths`, else empty."""
    asked = unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2]
    return "" if asked in paths else asked
