"""Notes below tables and verdicts: English sentences that can be said in another language.

Each is made from a form (an English sentence with named fields) and values, both of which it keeps. A language is a
table from forms to forms (`notes_fr`); what a note says is decided once, where it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Note(str):
    """The English sentence. form: with its fields unfilled. values: by field; notes may stand in notes."""

    form: str
    values: Mapping[str, object]


def note(form: str, /, **values: object) -> Note:
    """The form filled in. Values: texts, numbers, notes, and lists of texts or notes, which semicolons join."""
    text = Note(filled(form, values))
    text.form, text.values = form, values
    return text


def filled(form: str, values: Mapping[str, object]) -> str:
    """The form with its values, lists joined."""
    return form.format(**{name: _joined(value) for name, value in values.items()})


def _joined(value: object) -> object:
    return "; ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
