"""Every format shows the same numbers, and no name breaks out of any of them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from dataclasses import replace
from typing import get_args

import pytest
from pylatexenc.latexwalker import LatexWalker

from biobench.errors import UsageError
from biobench.reporting.escape import without_hidden
from biobench.reporting.frame import build
from biobench.reporting.printers import CSV_COLUMNS, Format, render
from biobench.reporting.sheets import caption
from tests.helpers.report_make import save_run, save_runs

HOSTILE = [
    "<script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "![i](https://example.org/p.png)",
    "a|b\\|c",
    "=HYPERLINK(1)",
    "\\input{/etc/passwd}%$#_{}~^&",
    'x" onmouseover="alert(1)',
    "\x1b[31mred\x07\u202eevil",
    "[bold]markup[/bold]",
    "https://example.org/x",
    "line\nbreak",
    "n" * 10_000,
]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    for i, name in enumerate(HOSTILE):
        save_runs(results, name, "bc5cdr", {42: 0.5, 43: 0.5 + i / 100})
    save_run(results, "plain", "bc5cdr", 42, 0.987654321)
    return build(results, "macro")


def test_an_empty_folder_renders_and_an_unknown_format_is_refused(tmp_path):
    report = build(tmp_path, "macro", sources=["run"])
    assert all(render(report, format).endswith("\n") for format in get_args(Format))
    with pytest.raises(UsageError, match="unknown format 'pdf'"):
        render(report, "pdf")


@pytest.mark.parametrize("format", ["table", "md", "latex", "html"])
def test_tables_are_in_percent_with_half_intervals(tmp_path, format):
    save_runs(tmp_path, "tiny", "bc5cdr", {42: 0.60, 43: 0.64, 44: 0.62})
    text = render(build(tmp_path, "micro"), format)
    margin = 100 * 4.302652729911275 * 0.02 / 3**0.5
    plain = re.sub(r"<[^>]*>|\\pm|\$|\\", "", text).replace("±", "")
    assert re.search(rf"62\.0 +{margin:.1f}", plain), text[:2000]


def test_json_is_the_contract(report):
    text = render(report, "json")
    assert "\u202e" not in text
    rows = json.loads(text)
    contract = {"model", "task", "metric", "mean", "sd", "low", "high", "n_seeds", "source"}
    assert contract <= rows[0].keys()
    assert {r["model"] for r in rows if r["source"] == "run"} == {*HOSTILE, "plain"}
    assert all(0 <= r["mean"] <= 1 for r in rows)


def test_csv_round_trips_and_no_cell_is_a_formula(report):
    text = render(report, "csv")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    expected = json.loads(render(report, "json"))
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        assert row["model"].removeprefix("'") == without_hidden(wanted["model"])
        assert row["model"][0] not in "=+-@"
        for name in ("mean", "sd", "low", "high"):
            assert (float(row[name]) if row[name] else None) == wanted[name]
    assert tuple(rows[0]) == CSV_COLUMNS


def test_html_is_self_contained_and_inert(report):
    text = render(report, "html")
    assert not re.search(
        r"(?i)<(script|img|iframe|link|a|object)\b|<[^>]*[\s\"'](on\w+|src|href)\s*=", text
    )
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    terminal = render(report, "table")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", terminal)
    assert "[bold]markup[/bold]" in terminal


def test_html_draws_the_charts_of_the_board_or_says_what_is_missing(tmp_path, monkeypatch):
    report = build(tmp_path, "paper", suites=["en"])
    (task,) = [info for info in report.columns if info.id == "gad"]
    report = replace(report, columns=(task,))
    text = render(report, "html")
    against_size, scores = re.findall("<svg.*?</svg>", text)
    assert ">parameters</text>" in against_size
    models = {row.model for row in report.rows if row.task == "gad"}
    assert scores.count("CLM detour") == sum("CLM detour" in model for model in models)
    assert '"currentColor"' in scores, "the colour of texts, light or dark"
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    without = render(report, "html")
    assert "<svg" not in without
    assert "pip install 'biobench[charts]'" in without


def test_the_caption_of_own_tasks_speaks_of_no_publication(tmp_path):
    save_run(tmp_path, "tiny", "my_task", 42, 0.5)
    captions = [
        caption(build(tmp_path, "paper", tasks=tasks)).partition(", in percent")[0]
        for tasks in (["my_task"], ["gad"], ["gad", "hoc", "ncbi_disease"])
    ]
    assert captions == [
        "Each task by the average that its spec names (micro F1)",
        "Each task by the average of its published scores (macro F1)",
        "Each task by the average of its published scores (micro F1: ncbi_disease; macro F1 else)",
    ]


def test_markdown_cells_hold_no_markup(report):
    text = render(report, "md")
    table = [line for line in text.splitlines() if line.startswith("|")]
    widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(widths) == 1
    assert not re.search(r"(?<!\\)[\[<`]", text)
    assert "://" not in text


def test_latex_parses(report):
    """Strictly: every brace and environment closes, every row has the columns that the table
    declares.
    """
    text = render(report, "latex")
    assert not any(re.search(r"(?<!\\)[%#_]", line) for line in text.splitlines() if " & " in line)
    _, _, length = LatexWalker(text, tolerant_parsing=False).get_latex_nodes()
    assert length == len(text)
    for table in text.split(r"\begin{tabular}{")[1:]:
        rows = [row for row in table.partition(r"\end{tabular}")[0].splitlines() if " & " in row]
        assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {
            len(table.partition("}")[0])
        }
