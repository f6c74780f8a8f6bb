"""What the names in a submission are made of, so that no page takes one for a mark, a link or
another name.
"""

from __future__ import annotations

import re

_SIGN = r"[A-Za-z0-9À-ÖØ-öø-ÿŒœ._+/()=-]"
_NAME = re.compile(rf"{_SIGN}+( {_SIGN}+)*")
"""Latin letters, which no others look like, and single blanks inside."""
_LINK = re.compile(r"(?i)www\.")
_MARKS = re.compile(
    r"[\[\]]|\(\W*(verified|consistent|reproduced|re-?scored|claimed|published|official|baseline|"
    r"oracle|submission|submitted|external|run)\b.*\)"
)
"""What the board writes beside names: variants in brackets, and words about a row."""
REVISION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/-]{0,199}")
"""A commit, a tag or a branch."""
DEVICE = re.compile(r"[0-9A-Za-z][\w .,()@+/-]{0,199}", re.ASCII)
"""A processor, as "Intel(R) Xeon(R) CPU @ 2.20GHz"."""


def is_plain_name(model: str) -> bool:
    """Whether a model's name, with its revision behind @, is no mark, markup or link, and has no
    letter that looks like another.
    """
    name, at, revision = model.partition("@")
    if _NAME.fullmatch(name) is None or _LINK.search(name) or _MARKS.search(name.casefold()):
        return False
    return not at or REVISION.fullmatch(revision) is not None
