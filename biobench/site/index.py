"""Page one of the static site: a suite after the other, each with its sentence, charts and table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from biobench.comparison.placing import MOST
from biobench.comparison.standing import TESTABLE, Leaders, headline, mean_of, scope_of, what_means_are
from biobench.report import charts
from biobench.report.escape import for_html
from biobench.report.languages.labels import number
from biobench.report.names import in_sentences, labels, without_revisions
from biobench.report.remarks import best_of, by_kind, hub_link, remarks_of
from biobench.report.rows import AverageName, Row
from biobench.report.wide import Block, ModelLine, percent
from biobench.site.figures import figure
from biobench.site.markup import both, head, outward, say, table, tip
from biobench.site.words import ENGLISH, FRENCH, in_both
from biobench.store import Brief

Line = tuple[str, str, str]
"""Model, variant, source."""
COSTS = ("parameters", "train_tokens_per_second", "seconds")
"""Fields of a row: the first that is known is the cost of the chart."""
SIZES = (100_000_000, 200_000_000)


@dataclass(frozen=True, slots=True)
class SuitePart:
    """A suite of page one. shared: the tasks that its means are over where no model has all `count` of them."""

    block: Block
    standing: Leaders
    shared: tuple[str, ...]
    count: int
    average: AverageName = "macro"


def score_of(row: Row) -> str:
    """``70.1 ±0.4``, escaped; no margin below three seeds; failed runs as a sign that the page explains."""
    return for_html(percent(row, margin=row.n_seeds >= charts.FEW_SEEDS, failed="✗{}"))


def titles_of(block: Block) -> tuple[str, str]:
    """The suite's name, English and French."""
    return ENGLISH.get(block.suite, block.title), FRENCH.get(block.suite, block.title)


def suite_part(part: SuitePart, files: Mapping[Line, str], briefs: Mapping[Line, Brief]) -> str:
    """The section of a suite. files: line -> address of its page."""
    title = both(*titles_of(part.block), "h2")
    parts = [title, _verdict(part), _charts(part.standing), _filters(), _table(part, files, briefs)]
    return f"<section>{''.join(parts)}</section>"


def _filters() -> str:
    """Hides lines in the browser; hidden itself where no script runs."""
    options = [(str(size), f"below_{size // 1_000_000}") for size in SIZES]
    sizes = "".join(say(key, "option", f'value="{value}"') for value, key in options)
    sources = "".join(say(key, "option", f'value="{key}"') for key in (*TESTABLE, "frozen", "published"))
    any_size, any_source = (say(key, "option", 'value=""') for key in ("any_size", "any_source"))
    return (
        f'<form hidden><label>{say("filter")}<input name="q" type="search"></label>'
        f'<label>{say("size_limit")}<select name="below">{any_size}{sizes}</select></label>'
        f'<label>{say("whose")}<select name="source">{any_source}{sources}</select></label>'
        f"<span><output></output> {say('shown')}</span></form>{say('whole_suite', 'p', 'class=help')}"
    )


def _verdict(part: SuitePart) -> str:
    short = in_sentences(line.name for line in part.standing.lines)

    def sentences(words: Mapping[str, str]) -> list[str]:
        return headline(part.standing, words, lambda line: short[line.name], lambda value: number(value, 1, words))

    (first, *others), (first_fr, *others_fr) = sentences(ENGLISH), sentences(FRENCH)
    parts = [both(first, first_fr, "p", 'class="lead"')]
    badges = [say(key, "span", f'class="badge {"good" if good else "open"}"') for key, good in part.standing.badges]
    if badges:
        parts.append(f"<p>{' '.join(badges)}</p>")
    if others:
        parts.append(both(" ".join(others), " ".join(others_fr), "p"))
    scope = scope_of(part.standing, part.block, part.shared, part.count)
    if scope is not None:
        parts.append(say(scope, "p", 'class="help"', len(part.shared), part.count, ", ".join(part.shared)))
    if part.standing.lines:
        parts.append(
            both(
                *in_both(lambda w: what_means_are(part.standing, part.average, w, counted=scope is not None)),
                "p",
                'class="help"',
            )
        )
    return f'<div class="verdict">{"".join(parts)}</div>'


def _charts(standing: Leaders) -> str:
    if not standing.lines:
        return ""
    ranks, short = standing.ranks, labels(line.name for line in standing.lines)
    rows = [
        {"line": short[line.name], "rank": ranks.get((line.name, line.source), ""), "own": line.source in TESTABLE}
        | charts.ends(mean_of(line))
        for line in standing.lines[: charts.MOST_LINES]
    ]
    first = [f"{row['line']} {row['score']:.1f}" for row in rows[:3]]
    alt = tuple(words["alt_standing"].format(", ".join(first)) for words in (ENGLISH, FRENCH))
    parts = [figure(lambda words, ink: charts.standing(rows, words, ink), (alt[0], alt[1]))]
    costs = [c for c in COSTS if any(getattr(mean_of(line), c) is not None for line in standing.testable)]
    if costs:
        parts.append(_scatter(standing, short, costs[0]))
    about = both(*in_both(lambda words: " ".join(words[key] for key in charts.marks_of(rows))), "p", "class=help")
    return f'<div class="charts">{"".join(parts)}</div>{about}'


