"""Further filters of the board: size and window of the model, access and licence of the corpus."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import streamlit as st

from biobench.report.results import Results
from leaderboard.state import SEPARATOR, is_linked_anew, start, write_link

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


MOST_WEIGHT = 9


def weights_of(tasks: Sequence[str], words: Mapping[str, str]) -> dict[str, float] | None:
    """How much each of the tasks picked counts, 1 to 9, in the link; None where all count the same."""
    linked = _weights_from_link(tasks)
    anew = is_linked_anew("weights")
    if len(tasks) < 2:
        write_link("weights", "")
        return None
    weights: dict[str, float] = {}
    with st.expander(words["task_weights"], expanded=bool(linked)):
        places = st.columns(min(len(tasks), 4))
        for place, task in enumerate(tasks):
            key = f"weight_{task}"
            if key not in st.session_state or anew:
                st.session_state[key] = linked.get(task, 1)
            weights[task] = float(places[place % len(places)].number_input(task, 1, MOST_WEIGHT, step=1, key=key))
        st.caption(words["weights_help"])
    equal = len(set(weights.values())) == 1
    write_link("weights", "" if equal else ",".join(f"{task}:{weight:g}" for task, weight in weights.items()))
    return None if equal else weights


def _weights_from_link(tasks: Sequence[str]) -> dict[str, int]:
    """``task:3,task:1``; what is no task shown or no digit from 1 to 9 is left out."""
    pairs = [part.rpartition(":") for part in str(st.query_params.get("weights", "")).split(",")]
    return {task: int(text) for task, _, text in pairs if task in tasks and text in "123456789" and text}


def models_below(loaded: Results, limit: int | None) -> set[str] | None:
    """The models with fewer parameters; None without a limit. Printed scores say nothing of a size: left out."""
    if limit is None:
        return None
    return {name for name, (parameters, _) in _facts(loaded).items() if parameters is not None and parameters < limit}


def narrowed(
    loaded: Results, words: Mapping[str, str], models: Collection[str] | None
) -> tuple[set[str] | None, set[str] | None]:
    """Draw the filters in the side bar; gives (models, tasks) that are left, None for all of them.

    A model's window is the widest that any of its runs used. Tasks that do not ship have no known access.
    """
    specs = {task: info.spec for task, info in loaded.infos.items() if info.spec is not None}
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
    facts = _facts(loaded)
    names = set(facts) | {v.model for v in loaded.published}
    left = {
        name
        for name in names
        if (not sizes or size_of(facts.get(name, (None, None))[0]) in sizes)
        and (not windows or window_of(facts.get(name, (None, None))[1]) in windows)
    }
    return (left if models is None else left & set(models)), tasks


def _facts(loaded: Results) -> dict[str, tuple[int | None, int | None]]:
    """Model -> (parameters, widest window)."""
    facts: dict[str, tuple[int | None, int | None]] = {}
    for group in loaded.groups:
        brief, widest = group.briefs[0], max(b.max_length for b in group.briefs)
        facts[group.model] = (brief.parameters or None, max(widest, facts.get(group.model, (None, 0))[1] or 0))
    return facts


def _several(key: str, options: Sequence[str], label: str, words: Mapping[str, str]) -> list[str]:
    start(key, [o for o in str(st.query_params.get(key, "")).split(SEPARATOR) if o in options])
    named = {option: words.get(f"{key}_{option}", words.get(option, option)) for option in options}
    chosen = list(st.multiselect(label, options, key=key, format_func=named.__getitem__))
    write_link(key, SEPARATOR.join(chosen))
    return chosen
