"""What every page stands on: the results folder, tables, charts and messages."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import pandas as pd
import streamlit as st

from biobench.reporting.charts import DARK_INK, INK, legible
from biobench.reporting.details.pretraining import (
    FOLDER,
    Pretraining,
    TrainingRun,
    pretraining_fingerprint,
    read_pretraining,
)
from biobench.reporting.entrants import line_name
from biobench.reporting.escape import for_html, words
from biobench.reporting.groups import RunGroup
from biobench.reporting.printers import plain_note
from biobench.reporting.results import Results, fingerprint, load
from biobench.store import UnusableFile
from leaderboard.launch import PRETRAINING_VARIABLE, RESULTS_VARIABLE, is_public
from leaderboard.lines import Line
from leaderboard.numbers import cell_text

OF_SOURCE = " · "
"""Stands between a name and the source that sets it apart."""
Made = TypeVar("Made")
STUDIES = "study"
"""Folder of a results folder with declared studies and their tables."""


def results_dir() -> Path:
    """The folder named by the environment, `results` without one."""
    return Path(os.environ.get(RESULTS_VARIABLE) or "results").resolve()


def pretraining_dir() -> Path:
    """The folder of pretraining runs: named by the environment, else `pretraining` in the results
    folder.
    """
    return Path(os.environ.get(PRETRAINING_VARIABLE) or results_dir() / FOLDER).resolve()


@st.cache_resource(max_entries=2, show_spinner="Reading the results folder")
def _load(folder: str, state: str) -> Results:
    """`state` stands for the folder's content: another one reads it anew."""
    del state
    loaded = load(folder)
    # hundreds of thousands of objects that stay, none of them in a circle: each full collection
    # would go over them while somebody waits
    gc.collect()
    gc.freeze()
    return loaded


def results_state() -> str:
    """Changes with the folder's content."""
    return fingerprint(str(results_dir()))


def results() -> Results:
    """Everything in the folder; read again when a file of it changes."""
    return _load(str(results_dir()), results_state())


@st.cache_resource(max_entries=128, show_spinner="Computing")
def _made(asked: tuple[object, ...], state: str, _make: Callable[[], Any]) -> Any:
    """`asked` stands for what is made, `state` for the folder's content."""
    del asked, state
    return _make()


def made_once(make: Callable[[], Made], *asked: object) -> Made:
    """What `make` gives, kept while the folder's content is the same. asked: texts and numbers that
    stand for it, its name first.
    """
    made: Made = _made(asked, results_state(), make)
    return made


@st.cache_resource(max_entries=2, show_spinner=False)
def _read(folders: tuple[str, ...], state: str) -> Pretraining:
    """`state` stands for the folders' content."""
    del state
    return read_pretraining(*folders)


def pretraining() -> Pretraining:
    """Every pretraining run, analysis and study; read again when a file of them changes."""
    folders = (str(pretraining_dir()), str(results_dir() / STUDIES))
    return _read(folders, pretraining_fingerprint(*folders))


def trained_by(groups: Iterable[RunGroup]) -> TrainingRun | None:
    """The pretraining run that exported the encoder of these runs, known by its weights; None where
    none did.
    """
    runs = (pretraining().of_model(group.briefs[0].weights) for group in groups)
    return next(filter(None, runs), None)


def unread(groups: Iterable[RunGroup]) -> tuple[RunGroup, ...]:
    """The same groups, their records not read yet.

    A group keeps the records that were asked of it, and the groups of `results` live as long as
    the server: what is read of a copy goes when the page is drawn.
    """
    return tuple(map(replace, groups))


def text(message: object) -> str:
    """A message for Markdown: as it stands, without control characters and without where the
    server's files lie.
    """
    cleaned = str(message)
    for folder in (results_dir(), pretraining_dir()):
        cleaned = cleaned.replace(f"{folder}{os.sep}", "")
    return literal(plain_note(cleaned))


def literal(words: str) -> str:
    """The one way of untrusted text into Markdown (titles, table cells): shown as it stands.

    Escapes alone do not do: bare addresses become links, and `:material/...:` an icon, after
    Markdown is read. A sign that is not seen breaks them.
    """
    return _JOINED.sub("\\g<0>\u200b", _SIGN.sub(r"\\\g<0>", words))


_SIGN = re.compile(r"[\\`*_\[\]<>|~$:#&]")
"""What Markdown may take for markup."""
_JOINED = re.compile(r"www(?=\.)|:(?=\S)|@", re.IGNORECASE)
"""Where a bare address, an e-mail address or a directive begins."""
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9./_~%?=&+#,@-]*)?")


def link(address: str) -> str:
    """A link to a plain address; anything else is shown as it stands."""
    return f"<{address}>" if _ADDRESS.fullmatch(address) else literal(address)


def with_short_names(sentence: str, short: Mapping[str, str]) -> str:
    """A sentence as Markdown, its models by their short names, in bold."""
    written = {}
    for name, called in short.items():
        written[literal(name)] = f"**{literal(called)}**"
    # the longest first: a name may be the beginning of another
    pattern = "|".join(map(re.escape, sorted(written, key=len, reverse=True)))
    return re.sub(pattern, lambda match: written[match.group()], text(sentence))


def without_commands(note: str) -> str:
    """A note of the report; on a public board without the commands, which its readers cannot
    run."""
    if not is_public():
        return note
    return "; ".join(clause for clause in note.split("; ") if "`biobench " not in clause)