def _scatter(standing: Leaders, short: Mapping[str, str], cost: str) -> str:
    faster = cost == "train_tokens_per_second"
    points = [
        {"model": short[line.name], "cost": getattr(mean_of(line), cost)} | charts.ends(mean_of(line))
        for line in standing.testable
        if getattr(mean_of(line), cost) is not None
    ]
    best = ", ".join(str(point["model"]) for point in charts.front(points, more_is_better=faster))
    english, french = (words["alt_scatter"].format(words[f"cost_{cost}"], best) for words in (ENGLISH, FRENCH))
    return figure(
        lambda words, ink: charts.scatter(points, words[f"cost_{cost}"], words, more_is_better=faster, ink=ink),
        (english, french),
    )


def _table(part: SuitePart, files: Mapping[Line, str], briefs: Mapping[Line, Brief]) -> str:
    block, standing = part.block, part.standing
    means = {(line.model, line.variant, line.source): line.average for line in standing.lines}
    lines = [replace(li, average=means.get((li.model, li.variant, li.source))) for li in block.lines]
    lines.sort(key=lambda li: (li.average is None, -mean_of(li).mean if li.average is not None else 0.0))
    floor, ceiling = best_of(block.lines, "floor"), best_of(block.lines, "ceiling")
    models = [line for line in lines if line.source not in ("floor", "ceiling")]
    names = without_revisions(line.name for line in models)
    tasks = by_kind(block)
    heads = [
        head("rank", extra=f"data-up {tip(ENGLISH['rank_short'], FRENCH['rank_short'])}"),
        head("model", text=True),
        head("mean"),
        say("notes", "th", f"class=t {tip(ENGLISH['marks_help'], FRENCH['marks_help'])}"),
        say("source", "th", "class=t"),
        say("parameters", "th"),
        say("window", "th"),
        *(f'<th title="{for_html(c.name)}">{for_html(c.id)}</th>' for c in tasks),
    ]
    rows = []
    for line in models:
        key = line.model, line.variant, line.source
        brief = briefs.get(key)
        cells = [
            f"<td>{for_html(standing.ranks.get((line.name, line.source), '–'))}",
            f'<th><a href="{files[key]}">{for_html(names[line.name])}</a></th>',
            "<td>–" if line.average is None else f"<td>{score_of(line.average)}",
            _remarks(line, floor),
            f"<td class=t>{say(line.source)}",
            _size(brief.parameters if brief else None),
            f"<td>{brief.max_length if brief and brief.origin != 'outside' else '–'}",
            *(_cell(line.cells.get(column.id)) for column in tasks),
        ]
        size = brief.parameters if brief else 0
        rows.append(f'<tr data-source="{line.source}" data-size="{size}">{"".join(cells)}</tr>')
    for kind, best in (("floor", floor), ("ceiling", ceiling)):
        if best:
            scores = [f"<td>{best[c.id]:.1f}" if c.id in best else _cell(None) for c in tasks]
            quiet = "<td class=t><td class=t><td>–<td>–"
            rows.append(
                f'<tr data-source="{kind}" data-size="0"><td>–{say(kind, "th")}<td>–{quiet}{"".join(scores)}</tr>'
            )
    caption = both(*titles_of(block), "caption")
    help_text = both(*in_both(lambda w: f"{w['caption']} {w['rank_help'].format(MOST)}"), "p", 'class="help"')
    return table(caption, heads, rows, "board") + help_text


def _remarks(line: ModelLine, floor: Mapping[str, float]) -> str:
    english, french = (remarks_of(line, floor, words) for words in (ENGLISH, FRENCH))
    if not english:
        return "<td class=t>"
    texts = ("; ".join(remarks.values()) for remarks in (english, french))
    return f"<td class=t><span {tip(*texts)}>{for_html(''.join(english))}</span>"


def _size(parameters: int | None) -> str:
    if not parameters:
        return "<td>–"
    return f'<td data-v="{parameters}">{_million(parameters)}'


def _million(parameters: int) -> str:
    """``110 M``, ``1.5 M``; below a tenth of a million as it is."""
    if parameters < 100_000:
        return str(parameters)
    return (
        f"{parameters / 1e6:.1f}".removesuffix(".0") + "\u202fM"
        if parameters < 1e7
        else f"{parameters / 1e6:.0f}\u202fM"
    )


def _cell(row: Row | None) -> str:
    return f"<td>{'–' if row is None else score_of(row)}"


def hub_of(brief: Brief | None) -> str:
    """A link to the revision on the hub, empty where none is known."""
    address = hub_link(brief)
    return "" if address is None else outward(address)
