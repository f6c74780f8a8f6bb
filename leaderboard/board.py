"""Page one: who leads a suite and whether it is sure, what a score costs, and every score in one table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import streamlit as st

from biobench.comparison.placing import MOST, Placing, place
from biobench.comparison.standing import (
    SUITES,
    TESTABLE,
    Leaders,
    first_pair,
    headline,
    lacks_leader,
    lead_elsewhere,
    mean_of,
    means_over,
    outside_suite,
    part_of,
    placeable,
    scope_of,
    shared_tasks,
    suite_block,
    suite_order,
    what_means_are,
    with_mean,
)
from biobench.report import charts
from biobench.report.entrants import line_name
from biobench.report.names import in_sentences, labels
from biobench.report.render import plain_note
from biobench.report.rows import AverageName, Report
from biobench.report.table import Results, build, metric_of
from biobench.report.wide import RUNS_FIRST, Block, blocks
from biobench.store import Brief
from leaderboard.draw import draw, ink, show_table
from leaderboard.filters import SIZE_LIMITS, models_below, narrowed, weights_of
from leaderboard.folder import inside, results, results_dir, results_state
from leaderboard.foot import show_foot
from leaderboard.launch import is_public
from leaderboard.state import SEPARATOR, choose, list_from_link, start, write_link
from leaderboard.table import columns_of, digits_of, literal, to_cards, to_frame

SOURCES = ("run", "frozen", "outside", "submitted", "published", "floor", "ceiling")
ROW = 35
"""Pixels of a row of the framework's table."""
COSTS = ("parameters", "train_tokens_per_second", "seconds", "peak_memory_bytes", "energy_kwh")
"""Fields of a row, as the axis."""


def show(words: Mapping[str, str], average: AverageName) -> None:
    """Draw the page."""
    st.title(words["title"])
    loaded = results()
    if loaded.refusals and not loaded.groups:
        st.warning(words["all_refused"])
        for reason in dict.fromkeys(f"{r.group.task}: {'; '.join(r.reasons)}" for r in loaded.refusals):
            st.text(plain_note(reason))
    suite, tasks, weights, report, shared = _choice(loaded, words, average)
    ranked = report if not shared else replace(report, averages=means_over(loaded, report, shared))
    block = next((b for b in blocks(ranked) if b.suite == suite), None)
    if block is None or not block.lines:
        st.warning(words["nothing"])
    else:
        standing = _standing(loaded, block, average, shared or tasks, weights)
        count = sum(info.in_suite and info.suite == suite for info in loaded.infos.values()) or len(block.columns)
        part = () if tasks else part_of(block, shared, count)
        scope = scope_of(standing, block, part, count)
        about = scope and words[scope].format(len(part), count, literal(", ".join(part)))
        what = what_means_are(standing, average, words, counted=scope is not None)
        _sentence(standing, words, [line for line in (about, what) if line])
        _charts(standing, words)
        _table(block, standing, shared or tasks, words)
    _no_runs(loaded, words)
    _findings(loaded, words)
    show_foot(report, words)


def _choice(
    loaded: Results, words: Mapping[str, str], average: AverageName
) -> tuple[str, tuple[str, ...], Mapping[str, float] | None, Report, tuple[str, ...]]:
    """The suite, the tasks that matter (none for all of them), their weights, the report of these, and the tasks that
    its means are over where nobody picked any and no model has them all."""
    suites = suite_order(loaded)
    left, middle, right = st.container(key="bb_choice").columns((2, 5, 2))
    with left:
        suite = choose(words["suite"], suites, "suite", {s: words.get(s, s) for s in suites})
    options = [i for i, info in loaded.infos.items() if info.suite == suite and (info.in_suite or suite not in SUITES)]
    start("only", list_from_link("only", options, ()))
    st.session_state["only"] = [t for t in st.session_state["only"] if t in options]
    tasks = middle.multiselect(words["matter"], options, key="only", placeholder=words["matter_all"])
    write_link("only", ",".join(tasks))
    with right:
        limit = choose(words["size_limit"], list(SIZE_LIMITS), "below", {k: words[k] for k in SIZE_LIMITS})
    weights = weights_of(tasks, words)
    small = models_below(loaded, SIZE_LIMITS[limit])
    report, shared = _filtered(loaded, words, average, suite, tasks, weights, small)
    return suite, tuple(tasks), weights, report, shared


