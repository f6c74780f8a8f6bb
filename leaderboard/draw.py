"""Charts and tables in the framework's own elements: the reader's ground, language and text alternatives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from biobench.report.charts import DARK_INK, INK


def ink() -> str:
    """Legible as text on the ground that the reader's page has."""
    return DARK_INK if st.context.theme.type == "dark" else INK


def draw(chart: Any, alt: str, place: DeltaGenerator | None = None, **options: Any) -> None:
    """A chart as wide as its place. alt: what it shows, for whoever does not see it."""
    # the framework's own labels are fainter than text may be, and it moves the first name off its line
    legible = chart.configure_axis(labelColor=ink(), titleColor=ink())
    legible = legible.configure_axisY(labelFlush=False).configure_legend(labelColor=ink())
    (place or st).altair_chart(legible, **({"width": "stretch"} | options), alt=alt)


def show_table(
    frame: pd.DataFrame,
    digits: Mapping[str, int] | None = None,
    *,
    signed: str = "",
    compact: Collection[str] = (),
    config: Mapping[str, Any] | None = None,
    place: DeltaGenerator | None = None,
    **options: Any,
) -> Any:
    """A table without its index. digits: column -> decimals of all its numbers; thousands stand apart
    where it is 0.

    signed: the column whose numbers bear their sign. compact: columns of large numbers, shown to two or three digits.
    config: of columns, as the framework has it.
    """
    known = {name: count for name, count in (digits or {}).items() if name in frame.columns}
    columns = dict(config or {})
    forms = {
        name: f"%{'+' if name == signed else ''}.{count}f" if count else "localized" for name, count in known.items()
    }
    for name, form in (forms | {name: "compact" for name in compact if name in frame.columns}).items():
        columns[name] = {**columns.get(name, st.column_config.NumberColumn())}
        columns[name]["type_config"] = {**columns[name]["type_config"], "format": form}
    return (place or st).dataframe(
        frame, hide_index=True, column_config=columns, **({"placeholder": "–", "width": "stretch"} | options)
    )


def facts(pairs: Mapping[str, str]) -> None:
    """Names and values below each other. The values are Markdown: whoever puts a user's text in makes it literal."""
    st.table(pd.DataFrame(pairs.items(), columns=["", " "]).set_index(""), hide_header=True)
