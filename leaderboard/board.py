"""Page one: who leads a suite and whether it is sure, what a score costs, and every score in one table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from biobench import __version__
from biobench.comparison.placing import MOST, Placing, place
from biobench.report.entrants import line_name
from biobench.report.render import plain_note, render
from biobench.report.rows import AverageName, Report, Row
from biobench.report.table import Results, build
from biobench.report.wide import Block, ModelLine, blocks
from biobench.store import Brief
from leaderboard import charts
from leaderboard.filters import SIZE_LIMITS, models_below, narrowed
from leaderboard.folder import results, results_dir, results_state
from leaderboard.names import shorten
from leaderboard.state import SEPARATOR, choose, list_from_link, start, write_link
from leaderboard.table import columns_of, literal, to_cards, to_frame
from leaderboard.words import number, spoken

SOURCES = ("run", "frozen", "outside", "submitted", "published", "floor", "ceiling")
COSTS = ("parameters", "train_tokens_per_second", "seconds", "peak_memory_bytes", "energy_kwh")
"""Fields of a row, as the axis."""
OWN = ("run", "outside", "submitted")


@dataclass(frozen=True, slots=True)
class Standing:
    """The lines with a mean, best first, and where those with runs may stand (by their line name)."""

    lines: tuple[ModelLine, ...]
    placed: Mapping[str, Placing]

    @property
    def own(self) -> list[ModelLine]:
        """Those with runs."""
        return [line for line in self.lines if line.source in OWN]


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the page."""
    st.title(words["title"])
    held = results()
    if held.refusals and not held.groups:
        st.warning(words["all_refused"])
        for reason in dict.fromkeys(f"{r.group.task}: {'; '.join(r.reasons)}" for r in held.refusals):
            st.text(plain_note(reason))
    suite, tasks, report = _asked(held, words, average)
    block = next((b for b in blocks(report) if b.suite == suite), None)
    if block is None or not block.lines:
        st.warning(words["nothing"])
    else:
        standing = _standing(held, block, average, tasks)
        _sentence(standing, words)
        _charts(standing, words)
        _table(block, standing, words)
    _no_runs(held, words)
    _findings(held, words)
    _foot(report, words)


def _asked(held: Results, words: Mapping[str, str], average: AverageName) -> tuple[str, tuple[str, ...], Report]:
    """What the reader asked for: the suite, the tasks that matter (none for all of them), and the report of these."""
    order = ("fr", "en", "needle")
    found = {info.suite for info in held.infos.values() if info.in_suite or any(g.task == info.id for g in held.groups)}
    suites = [s for s in order if s in found] + sorted(found - set(order))
    ran = {held.infos[g.task].suite for g in held.groups}
    suites.sort(key=lambda s: s not in ran if ran else False)
    left, middle, right = st.columns((2, 5, 2))
    with left:
        suite = choose(words["suite"], suites, "suite", {s: words.get(s, s) for s in suites})
    options = [i for i, info in held.infos.items() if info.suite == suite and (info.in_suite or suite not in order)]
    start("only", list_from_link("only", options, ()))
    st.session_state["only"] = [t for t in st.session_state["only"] if t in options]
    tasks = middle.multiselect(words["matter"], options, key="only", placeholder=words["matter_all"])
    write_link("only", ",".join(tasks))
    with right:
        limit = choose(words["size_limit"], list(SIZE_LIMITS), "below", {k: words[k] for k in SIZE_LIMITS})
    report = _filtered(held, words, average, suite, tasks, models_below(held, SIZE_LIMITS[limit]))
    return suite, tuple(tasks), report


def _filtered(
    held: Results,
    words: Mapping[str, str],
    average: AverageName,
    suite: str,
    tasks: Sequence[str],
    small: Collection[str] | None,
) -> Report:
    """The filters of the side bar, and the report that they leave; the link carries their state."""
    start("sources", list_from_link("sources", SOURCES, SOURCES))
    start("search", str(st.query_params.get("search", ""))[:200])
    start("complete", st.query_params.get("complete") == "1")
    with st.sidebar:
        st.text_input(words["search"], key="search", max_chars=200)
        st.multiselect(words["sources"], SOURCES, key="sources", format_func=words.__getitem__)
        st.toggle(words["complete"], key="complete", help=words["complete_help"])
    state = st.session_state
    write_link("sources", "" if list(state["sources"]) == list(SOURCES) else ",".join(state["sources"]))
    write_link("search", state["search"])
    write_link("complete", "1" if state["complete"] else "")
    wanted = state["search"].casefold().split()
    names = {g.model for g in held.groups} | {v.model for v in held.published}
    found = {n for n in names if all(w in n.casefold() for w in wanted)} if wanted else None
    models, left = narrowed(held, words, found)
    if small is not None:
        models = set(small) if models is None else models & set(small)
    picked = None if left is None and not tasks else {t for t in held.infos if t in (tasks or held.infos)}
    report = build(
        held,
        average,
        tasks=picked if left is None or picked is None else picked & left,
        suites=[suite],
        sources=state["sources"],
        models=models,
        incomplete=bool(tasks),
    )
    report = replace(report, averages=tuple(r for r in report.averages if not tasks or r.tasks == len(tasks)))
    return _complete(report) if state["complete"] else report


