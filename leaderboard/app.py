"""The app that `streamlit run` starts. It only checks, picks view and average, and hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import streamlit as st
from PIL import Image
from streamlit.navigation.page import StreamlitPage

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
from leaderboard.folder import inside, pretraining, results  # noqa: E402
from leaderboard.state import from_link, leave, lost, start, write_link  # noqa: E402
from leaderboard.table import literal  # noqa: E402
from leaderboard.words import WORDS  # noqa: E402

View = Callable[[Mapping[str, str], AverageName], None]
VIEWS: dict[str, tuple[str, View]] = {
    "board": ("", board.show),
    "model_view": ("models", model_view.show),
    "task_view": ("tasks", task_view.show),
    "compare_view": ("compare", compare_view.show),
    "errors_view": ("errors", errors_view.show),
    "needle_view": ("needle", needle_view.show),
    "pretraining_view": ("pretraining", pretraining_view.show),
    "published_view": ("published", published_view.show),
    "efficiency_view": ("efficiency", efficiency_view.show),
    "submit_view": ("submit", submit_view.show),
}
EXPLORE = ("errors_view", "needle_view", "pretraining_view", "published_view", "efficiency_view")
AVERAGED = ("board", "model_view", "task_view", "compare_view", "efficiency_view")
AVERAGES: tuple[AverageName, ...] = ("macro", "micro", "weighted", "paper")


# Tables are wide: less room around them, and titles that do not take a screen. (No docstring here: in this file
# Streamlit would show it.)
_STYLE = """
<style>
[data-testid=stMainBlockContainer] { padding: 3.2rem clamp(1rem, 3vw, 3rem) 4rem; }
[data-testid=stMainBlockContainer] h1 { font-size: clamp(1.5rem, 3vw, 2.1rem); padding: .2rem 0 .4rem; }
[data-testid=stMainBlockContainer] h2, [data-testid=stMainBlockContainer] h3 { font-size: 1.35rem; }
[data-testid=stMainBlockContainer] h2, [data-testid=stMainBlockContainer] h3 { padding: .4rem 0; }
.st-key-bb_verdict { padding-bottom: 1.2rem; }
.st-key-bb_verdict h2 { font-size: clamp(1.15rem, 2.4vw, 1.5rem); padding: 0 0 .3rem; line-height: 1.35; }
[data-testid=stCaptionContainer], [data-testid=stCaptionContainer] :is(p, a) { color: inherit !important; }
[data-testid=stCaptionContainer] { opacity: .8; }
ol.bb-cards { list-style: none; padding: 0; margin: 0; }
.bb-cards li { display: flex; gap: .6rem; padding: .6rem .2rem; margin: 0;
  border-bottom: 1px solid rgba(128, 128, 128, .3); font-variant-numeric: tabular-nums; }
.bb-cards li span { flex: 1; overflow-wrap: anywhere; }
.st-key-bb_cards { display: none; }
:is(.st-key-bb_choice, .st-key-bb_charts) [data-testid=stHorizontalBlock] { flex-wrap: wrap; }
.st-key-bb_choice [data-testid=stColumn] { min-width: min(100%, 9rem); }
.st-key-bb_charts [data-testid=stColumn] { min-width: min(100%, 26rem); }
@media (max-width: 640px) { .st-key-bb_cards { display: block; } .st-key-bb_table { display: none; } }
</style>
"""


# A keyboard must reach what scrolls: the framework's tables and code, on a phone.
_SCRIPT = """<script>
window.bbTend = () => {
  for (const box of document.querySelectorAll(".stTable > div, [data-testid=stCode] pre")) box.tabIndex = 0;
};
window.bbTend();
window.bbReach ??= new MutationObserver(() => window.bbTend());
window.bbReach.observe(document.body, {childList: true, subtree: true});
</script>"""


def main() -> None:
    """Draw the page; an input error becomes its line and hint instead of a traceback."""
    st.html(_STYLE)
    try:
        pages = _pages(WORDS)
    except BioBenchError as error:
        _say(error)
        return
    st.session_state["pages"] = {page: one for group in pages.values() for page, one in group.items()}
    page = st.navigation({title: list(group.values()) for title, group in pages.items()}, position="top")
    st.set_page_config(page_title=f"{page.title} · BioBench", page_icon=_ICON, layout="wide")
    st.html(_SCRIPT, unsafe_allow_javascript=True)
    page.run()
    leave()


def _pages(texts: Mapping[str, str]) -> dict[str, dict[str, StreamlitPage]]:
    """Every view with its address; those of which the folder holds nothing are reached by a link alone."""
    loaded, trained = results(), pretraining()
    hidden = {
        "errors_view": not loaded.groups,
        "efficiency_view": not loaded.groups,
        "needle_view": all(g.briefs[0].type != "needle" for g in loaded.groups),
        "pretraining_view": not (trained.runs or trained.analyses or trained.findings),
        "published_view": not loaded.experiments,
    }
    pages = {
        name: st.Page(
            partial(_draw, name, texts),
            title=texts[name],
            url_path=path,
            default=not path,
            visibility="hidden" if hidden.get(name) else "visible",
        )
        for name, (path, _) in VIEWS.items()
    }
    return {
        "": {name: page for name, page in pages.items() if name not in EXPLORE},
        texts["explore"]: {name: pages[name] for name in EXPLORE},
    }


def _draw(view: str, texts: Mapping[str, str]) -> None:
    place = st.empty()
    try:
        VIEWS[view][1](texts, _average(texts, shown=view in AVERAGED))
    except BioBenchError as error:
        _say(error)
    names = lost()
    if names:
        place.warning(texts["not_here"].format(literal(", ".join(plain(name) for name in names[:5]))))


def _say(error: BioBenchError) -> None:
    st.error(f"{literal(plain_note(inside(str(error))))}\n\n{literal(plain_note(inside(error.hint)))}")


def _average(texts: Mapping[str, str], *, shown: bool) -> AverageName:
    first = first_average(results())
    start("average", from_link("average", AVERAGES, first), everywhere=True)
    if not shown:
        # the framework forgets what a page does not draw, unless it is set anew
        kept: AverageName = st.session_state["average"]
        st.session_state["average"] = kept
        return kept
    with st.sidebar:
        chosen = st.radio(
            texts["average"], AVERAGES, key="average", format_func=texts.__getitem__, help=texts["average_help"]
        )
    write_link("average", "" if chosen == first else chosen)
    return chosen


main()
