"""Fact templates and lexicons of the needle task, written for it; nothing is taken from any corpus.

A template has two to four slots. A slot's lexicon is a list of phrases that fit every sentence of
the template, so that a changed slot changes the fact and never the grammar.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from biobench.core.packages import read_words

GENERATOR_VERSION = 1
"""Bumped by hand when the generator's code makes other examples of the same templates and lexicons.
"""


TEMPLATES: dict[str, dict[str, list[Any]]] = read_words(__package__, "facts.json")
"""Language to template name to [sentence, slot to lexicon]."""


def fingerprint(language: str) -> str:
    """``version-hash`` of a language's templates and lexicons: any change of either gives another
    one.
    """
    text = json.dumps(TEMPLATES[language], sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{GENERATOR_VERSION}-{digest[:16]}"
