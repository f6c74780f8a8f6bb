"""Words of messages: an error in one line, the first of many names, a plural. Loads nothing: every
command may use it.
"""

from __future__ import annotations

from collections.abc import Sequence


def first_line(error: object, limit: int | None = None) -> str:
    """The first line of an error's message, at most `limit` characters; its kind where the message
    is empty.
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0][:limit]


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    line = ", ".join(names[:most])
    if len(names) > most:
        line += f" and {len(names) - most} more"
    return line


def plural(number: int, one: str, several: str = "") -> str:
    """The form of a word that fits the number: ``text`` for 1, else ``texts``. several: that form
    where it is not made by an s.
    """
    return one if number == 1 else several or f"{one}s"
