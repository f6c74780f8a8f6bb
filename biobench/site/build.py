"""All files of the static site, from a results folder that is read once."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from biobench import __version__
from biobench.comparison.compare import compare
from biobench.comparison.standing import (
    part_of,
    placeable,
    suite_block,
    suite_order,
    suite_standing,
)
from biobench.data.locate import default_data_dir
from biobench.report.details.needle_html import needle_section
from biobench.report.entrants import line_name
from biobench.report.escape import for_csv, html_sentence
from biobench.report.groups import RunGroup
from biobench.report.literature import experiment_render
from biobench.report.names import shorten
from biobench.report.render import render
from biobench.report.rivals import Rivals
from biobench.report.rows import AverageName, Report, Row
from biobench.report.table import Results, build
from biobench.site.details import comparison_page, difference_rows, model_page, notes_list, task_page
from biobench.site.index import Line, SuitePart, suite_part, titles_of
from biobench.site.markup import both, link, page, say, task_file
from biobench.site.words import ENGLISH, FRENCH, in_both
from biobench.store import Brief

DIGITS = 5
"""Decimals of fractions in `results.json`."""


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A comparison's page. suite: None for all tasks in common; files: suffix -> text."""

    title: str
    name: str
    suite: str | None
    files: Mapping[str, str]


def site_files(
    results: Results,
    results_dir: str | Path,
    average: AverageName,
    pairs: Sequence[tuple[str, str]],
    day: date,
    archives: Sequence[str],
) -> dict[str, str]:
    """Path in the site -> its text. pairs: models to compare, besides the first two of each suite; archives: days.

    Raises UsageError where a pair names a model that the results do not hold, or one that it cannot be compared with.
    """
    clean = cleaner(results_dir)
    report = build(results, average)
    # the gate's policies are lines without a page
    lines = {row.line: row for row in report.rows if row.source not in ("floor", "ceiling")}
    files: dict[Line, str] = {line: f"models/{slug(line)}.html" for line in lines}
    parts = _parts(results, average)
    compared = _comparisons(results_dir, average, pairs, parts, clean)
    more = needle_section(report) + experiment_render.html(report.experiments)
    foot = both(*in_both(lambda w: w["made_on"].format(day.isoformat(), __version__)), "p", 'class="help"')
    texts = {
        **_first_pages(report, parts, files, compared, archives, foot, bool(more), clean),
        "results.csv": render(_short(report), "csv"),
        "results.json": compact(report),
        **_models(report, parts, files),
        **_tasks(results, report, average, files, clean),
    }
    if more:
        texts["more.html"] = page((ENGLISH["more"], FRENCH["more"]), more, kind="more")
    for one in compared:
        texts |= {f"compare/{one.name}.{suffix}": text for suffix, text in one.files.items()}
    return texts


def slug(line: Line) -> str:
    """The name of a line's page: letters, digits and strokes of the model's name, and what makes it unique."""
    plain = re.sub(r"[^a-z0-9]+", "-", line_name(line[0], line[1]).lower()).strip("-")[:60]
    return f"{plain}-{hashlib.sha256(chr(0).join(line).encode('utf-8', 'surrogatepass')).hexdigest()[:5]}".strip("-")


def cleaner(results_dir: str | Path) -> Callable[[str], str]:
    """Takes the folders of this machine out of a text: where results and data lie, the current folder, the home."""
    places = (Path(results_dir), default_data_dir(), Path.cwd(), Path.home())
    folders = {str(path) for place in places for path in (place, place.resolve()) if path.is_absolute()}
    named = sorted((folder for folder in folders if folder != os.sep), key=len, reverse=True)

    def clean(text: str) -> str:
        for folder in named:
            text = text.replace(f"{folder}{os.sep}", "").replace(folder, "…")
        return text

    return clean


def compact(report: Report) -> str:
    """The rows of `render(report, "json")` as two tables, `tasks` and `averages`, each as pandas' "split" has it.

    That is the names of the columns, then a list a row. What is empty or as by default is null, and a column of nothing
    else is left out; fractions have five decimals.
    """
    text = f'{{"tasks":{_split(report.rows)},\n"averages":{_split(report.averages)}}}\n'
    return text.encode("utf-8", "backslashreplace").decode()


