"""One model: what it is, its scores beside the best, its seeds, its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from biobench.comparison.standing import mean_of, suite_order
from biobench.errors import StoreError
from biobench.report import charts
from biobench.report.details.ledgers import ledger_facts
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.names import in_sentences, shorten, without_revisions
from biobench.report.remarks import hub_link, licence_link, licence_named
from biobench.report.render import plain_note
from biobench.report.rivals import Rivals
from biobench.report.rows import AverageName, Row
from biobench.report.table import build
from biobench.schema.record import RunRecord
from leaderboard.board import placings
from leaderboard.draw import draw, facts, ink, show_table
from leaderboard.folder import inside, results, trained_by
from leaderboard.needle_view import show_maps
from leaderboard.state import SEPARATOR, choose
from leaderboard.table import literal
from leaderboard.words import metric_in, score


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the view."""
    loaded = results()
    report = build(loaded, average)
    lines = {SEPARATOR.join(row.line): row.line for row in report.rows if row.source not in ("ceiling", "floor")}
    if not lines:
        st.info(words["no_model"])
        return
    short = without_revisions(line_name(model, variant) for model, variant, _ in lines.values())
    names = {
        key: f"{short[line_name(model, variant)]} · {words[source]}" for key, (model, variant, source) in lines.items()
    }
    order = sorted(lines, key=lambda k: (lines[k][2] != "run", names[k].casefold()))
    line = lines[choose(words["choose_model"], order, "model", names)]
    rows = [row for row in report.rows if row.line == line]
    groups = [g for g in loaded.groups if (g.model, g.variant, g.source) == line]
    st.title(literal(short[line_name(line[0], line[1])]))
    if groups:
        _card(groups, words)
    else:
        st.caption(words["published_only"])
    _averages(average, line, words)
    rivals = Rivals(report)
    _strip(rivals, rows, words)
    show_table(_table(rivals, rows, words), _digits(words), config=_right(words))
    _ledger(groups, words)
    chart = charts.seeds(rows, [plain(row.task) for row in rows], "task", words)
    if chart is not None:
        with st.expander(words["points_title"]):
            draw(chart, words["alt_seeds"])
            st.caption(words["points"])
    needles = [g for g in groups if g.briefs[0].type == "needle"]
    if needles:
        st.header(words["needle"], anchor=False)
        st.caption(words["needle_help"])
        show_maps(needles, words)
    _curves(groups, rows, words)
    _cite(groups, words)


