"""Names of models that can be taken for others: letters of other scripts, and spellings that differ by next to nothing.

The hub's ids are ASCII. A folder may bear an accent; what goes beyond needs somebody who looks at it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from biobench.report.escape import plain
from biobench.submission.checks import Check
from biobench.submission.pack import MANIFEST

_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "_": "-", " ": "-", ".": "-"})


def odd_letters(name: str) -> list[str]:
    """Characters (as U+XXXX) that are neither visible ASCII nor a Latin letter with one accent, and outer blanks."""
    odd = [c for c in unicodedata.normalize("NFC", name) if not _is_plain(c)]
    if not unicodedata.is_normalized("NFC", name):
        odd += [c for c in name if unicodedata.combining(c)]
    if name != name.strip() or "  " in name:
        odd.append(" ")
    return list(dict.fromkeys(f"U+{ord(c):04X}" for c in odd))


def _is_plain(character: str) -> bool:
    if " " <= character <= "~" or character in "œŒæÆ":
        return True
    base, *marks = list(unicodedata.normalize("NFD", character))
    return len(marks) == 1 and base.isascii() and base.isalpha() and unicodedata.combining(marks[0]) > 0


def reading(name: str) -> str:
    """What two names share that are taken for one another."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return bare.casefold().translate(_ALIKE).replace("rn", "m")


def check_name(name: str) -> list[Check]:
    """M06: characters of the name that can be taken for others."""
    odd = odd_letters(name)
    what = f"'model' holds characters that can be taken for others or for none: {', '.join(odd[:5])}"
    return [Check("M06", "person", MANIFEST, what)] if odd else []


def check_near_names(name: str, known: Iterable[str]) -> list[Check]:
    """M07: nearly the name of another model. known: names in the results."""
    near = sorted(other for other in known if other != name and reading(other) == reading(name))
    what = f"'model' is written nearly as '{plain(near[0])}', which is there already" if near else ""
    return [Check("M07", "person", MANIFEST, what)] if near else []
