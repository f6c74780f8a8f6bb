"""Pages in two languages at once: every text in English, with its French beside it, which the page's script shows.

Whoever made a name, it is text: all pieces are escaped here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from biobench.report.escape import for_html, html_sentence
from biobench.site.assets import SCRIPTS, STYLES
from biobench.site.words import ENGLISH, FRENCH

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_HTTP = re.compile(r"https?://[^\s\"'<>]+")


def both(english: str, french: str, tag: str = "span", attributes: str = "") -> str:
    """An element that reads in either language; attributes: as they stand in the tag, escaped already."""
    gap = f" {attributes}" if attributes else ""
    if english == french:
        return f"<{tag}{gap}>{html_sentence(english)}</{tag}>"
    return f'<{tag}{gap} data-fr="{html_sentence(french)}">{html_sentence(english)}</{tag}>'


def say(key: str, tag: str = "span", attributes: str = "", *values: object) -> str:
    """An element with a text of `words`, filled with the values."""
    return both(ENGLISH[key].format(*values), FRENCH[key].format(*values), tag, attributes)


def label(key: str, *values: object) -> str:
    """Attributes that name an element to whoever does not see it."""
    english, french = (html_sentence(words[key].format(*values)) for words in (ENGLISH, FRENCH))
    return f'aria-label="{english}" data-fr-label="{french}"'


def tip(english: str, french: str) -> str:
    """Attributes of an element that says more where the pointer rests."""
    return f'title="{html_sentence(english)}" data-fr-title="{html_sentence(french)}"'


def link(target: str, text: str) -> str:
    """A link inside the site. target: relative, made of characters that need no escape."""
    return f'<a href="{target}">{for_html(text)}</a>'


def task_file(task: str) -> str:
    """The page of a task."""
    return f"tasks/{_UNSAFE.sub('-', task)}.html"


def outward(address: str, text: str | None = None) -> str:
    """A link to elsewhere where the address is one of the web; else its text alone."""
    shown = for_html(address if text is None else text)
    if not _HTTP.fullmatch(address):
        return shown
    return f'<a href="{html_sentence(address)}" rel="noopener noreferrer">{shown}</a>'


def head(key: str, *, text: bool = False, extra: str = "") -> str:
    """A column's heading with one of `words`."""
    return say(key, "th", f"{'class=t ' if text else ''}{extra}".strip())


def table(caption: str, heads: Sequence[str], rows: Sequence[str], kind: str = "") -> str:
    """A table that sorts by its headings. caption, heads, rows: whole elements."""
    attributes = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll"><table{attributes}>{caption}<thead><tr>{"".join(heads)}</tr></thead>\n'
        f"<tbody>{chr(10).join(rows)}</tbody></table></div>"
    )


def line_of(first: str, cells: Sequence[str], texts: Sequence[int] = ()) -> str:
    """A line of a table. first: its name; cells: what follows, escaped; texts: which of these are no numbers."""
    parts = [f"<td class=t>{cell}" if i in texts else f"<td>{cell}" for i, cell in enumerate(cells)]
    return f"<tr><th>{first}{''.join(parts)}"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names (`dt` elements) and values (escaped) below each other."""
    return f"<dl>{''.join(f'{name}<dd>{value}' for name, value in pairs)}</dl>"


def page(title: tuple[str, str], body: str, *, up: str = "", menu: str = "", kind: str = "sorted") -> str:
    """A whole document that loads nothing.

    title: English and French; up: the way to the site's root; menu: links; kind: of `SCRIPTS`.
    """
    script, style = SCRIPTS[kind], STYLES[kind]
    english, french = (f"{name} · BioBench" for name in title)
    home = say("board", "a", f'href="{up}index.html"')
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
        "form-action 'none'; "
        f'style-src {_hash(style)}; script-src {_hash(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{both(english, french, 'title')}\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><nav {label('this_site')}>{home}{menu}</nav>"
        f'<div role="group" {label("other_languages")} hidden>'
        '<button type="button" lang="en" value="en">English</button> '
        '<button type="button" lang="fr" value="fr">Français</button></div></header>\n'
        f"<main>\n{both(*title, 'h1')}\n{body}\n</main>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """By which a policy lets this text alone run or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
