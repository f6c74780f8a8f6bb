"""Seeds as a spec or an option writes them."""

from __future__ import annotations

import re

from biobench.schema.source import fail


def parse_seeds(text: str) -> list[int]:
    """``42-50`` or ``42,43`` (or both: ``1,5-7``) to a list of distinct seeds. Raises ValueError."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if not match:
            raise fail(f"seeds '{text}' are not understood", "write 42-50 or 42,43")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or high - low > 999:
            raise fail(f"seeds '{part.strip()}' run backwards or are too many", "write the smaller one first")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise fail(f"seeds '{text}' name one twice", "write each once")
    return seeds
