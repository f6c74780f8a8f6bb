"""The app that `streamlit run` starts. It only checks, picks the language and hands over to a view."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

import leaderboard
from biobench.errors import BioBenchError

st.set_page_config(page_title="BioBench", page_icon=":material/leaderboard:", layout="wide")
if Path(leaderboard.__file__ or "").resolve().parent != Path(__file__).resolve().parent:
    st.error(
        "Another package named 'leaderboard' is installed here and hides BioBench's. Uninstall it, or install "
        "biobench in an environment of its own."
    )
    st.stop()

from leaderboard import board  # noqa: E402 - only after the check above
from leaderboard.words import LANGUAGES, Language, words  # noqa: E402


def main() -> None:
    """Draw the page; an input error becomes its line and hint instead of a traceback."""
    if "interface" not in st.session_state:
        st.session_state["interface"] = "fr" if st.query_params.get("interface") == "fr" else "en"
    with st.sidebar:
        chosen: Language = st.radio(
            "Language · Langue", list(LANGUAGES), key="interface", format_func=LANGUAGES.__getitem__, horizontal=True
        )
    if chosen == "fr":
        st.query_params["interface"] = "fr"
    elif "interface" in st.query_params:
        del st.query_params["interface"]
    try:
        board.show(words(chosen))
    except BioBenchError as error:
        st.error(f"{error}\n\n{error.hint}")


main()
