"""The board as an accessible HTML table and as a data frame; the same cells in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from biobench.report.escape import for_html
from biobench.report.rows import Row
from biobench.report.wide import Block, Line, percent

AVERAGE = "average"
"""Name of the suite average's column."""

_STYLE = """
<style>
.bb-scroll { overflow-x: auto; }
.bb { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; width: max-content; }
.bb th, .bb td { padding: .28rem .55rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid rgba(128, 128, 128, .3); }
.bb thead th { border-bottom-width: 2px; font-weight: 600; }
.bb th[scope=row], .bb .bb-text { text-align: left; font-weight: 500; }
.bb th[scope=row] { position: sticky; left: 0; max-width: min(22rem, 45vw); overflow: hidden;
  background: light-dark(#ffffff, #171614); text-overflow: ellipsis; }
.bb small { opacity: .8; }
.bb .bb-source { font-size: .78rem; opacity: .85; }
</style>
"""


def literal(text: str) -> str:
    """Text for the places where Streamlit reads Markdown (titles, table cells): shown as it stands."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|~$:#" else c for c in text)


def sort_lines(block: Block, by: str) -> list[Line]:
    """Lines with the highest score in that column first; lines without one after, in the block's order."""

    def value(line: Line) -> float:
        row = line.average if by == AVERAGE else line.cells.get(by)
        return -1.0 if row is None else row.mean

    return sorted(block.lines, key=lambda line: (line.source in ("ceiling", "floor"), -value(line)))


def to_html(
    block: Block, lines: Sequence[Line], words: Mapping[str, str], ties: Mapping[tuple[str, str, str], str]
) -> str:
    """The block as HTML without script; every name escaped, rows and columns headed for screen readers.

    ties: the letters of the lines that have some; none at all leaves their column out.
    """
    columns = ([AVERAGE] if block.has_average else []) + [c.id for c in block.columns]
    ranges = {c: _range(c, lines) for c in columns}
    titles = {AVERAGE: words["suite_average"]} | {c.id: c.name for c in block.columns}
    head = "".join(
        f'<th scope="col" title="{for_html(titles[c])}">{for_html(_heading(c, words))}</th>' for c in columns
    )
    if ties:
        head = f'<th scope="col" title="{for_html(words["letters_help"])}">{for_html(words["letters"])}</th>{head}'
    body = "".join(_line(line, columns, ranges, words, ties) for line in lines)
    return (
        f'{_STYLE}<div class="bb-scroll" tabindex="0"><table class="bb" aria-label="{for_html(block.title)}">'
        f'<thead><tr><th scope="col" class="bb-text">{for_html(words["model"])}</th>'
        f'<th scope="col" class="bb-text">{for_html(words["source"])}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def to_frame(block: Block, lines: Sequence[Line], words: Mapping[str, str]) -> pd.DataFrame:
    """Percent as numbers, for sorting; missing scores are NaN."""
    columns: dict[str, list[object]] = {
        words["model"]: [line.name for line in lines],
        words["source"]: [words[line.source] for line in lines],
    }
    if block.has_average:
        columns[_heading(AVERAGE, words)] = [_number(line.average) for line in lines]
    for column in block.columns:
        columns[column.id] = [_number(line.cells.get(column.id)) for line in lines]
    return pd.DataFrame(columns)


def _heading(column: str, words: Mapping[str, str]) -> str:
    return words["suite_average"] if column == AVERAGE else column


def _row(line: Line, column: str) -> Row | None:
    return line.average if column == AVERAGE else line.cells.get(column)


def _number(row: Row | None) -> float:
    return float("nan") if row is None else 100 * row.mean


def _range(column: str, lines: Sequence[Line]) -> tuple[float, float]:
    means = [row.mean for line in lines if (row := _row(line, column)) is not None]
    return (min(means), max(means)) if means else (0.0, 0.0)


def _line(
    line: Line,
    columns: Sequence[str],
    ranges: Mapping[str, tuple[float, float]],
    words: Mapping[str, str],
    ties: Mapping[tuple[str, str, str], str],
) -> str:
    letters = ties.get((line.model, line.variant, line.source), "–")
    cells = (f"<td>{for_html(letters)}</td>" if ties else "") + "".join(
        _cell(_row(line, c), ranges[c], words) for c in columns
    )
    return (
        f'<tr><th scope="row" title="{for_html(line.name)}">{for_html(line.name)}</th>'
        f'<td class="bb-text bb-source">{for_html(words[line.source])}</td>{cells}</tr>'
    )


def _cell(row: Row | None, span: tuple[float, float], words: Mapping[str, str]) -> str:
    if row is None:
        return '<td aria-label="–">–</td>'
    low, high = span
    share = (row.mean - low) / (high - low) if high > low else 0.0
    shown, _, margin = percent(row).partition(" ")
    # one hue, its strength is the value: readable with any colour vision, on light and dark grounds
    shade = f"background: rgba(0, 114, 178, {0.04 + 0.36 * share:.2f})"
    title = for_html(f"{row.metric} · {row.n_seeds} {words['seeds']}")
    return f'<td style="{shade}" title="{title}">{shown}{f" <small>{margin}</small>" if margin else ""}</td>'