def _split(rows: Sequence[Row]) -> str:
    usual = {f.name: f.default for f in fields(Row) if f.default is not MISSING}
    cells = [
        {k: _rounded(v) for k, v in row.as_json().items() if v is not None and v != [] and v != usual.get(k)}
        for row in rows
    ]
    names = [f.name for f in fields(Row) if any(f.name in row for row in cells)]
    lines = ",\n".join(
        json.dumps([row.get(name) for name in names], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for row in cells
    )
    return f'{{"columns":{json.dumps(names)},"data":[\n{lines}\n]}}'


def _short(report: Report) -> Report:
    """Its rows with fractions of five decimals."""
    names = ("mean", "task_mean", "mean_rank", "sd", "low", "high", "seconds", "train_tokens_per_second")

    def short(row: Row) -> Row:
        return replace(row, **{name: _rounded(getattr(row, name)) for name in names})

    return replace(report, rows=tuple(map(short, report.rows)), averages=tuple(map(short, report.averages)))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _parts(results: Results, average: AverageName) -> list[SuitePart]:
    """The suites in the order of the app's."""
    parts = []
    there = build(results, average).suites
    order = [suite for suite in suite_order(results) if suite in there]
    for suite in [*order, *(suite for suite in there if suite not in order)]:
        block, shared = suite_block(results, average, suite)
        count = sum(info.in_suite and info.suite == suite for info in results.infos.values()) or len(block.columns)
        standing = suite_standing(results, block, average, shared)
        parts.append(SuitePart(block, standing, part_of(block, shared, count), count, average))
    return parts


def _first_pages(
    report: Report,
    parts: Sequence[SuitePart],
    files: Mapping[Line, str],
    compared: Sequence[ComparedPair],
    archives: Sequence[str],
    foot: str,
    more: bool,
    clean: Callable[[str], str],
) -> dict[str, str]:
    """Page one of each suite, the first of them as `index.html`, which has the notes and the archives."""
    briefs: dict[Line, Brief] = {(g.model, g.variant, g.source): g.briefs[0] for g in report.groups}
    names = {part.block.suite: "index.html" if n == 0 else f"suite-{n + 1}.html" for n, part in enumerate(parts)}
    menu = "".join(both(*titles_of(part.block), "a", f'href="{names[part.block.suite]}"') for part in parts)
    menu += say("more", "a", 'href="more.html"') if more else ""
    menu += '<a href="results.csv">CSV</a><a href="results.json">JSON</a>'
    texts = {}
    for part in parts:
        body = suite_part(part, files, briefs)
        shown = [one for one in compared if one.suite in (None, part.block.suite)]
        pairs = [link(f"compare/{one.name}.html", one.title) for one in shown]
        body += _listed("comparisons", pairs) if pairs else ""
        tasks = [link(task_file(info.id), info.name) for info in part.block.columns]
        body += _listed("tasks", tasks)
        if part is parts[0]:
            body += notes_list(report.notes, clean) + _findings(report, clean)
            days = [link(f"archive/{name}/index.html", name) for name in archives]
            body += _listed("archives", days) if days else ""
        texts[names[part.block.suite]] = page((ENGLISH["title"], FRENCH["title"]), body + foot, menu=menu, kind="first")
    if not parts:
        body = say("no_results", "p") + _findings(report, clean) + foot
        texts["index.html"] = page((ENGLISH["title"], FRENCH["title"]), body, menu=menu)
    return texts


def _findings(report: Report, clean: Callable[[str], str]) -> str:
    if not report.findings:
        return ""
    texts = [(html_sentence(clean(str(f))), html_sentence(clean(f.hint))) for f in report.findings]
    items = "".join(f"<li>{what}. {hint}</li>" for what, hint in texts)
    return f'<details><summary>{say("findings")}: {len(texts)}</summary><ul lang="en">{items}</ul></details>'


def _listed(key: str, items: Sequence[str]) -> str:
    return (
        f'<section>{say(key, "h2")}<ul class="columns">{"".join(f"<li>{item}</li>" for item in items)}</ul></section>'
    )


def _models(report: Report, parts: Sequence[SuitePart], files: Mapping[Line, str]) -> dict[str, str]:
    rows: dict[Line, list[Row]] = defaultdict(list)
    for row in report.rows:
        rows[row.line].append(row)
    groups: dict[Line, list[RunGroup]] = defaultdict(list)
    for group in report.groups:
        groups[group.model, group.variant, group.source].append(group)
    means: dict[Line, list[tuple[Row, str]]] = defaultdict(list)
    for part in parts:
        ranks = part.standing.ranks
        for placed in part.standing.lines:
            if placed.average is not None:
                key = placed.model, placed.variant, placed.source
                means[key].append(
                    (replace(placed.average, suite=part.block.suite), ranks.get((placed.name, placed.source), "–"))
                )
    rivals = Rivals(report)
    texts = {}
    for line, file in files.items():
        title = shorten(line_name(line[0], line[1]))
        body = model_page(line, rows[line], means[line], groups[line], rivals, files)
        titles = (
            (f"{title} ({ENGLISH[line[2]]})", f"{title} ({FRENCH[line[2]]})") if line[2] != "run" else (title, title)
        )
        texts[file] = page(titles, body, up="../", kind="plain")
    return texts


def _tasks(
    results: Results, report: Report, average: AverageName, files: Mapping[Line, str], clean: Callable[[str], str]
) -> dict[str, str]:
    texts = {}
    for info in report.columns:
        part = build(results, average, tasks=[info.id])
        body = task_page(info, part.rows, part.notes, files, clean)
        texts[task_file(info.id)] = page((info.name, info.name), body, up="../")
    return texts


def _comparisons(
    results_dir: str | Path,
    average: AverageName,
    pairs: Sequence[tuple[str, str]],
    parts: Sequence[SuitePart],
    clean: Callable[[str], str],
) -> list[ComparedPair]:
    """Those asked for first, then the first two models of each suite."""
    asked: list[tuple[tuple[str, str], str | None, tuple[str, ...]]] = [(pair, None, ()) for pair in pairs]
    for part in parts:
        first = placeable(part.standing.lines)[:2]
        if len(first) == 2:
            asked.append(((first[0], first[1]), part.block.suite, part.shared))
    compared = []
    for pair, suite, tasks in asked:
        whole = suite if suite in ("fr", "en", "needle") else None
        only = tasks or (() if whole or suite is None else next(_ids(p) for p in parts if p.block.suite == suite))
        comparison = compare(pair, results_dir=results_dir, suite=whole, tasks=only or None, average=average)
        name = slug((*pair, suite or ""))
        title = [words["against"].format(*map(shorten, pair)) for words in (ENGLISH, FRENCH)]
        if suite is not None:
            title = [f"{text} · {w.get(suite, suite)}" for text, w in zip(title, (ENGLISH, FRENCH), strict=True)]
        beside = {
            "html": page((title[0], title[1]), comparison_page(comparison, name, clean), up="../"),
            "json": json.dumps(_cleaned(comparison.as_json(), clean), ensure_ascii=False, separators=(",", ":")) + "\n",
            "csv": _differences([row for pair in comparison.pairs for row in difference_rows(pair)]),
        }
        compared.append(ComparedPair(title[0], name, suite, beside))
    return compared


def _ids(part: SuitePart) -> tuple[str, ...]:
    return tuple(info.id for info in part.block.columns)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(k, clean): _cleaned(v, clean) for k, v in value.items()}
    return [_cleaned(part, clean) for part in value] if isinstance(value, list | tuple) else value


def _differences(rows: Sequence[Mapping[str, object]]) -> str:
    """Points, a line a task."""
    stream = io.StringIO()
    columns = ["task", "metric", "first", "second", "difference", "low", "high"]
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([for_csv(v) if isinstance(v, str) else v for v in map(row.__getitem__, columns)])
    return stream.getvalue()
