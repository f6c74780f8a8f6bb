"""The pages of one model, of one task and of one comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from biobench.comparison.compare import Comparison
from biobench.comparison.result import PairResult, TaskLine
from biobench.comparison.standing import TESTABLE
from biobench.comparison.verdict_fr import verdict_fr
from biobench.report import charts
from biobench.report.entrants import line_name
from biobench.report.escape import for_html, html_sentence
from biobench.report.groups import RunGroup
from biobench.report.languages.labels import metric_in
from biobench.report.languages.notes_fr import in_french
from biobench.report.names import labels, shorten
from biobench.report.remarks import licence_link, licence_named
from biobench.report.rivals import Rivals
from biobench.report.rows import Row
from biobench.report.tasks import TaskInfo
from biobench.schema.record import RunRecord
from biobench.site.figures import figure, strip
from biobench.site.index import Line, hub_of, score_of
from biobench.site.markup import both, facts, head, line_of, link, outward, say, table, task_file
from biobench.site.words import ENGLISH, FRENCH, in_both

Clean = Callable[[str], str]
"""A text without the folders of the machine."""


def notes_list(notes: Sequence[str], clean: Clean) -> str:
    """Notes of a report or comparison, folded; empty where there are none."""
    if not notes:
        return ""
    items = "".join(both(shorten(clean(note)), shorten(clean(in_french(note))), "li") for note in notes)
    return f"<details><summary>{say('notes')} ({len(notes)})</summary><ul>{items}</ul></details>"


def model_page(
    line: Line,
    rows: Sequence[Row],
    means: Sequence[tuple[Row, str]],
    groups: Sequence[RunGroup],
    rivals: Rivals,
    files: Mapping[Line, str],
) -> str:
    """What a model is and its scores among the others'. means: average over a suite and the rank there."""
    return "".join([
        _model_facts(groups) if groups else say("published_only", "p"),
        _means(means),
        _model_table(line, rows, rivals, files),
        say("field_help", "p", 'class="help"'),
        say("failed_sign", "p", 'class="help"') if any(row.failed for row in rows) else "",
    ])  # fmt: skip


def _model_facts(groups: Sequence[RunGroup]) -> str:
    record = groups[0].records[0]
    briefs = [brief for group in groups for brief in group.briefs]
    days = dict.fromkeys(pick(brief.started[:10] for brief in briefs) for pick in (min, max))
    windows = sorted({group.briefs[0].max_length for group in groups})
    about = [
        ("hub", hub_of(briefs[0])),
        ("revision", for_html(record.model.revision or "–")),
        ("architecture", for_html(record.model.architecture)),
        ("parameters", f"{record.model.parameters:,}".replace(",", "\u202f")),
        ("window", ", ".join(map(str, windows))),
        ("licence", _licence([r for group in groups for r in group.records])),
        ("weights", for_html(record.model.hash[:16])),
        ("evaluated", " – ".join(for_html(day) for day in days)),
        ("made_with", for_html(f"BioBench {record.provenance.biobench}")),
    ]
    return facts([(say(key, "dt"), value) for key, value in about if value])


def _licence(records: Sequence[RunRecord]) -> str:
    licence = licence_named(records)
    return say("licence_unknown") if licence is None else outward(licence_link(licence) or "", licence)


def _means(means: Sequence[tuple[Row, str]]) -> str:
    pairs = []
    for row, rank in means:
        english, french = (f"{w['suite_average']} · {w.get(row.suite, row.suite)}" for w in (ENGLISH, FRENCH))
        value = f'<b class="n">{score_of(row)}</b> · {say("rank")} <b>{for_html(rank)}</b>'
        pairs.append((both(english, french, "dt"), value))
    return facts(pairs)


