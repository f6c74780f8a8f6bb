"""Published results beyond the task tables: one table an experiment, and the baselines that have no values."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from biobench.report.literature.experiments import Experiment
from biobench.report.row import AverageName
from leaderboard.folder import results
from leaderboard.state import choose
from leaderboard.table import literal


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view. `average` plays no part here: each experiment says what its numbers are."""
    del average
    st.title(words["published_view"])
    st.caption(words["published_help"])
    publications = results().experiments
    names = {p.id: p.source for p in publications}
    if not publications:
        st.info(words["no_published"])
        return
    chosen = choose(words["publication"], list(names), "publication", names)
    publication = next(p for p in publications if p.id == chosen)
    st.text(f"{publication.citation.strip()}\n{publication.url}")
    for experiment in publication.experiments:
        st.header(literal(experiment.title), anchor=experiment.id)
        st.table(_frame(experiment))
        for line in publication.below(experiment):
            st.text(line)
    if publication.without_values:
        st.header(words["without_values"])
        for line in publication.absent:
            st.text(line)


def _frame(experiment: Experiment) -> pd.DataFrame:
    """The cells as printed."""
    return pd.DataFrame(
        [[literal(cell) for cell in experiment.cells(line)] for line in experiment.lines],
        index=[literal(line.name) for line in experiment.lines],
        columns=[literal(heading) for heading in experiment.headings],
    )
