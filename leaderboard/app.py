"""The app that `streamlit run` starts. It only checks, lists the pages and hands over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st
from PIL import Image

from biobench.core.packages import check_ours
from biobench.errors import BioBenchError

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
from leaderboard import board, compare, errors, models, needle, submit, tasks  # noqa: E402
from leaderboard import pretraining as pretraining_page  # noqa: E402
from leaderboard.address import restore_choices, unknown_page  # noqa: E402
from leaderboard.page import pretraining, results, text  # noqa: E402

PAGES: dict[str, tuple[str, Callable[[], None]]] = {
    "Leaderboard": ("", board.show),
    "Models": ("models", models.show),
    "Tasks": ("tasks", tasks.show),
    "Compare": ("compare", compare.show),
    "Errors": ("errors", errors.show),
    "Needle": ("needle", needle.show),
    "Pretraining": ("pretraining", pretraining_page.show),
    "Submit": ("submit", submit.show),
}  # title -> path and page

# Tables are wide: less room around them, and titles that do not take a screen. A narrow screen has
# cards. (No docstring here: in this file Streamlit would show it.)
_STYLE = """<style>
[data-testid=stMainBlockContainer] { padding: 3.6rem clamp(.8rem, 1.2vw, 2rem) 3rem; }
[data-testid=stMainBlockContainer] h1 { font-size: 1.5rem; padding: 0 0 .6rem; }
[data-testid=stMainBlockContainer] :is(h2, h3) { font-size: 1.2rem; padding: .3rem 0; }
[data-testid=stCaptionContainer],
[data-testid=stCaptionContainer] :is(p, a) { color: inherit !important; }
[data-testid=stCaptionContainer] { opacity: .8; }
:is(a, button, summary, canvas, main, .dvn-scroller):focus-visible {
  outline: 2px solid currentColor !important; outline-offset: -2px; }
[data-testid=stHeaderActionElements],
[data-testid=stSelectbox] [aria-label="Clear value"] { display: none !important; }
[data-testid=stElementToolbar]:focus-within { opacity: 1 !important; transition: none !important; }
.bb-cards { list-style: none; padding: 0 !important; margin: 0 !important;
  font-variant-numeric: tabular-nums; }
.bb-cards li { padding: .5rem .6rem; margin: 0 !important;
  border-bottom: 1px solid rgba(128, 128, 128, .3); }
