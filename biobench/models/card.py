"""What a checkpoint's model card says: the licence, from the front matter of its README.md."""

from __future__ import annotations

import re
from pathlib import Path

CARD = "README.md"
_MOST_BYTES = 65_536
"""Of a card that are read: front matter stands at its top."""
_LICENCE = re.compile(r"""^license:[ \t]*(["']?)([A-Za-z0-9][A-Za-z0-9.+-]{0,63})\1[ \t]*(?:#.*)?$""", re.MULTILINE)


def licence_of(folder: Path) -> str | None:
    """The identifier after `license:` in the card's front matter; None without a card or a single plain identifier.

    The card is a stranger's text: nothing but letters, digits, dot, plus and hyphen is taken from it, and it is not
    parsed as YAML. A card that cannot be read is as none.
    """
    try:
        with (folder / CARD).open("rb") as stream:
            text = stream.read(_MOST_BYTES).decode("utf-8", errors="replace").removeprefix("\ufeff")
    except OSError:
        return None
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        return None
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return None
    named = _LICENCE.findall("\n".join(lines[1:end]))
    return named[0][1] if len(named) == 1 else None