def _model_table(line: Line, rows: Sequence[Row], rivals: Rivals, files: Mapping[Line, str]) -> str:
    floors = any(row.task in rivals.floors for row in rows)
    timed = any(row.seconds is not None for row in rows)
    keys = ["score", "field", "best", "gap", *(["floor"] if floors else []), "seeds", *(["seconds"] if timed else [])]
    heads = [head("task", text=True), *(head(key, text=key in ("field", "best")) for key in keys)]
    body = []
    for row in rows:
        best, floor = rivals.best(row), rivals.floors.get(row.task)
        cells = [
            score_of(row),
            strip(100 * row.mean, rivals.others(row), None if floor is None else 100 * floor.mean),
            "–" if best.line == line else for_html(shorten(line_name(best.model, best.variant))),
            f"{100 * (best.mean - row.mean):.1f}",
            *(["–" if floor is None else f"{100 * floor.mean:.1f}"] if floors else []),
            str(row.n_seeds or "–"),
            *(["–" if row.seconds is None else f"{row.seconds:.0f}"] if timed else []),
        ]
        body.append(line_of(link(f"../{task_file(row.task)}", row.task), cells, texts=(2,)))
    return table(say("distribution", "caption"), heads, body)


def task_page(
    info: TaskInfo, rows: Sequence[Row], notes: Sequence[str], files: Mapping[Line, str], clean: Clean
) -> str:
    """What a task is, and every model's score on it. No text of its corpus."""
    ranked = sorted(rows, key=lambda row: -row.mean)
    return _task_facts(info) + _task_chart(ranked) + _task_table(ranked, files) + notes_list(notes, clean)


def _known(key: str, value: str) -> str:
    """What the words call it; a value of a plug-in as it stands."""
    return both(ENGLISH.get(key, value), FRENCH.get(key, value))


def _task_facts(info: TaskInfo) -> str:
    about = [("language", info.language, info.language), ("type", f"type_{info.type}", info.type)]
    pairs = [(say(key, "dt"), _known(name, value)) for key, name, value in about]
    pairs.append((say("corpus", "dt"), html_sentence(info.corpus)))
    spec = info.spec
    if spec is None:
        return facts(pairs) + say("not_shipped", "p")
    pairs += [
        (say("access", "dt"), _known(f"access_{spec.access}", spec.access)),
        (say("licence", "dt"), html_sentence(spec.licence)),
    ]
    pairs += [
        (say("homepage", "dt"), outward(spec.homepage)),
        (say("corpus_citation", "dt"), html_sentence(spec.citation)),
    ]
    parts = [facts(pairs)]
    if spec.notes:
        items = "".join(f'<li lang="en">{html_sentence(text)}</li>' for text in spec.notes)
        parts.append(f"<details><summary>{say('known_issues')}</summary><ul>{items}</ul></details>")
    if spec.deviations:
        items = "".join(
            f'<li lang="en">{html_sentence(d.aspect)}. {say("here")}: {html_sentence(d.here)} {say("there")}: '
            f"{html_sentence(d.compared)}</li>"
            for d in spec.deviations
        )
        parts.append(f"<details><summary>{say('deviations')}</summary><ul>{items}</ul></details>")
    return "".join(parts)


def _task_chart(ranked: Sequence[Row]) -> str:
    shown = [row for row in ranked if row.source not in ("floor", "ceiling")]
    if not shown:
        return ""
    short = labels(line_name(row.model, row.variant) for row in shown)
    points = [
        {"line": short[line_name(row.model, row.variant)], "rank": "", "own": row.source in TESTABLE} | charts.ends(row)
        for row in shown[: charts.MOST_LINES]
    ]
    first = ", ".join(f"{point['line']} {point['score']:.1f}" for point in points[:3])
    english, french = (words["alt_standing"].format(first) for words in (ENGLISH, FRENCH))
    picture = figure(lambda words, ink: charts.standing(points, words, ink), (english, french))
    part = say("first_lines", "p", 'class="help"', len(points), len(shown)) if len(points) < len(shown) else ""
    return picture + part