def _complete(report: Report) -> Report:
    """The rows of the lines that have a suite average, as the page shows them."""
    whole = {(row.line, row.suite) for row in report.averages}
    rows = tuple(row for row in report.rows if (row.line, row.suite) in whole)
    kept = {row.task for row in rows}
    return replace(report, rows=rows, columns=tuple(c for c in report.columns if c.id in kept))


def _standing(held: Results, block: Block, average: AverageName, tasks: tuple[str, ...]) -> Standing:
    """A line's mean is that over the suite, over the tasks picked, or its score where the block is one task."""
    lines = [
        replace(line, average=next(iter(line.cells.values())))
        if len(block.columns) == 1 and line.cells and line.source not in ("floor", "ceiling")
        else line
        for line in block.lines
    ]
    ranked = sorted(
        (li for li in lines if li.average is not None), key=lambda li: (li.source == "frozen", -_mean(li).mean)
    )
    own = [li.name for li in ranked if li.source in OWN]
    # two lines of one name, one's own and a submission's: `compare` would take the first for both
    names = tuple(n for n in own if own.count(n) == 1)
    if len(block.columns) == 1:
        tasks = (block.columns[0].id,)
    return Standing(tuple(ranked), _placed(names, average, block.suite, tasks, results_state(), held))


@st.cache_data(max_entries=64, show_spinner="…")
def _placed(
    names: tuple[str, ...], average: AverageName, suite: str, tasks: tuple[str, ...], state: str, _held: Results
) -> dict[str, Placing]:
    """`state` stands for the folder's content."""
    del state
    return dict(place(_held, names, average, suite=suite, tasks=tasks or None)) if len(names) > 1 else {}


def _mean(line: ModelLine) -> Row:
    assert line.average is not None
    return line.average


def _sentence(standing: Standing, words: Mapping[str, str]) -> None:
    """Who leads, who shares the place, and the best of the small ones."""
    own = standing.own
    if not standing.lines:
        st.markdown(f"**{words['no_leader']}**")
        return
    first = (own or standing.lines)[0]
    said = [words["leads" if own else "leads_printed"].format(_name(first), number(100 * _mean(first).mean, 1, words))]
    placing = standing.placed.get(first.name)
    if own and placing is None:
        said.append(words["alone"])
    elif placing is not None and _mean(first).low is None:
        said.append(words["unknown_spread"])
    elif placing is not None and placing.alike:
        known = {line.name: line for line in own}
        named = ", ".join(_name(known[n]) for n in placing.alike[:3])
        more = len(placing.alike) - 3
        said.append(words["shares"].format(named + (words["and_more"].format(more) if more > 0 else "")))
    elif placing is not None:
        said.append(words["clearly"])
    small = next((line for line in own if (_mean(line).parameters or 0) in range(1, 100_000_000)), None)
    if small is not None and small is not first:
        said.append(words["best_small"].format(_name(small), number(100 * _mean(small).mean, 1, words)))
    with st.container(border=True):
        st.markdown(f"##### {said[0]}\n{' '.join(said[1:])}")


def _name(line: ModelLine) -> str:
    return f"**{literal(shorten(line.name))}**"


