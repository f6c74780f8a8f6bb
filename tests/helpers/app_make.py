"""The app opened in a test, and what its tables hold."""

from __future__ import annotations

from pathlib import Path

from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import leaderboard
from leaderboard.launch import RESULTS_VARIABLE

APP = str(Path(leaderboard.__file__).resolve().parent / "app.py")
PATHS = ("", "models", "tasks", "compare", "errors", "needle", "pretraining", "submit")
"""Of the pages, the leaderboard first."""


def open_app(monkeypatch, folder, path="", **query):
    """A page. The framework's own way to other pages knows pages that are files only."""
    monkeypatch.setenv(RESULTS_VARIABLE, str(folder))
    app = AppTest.from_file(APP, default_timeout=60)
    if path:
        app._page_hash = calc_hash(path)
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, app.exception
    return app


def bodies(app):
    """The HTML parts of the page, without the page's own style sheet."""
    return [e.proto.body for e in app.get("html") if not e.proto.body.startswith("<style>")]


def table_with(app, column, place=0):
    """A table that has the column."""
    return [table for table in app.dataframe if column in table.value.columns][place]


def board(app, place=0):
    """A table of page one, indexed by the names that are read."""
    frame = table_with(app, "rank", place).value
    return frame.set_index(frame["model"].str.partition("#")[2].map(unquoted))


def board_texts(app, place=0):
    """As `board`, its cells as they are shown."""
    frame = cell_texts(table_with(app, "rank", place))
    return frame.set_index(frame["model"].str.partition("#")[2].map(unquoted))


def cell_texts(table):
    """The cells of a table as they are shown."""
    return convert_arrow_bytes_to_pandas_df(table.proto.arrow_data.styler.display_values)


def unquoted(text):
    """A name as its link shows it."""
    from urllib.parse import unquote

    return unquote(text)


def texts(app):
    """All that the page says in words, without the escapes of its Markdown."""
    parts = [
        *app.title,
        *app.header,
        *app.subheader,
        *app.markdown,
        *app.caption,
        *app.info,
        *app.warning,
        *app.text,
    ]
    return " ".join(str(part.value) for part in parts).replace("\\", "")