def _cite(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    """An entry for the model: its name, its page and the revision whose scores these are."""
    if not groups:
        return
    brief = groups[0].briefs[0]
    link = hub_link(brief)
    if link is None:
        return
    key = "".join(c if c.isalnum() and c.isascii() else "_" for c in brief.model.partition("@")[0])
    with st.expander(words["cite"]):
        st.code(f"@misc{{{key},\n  title = {{{{{brief.model}}}}},\n  url   = {{{link}}}\n}}", language="bibtex")
        st.caption(words["cite_help"])


def _card(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    record = groups[0].records[0]
    briefs = [brief for group in groups for brief in group.briefs]
    programs = sorted({f"BioBench {r.provenance.biobench}, {r.provenance.device}" for g in groups for r in g.records})
    link = hub_link(briefs[0])
    about = {
        words["revision"]: record.model.revision or "–",
        words["architecture"]: record.model.architecture,
        words["parameters"]: f"{record.model.parameters:,}",
        words["window"]: ", ".join(str(w) for w in sorted({g.records[0].windows.max_length for g in groups})),
        words["weights"]: record.model.hash[:16],
        words["evaluated"]: " – ".join(dict.fromkeys(f([b.started[:10] for b in briefs]) for f in (min, max))),
        words["made_with"]: "; ".join(programs),
    }
    shown = {name: literal(plain(value)) for name, value in about.items()}
    shown[words["licence"]] = _licence([r for g in groups for r in g.records], words)
    facts(shown if link is None else {words["hub"]: f"<{link}>"} | shown)


def _licence(records: Sequence[RunRecord], words: Mapping[str, str]) -> str:
    """As the checkpoint's model card names it, with its page where it is a known one."""
    licence = licence_named(records)
    if licence is None:
        return words["licence_unknown"]
    link = licence_link(licence)
    return literal(plain(licence)) if link is None else f"[{literal(licence)}]({link})"


def _ledger(groups: Sequence[RunGroup], words: Mapping[str, str]) -> None:
    """How the model was made, where a run of the pretraining folder made it."""
    run = trained_by(groups)
    if run is None or run.ledger is None:
        return
    with st.expander(f"{words['ledger']}: {literal(plain(run.name))}"):
        try:
            ledger = ledger_facts(run.ledger)
        except StoreError as error:
            # the other parts of the page do without it
            st.warning(literal(plain_note(inside(error.what))))
            return
        facts({name: literal(plain(value)) for name, value in ledger.facts})
        show_table(pd.DataFrame([{name: plain(value) for name, value in phase} for phase in ledger.phases]))
        st.caption(words["ledger_help"])


def _averages(average: AverageName, line: tuple[str, str, str], words: Mapping[str, str]) -> None:
    """The mean over each suite and the rank there, as page one has them; no rank where it gives none."""
    model, variant, source = line
    with st.container(horizontal=True, gap="medium"):
        for name in suite_order(results()):
            standing = placings(name, average)
            row = next((mean_of(li) for li in standing.lines if (li.model, li.variant, li.source) == line), None)
            if row is None:
                continue
            suite = words.get(name, name)
            over = words["over_one" if row.tasks == 1 else "over_tasks"].format(row.tasks)
            rank = standing.ranks.get((line_name(model, variant), source), "–")
            st.metric(f"{suite} · {words['mean']} ({over})", score(row, words), width="content")
            st.metric(words["rank_in"].format(suite), rank, width="content")


def _strip(rivals: Rivals, rows: Sequence[Row], words: Mapping[str, str]) -> None:
    """The model's dots among the strokes of the others under the same conditions, and the floors."""
    field = {row.task: rivals.others(row) for row in rows}
    floors = {task: 100 * row.mean for task, row in rivals.floors.items() if task in field}
    means = {row.task: charts.ends(row) for row in rows}
    draw(
        charts.strip(list(field), means, field, floors, words, ink()),
        words["alt_strip"].format(shorten(plain(rows[0].model))),
    )
    st.caption(words["strip_help"])


def _table(rivals: Rivals, rows: Sequence[Row], words: Mapping[str, str]) -> pd.DataFrame:
    bests = [rivals.best(row) for row in rows]
    short = in_sentences(line_name(best.model, best.variant) for best in bests)
    table = pd.DataFrame(
        [
            {
                words["task"]: row.task,
                words["metric"]: metric_in(row.metric, words),
                words["score"]: score(row, words),
                words["best"]: _beside(best, short[line_name(best.model, best.variant)], words),
                words["gap"]: 100 * (best.mean - row.mean),
                words["floor"]: _floor(rivals.floors.get(row.task), words),
                words["seeds"]: row.n_seeds or None,
                words["seconds"]: row.seconds,
                words["memory"]: None if row.peak_memory_bytes is None else row.peak_memory_bytes / 1e9,
                words["cut"]: row.truncated_documents,
                words["lost"]: row.lost_gold,
            }
            for row, best in zip(rows, bests, strict=True)
        ]
    )
    # what is known of no task (a floor that nobody measured, costs of printed scores) has no column
    known = table.dropna(axis="columns", how="all")
    return known.fillna({words["floor"]: "–"})


def _floor(row: Row | None, words: Mapping[str, str]) -> str | None:
    """The best of the policies that do not read as an encoder does, where the gate measured some."""
    return None if row is None else _beside(row, row.model, words)


def _beside(row: Row, name: str, words: Mapping[str, str]) -> str:
    """A score and whose it is."""
    return f"{score(row, words, margin=False)} ({plain(name)})"


def _digits(words: Mapping[str, str]) -> dict[str, int]:
    return {words["gap"]: 1, words["seconds"]: 1, words["memory"]: 2}


def _right(words: Mapping[str, str]) -> dict[str, Any]:
    """Texts that are numbers stand to the right."""
    return {words["score"]: st.column_config.TextColumn(alignment="right")}


def _curves(groups: Sequence[RunGroup], rows: Sequence[Row], words: Mapping[str, str]) -> None:
    tasks = [g.task for g in groups]
    if not tasks:
        return
    st.header(words["curves"])
    task = choose(words["choose_task"], tasks, "curve_task")
    metric = next((r.metric for r in rows if r.task == task), "macro_f1")
    chart = charts.curves(next(g for g in groups if g.task == task).records, metric, words)
    if chart is not None:
        draw(chart, f"{task}: {words['alt_curves']}")