def show_notes(title: str, notes: Sequence[str], limit: int = 100) -> None:
    """Notes behind their number; of many the first ten, which pages of tasks have in full."""
    if notes:
        with st.expander(f"{title} ({len(notes)})"):
            for note in notes[:limit]:
                st.text(plain_note(without_commands(note)))
            if len(notes) > limit:
                st.caption(f"{len(notes) - limit} more stand on the pages of their tasks.")


def show_findings(findings: Sequence[UnusableFile], title: str, *, expanded: bool = False) -> None:
    """Files that could not be read, and what to do about each."""
    if findings:
        with st.expander(f"{title} ({len(findings)})", expanded=expanded):
            st.caption("These files could not be read. Everything else is shown.")
            for finding in findings:
                st.markdown(f"{text(finding)}\n→ {text(finding.hint)}")


def say_no_runs() -> None:
    """Why there is no run to browse."""
    if results().refusals:
        st.warning(
            "All runs here are on tasks that fail their gate on this data; they are not shown or "
            "ranked."
        )
        for refusal in results().refusals:
            st.text(plain_note(f"{refusal.group.task}: {'; '.join(refusal.reasons)}"))
    else:
        st.info("There are no runs to browse yet.")


def key_of(line: Line) -> str:
    """A line's name in the link: model and variant, the source where it is not a run of this
    folder.
    """
    model, variant, source = line
    name = line_name(model, variant)
    if source == "run":
        return name
    if source == "oracle":
        return "the oracle"
    if source == "baseline":
        return f"baseline: {name}"
    return f"{name}{OF_SOURCE}{source}"


def apart(names: Sequence[str], sources: Sequence[str]) -> list[str]:
    """A name each: with the source behind it where another has the same."""
    times = Counter(names)
    unlike = []
    for name, source in zip(names, sources, strict=True):
        unlike.append(f"{name}{OF_SOURCE}{source}" if times[name] > 1 else name)
    return unlike


def link_to(page: str, key: str, value: str, label: str) -> str:
    """The address of a page with a choice; `shown` stands behind # as the text of a link column."""
    return f"{page}?{key}={quote(value)}#{quote(label)}"


LINK = r"#(.*)$"
"""How a link column finds its text."""


def ink() -> str:
    """Legible as text on the ground that the reader's page has."""
    return DARK_INK if st.context.theme.type == "dark" else INK


def draw(chart: Any, alt: str, **options: Any) -> None:
    """A chart as wide as its place. alt: what it shows, for whoever does not see it."""
    st.altair_chart(legible(chart, ink()), **({"width": "stretch"} | options), alt=alt)


WHOLE = 30
"""Rows of a table that is shown whole; a longer one scrolls."""


def show_table(
    rows: Sequence[Mapping[str, object]] | pd.DataFrame,
    config: Mapping[str, Any] | None = None,
    shades: Sequence[str] = (),
    missing: str = "",
    **options: Any,
) -> Any:
    """A table whose columns sort as what they hold: numbers as numbers, whatever stands behind. A
    column without any cell is left out, unless there is a word for what is missing.

    shades: the CSS of each row's cells.
    """
    # of another type, the texts of `ShownNumber` would be lost
    frame = pd.DataFrame(rows, dtype=object)
    if not missing:
        frame, missing = frame.dropna(axis="columns", how="all"), "–"
    table = frame.style.format(cell_text, na_rep=missing)
    if shades:
        table = table.apply(_shaded, axis=None, shades=shades)
    options.setdefault("height", "content" if len(rows) <= WHOLE else "auto")
    return st.dataframe(
        table, hide_index=True, placeholder=missing, column_config=config, **options
    )


def _shaded(cells: pd.DataFrame, shades: Sequence[str]) -> pd.DataFrame:
    """The CSS of every cell, that of its row."""
    column = pd.Series(shades, index=cells.index)
    return pd.concat([column] * len(cells.columns), axis=1, keys=cells.columns)


def show_cards(
    table: pd.DataFrame, title: str, *, link: str, number: str, kinds: Sequence[str] = ()
) -> None:
    """The rows of a table for a narrow screen: a link and a number, and below them what else is
    known. All texts are escaped.

    title: for whoever does not see them. link, number: the columns that hold them.
    kinds: of each row a class of the style sheet.
    """
    cards = []
    for kind, (_, row) in zip(kinds or [""] * len(table), table.iterrows(), strict=True):
        address, _, name = row[link].partition("#")
        known = row.dropna().map(cell_text)
        about = known.drop([link, number], errors="ignore")
        facts_shown = []
        for column, cell in about.items():
            facts_shown.append(f"<span>{words(f'{column} {cell}', for_html)}</span>")
        cards.append(
            f'<li class="{kind}"><div><a href="{for_html(address)}" target="_self">'
            f"{for_html(unquote(name))}</a><b>{for_html(known.get(number, '–'))}</b></div>"
            f"<small>{' · '.join(facts_shown)}</small></li>"
        )
    st.html(f'<ol class="bb-cards" aria-label="{for_html(title)}">{"".join(cards)}</ol>')


def facts(pairs: Mapping[str, str]) -> None:
    """Names and values below each other. The values are Markdown: whoever puts a user's text in
    makes it literal.
    """
    st.table(pd.DataFrame(pairs.items(), columns=["", " "]).set_index(""), hide_header=True)