def _filtered(
    loaded: Results,
    words: Mapping[str, str],
    average: AverageName,
    suite: str,
    tasks: Sequence[str],
    weights: Mapping[str, float] | None,
    small: Collection[str] | None,
) -> tuple[Report, tuple[str, ...]]:
    """The filters of the side bar, and the report that they leave; the link carries their state.

    Where no task was picked and no model with runs has the whole suite, the page's means are over
    `shared_tasks`, given beside it.
    """
    sources = _sources(loaded)
    start("sources", list_from_link("sources", sources, sources))
    st.session_state["sources"] = [source for source in st.session_state["sources"] if source in sources]
    start("search", str(st.query_params.get("search", ""))[:200])
    start("complete", st.query_params.get("complete") == "1")
    with st.sidebar:
        st.text_input(words["search"], key="search", max_chars=200)
        st.multiselect(words["sources"], sources, key="sources", format_func=words.__getitem__)
        st.toggle(words["complete"], key="complete", help=words["complete_help"])
    state = st.session_state
    write_link("sources", "" if set(state["sources"]) == set(sources) else ",".join(state["sources"]))
    write_link("search", state["search"])
    write_link("complete", "1" if state["complete"] else "")
    wanted = state["search"].casefold().split()
    names = {g.model for g in loaded.groups} | {v.model for v in loaded.published}
    matching = {n for n in names if all(w in n.casefold() for w in wanted)} if wanted else None
    models, left = narrowed(loaded, words, matching)
    if small is not None:
        models = set(small) if models is None else models & set(small)
    picked = None if left is None and not tasks else {t for t in loaded.infos if t in (tasks or loaded.infos)}
    report = build(
        loaded,
        average,
        tasks=picked if left is None or picked is None else picked & left,
        suites=[suite],
        sources=state["sources"],
        models=models,
        incomplete=bool(tasks),
        weights=weights,
    )
    shared: tuple[str, ...] = ()
    if tasks:
        report = replace(report, averages=tuple(row for row in report.averages if row.tasks == len(tasks)))
    elif lacks_leader(report):
        shared = shared_tasks(report.rows, outside_suite(report))
    return _complete(report) if state["complete"] else report, shared


def _sources(loaded: Results) -> list[str]:
    """Those of which the folder holds something."""
    there: set[str] = {row.source for row in loaded.rows("macro").rows}
    there |= {group.source for group in loaded.groups} | ({"published"} if loaded.published else set())
    return [source for source in SOURCES if source in there]


def _complete(report: Report) -> Report:
    """The rows of the lines that have a suite average, as the page shows them."""
    whole = {(row.line, row.suite) for row in report.averages}
    rows = tuple(row for row in report.rows if (row.line, row.suite) in whole)
    columns = {row.task for row in rows}
    return replace(report, rows=rows, columns=tuple(c for c in report.columns if c.id in columns))


def _standing(
    loaded: Results,
    block: Block,
    average: AverageName,
    tasks: tuple[str, ...],
    weights: Mapping[str, float] | None,
) -> Leaders:
    lines = with_mean(block)
    if len(block.columns) == 1:
        tasks = (block.columns[0].id,)
    pairs = None if weights is None else tuple(weights.items())
    placed, elsewhere = _placed(placeable(lines), average, block.suite, tasks, pairs, results_state(), loaded)
    return Leaders(lines, placed, elsewhere)


def placings(suite: str, average: AverageName) -> Leaders:
    """Where each model of a whole suite stands, as this page shows it without filters."""
    loaded = results()
    block, shared = suite_block(loaded, average, suite)
    return _standing(loaded, block, average, shared, None)


def best_two(average: AverageName) -> tuple[str, tuple[str, ...]]:
    """The suite that this page opens with and its first two models (`first_pair`)."""
    return _best_two(average, results_state(), results())


@st.cache_data(max_entries=16, show_spinner="…")
def _best_two(average: AverageName, state: str, _loaded: Results) -> tuple[str, tuple[str, ...]]:
    """`state` stands for the folder's content."""
    del state
    return first_pair(_loaded, average)


@st.cache_data(max_entries=64, show_spinner="…")
def _placed(
    names: tuple[str, ...],
    average: AverageName,
    suite: str,
    tasks: tuple[str, ...],
    weights: tuple[tuple[str, float], ...] | None,
    state: str,
    _loaded: Results,
) -> tuple[dict[str, Placing], bool | None]:
    """Where each stands, and whether the first's lead is shown elsewhere. `state` stands for the folder's content."""
    del state
    shares = None if weights is None else dict(weights)
    if len(names) < 2:
        return {}, None
    placed = dict(place(_loaded, names, average, suite=suite, tasks=tasks or None, weights=shares))
    return placed, lead_elsewhere(_loaded, suite, average, placed, tasks, shares)


def _sentence(standing: Leaders, words: Mapping[str, str], scope: Sequence[str]) -> None:
    """Who leads, how sure that is, who shares the place, and the best of the small ones; scope: over what."""
    short = in_sentences(line.name for line in standing.lines)
    first, *others = headline(
        standing,
        words,
        lambda line: f"**{literal(short[line.name])}**",
        lambda percentage: f"{percentage:.1f}",
    )
    with st.container(border=True, key="bb_verdict"):
        st.markdown(f"## {first}" if standing.lines else f"**{first}**")
        if standing.badges:
            with st.container(horizontal=True, gap="small"):
                for key, good in standing.badges:
                    icon = ":material/check:" if good else ":material/question_mark:"
                    st.badge(words[key], icon=icon, color="green" if good else "orange")
        if others:
            st.markdown(" ".join(others))
        if scope:
            st.caption(" ".join(scope))


