"""The report as one HTML file: no script, nothing loaded from elsewhere, light and dark."""

from __future__ import annotations

from biobench.report.contamination import marked
from biobench.report.details.needle_html import STYLE, needle_section
from biobench.report.escape import for_html, html_sentence
from biobench.report.literature import experiment_render
from biobench.report.rows import Report, Row
from biobench.report.wide import Block, ModelLine, blocks, caption, percent

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 0 2rem; }
caption { text-align: left; font-weight: 600; font-size: 1.15rem; padding: .5rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th[scope=row], .text { text-align: left; }
thead th { border-bottom: 2px solid currentColor; }
tbody tr:hover { background: var(--soft); }
small { opacity: .75; }
.notes { max-width: 60rem; }
"""


def to_html(report: Report) -> str:
    """A whole document. Everything that a user can name is escaped."""
    parts = [_table(block) for block in blocks(report, runs_first=True)]
    if not parts:
        parts = ["<p>No results yet.</p>"]
    grids = needle_section(report)
    notes = "".join(f"<li>{html_sentence(note)}</li>" for note in report.notes)
    findings = "".join(f"<li>{html_sentence(str(f))}. {html_sentence(f.hint)}</li>" for f in report.findings)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>BioBench results</title>\n<style>{_STYLE}{STYLE if grids else ''}</style>\n</head>\n<body>\n"
        "<h1>BioBench results</h1>\n"
        + "\n".join(parts)
        + f'\n<p class="notes">{html_sentence(caption(report))}</p>\n'
        + (f"{grids}\n" if grids else "")
        + (f'<h2>Notes</h2>\n<ul class="notes">{notes}</ul>\n' if notes else "")
        + experiment_render.html(report.experiments)
        + (f'<h2>Findings</h2>\n<ul class="notes">{findings}</ul>\n' if findings else "")
        + "</body>\n</html>\n"
    )


def _table(block: Block) -> str:
    head = ['<th scope="col" class="text">model</th>', '<th scope="col" class="text">source</th>']
    if block.has_average:
        head.append('<th scope="col">average</th>')
    head += [f'<th scope="col" title="{for_html(c.name)}">{for_html(c.id)}</th>' for c in block.columns]
    body = "\n".join(_line(block, line) for line in block.lines)
    return (
        f'<div class="scroll" tabindex="0"><table>\n<caption>{for_html(block.title)}</caption>\n'
        f"<thead><tr>{''.join(head)}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _line(block: Block, line: ModelLine) -> str:
    cells = [f'<th scope="row">{for_html(line.name)}</th>', f'<td class="text">{for_html(line.source)}</td>']
    if block.has_average:
        cells.append(_cell(line.average))
    cells += [_cell(line.cells.get(c.id)) for c in block.columns]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(row: Row | None) -> str:
    if row is None:
        return "<td>–</td>"
    shown, _, margin = percent(row).partition(" ")
    seeds = f"{row.n_seeds} seed{'' if row.n_seeds == 1 else 's'}"
    if row.contamination is not None and marked(row.contamination):
        contamination = row.contamination
        seeds += f"; {contamination['seen']} of {contamination['documents']} test documents in its training text"
    return f'<td title="{for_html(row.metric)}, {seeds}">{shown}{f" <small>{margin}</small>" if margin else ""}</td>'
