"""Needle in a haystack: who reads how far, and length x position maps, several models side by
side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from biobench.errors import BioBenchError
from biobench.reporting import charts
from biobench.reporting.details.needle import NeedleGrid, grid_of, map_html
from biobench.reporting.groups import RunGroup
from biobench.reporting.names import without_revisions
from biobench.reporting.tasks import NEEDLE
from leaderboard import page
from leaderboard.choices import choose, choose_several
from leaderboard.launch import is_public
from leaderboard.numbers import ShownNumber
from leaderboard.page import (
    draw,
    ink,
    key_of,
    literal,
    results,
    results_dir,
    show_table,
    text,
)

MOST = 6


def show() -> None:
    """Draw the view."""
    st.title("Needle in a haystack")
    groups = needle_groups(results().groups)
    if not groups:
        st.info("There are no needle runs here yet.")
        if not is_public():
            st.code(
                f"biobench run MODEL --suite needle --results-dir {results_dir().name}",
                language="bash",
            )
        return
    st.caption(
        "A document of a given length hides one fact at a given position; the model says whether "
        "a statement about it is right, so guessing scores 50. Not read: the document is longer "
        "than the model's window."
    )
    group_of: dict[str, dict[str, RunGroup]] = defaultdict(dict)
    for group in groups:
        group_of[group.task][key_of(group.line)] = group
    of_task = group_of[choose("Task", sorted(group_of), "task", from_data=True)]
    names = sorted(of_task, key=str.casefold)
    chosen = choose_several(
        "Up to six models", names, "models", names[:MOST], from_data=True, max_selections=MOST
    )
    grids = sorted(
        read_grids([of_task[name] for name in chosen]),
        key=lambda grid: (-(grid.reads_up_to or 0), -grid.over_all_lengths, grid.model),
    )
    if not grids:
        st.info("Choose at least one.")
        return
    grid_of_name = dict(zip(shown_names(grids), grids, strict=True))
    _reach(grid_of_name)
    with st.expander("By length and position"):
        _length_table(grid_of_name)
        show_maps(grid_of_name)


def needle_groups(groups: Iterable[RunGroup]) -> list[RunGroup]:
    """The needle runs among them."""
    return [group for group in groups if group.briefs[0].type == NEEDLE]


def shown_names(grids: Sequence[NeedleGrid]) -> list[str]:
    """A name each, as in the choice of models, without revisions that tell none apart."""
    keys = [key_of((grid.model, grid.variant, grid.source)) for grid in grids]
    return list(without_revisions(keys).values())


def _reach(names: Mapping[str, NeedleGrid]) -> None:
    """Who reads furthest above chance, in a sentence and a chart; models at chance in one line."""
    st.subheader(_furthest(names), anchor=False)
    readers, at_chance, reaches = {}, [], []
    for name, grid in names.items():
        reaches.append(f"{name} {grid.reads_up_to or 'not above chance'}")
        if grid.reads_up_to:
            readers[name] = grid
        else:
            at_chance.append(name)
    shown = readers or names
    unit = next(iter(shown.values())).unit
    draw(
        charts.lengths(_length_points(shown), unit, ink()),
        f"Accuracy by length, one line a model, chance at 50; reads up to: {', '.join(reaches)}",
    )
    if at_chance:
        st.caption(f"At chance: {literal(', '.join(at_chance))}.")


def _length_table(names: Mapping[str, NeedleGrid]) -> None:
    lengths = sorted(set().union(*(grid.lengths for grid in names.values())))
    show_table(
        [_length_row(name, grid, lengths) for name, grid in names.items()],
        config={"model": st.column_config.TextColumn(pinned=True)},
        missing="not read",
        alt="Accuracy by length",
    )
    st.caption(
        "Reads up to: the last length, from the shortest on, at which the whole interval is above "
        "guessing (50, the dashed line). Not read: beyond the model's window. Over all lengths: "
        "each counts once, and one that is not read as guessing."
    )


def _furthest(names: Mapping[str, NeedleGrid]) -> str:
    """The headline; the grids are in order, the one that reads furthest first."""
    for name, grid in names.items():
        if grid.reads_up_to:
            return f"{literal(name)} reads furthest: up to {grid.reads_up_to:,} {grid.unit}"
    return "No model here is above chance, so none leads"


def _length_points(names: Mapping[str, NeedleGrid]) -> list[dict[str, Any]]:
    """Accuracy in percent at each length; none where the window does not reach."""
    points = []
    for name, grid in names.items():
        for length in grid.lengths:
            point: dict[str, Any] = {"model": name, "length": length, "score": None}
            share = grid.share(length)
            if share is not None:
                point["score"] = 100 * share.mean
            points.append(point)
    return points


def _length_row(name: str, grid: NeedleGrid, lengths: Sequence[int]) -> dict[str, Any]:
    reach = grid.reads_up_to or 0
    row: dict[str, Any] = {
        "model": name,
        "reads up to": ShownNumber(reach, f"{reach:,}" if reach else "at chance"),
        "over all lengths": 100 * grid.over_all_lengths,
    }
    row |= dict.fromkeys(map("{:,}".format, lengths))
    for point in _length_points({name: grid}):
        row[f"{point['length']:,}"] = point["score"]
    row["window"] = ShownNumber(grid.window, f"{grid.window:,}")
    return row


def read_grids(groups: Sequence[RunGroup]) -> list[NeedleGrid]:
    """The grids; one that cannot be read says why and leaves the others."""
    grids = []
    for group in groups:
        # changes when a run is made again or scored again; a submitted one may be a run here too
        state = [(brief.key, brief.started, brief.scores) for brief in group.briefs]
        asked = ("needle", str(group.store.root), group.task, repr(state))
        try:
            grids.append(page.made_once(partial(grid_of, group), *asked))
        except BioBenchError as error:
            st.warning(f"{text(group.model)}: {text(error.what)}; {text(error.hint)}")
    return grids


def show_maps(grids: Mapping[str, NeedleGrid]) -> None:
    """A table a grid: lengths down, positions across, margins last; tinted by accuracy from chance
    to all right.
    """
    st.caption(
        "Accuracy in percent by length of the document and place of the fact, with the interval "
        "for other examples of the same kind, 95% over all cells together. The tint goes from "
        "chance (50) to all right (100); n/a: beyond the model's window."
    )
    with st.container(horizontal=True):
        for name, grid in grids.items():
            with st.container(width=520):
                st.html(map_html(grid, name))
