"""Further filters of the board: size and window of the model, access and licence of the corpus."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import streamlit as st

from biobench.report.table import Results
from leaderboard.state import SEPARATOR, start, write_link

SIZES = ("size_small", "size_base", "size_large", "unknown")
SIZE_LIMITS: dict[str, int | None] = {"any_size": None, "below_100": 100_000_000, "below_200": 200_000_000}
"""Choice -> the number of parameters that a model stays below."""
WINDOWS = ("window_short", "window_middle", "window_long", "unknown")


def size_of(parameters: int | None) -> str:
    """The class of a number of parameters."""
    if parameters is None:
        return "unknown"
    return "size_small" if parameters < 100_000_000 else "size_base" if parameters <= 200_000_000 else "size_large"


def window_of(tokens: int | None) -> str:
    """The class of a window."""
    if tokens is None:
        return "unknown"
    return "window_short" if tokens <= 512 else "window_middle" if tokens <= 4096 else "window_long"


def models_below(held: Results, limit: int | None) -> set[str] | None:
    """The models with fewer parameters; None without a limit. Printed scores say nothing of a size: left out."""
    if limit is None:
        return None
    return {name for name, (parameters, _) in _facts(held).items() if parameters is not None and parameters < limit}


def narrowed(
    held: Results, words: Mapping[str, str], models: Collection[str] | None
) -> tuple[set[str] | None, set[str] | None]:
    """Draw the filters in the side bar; gives (models, tasks) that are left, None for all of them.

    A model's window is the widest that any of its runs used. Tasks that do not ship have no known access.
    """
    specs = {task: info.spec for task, info in held.infos.items() if info.spec is not None}
    access = sorted({s.access for s in specs.values()})
    licences = sorted({s.licence for s in specs.values()}, key=str.casefold)
    with st.sidebar.expander(words["more_filters"]):
        sizes = _several("sizes", SIZES, words["size_filter"], words)
        windows = _several("windows", WINDOWS, words["window_filter"], words)
        open_to = _several("access", access, words["access_filter"], words)
        under = _several("licences", licences, words["licence_filter"], words)
        st.caption(words["filter_help"])
    tasks = None
    if open_to or under:
        tasks = {
            task
            for task, spec in specs.items()
            if (not open_to or spec.access in open_to) and (not under or spec.licence in under)
        }
    if not sizes and not windows:
        return None if models is None else set(models), tasks
    facts = _facts(held)
    names = set(facts) | {v.model for v in held.published}
    left = {
        name
        for name in names
        if (not sizes or size_of(facts.get(name, (None, None))[0]) in sizes)
        and (not windows or window_of(facts.get(name, (None, None))[1]) in windows)
    }
    return (left if models is None else left & set(models)), tasks


def _facts(held: Results) -> dict[str, tuple[int | None, int | None]]:
    """Model -> (parameters, widest window)."""
    found: dict[str, tuple[int | None, int | None]] = {}
    for group in held.groups:
        brief, widest = group.briefs[0], max(b.max_length for b in group.briefs)
        found[group.model] = (brief.parameters or None, max(widest, found.get(group.model, (None, 0))[1] or 0))
    return found


def _several(key: str, options: Sequence[str], label: str, words: Mapping[str, str]) -> list[str]:
    start(key, [o for o in str(st.query_params.get(key, "")).split(SEPARATOR) if o in options])
    chosen = list(st.multiselect(label, options, key=key, format_func=lambda o: words.get(o, o)))
    write_link(key, SEPARATOR.join(chosen))
    return chosen
