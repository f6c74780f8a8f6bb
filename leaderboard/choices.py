"""Choices that live in the link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, TypeVar

import streamlit as st
from streamlit.errors import StreamlitAPIException

from biobench.reporting.row import AverageName
from leaderboard.page import OF_SOURCE, text

ANY = "any"
AVERAGES: dict[AverageName, str] = {
    "paper": "as published",
    "macro": "macro F1",
    "micro": "micro F1",
    "weighted": "weighted F1",
}
Choice = TypeVar("Choice", bound=str)


def choose(
    label: str,
    options: Sequence[Choice],
    key: str,
    names: Mapping[Choice, str] | None = None,
    *,
    from_data: bool = False,
    **layout: Any,
) -> Choice:
    """A select box whose choice is in the link; without it, the first option. `options` must not be
    empty.

    from_data: the first option is another one when the data change, so the link names it too.
    """
    name_of = _naming(names)
    called = set(map(name_of, options))
    _take_namesake(key, options)
    warn_of_others(key, called)
    opening = options[0]
    if st.session_state.get(key, opening) not in options:
        # chosen where there were other options
        st.session_state[key] = opening
    if from_data:
        _name_opening(key, opening, called)
    chosen: Choice | None = st.selectbox(
        label,
        options,
        # the framework leaves a widget's own default out of the address
        None if from_data else 0,
        key=key,
        format_func=name_of,
        bind="query-params",
        **layout,
    )
    if chosen is None:
        # cleared by a key; it is filled at the beginning of a run
        st.rerun()
    return chosen


def choose_several(
    label: str,
    options: Sequence[Choice],
    key: str,
    default: Sequence[Choice] = (),
    names: Mapping[Choice, str] | None = None,
    *,
    from_data: bool = False,
    **layout: Any,
) -> list[Choice]:
    """As `choose`, several."""
    name_of = _naming(names)
    called = set(map(name_of, options))
    warn_of_others(key, called)
    if not set(options).issuperset(st.session_state.get(key, default)):
        st.session_state[key] = list(default)
    if from_data:
        _name_opening(key, list(default), called)
    return st.multiselect(
        label,
        options,
        default=[] if from_data else list(default),
        key=key,
        format_func=name_of,
        bind="query-params",
        **layout,
    )


def _name_opening(key: str, opening: str | list[str], options: Set[str]) -> None:
    """Put the choice that a page opens with into an address that names none of the options."""
    if not options.isdisjoint(st.query_params.get_all(key)):
        return
    choice = st.session_state.get(key, opening)
    if not choice:
        return
    # of a widget that is drawn already the address has what is set below
    with suppress(StreamlitAPIException):
        st.query_params[key] = choice
    st.session_state[key] = choice


def _naming(names: Mapping[Choice, str] | None) -> Callable[[Choice], str]:
    """What an option is called: itself, where it has no name."""
    name_of = names or {}
    return lambda option: name_of.get(option, option)


def warn_of_others(key: str, options: Set[str]) -> None:
    """Say what a link asks for that is none of the options."""
    if key in st.session_state:
        return
    others = [value for value in st.query_params.get_all(key) if value and value not in options]
    if others:
        st.warning(f"The link names something that is not here: {text(', '.join(others))}.")


def _take_namesake(key: str, options: Sequence[str]) -> None:
    """Follow a link that names an option without its source, where it names one, to that option."""
    asked = st.query_params.get(key)
    if key in st.session_state or asked in options:
        return
    namesakes = [option for option in options if option.partition(OF_SOURCE)[0] == asked]
    if len(namesakes) == 1:
        st.query_params[key] = namesakes[0]
        # a choice is read from the address at the beginning of a run
        st.rerun()


def choose_average(options: Sequence[AverageName] = tuple(AVERAGES), **layout: Any) -> AverageName:
    """The average of each task, as published at first. A choice holds on the other pages too."""
    remembered = st.session_state.get("last_average")
    is_new_page = "average" not in st.session_state and "average" not in st.query_params
    if is_new_page and remembered in options:
        st.session_state["average"] = remembered
    chosen = choose("Average", options, "average", AVERAGES, **layout)
    st.session_state["last_average"] = chosen
    return chosen
