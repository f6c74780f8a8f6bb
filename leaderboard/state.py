"""What is chosen lives in the page's link, so that a link shows what its sender saw."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

SEPARATOR = "\x1f"
"""Between names in a link."""


_WRITTEN, _PAGE = "link_written", "page_left"


def is_linked_anew(key: str) -> bool:
    """Whether the address says something else of this key than the page wrote there: a link, Back, another view."""
    return str(st.query_params.get(key, "")) != str(st.session_state.get(_WRITTEN, {}).get(key, ""))


def start(key: str, value: object, *, everywhere: bool = False) -> None:
    """A widget's value from the address (`value`); the reader's own stands while the address is what he made it.

    everywhere: the choice holds on all pages, so that one whose address does not name it keeps it.
    """
    kept = everywhere and key in st.session_state and not st.query_params.get(key) and _came_from_another_page()
    if key not in st.session_state or (is_linked_anew(key) and not kept):
        st.session_state[key] = value


def _came_from_another_page() -> bool:
    context = get_script_run_ctx()
    return context is not None and st.session_state.get(_PAGE) != context.page_script_hash


def leave() -> None:
    """Remember which page was drawn."""
    context = get_script_run_ctx()
    st.session_state[_PAGE] = None if context is None else context.page_script_hash


_LOST = "lost_of_link"


def several_from_link(key: str, allowed: Collection[str]) -> list[str]:
    """The link's values that are here, each once; what is not is remembered for `lost`."""
    asked = [part for part in dict.fromkeys(str(st.query_params.get(key, "")).split(SEPARATOR)) if part]
    if key not in st.session_state or is_linked_anew(key):
        _lose([part for part in asked if part not in allowed])
    return [part for part in asked if part in allowed]


def lost() -> list[str]:
    """What the link that the page was opened with named and this folder does not hold; told once."""
    found: list[str] = st.session_state.pop(_LOST, [])
    return found


def _lose(parts: Sequence[str]) -> None:
    if parts:
        st.session_state[_LOST] = [*st.session_state.get(_LOST, []), *parts]


def from_link(key: str, allowed: Sequence[str], default: str) -> str:
    """The link's value where it is allowed, else the default."""
    asked = str(st.query_params.get(key, ""))
    return asked if asked in allowed else default


def list_from_link(key: str, allowed: Sequence[str], default: Sequence[str]) -> list[str]:
    """The link's comma-separated values, those that are allowed; the default where none is."""
    chosen = [part for part in str(st.query_params.get(key, "")).split(",") if part in allowed]
    return chosen or list(default)


def write_link(key: str, value: str) -> None:
    """Put a choice into the link, or take it out where it is the default ("").

    The default is never written: an address that changes by itself when a page opens would catch the Back button.
    """
    st.session_state.setdefault(_WRITTEN, {})[key] = value
    if value:
        if st.query_params.get(key) != value:
            st.query_params[key] = value
    elif key in st.query_params:
        del st.query_params[key]


def choose(
    label: str,
    options: Sequence[str],
    key: str,
    names: dict[str, str] | None = None,
    *,
    width: Literal["stretch"] | int = "stretch",
) -> str:
    """A select box whose choice is in the link; without it, the first option. `options` must not be empty."""
    asked = str(st.query_params.get(key, ""))
    if (key not in st.session_state or is_linked_anew(key)) and asked not in ("", *options):
        _lose([asked.replace(SEPARATOR, " ").strip()])
    start(key, from_link(key, options, options[0]))
    if st.session_state[key] not in options:
        st.session_state[key] = options[0]
    chosen: str = st.selectbox(label, options, key=key, format_func=lambda o: (names or {}).get(o, o), width=width)
    write_link(key, "" if chosen == options[0] else chosen)
    return chosen


def switch(place: DeltaGenerator, label: str, key: str, help: str | None = None) -> bool:
    """A toggle whose choice is in the link."""
    start(key, st.query_params.get(key) == "1")
    on = place.toggle(label, key=key, help=help)
    write_link(key, "1" if on else "")
    return on
