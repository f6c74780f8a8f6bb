"""Whether data may be about persons: then a new task says that its access needs an agreement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter

from biobench.data.counts import groups_of
from biobench.schema.document import Document

_PERSONAL = re.compile(
    r"subject_?(id|no)|((id|nom|prenom|date|no|num)_?(de_?|du_?)?)?"
    r"(patient|person|hadm|mrn|ipp|nip|birth|dob|naissance|surname|first_?name|last_?name"
    r"|nom|prenom|address|adresse)(_?(id|name|no|date))?|(.*_)?(patient|ipp|nip|mrn|dossier)(_.*)?",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b\d{1,2}[/.]\d{1,2}[/.](19|20)?\d\d\b|\b(19|20)\d\d-\d\d-\d\d\b")
_NAMED = re.compile(r"\b(Mr|Mrs|Ms|Dr|Mme|Mlle|M|Pr)\.? [A-ZÀ-Ý][\w'-]+")
_AGE = re.compile(
    r"\b\d{1,3}[ -]?(ans|years? old|year-old|y/?o)\b|\b(aged|âgée? de) \d", re.IGNORECASE
)
CASES = 0.1
"""From this share of texts with somebody's age on they are of single persons: 97% of FRACCO's case
reports have one, 6% of transcribed visits, at most 3% of abstracts.
"""
ACCIDENTS = 0.001
"""Up to this share of texts that have the group of another, an id was given twice by accident: once
in the 3,105 questions of FrenchMedMCQA.
"""


def signs_of_persons(columns: Sequence[str], documents: Sequence[Document]) -> str:
    """Why the data may be about persons, in words; empty where nothing says so.

    A column of patients, texts that belong together, texts with dates and with names, or many texts
    with somebody's age.
    """
    personal = next(filter(_PERSONAL.fullmatch, map(str.strip, columns)), None)
    if personal is not None:
        return f"column '{personal}'"
    texts = list(map(attrgetter("text"), documents))
    repeats = len(texts) - len(groups_of(documents))
    if repeats > ACCIDENTS * len(texts):
        return "several texts of one group"
    if any(map(_DATE.search, texts)) and any(map(_NAMED.search, texts)):
        return "dates and names of persons in the texts"
    if sum(map(bool, map(_AGE.search, texts))) >= CASES * max(len(texts), 1):
        return "ages of persons in the texts"
    return ""