def _task_table(ranked: Sequence[Row], files: Mapping[Line, str]) -> str:
    heads = [head("model", text=True), head("source", text=True), head("score"), head("seeds")]
    body = []
    for row in ranked:
        name = shorten(line_name(row.model, row.variant))
        who = link(f"../{files[row.line]}", name) if row.line in files else for_html(name)
        source = "" if row.source == "run" else say(row.source)
        body.append(line_of(who, [source, score_of(row), str(row.n_seeds or "–")], texts=(0,)))
    return table(say("distribution", "caption"), heads, body)


def comparison_page(comparison: Comparison, data: str, clean: Clean) -> str:
    """The verdict, then task by task; the rest folded. data: name of the files beside it, without suffix."""
    english, french = comparison.verdict, verdict_fr(comparison)
    about = len(comparison.twins)
    spoken = [both(clean(a), clean(b), "p") for a, b in zip(english, french, strict=True)]
    first = both(clean(english[about]), clean(french[about]), "p", 'class="lead"')
    others = "".join([*spoken[:about], *spoken[about + 1 :]])
    parts = [f'<div class="verdict">{first}</div>', f"<details><summary>{say('how_sure')}</summary>{others}</details>"]
    parts += [_pair(pair) for pair in comparison.pairs]
    parts.append(notes_list(comparison.notes, clean))
    text = html_lines(clean(comparison.text()))
    parts.append(f'<details><summary>{say("details")}</summary><pre lang="en" tabindex="0">{text}</pre></details>')
    parts.append(f'<p><a href="{data}.csv">CSV</a> · <a href="{data}.json">JSON</a></p>')
    return "".join(parts)


def html_lines(text: str) -> str:
    """Text whose lines and blanks count."""
    blank = (" " * (len(line) - len(line.lstrip())) + _blanks(line.strip()) for line in text.splitlines())
    return "\n".join(blank)


def _blanks(line: str) -> str:
    return " ".join(for_html(word) for word in line.split(" "))


def difference_rows(pair: PairResult) -> list[dict[str, object]]:
    """Task by task in points; the interval is the widest-reaching one that is known."""
    return [task_row(line) for line in pair.tasks]


def task_row(line: TaskLine) -> dict[str, object]:
    """One task of a pair."""
    interval = line.widest
    return {
        "task": line.task,
        "metric": line.metric,
        "first": 100 * line.first,
        "second": 100 * line.second,
        "difference": 100 * line.difference,
        "low": None if interval is None else 100 * interval.low,
        "high": None if interval is None else 100 * interval.high,
    }


def _pair(pair: PairResult) -> str:
    rows = difference_rows(pair)
    order = sorted(pair.tasks, key=lambda line: -line.difference)
    ends = order if len(order) <= 2 else (order[0], order[-1])
    spoken = ", ".join(f"{line.task} {100 * line.difference:+.1f}" for line in ends)
    english, french = (words["alt_differences"].format(spoken) for words in (ENGLISH, FRENCH))
    title = f"{shorten(pair.pair.first)} − {shorten(pair.pair.second)}"
    counts = (("wins", pair.pair.comparison.wins), ("ties", pair.pair.comparison.ties),
              ("losses", pair.pair.comparison.losses))  # fmt: skip
    heads = [head("task", text=True), head("metric", text=True), "<th>A</th>", "<th>B</th>"]
    heads += [head("difference"), head("interval", text=True)]
    body = []
    for line in order:
        interval = line.widest
        span = "–" if interval is None else f"{100 * interval.low:+.1f} … {100 * interval.high:+.1f}"
        name = both(*in_both(partial(metric_in, line.metric)))
        cells = [name, f"{100 * line.first:.1f}", f"{100 * line.second:.1f}"]
        cells += [f"{100 * line.difference:+.1f}", f'<span class="n">{span}</span>']
        body.append(line_of(link(f"../{task_file(line.task)}", line.task), cells, texts=(0, 4)))
    return (
        f"<h2>{html_sentence(title)}</h2>{facts([(say(key, 'dt'), str(count)) for key, count in counts])}"
        + figure(lambda words, ink: charts.differences(rows, words, ink), (english, french))
        + say("difference_help", "p", 'class="help"')
        + table(say("task_view", "caption"), heads, body)
    )
