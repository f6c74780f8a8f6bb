"""Names made by users, made harmless for each format they are printed in."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Callable

LONGEST = 120
"""Characters of a name that are shown; JSON and CSV carry all of it."""

_MARKDOWN = set("\\`*_[]<>|~$&")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "–": "--",
    "±": r"$\pm$",
    "†": r"\textdagger{}",
    "‡": r"\textdaggerdbl{}",
}


def plain(text: str) -> str:
    """One line of visible characters: control, direction and invisible ones become U+FFFD; long
    texts are cut.
    """
    cleaned = without_hidden(text)
    return cleaned if len(cleaned) <= LONGEST else cleaned[: LONGEST - 1] + "…"


def without_hidden(text: str) -> str:
    """The text with U+FFFD for control, direction and invisible characters."""
    return "".join("\ufffd" if unicodedata.category(c) in HIDDEN else c for c in text)


#: Control, format (bidirectional overrides, zero width), surrogate, private, unassigned; line and
#: paragraph ends.
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def for_markdown(text: str) -> str:
    """A table cell that no Markdown dialect reads as markup, link, image or HTML."""
    shown = "".join(f"\\{c}" if c in _MARKDOWN else c for c in plain(text))
    # bare addresses become links by themselves in many dialects
    return shown.replace("://", ":\u200b//").replace("www.", "www\u200b.").replace("@", "\\@")


def for_html(text: str) -> str:
    """Text of an element or of a quoted attribute."""
    return html.escape(plain(text), quote=True)


def for_latex(text: str) -> str:
    """Text that pdfLaTeX sets as it is; letters that its default fonts lack become a question
    mark."""
    return "".join(_LATEX.get(c) or (c if ord(c) < 0x180 else "?") for c in plain(text))


def for_csv(text: str) -> str:
    """A cell that a spreadsheet takes for text: a leading formula sign gets an apostrophe before
    it; hidden signs become U+FFFD.
    """
    shown = without_hidden(text)
    return "'" + shown if text[:1] in ("=", "+", "-", "@", "\t", "\r") else shown


def words(text: str, escape: Callable[[str], str]) -> str:
    """A sentence of any length, word by word: `escape` cuts what is longer than a name."""
    return " ".join(escape(word) for word in text.split())
