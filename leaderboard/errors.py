"""One run's predictions, document by document, alone or against another's; with the text where it
may be shown.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from biobench.data.catalog import load_task
from biobench.data.locate import ENVIRONMENT, data_folder, find
from biobench.errors import BioBenchError, UsageError
from biobench.reporting.details.marked import to_html
from biobench.reporting.details.mistake_forms import selected
from biobench.reporting.details.mistaken import Mistakes, read_mistakes
from biobench.reporting.details.mistakes import (
    KINDS,
    NAMES,
    SIDES,
    JudgedDocument,
    by_label,
    only_labels,
    side_by_side,
    tally,
)
from biobench.reporting.entrants import line_name
from biobench.reporting.escape import plain
from biobench.reporting.groups import RunGroup
from biobench.reporting.results import Results
from biobench.schema.record import RunRecord
from leaderboard.choices import ANY, choose, choose_several
from leaderboard.launch import is_public, own_tasks
from leaderboard.page import (
    key_of,
    literal,
    results,
    say_no_runs,
    show_table,
    text,
    unread,
)

PAGE = 10
"""Documents shown at a time."""


def show() -> None:
    """Draw the view."""
    st.title("Errors")
    loaded = results()
    if not loaded.groups:
        say_no_runs()
        return
    groups: dict[str, dict[str, RunGroup]] = defaultdict(dict)
    for found in loaded.groups:
        groups[key_of(found.line)][found.task] = found
    model_column, task_column, seed_column = st.columns(3)
    with model_column:
        model = choose("Model", sorted(groups), "model", from_data=True)
    with task_column:
        task = choose("Task", sorted(groups[model]), "task", from_data=True)
    (group,) = unread([groups.pop(model)[task]])
    with seed_column:
        seeds = list(map(str, group.seeds))
        seed = int(choose("Seed", seeds, "seed", from_data=True))
    if _record(group, seed).redacted:
        st.info("This corpus is under an agreement: neither text nor gold is shown.")
        return
    rivals = sorted(name for name, of_rival in groups.items() if task in of_rival)
    names = {ANY: "nobody: one model's mistakes"}
    rival = choose("Against", [ANY, *rivals], "against", names)
    try:
        mistakes = _mistakes_of(group, seed, loaded)
        for meaning in mistakes.meanings:
            st.caption(text(meaning))
        if rival != ANY:
            (rival_group,) = unread([groups[rival][task]])
            rival_seed = seed if seed in rival_group.seeds else rival_group.seeds[0]
            _against(mistakes, _mistakes_of(rival_group, rival_seed, loaded), (model, rival))
        elif mistakes.confusion:
            _confused_documents(mistakes, mistakes.confusion)
        else:
            _documents_by_label(mistakes)
    except UsageError as error:
        # what asks for a number is neither right nor wrong
        st.info(f"{text(error)}; {text(error.hint)}")


def _record(group: RunGroup, seed: int) -> RunRecord:
    return next(record for record in group.records if record.seed == seed)


def _mistakes_of(group: RunGroup, seed: int, loaded: Results) -> Mistakes:
    # the file's hash names its content
    predictions = _record(group, seed).predictions_sha256 or ""
    return _mistakes(predictions, seed, group, loaded)


@st.cache_resource(max_entries=8, show_spinner="Reading predictions")
def _mistakes(predictions: str, seed: int, _group: RunGroup, _loaded: Results) -> Mistakes:
    del predictions
    task = str(own_tasks().get(_group.task, _group.task))
    return read_mistakes(_loaded, line_name(_group.model, _group.variant), task, seed=seed)


def _confused_documents(mistakes: Mistakes, confusion: Mapping[str, Counter[str]]) -> None:
    """The confusion table, and the documents of the picked cell; all mistakes without one."""
    predicted = sorted(set(confusion).union(*confusion.values()))
    rows = _count_rows("gold", confusion, dict(zip(predicted, map(plain, predicted), strict=True)))
    st.caption(
        "Documents by gold label (rows) and predicted label (columns). Pick a cell to read "
        "its documents."
    )
    picked = show_table(
        rows,
        on_select="rerun",
        selection_mode="single-cell",
        key="confusion",
        alt="Confusion table",
    )
    cells = picked["selection"]["cells"]
    if not cells or cells[0][1] == "gold":
        _documents(selected(mistakes), mistakes, "are wrong")
        return
    row, column = cells[0]
    picked_gold = str(rows[row]["gold"])
    st.markdown(f"Gold **{literal(picked_gold)}**, predicted **{literal(column)}**")
    documents = []
    for document in mistakes.judged:
        labels = only_labels(document) or ()
        if [*map(plain, labels)] == [picked_gold, column]:
            documents.append(document)
    _documents(documents, mistakes, "have this gold and this prediction")


Counted = TypeVar("Counted", bound=str)


def _count_rows(
    heading: str, counts: Mapping[str, Counter[Counted]], columns: Mapping[Counted, str]
) -> list[dict[str, object]]:
    """A row a label: how often each of the columns, which have these headings."""
    rows = []
    for label, counted in counts.items():
        row: dict[str, object] = {heading: plain(label)}
        for column, shown in columns.items():
            row[shown] = counted[column]
        rows.append(row)
    return rows


def _documents_by_label(mistakes: Mistakes) -> None:
    """Counts of each kind of mistake by label, and the documents with the chosen ones."""
    counts = by_label(mistakes.judged)
    counted = set().union(*counts.values())
    columns = {kind: NAMES[kind] for kind in KINDS if kind in counted}
    show_table(_count_rows("label", counts, columns), alt="Mistakes by label")
    wide, narrow = st.columns((7, 3))
    with wide:
        kinds = choose_several("Documents with", KINDS, "kinds", KINDS[:-1], NAMES)
    label = _choose_label(narrow, counts)
    chosen = selected(mistakes, kinds, None if label == ANY else label)
    _documents(chosen, mistakes, "have what is chosen above")


def _choose_label(column: DeltaGenerator, labels: Iterable[str]) -> str:
    with column:
        return choose("Label", [ANY, *labels], "label", {ANY: "any label"})


def _against(mistakes: Mistakes, rival_mistakes: Mistakes, names: tuple[str, str]) -> None:
    """What one model gets right and the other does not, in the run of the same seed where there is
    one.
    """
    shared = side_by_side(mistakes.judged, rival_mistakes.judged)
    if not shared:
        st.info("These two runs share no test documents.")
        return
    sides_of_labels = []
    for pair in shared:
        for span, judged_side in pair.sides.items():
            sides_of_labels.append((span.label, judged_side))
    counts = tally(sides_of_labels)
    st.text(f"A: {plain(names[0])} ({mistakes.seed})\nB: {plain(names[1])} ({rival_mistakes.seed})")
    show_table(_count_rows("label", counts, dict(zip(SIDES, SIDES, strict=True))))
    st.caption(
        "Counted over the gold of the test documents that both runs share; what is predicted and "
        "not in the gold is not counted here."
    )
    wide, narrow = st.columns((7, 3))
    _, only_first, only_second, _ = SIDES
    words = {only_first: "what A alone has right", only_second: "what B alone has right"}
    with wide:
        side = choose("Documents with", list(words), "side", words)
    label = _choose_label(narrow, counts)
    better, worse = ("A", "B") if side == only_first else ("B", "A")
    wanted = set(counts) if label == ANY else {label}
    wrong = []
    for pair in shared:
        if wanted & {gold.label for gold, right in pair.sides.items() if right == side}:
            # the marks of the model that is wrong say how it is wrong
            wrong.append(pair.second if side == only_first else pair.first)
    common = f"have something that {better} alone has right; the marks are of what {worse} predicts"
    _documents(wrong, mistakes, common)


def _why_no_text(mistakes: Mistakes) -> str:
    """Why documents are counted and not shown, and what shows them."""
    if is_public():
        return "No text: the corpus is not available here."
    task = str(own_tasks().get(mistakes.task, mistakes.task))
    if _has_no_files(task):
        return (
            f"No text: the folder {literal(str(data_folder().resolve()))} has no files of "
            f"{literal(mistakes.task)}. Set {ENVIRONMENT} to the folder of the corpora and start "
            f"the board again. How to get the files: `biobench data status {plain(task)} --steps`"
        )
    reason = mistakes.no_text.replace("`", "").removeprefix("no text: ")
    if not os.environ.get(ENVIRONMENT):
        reason += f". Set {ENVIRONMENT} to the folder of the corpora and start the board again"
    return text(f"No text: {reason}.")


def _has_no_files(task: str) -> bool:
    """Whether the data folder holds none of the corpus of a task that is known."""
    try:
        return find(load_task(task), None) is None
    except BioBenchError:
        return False


def _documents(judged: Sequence[JudgedDocument], mistakes: Mistakes, common: str) -> None:
    """The documents, or why they are not shown. common: what all of them have or are."""
    if not judged:
        st.info("No document matches.")
        return
    count = f"{len(judged):,} of {len(mistakes.judged):,} documents {common}"
    if mistakes.no_text:
        st.caption(count)
        st.info(_why_no_text(mistakes))
        return
    pages = math.ceil(len(judged) / PAGE)
    page, position = 1, ""
    if pages > 1:
        page = int(st.number_input("Page", 1, pages, key="page", bind="query-params"))
        position = f"Page {page} of {pages}: "
    st.caption(f"{position}{count}")
    st.caption(
        "Green: right; other colours as named below each text. Solid line: gold; dashed: predicted "
        "alone."
    )
    for judged_document in judged[(page - 1) * PAGE : page * PAGE]:
        document_text = mistakes.texts.get(judged_document.document.id, "")
        st.html(to_html(judged_document, document_text))
