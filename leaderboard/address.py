"""The address that a reader asked for."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qs, unquote, urlsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def unknown_page(address: str, paths: Collection[str]) -> str:
    """The last part of an address's path where it is none of `paths`, else empty."""
    asked = unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2]
    return "" if asked in paths else asked


def restore_choices() -> None:
    """Take the choices of an entry of the history that Back or Forward opens.

    The framework drops those whose name the page before uses too, and keeps that page's choices
    instead.
    """
    context = get_script_run_ctx()
    if context is None or not context.is_history_navigation:
        return
    dropped = {}
    for key, values in parse_qs(context.query_string, keep_blank_values=True).items():
        if key not in st.query_params and not key.startswith("embed"):
            dropped[key] = values
    if dropped:
        st.query_params.update(dropped)
        with context.session_state.query_params() as asked:
            asked.set_initial_query_params_from_current()