def _charts(standing: Leaders, words: Mapping[str, str]) -> None:
    if not standing.lines:
        return
    known = COSTS if standing.testable else ()
    offered = [c for c in known if any(getattr(mean_of(line), c) is not None for line in standing.testable)]
    # where no cost is known, the scale has the whole width
    left, right = st.container(key="bb_charts").columns(2) if offered else (st.container(), None)
    ranks, short = standing.ranks, labels(line.name for line in standing.lines)
    rows = [
        {"line": short[line.name], "rank": ranks.get((line.name, line.source), ""), "own": line.source in TESTABLE}
        | charts.ends(mean_of(line))
        for line in standing.lines[: charts.MOST_LINES]
    ]
    first = ", ".join(
        f"{r['line']} {100 * mean_of(line).mean:.1f}" for r, line in zip(rows[:3], standing.lines, strict=False)
    )
    draw(charts.standing(rows, words, ink()), words["alt_standing"].format(first), left)
    left.caption(" ".join(words[key] for key in charts.marks_of(rows)))
    if right is None:
        st.caption(words["no_cost"])
        return
    with right:
        cost = choose(words["cost"], offered, "cost", {c: words[f"cost_{c}"] for c in offered})
        points = [
            {"model": short[line.name], "cost": getattr(mean_of(line), cost)} | charts.ends(mean_of(line))
            for line in standing.testable
            if getattr(mean_of(line), cost) is not None
        ]
        faster = cost == "train_tokens_per_second"
        chart = charts.scatter(points, words[f"cost_{cost}"], words, more_is_better=faster, ink=ink())
        best = ", ".join(str(row["model"]) for row in charts.front(points, more_is_better=faster))
        draw(chart, words["alt_scatter"].format(words[f"cost_{cost}"], best))


def _table(block: Block, standing: Leaders, tasks: Sequence[str], words: Mapping[str, str]) -> None:
    """The one table, its lines in order of the mean; two lines picked go to the comparison."""
    ranks = standing.ranks
    means = {(line.model, line.variant, line.source): line.average for line in standing.lines}
    lines = [replace(li, average=means.get((li.model, li.variant, li.source))) for li in block.lines]
    # without a mean the reader's own runs come first
    lines.sort(key=lambda li: -mean_of(li).mean if li.average is not None else 1.0 + RUNS_FIRST.index(li.source))
    briefs: dict[tuple[str, str, str], Brief] = {(g.model, g.variant, g.source): g.briefs[0] for g in results().groups}
    frame, shown = to_frame(block, lines, ranks, briefs, words)
    cards = to_cards(lines, ranks, words)
    # a phone shows the cards in the place of the table, where there are any
    with st.container(key="bb_table" if cards else "bb_table_alone"):
        picked = show_table(
            frame,
            digits_of(block, words),
            config=columns_of(block, words),
            compact=(words["parameters"], words["speed_short_head"]),
            on_select="rerun",
            selection_mode="multi-row",
            key=f"rows_{block.suite}",
            alt=words["alt_table"].format(words.get(block.suite, block.title)),
            height=min(ROW * (len(frame) + 1) + 2, 18 * ROW),
        )
        rows = [shown[i] for i in picked["selection"]["rows"] if i < len(shown)]
        names = list(dict.fromkeys(line_name(li.model, li.variant) for li in rows if li is not None))
        row = st.container(horizontal=True, vertical_alignment="center")
        if row.button(words["compare_picked"], key="to_compare", type="primary", disabled=not 2 <= len(names) <= 5):
            query = {"models": SEPARATOR.join(names), "compare_suite": block.suite}
            if tasks:
                query["compare_tasks"] = ",".join(tasks)
            st.switch_page(st.session_state["pages"]["compare_view"], query_params=query)
        row.caption(words["pick_rows"])
    with st.container(key="bb_cards"):
        st.html(cards or "<p></p>")
    about_ranks = [words["rank_help"].format(MOST)] if standing.testable else []
    if any(line.source == "published" for line in standing.lines):
        about_ranks.append(words["printed_order"])
    if not any(line.source == "published" for line in block.lines) and _is_printed(block):
        about_ranks.append(words["other_average"].format(words["paper"]))
    st.caption(" ".join([words["caption"], *about_ranks]))


def _is_printed(block: Block) -> bool:
    """Whether publications print scores of these tasks which stand beside another average than the page's."""
    if "published" not in st.session_state["sources"] or st.session_state["search"]:
        return False
    read_as = {(value.task, value.comparable) for value in results().published}
    return any((column.published_as, metric_of(column, "paper")) in read_as for column in block.columns)


def _no_runs(loaded: Results, words: Mapping[str, str]) -> None:
    if not loaded.groups and not loaded.findings and not loaded.refusals:
        st.info(words["no_runs" if not is_public() else "no_runs_public"])
        if not is_public():
            st.code(f"biobench run MODEL --suite fr --results-dir {results_dir().name}", language="bash")


def _findings(loaded: Results, words: Mapping[str, str]) -> None:
    if not loaded.findings:
        return
    with st.expander(f"{words['findings']} ({len(loaded.findings)})", expanded=True):
        st.caption(words["finding_help"])
        for finding in loaded.findings:
            st.text(f"{plain_note(inside(str(finding)))}\n→ {plain_note(inside(finding.hint))}")
