"""The app that `streamlit run` starts. It only checks, picks language, view and average, and hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st
from PIL import Image

from biobench.core.packages import check_ours
from biobench.errors import BioBenchError
from biobench.report.escape import plain
from biobench.report.render import plain_note
from biobench.report.rows import AverageName
from biobench.report.table import first_average

# three bars, drawn here: a named icon would be fetched from elsewhere
_ICON = Image.new("RGBA", (32, 32))
for _left, _top in ((3, 14), (12, 4), (21, 19)):
    _ICON.paste((0, 114, 178, 255), (_left, _top, _left + 8, 29))
st.set_page_config(page_title="BioBench", page_icon=_ICON, layout="wide")
try:
    check_ours("leaderboard")
except BioBenchError as problem:
    st.error(f"{problem}; {problem.hint}")
    st.stop()

# only after the check above
from leaderboard import (  # noqa: E402
    board,
    compare_view,
    efficiency_view,
    errors_view,
    model_view,
    needle_view,
    pretraining_view,
    published_view,
    submit_view,
    task_view,
)
from leaderboard.folder import results  # noqa: E402
from leaderboard.state import from_link, lost, start, write_link  # noqa: E402
from leaderboard.table import literal  # noqa: E402
from leaderboard.words import LANGUAGES, Language, words  # noqa: E402

View = Callable[[Mapping[str, str], AverageName], None]
VIEWS: dict[str, View] = {
    "board": board.show,
    "model_view": model_view.show,
    "task_view": task_view.show,
    "compare_view": compare_view.show,
    "errors_view": errors_view.show,
    "needle_view": needle_view.show,
    "pretraining_view": pretraining_view.show,
    "published_view": published_view.show,
    "efficiency_view": efficiency_view.show,
    "submit_view": submit_view.show,
}
AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted", "paper")


# Tables are wide: less room around them, and titles that do not take a screen. (No docstring here: in this file
# Streamlit would show it.)
_STYLE = """
<style>
[data-testid=stMainBlockContainer] { padding: 3.2rem clamp(1rem, 3vw, 3rem) 4rem; }
[data-testid=stMainBlockContainer] h1 { font-size: clamp(1.5rem, 3vw, 2.1rem); padding: .2rem 0 .4rem; }
[data-testid=stMainBlockContainer] h2, [data-testid=stMainBlockContainer] h3 { font-size: 1.35rem; }
</style>
"""


def main() -> None:
    """Draw the page; an input error becomes its line and hint instead of a traceback."""
    st.html(_STYLE)
    with st.sidebar:
        start("interface", from_link("interface", list(LANGUAGES), "en"))
        chosen: Language = st.radio(
            "Language · Langue", list(LANGUAGES), key="interface", format_func=LANGUAGES.__getitem__, horizontal=True
        )
        write_link("interface", "" if chosen == "en" else chosen)
        texts = words(chosen)
        start("view", from_link("view", list(VIEWS), "board"))
        view = st.radio(texts["view"], list(VIEWS), key="view", format_func=texts.__getitem__)
        write_link("view", "" if view == "board" else view)
    told = st.empty()
    try:
        VIEWS[view](texts, _average(texts))
    except BioBenchError as error:
        st.error(f"{literal(plain_note(str(error)))}\n\n{literal(plain_note(error.hint))}")
    names = lost()
    if names:
        told.warning(texts["not_here"].format(literal(", ".join(plain(name) for name in names[:5]))))


def _average(texts: Mapping[str, str]) -> AverageName:
    first = first_average(results())
    start("average", from_link("average", AVERAGES, first))
    with st.sidebar:
        chosen = st.radio(
            texts["average"], AVERAGES, key="average", format_func=texts.__getitem__, help=texts["average_help"]
        )
    write_link("average", "" if chosen == first else chosen)
    return chosen


main()
