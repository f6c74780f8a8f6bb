"""Needle grids for the HTML report: a heat map of length x position, and beside it the same as a table."""

from __future__ import annotations

from biobench.errors import BioBenchError
from biobench.report.details.needle import NeedleGrid, grid_of, interval, seeds_of
from biobench.report.escape import for_html
from biobench.report.rows import Report
from biobench.report.tasks import NEEDLE

STYLE = """
.needle { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; margin: 0 0 2rem; }
.needle svg { font: 13px system-ui, sans-serif; max-width: 100%; }
.needle svg text { fill: currentColor; }
.needle svg .on-dark { fill: #fff; }
.needle svg .on-light { fill: #111; }
"""

_WIDTH, _HEIGHT, _LEFT, _TOP = 84, 34, 64, 44
_MAX_COLUMNS = 12
"""Positions up to which a cell is wide enough for its number."""


def needle_section(report: Report) -> str:
    """The grids of the report's needle rows, empty where it has none. A grid that cannot be read says why."""
    kinds = {info.id: info.type for info in report.columns}
    shown = {(row.task, *row.line) for row in report.rows}
    groups = [
        g for g in report.groups if kinds.get(g.task) == NEEDLE and (g.task, g.model, g.variant, g.source) in shown
    ]
    parts = []
    for group in groups:
        try:
            grid = grid_of(group)
        except BioBenchError as error:
            words = f"{group.model} · {group.task}: no grid, {error.what}; {error.hint}"
            parts.append(f"<p>{_sentence(words)}</p>")
            continue
        parts.append(f'<div class="needle">\n{heat_map(grid)}\n{_table(grid)}\n</div>')
    if not parts:
        return ""
    note = (
        "Accuracy in percent over seeds; 50 is chance. [low, high]: 95% intervals for other examples of the same kind "
        "(Wilson, pairs that share a haystack count together), of the cells all together. n/a: beyond the model's "
        "window, nothing was scored."
    )
    body = "\n".join(parts)
    return f'<h2>Needle in a haystack: length and position</h2>\n<p class="notes">{note}</p>\n{body}'


def heat_map(grid: NeedleGrid) -> str:
    """An SVG picture: lengths down, positions across, darker for higher accuracy between 50 and 100 percent."""
    positions, lengths = grid.positions, grid.lengths
    wide = _WIDTH if len(positions) <= _MAX_COLUMNS else _WIDTH // 3
    marks = []
    for column, position in enumerate(positions):
        middle = _LEFT + wide * column + wide // 2
        marks.append(f'<text x="{middle}" y="{_TOP - 8}" text-anchor="middle">{for_html(position)}</text>')
    for row, length in enumerate(lengths):
        top = _TOP + _HEIGHT * row
        marks.append(f'<text x="{_LEFT - 8}" y="{top + 22}" text-anchor="end">{length}</text>')
        for column, position in enumerate(positions):
            marks.append(_mark(grid, length, position, _LEFT + wide * column, top, wide))
    width, height = _LEFT + wide * len(positions) + 2, _TOP + _HEIGHT * len(lengths) + 2
    label = f"Heat map of accuracy by length and position, as in the table beside it: {for_html(grid.title)}"
    unit = for_html(grid.unit)
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<text x="{_LEFT - 8}" y="{_TOP - 8}" text-anchor="end">{unit}</text>\n' + "\n".join(marks) + "\n</svg>"
    )


def _mark(grid: NeedleGrid, length: int, position: str, left: int, top: int, wide: int) -> str:
    share = grid.share(length, position)
    place = f'x="{left + 1}" y="{top + 1}" width="{wide - 2}" height="{_HEIGHT - 2}"'
    centre = f'x="{left + wide // 2}" y="{top + 22}" text-anchor="middle"'
    if share is None:
        return (
            f'<rect {place} fill="none" stroke="currentColor" stroke-opacity=".4" stroke-dasharray="3 3"/>'
            f"<text {centre}>{grid.missing(length)}</text>"
        )
    # From white at chance to a dark blue at 100%; below chance stays white.
    part = min(max(2 * share.mean - 1, 0.0), 1.0)
    colour = f"hsl(215 65% {97 - 69 * part:.0f}%)"
    words = for_html(f"{length} {grid.unit}, {position}: {interval(share)}, {share.documents} examples")
    tone = "on-dark" if part > 0.5 else "on-light"
    shown = f"{100 * share.mean:.1f}" if wide == _WIDTH else f"{100 * share.mean:.0f}"
    return (
        f'<g><title>{words}</title><rect {place} fill="{colour}" stroke="currentColor" stroke-opacity=".4"/>'
        f'<text class="{tone}" {centre}>{shown}</text></g>'
    )


def _table(grid: NeedleGrid) -> str:
    columns: tuple[str | None, ...] = (*grid.positions, None)
    head = f'<th scope="col" class="text">{for_html(grid.unit)}</th>'
    head += "".join(f'<th scope="col">{for_html("all positions" if p is None else p)}</th>' for p in columns)
    rows = []
    for length in (*grid.lengths, None):
        cells = "".join(_cell(grid, length, position) for position in columns)
        rows.append(f'<tr><th scope="row">{"all that are read" if length is None else length}</th>{cells}</tr>')
    facts = f"{seeds_of(grid)}, window {grid.window} tokens, most frequent answer {100 * grid.majority:.1f}"
    return (
        '<div class="scroll" tabindex="0"><table>\n'
        f"<caption>{_sentence(grid.title)} <small>{for_html(facts)}</small></caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody>\n</table></div>"
    )


def _cell(grid: NeedleGrid, length: int | None, position: str | None) -> str:
    share = grid.share(length, position)
    if share is None:
        return f"<td>{grid.missing(length)}</td>"
    mean, _, bounds = interval(share).partition(" ")
    return f'<td title="{share.documents} examples">{mean} <small>{bounds}</small></td>'


def _sentence(text: str) -> str:
    return " ".join(for_html(word) for word in text.split())
