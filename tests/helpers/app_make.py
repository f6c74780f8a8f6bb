"""The app opened in a test, and what its tables hold."""

from __future__ import annotations

import html
import html.parser
from pathlib import Path

from streamlit.testing.v1 import AppTest

import leaderboard
from leaderboard.launch import RESULTS_VARIABLE

APP = str(Path(leaderboard.__file__).resolve().parent / "app.py")


def open_app(monkeypatch, folder, **query):
    monkeypatch.setenv(RESULTS_VARIABLE, str(folder))
    app = AppTest.from_file(APP, default_timeout=30)
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
    return [e.proto.body for e in app.get("html") if "stMainBlockContainer" not in e.proto.body]


def tables(app):
    found = []
    for element in bodies(app):
        parser = Cells()
        parser.feed(element)
        assert parser.tags <= {"style", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small"}
        found.append(parser.rows)
    return found
