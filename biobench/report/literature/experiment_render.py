"""Published results beyond the task tables in each format that prints tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from biobench.report.escape import for_html, for_latex, for_markdown, plain
from biobench.report.literature.experiments import Experiment, PublishedExperiments

TITLE = "Published beyond the task tables"
Escape = Callable[[str], str]


def terminal(published: Sequence[PublishedExperiments], width: int) -> list[Table | Text]:
    """A table an experiment; columns that do not fit go into further tables."""
    parts: list[Table | Text] = [Text(f"\n{TITLE}")] if published else []
    for paper in published:
        for experiment in paper.experiments:
            parts += _tables(experiment, width)
            parts += [Text(f"* {line}") for line in _below(paper, experiment, plain)]
        parts += [Text(f"* {line}") for line in _absent(paper, plain)]
    return parts


def _tables(experiment: Experiment, width: int) -> Iterator[Table]:
    names = max(len(line.name) for line in experiment.lines)
    widest = max(len(heading) for heading in experiment.headings) + 3
    share = max(1, (width - min(names, width // 2) - 4) // widest)
    for first in range(0, len(experiment.columns), share):
        title = plain(experiment.title) + (" (continued)" if first else "")
        table = Table(title=Text(title), title_justify="left")
        table.add_column("", overflow="fold", max_width=max(20, width // 2))
        for heading in experiment.headings[first : first + share]:
            table.add_column(Text(plain(heading)), justify="right", overflow="fold")
        for line in experiment.lines:
            table.add_row(Text(plain(line.name)), *experiment.cells(line)[first : first + share])
        yield table


def markdown(published: Sequence[PublishedExperiments]) -> list[str]:
    """Lines, a piped table an experiment."""
    out = [f"## {TITLE}", ""] if published else []
    for paper in published:
        for experiment in paper.experiments:
            out += [f"### {_words(experiment.title, for_markdown)}", ""]
            out.append(_piped(["", *(for_markdown(h) for h in experiment.headings)]))
            out.append(_piped(["---", *("---:" for _ in experiment.columns)]))
            out += [_piped([for_markdown(line.name), *experiment.cells(line)]) for line in experiment.lines]
            out += ["", *(f"- {line}" for line in _below(paper, experiment, for_markdown)), ""]
        out += [*(f"- {line}" for line in _absent(paper, for_markdown)), ""]
    return out


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def latex(published: Sequence[PublishedExperiments]) -> list[str]:
    """A booktabs table an experiment, what stands below it in the caption."""
    out: list[str] = []
    for paper in published:
        for experiment in paper.experiments:
            remarks = " ".join(_below(paper, experiment, for_latex))
            out += [
                r"\begin{table}",
                r"\centering",
                rf"\begin{{tabular}}{{l{'r' * len(experiment.columns)}}}",
                r"\toprule",
                " & ".join(["", *(for_latex(h) for h in experiment.headings)]) + r" \\",
                r"\midrule",
                *(
                    " & ".join([for_latex(line.name), *(for_latex(c) for c in experiment.cells(line))]) + r" \\"
                    for line in experiment.lines
                ),
                r"\bottomrule",
                r"\end{tabular}",
                rf"\caption{{{_words(experiment.title, for_latex)}. {remarks}}}",
                r"\end{table}",
                "",
            ]
        named = _absent(paper, for_latex)
        if named:
            out += [r"\begin{itemize}", *(rf"\item {line}" for line in named), r"\end{itemize}", ""]
    return out


def html(published: Sequence[PublishedExperiments]) -> str:
    """A section, empty without experiments."""
    if not published:
        return ""
    parts = [f"<h2>{TITLE}</h2>"]
    for paper in published:
        parts += [experiment_html(paper, experiment) for experiment in paper.experiments]
        named = "".join(f"<li>{line}</li>" for line in _absent(paper, for_html))
        if named:
            parts.append(f'<ul class="notes">{named}</ul>')
    return "\n".join(parts)


def experiment_html(paper: PublishedExperiments, experiment: Experiment) -> str:
    """One experiment's table with what stands below it; everything escaped, no script."""
    head = "".join(f'<th scope="col">{for_html(h)}</th>' for h in experiment.headings)
    body = "".join(
        f'<tr><th scope="row">{for_html(line.name)}</th>'
        + "".join(f"<td>{for_html(cell)}</td>" for cell in experiment.cells(line))
        + "</tr>"
        for line in experiment.lines
    )
    remarks = "".join(f"<li>{line}</li>" for line in _below(paper, experiment, for_html))
    return (
        f'<div class="scroll" tabindex="0"><table>\n<caption>{_words(experiment.title, for_html)}</caption>\n'
        f'<thead><tr><th scope="col" class="text"></th>{head}</tr></thead>\n<tbody>{body}</tbody>\n</table></div>\n'
        f'<ul class="notes">{remarks}</ul>'
    )


def below(paper: PublishedExperiments, experiment: Experiment) -> list[str]:
    """What stands below an experiment's table: setting, remarks, what of ours goes beside it, and the source."""
    beside = experiment.beside
    commands = f" ({'; '.join(beside.commands)})" if beside.commands else ""
    return [
        experiment.setting,
        *experiment.notes,
        f"Of ours beside it: {beside.what.rstrip('.')}{commands}.",
        f"Source: {paper.source}.",
    ]


def absent(paper: PublishedExperiments) -> list[str]:
    """A line for each baseline that is named but has no values."""
    return [f"{a.model}: no published values. {a.why} ({paper.source})" for a in paper.without_values]


def _below(paper: PublishedExperiments, experiment: Experiment, escape: Escape) -> list[str]:
    return [_words(line, escape) for line in below(paper, experiment)]


def _absent(paper: PublishedExperiments, escape: Escape) -> list[str]:
    return [_words(line, escape) for line in absent(paper)]


def _words(text: str, escape: Escape) -> str:
    """Word by word: `escape` cuts what is longer than a name."""
    return " ".join(escape(word) for word in text.split())
