"""In which of the benchmark's languages texts are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from biobench.errors import UsageError
from biobench.schema.document import Document

_COMMON = {
    "en": re.compile(r"\b(the|of|and|with|for|was|were|is|to|that|this|by)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(le|la|les|des|du|et|une|est|dans|pour|avec|sur|par)\b", re.IGNORECASE),
}
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy
hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg
li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or
os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
ISO_639_1 = frozenset(_CODES.split())
"""The two-letter codes of languages."""
_MOST = 1000
"""Documents that are looked at."""


def check_language(code: str) -> None:
    """Raises UsageError for what is no code of a language."""
    if code not in ISO_639_1:
        hint = "give its two letters in ISO 639-1, such as en, fr or de"
        raise UsageError(f"--language '{code}' is no code of a language", hint=hint)


def language_of(documents: Sequence[Document]) -> str:
    """``en`` or ``fr``: that whose common words stand more often in the texts and the questions
    about them; ``en`` where neither's do.
    """
    counts: Counter[str] = Counter()
    for document in documents[:_MOST]:
        for language, common in _COMMON.items():
            counts[language] += len(common.findall(f"{document.query} {document.text}"))
    return max(_COMMON, key=lambda language: counts[language])
