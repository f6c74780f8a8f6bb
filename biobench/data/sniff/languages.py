"""In which of the benchmark's languages texts are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from biobench.schema.document import Document

_COMMON = {
    "en": re.compile(r"\b(the|of|and|with|for|was|were|is|to|that|this|by)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(le|la|les|des|du|et|une|est|dans|pour|avec|sur|par)\b", re.IGNORECASE),
}
_MOST = 1000
"""Documents that are looked at."""


def language_of(documents: Sequence[Document]) -> str:
    """``en`` or ``fr``: that whose common words stand more often in the texts and the questions
    about them; ``en`` where neither's do.
    """
    counts: Counter[str] = Counter()
    for document in documents[:_MOST]:
        for language, common in _COMMON.items():
            counts[language] += len(common.findall(f"{document.query} {document.text}"))
    return max(_COMMON, key=lambda language: counts[language])