.bb-cards .bb-here { border-left: 4px solid #0072B2; }
.bb-cards .bb-line { font-style: italic; background: rgba(128, 128, 128, .12); }
.bb-cards div { display: flex; gap: .6rem; }
.bb-cards div a, .bb-cards div span { flex: 1; overflow-wrap: anywhere; color: inherit; }
.bb-cards small { opacity: .85; }
[class*=st-key-bb_cards] [data-testid=stPageLink] p { text-decoration: underline; }
.bb-cards small span { display: inline-block; }
[data-testid=stExpandSidebarButton] { width: auto !important; gap: .3rem; }
[data-testid=stExpandSidebarButton]::after { content: "Menu"; }
[class*=st-key-bb_cards] { display: none; }
@media (max-width: 900px) {
  [class*=st-key-bb_cards] { display: flex; }
  [class*=st-key-bb_table] { display: none; }
}
</style>"""
# The framework replaces the address when somebody chooses, and opens links of tables in new tabs.
# Here a choice is a step that Back takes back, and a page of the board opens where one is. Enter on
# the name of a model follows its link; the menu of a phone has a name, and closes after a choice.
# Space in a table, which would open a box over a cell that nobody can edit, picks the row.
# A change of page takes the query from the old page's address before it changes the path: what it
# took comes back, so that Back finds the page as it was left.
_SCRIPT = """<script>
if (!window.bioBench) {
  window.bioBench = true;
  const push = history.pushState.bind(history), replace = history.replaceState.bind(history);
  const open = window.open.bind(window);
  let goingBack = false;
  let left = null;
  const here = () => location.pathname + location.search;
  window.addEventListener("popstate", () => { goingBack = true; }, true);
  history.pushState = (state, title, address) => {
    const target = new URL(address ?? location.href, location.href);
    if (target.pathname === location.pathname) {
      left ??= here();
      replace(state, title, address);
      return;
    }
    if (left !== null) replace(state, title, left);
    left = null;
    push(state, title, address);
  };
  history.replaceState = (state, title, address) => {
    const target = new URL(address ?? location.href, location.href);
    const isChoice = !goingBack && target.pathname + target.search !== here();
    if (isChoice) push(state, title, address);
    else replace(state, title, address);
  };
  for (const kind of ["pointerdown", "keydown", "click"])
    window.addEventListener(kind, () => { goingBack = false; left = null; }, true);
  window.open = (address, ...rest) => {
    const target = new URL(address, location.href);
    if (target.origin !== location.origin) return open(address, ...rest);
    push({}, "", target.pathname + target.search);
    window.dispatchEvent(new PopStateEvent("popstate"));
    return window;
  };
  const isPhone = matchMedia("(max-width: 768px)");
  const find = selector => document.querySelector(`[data-testid=${selector}]`);
  new MutationObserver(() => find("stExpandSidebarButton")?.setAttribute("aria-label", "Menu"))
    .observe(document.body, {childList: true, subtree: true});
  window.addEventListener("click", event => {
    if (isPhone.matches && event.target.closest("[data-testid=stSidebarNavLink]"))
      setTimeout(() => find("stSidebarCollapseButton")?.querySelector("button").click(), 0);
  });
  window.addEventListener("keydown", event => {
    const grid = event.target.closest?.("[data-testid=stDataFrame]");
    if (grid && event.key === " " && !event.shiftKey) {
      event.preventDefault();
      event.stopPropagation();
      event.target.dispatchEvent(new KeyboardEvent("keydown", {
        key: " ", code: "Space", keyCode: 32, shiftKey: true, bubbles: true, cancelable: true}));
      return;
    }
    const cell = event.key === "Enter" && grid?.querySelector("td[aria-selected=true]");
    if (!cell || !/^(models|tasks)[?]/.test(cell.innerText)) return;
    event.stopPropagation();
    window.open(cell.innerText);
  }, true);
}
</script>"""


def main() -> None:
    """Draw the page; an input error becomes its line and hint instead of a traceback."""
    try:
        loaded, trained = results(), pretraining()
    except BioBenchError as error:
        st.error(f"{text(error)}\n\n{text(error.hint)}")
        return
    is_filled: dict[str, object] = {
        "Errors": loaded.groups,
        "Needle": needle.needle_groups(loaded.groups),
        "Pretraining": trained.runs or trained.analyses or trained.findings or loaded.experiments,
    }
    pages = {}
    for title, (path, show) in PAGES.items():
        pages[title] = st.Page(
            partial(_draw, show),
            title=title,
            url_path=path,
            default=not path,
            visibility="visible" if is_filled.get(title, True) else "hidden",
        )
    st.session_state["pages"] = pages
    page = st.navigation(list(pages.values()), position="top")
    st.set_page_config(page_title=f"{page.title} · BioBench", page_icon=_ICON, layout="wide")
    st.html(_STYLE + _SCRIPT, unsafe_allow_javascript=True)
    # below a folder of a proxy the first page has its name
    base = st.get_option("server.baseUrlPath").strip("/").rpartition("/")[2]
    known_paths = [base, *(path for path, _ in PAGES.values())]
    unknown = unknown_page(st.context.url or "", known_paths)
    if unknown:
        st.warning(f"There is no page “{text(unknown)}” here; this is {page.title}.")
    restore_choices()
    page.run()


def _draw(show: Callable[[], None]) -> None:
    try:
        show()
    except BioBenchError as error:
        st.error(f"{text(error)}\n\n{text(error.hint)}")


main()
