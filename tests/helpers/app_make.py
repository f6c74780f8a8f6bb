"""The app opened in a test, and what its tables hold."""

from __future__ import annotations

import html
import html.parser
from pathlib import Path

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import leaderboard
from leaderboard.launch import RESULTS_VARIABLE

APP = str(Path(leaderboard.__file__).resolve().parent / "app.py")


PATHS = {
    "board": "",
    "model_view": "models",
    "task_view": "tasks",
    "compare_view": "compare",
    "errors_view": "errors",
    "needle_view": "needle",
    "pretraining_view": "pretraining",
    "published_view": "published",
    "efficiency_view": "efficiency",
    "submit_view": "submit",
}
"""View -> the path of its page."""


def open_app(monkeypatch, folder, view="board", **query):
    """The page of a view. The framework's own way to other pages knows pages that are files only."""
    monkeypatch.setenv(RESULTS_VARIABLE, str(folder))
    app = AppTest.from_file(APP, default_timeout=30)
    if PATHS[view]:
        app._page_hash = calc_hash(PATHS[view])
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception
    return app


class Cells(html.parser.HTMLParser):
    """Rows of texts of the tables in an HTML text, and the tags seen."""

    def __init__(self):
        super().__init__()
        self.rows, self.tags, self.inside = [], set(), False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def bodies(app):
    """The HTML parts of the page, without the page's own style sheet."""
    parts = [e.proto.body for e in app.get("html")]
    return [p for p in parts if "stMainBlockContainer" not in p and not p.startswith("<script>")]


def tables(app):
    found = []
    for element in bodies(app):
        parser = Cells()
        parser.feed(element)
        assert parser.tags <= {
            "style",
            "div",
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "small",
            "ol",
            "li",
            "b",
            "span",
            "p",
        }
        found.append(parser.rows)
    return found


def board(app):
    """The table of page one."""
    return next(frame.value for frame in app.dataframe if "rank" in frame.value.columns)


def said(app):
    """The sentence of page one, or the verdict of a comparison, without the escapes of its Markdown."""
    return next(m.value for m in app.markdown if m.value.startswith(("## ", "**"))).replace("\\", "")