def _charts(standing: Standing, words: Mapping[str, str]) -> None:
    if not standing.lines:
        return
    left, right = st.columns(2)
    ranks = {name: _rank(p) for name, p in standing.placed.items()}
    rows = [
        {"line": charts.cut(shorten(line.name)), "rank": ranks.get(line.name, ""), "own": line.source in OWN}
        | charts.ends(_mean(line))
        for line in standing.lines[: charts.MOST_LINES]
    ]
    left.altair_chart(
        charts.standing(rows, words),
        width="stretch",
        alt=words["alt_standing"].format(", ".join(f"{r['line']} {r['score']:.1f}" for r in rows[:3])),
    )
    left.caption(words["standing_help"])
    with right:
        known = COSTS if standing.own else ()
        offered = [c for c in known if any(getattr(_mean(line), c) is not None for line in standing.own)]
        if not offered:
            st.caption(words["no_cost"])
            return
        cost = choose(words["cost"], offered, "cost", {c: words[f"cost_{c}"] for c in offered})
        points = [
            {"model": charts.cut(shorten(line.name)), "cost": getattr(_mean(line), cost)} | charts.ends(_mean(line))
            for line in standing.own
            if getattr(_mean(line), cost) is not None
        ]
        more_is_better = cost == "train_tokens_per_second"
        st.altair_chart(
            charts.scatter(points, words[f"cost_{cost}"], words, more_is_better=more_is_better),
            width="stretch",
            alt=words["alt_scatter"].format(words[f"cost_{cost}"]),
        )


def _rank(placing: Placing) -> str:
    return str(placing.best) if placing.best == placing.worst else f"{placing.best}–{placing.worst}"


def _table(block: Block, standing: Standing, words: Mapping[str, str]) -> None:
    """The one table, its lines in order of the mean; two lines picked go to the comparison."""
    placed = {line.name: _rank(standing.placed[line.name]) for line in standing.own if line.name in standing.placed}
    means = {(line.model, line.variant, line.source): line.average for line in standing.lines}
    lines = [replace(li, average=means.get((li.model, li.variant, li.source))) for li in block.lines]
    lines.sort(key=lambda li: (li.average is None, -_mean(li).mean if li.average is not None else 0.0))
    held: dict[tuple[str, str, str], Brief] = {(g.model, g.variant, g.source): g.briefs[0] for g in results().groups}
    frame, shown = to_frame(block, lines, placed, held, words)
    with st.container(key="bb_table"):
        picked = st.dataframe(
            frame,
            hide_index=True,
            column_config=columns_of(block, words),
            on_select="rerun",
            selection_mode="multi-row",
            key=f"rows_{block.suite}",
            placeholder="–",
            alt=words["alt_table"].format(words.get(block.suite, block.title)),
            height=min(36 * (len(frame) + 1) + 2, 620),
        )
        chosen = [shown[i] for i in picked["selection"]["rows"] if i < len(shown) and shown[i] is not None]
        names = list(dict.fromkeys(line_name(li.model, li.variant) for li in chosen if li is not None))
        left, right = st.columns((1, 4), vertical_alignment="center")
        if left.button(words["compare_picked"], key="to_compare", type="primary", disabled=not 2 <= len(names) <= 5):
            st.switch_page(
                st.session_state["pages"]["compare_view"],
                query_params={"models": SEPARATOR.join(names), "compare_suite": block.suite},
            )
        right.caption(words["pick_rows"])
    with st.container(key="bb_cards"):
        st.html(to_cards(lines, placed, words))
    st.caption(f"{words['caption']} {words['rank_help'].format(MOST)}")


def _no_runs(held: Results, words: Mapping[str, str]) -> None:
    if not held.groups and not held.findings and not held.refusals:
        st.info(words["no_runs"])
        st.code(f"biobench run MODEL --suite fr --results-dir {results_dir().name}", language="bash")


def _findings(held: Results, words: Mapping[str, str]) -> None:
    if not held.findings:
        return
    with st.expander(f"{words['findings']}: {len(held.findings)}", expanded=True):
        st.caption(words["finding_help"])
        for finding in held.findings:
            st.text(f"{plain_note(str(finding))}\n→ {plain_note(finding.hint)}")


def _foot(report: Report, words: Mapping[str, str]) -> None:
    """Notes, downloads, how to add a model, version and last run."""
    if report.notes:
        with st.expander(f"{words['notes']}: {len(report.notes)}"):
            for note in report.notes:
                st.text(shorten(plain_note(spoken(note, words))))
    st.caption(words["download"])
    formats = {"csv": "text/csv", "json": "application/json", "latex": "text/x-tex", "md": "text/markdown"}
    with st.container(horizontal=True):
        for format, mime in formats.items():
            suffix = "tex" if format == "latex" else format
            # rendered when somebody asks for it: large folders take a while
            content = partial(render, report, format)
            st.download_button(format, content, f"biobench.{suffix}", mime, key=f"download_{format}")
    with st.expander(words["add_model"]):
        st.code("pip install biobench\nbiobench run MODEL --suite fr\nbiobench submit MODEL", language="bash")
    last = max((b.started for g in report.groups for b in g.briefs), default="")
    st.caption(f"BioBench {__version__}" + (f" · {words['last_run']} {last[:10]}" if last else ""))
