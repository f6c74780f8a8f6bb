"""`report`, `compare` and `errors`: own runs first, mistakes in context; wrong input is refused in
one line.
"""

import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from biobench.cli import commands
from biobench.comparison.compare import compare
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.reporting.details.mistaken import read_mistakes
from biobench.reporting.frame import build
from biobench.reporting.printers import to_text
from biobench.reporting.results import load
from biobench.schema.document import Prediction, Span
from biobench.store import Store
from tests.helpers.cli_make import Run, Said
from tests.helpers.compare_make import save_runs as save_compared
from tests.helpers.report_make import save_run, save_runs
from tests.helpers.spec_make import write_spec
from tests.helpers.submission_make import honest_run


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A run on a shipped task and one on a task that only the results know, in a suite of its
    own."""
    save_run(tmp_path / "results", "own-encoder", "gad", 42, 0.8)
    save_run(tmp_path / "results", "own-encoder", "my_task", 42, 0.7)
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--task", "gda", "did you mean 'gad'?"),
        ("--suite", "frr", "did you mean 'fr'? known: blurb, drbenchmark, en, fr, needle"),
        ("--suite", "de", "known: blurb, drbenchmark, en, fr, needle"),
        ("--source", "runs", "did you mean 'run'?"),
        ("--model", "own-encodr", "did you mean 'own-encoder'?"),
    ],
)
def test_an_unknown_value_is_refused(option, value, hint, biobench, known):
    said = biobench("report --task gad", option, value)
    assert said.refusal() == f"{option} '{value}' is not known"
    assert said.err.splitlines()[1] == f"hint: {hint}"


def test_without_results_the_published_rows_are_shown(biobench, tmp_path):
    said = biobench("report --source published --format json").ok()
    assert said.err == ""
    models = {row["model"] for row in said.json()}
    assert biobench("report --model", min(models), "--format json").json()
    told = "no runs are in this folder"
    assert told in biobench("report --suite needle").ok().out
    assert told not in biobench("report --source published").ok().out
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_only_results_have(biobench, known):
    (row, *_) = biobench("report --task my_task --format json").json()
    assert row["model"] == "own-encoder"
    assert biobench("report --suite", row["suite"], "--format json").json()


def same_as_golden(text: str, name: str) -> None:
    """`UPDATE_GOLDEN=1` writes the file anew; then look at it."""
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    save_runs(folder, "my-org/my-encoder", "gad", {42: 0.790, 43: 0.801, 44: 0.795})
    save_runs(folder, "my-org/my-encoder", "hoc", {42: 0.690, 43: 0.681, 44: 0.686})
    save_runs(folder, "my-org/baseline", "gad", {42: 0.770, 43: 0.751, 44: 0.765})
    return folder


def test_published_and_own_rows_at_80_columns(results, tmp_path):
    same_as_golden(
        to_text(build(load(tmp_path / "none"), "paper"), width=80), "report_published_80.txt"
    )
    same_as_golden(
        to_text(build(results, "paper", tasks=["gad", "hoc"]), width=80), "report_own_80.txt"
    )


def test_one_own_model_stands_under_the_table_beside_the_best_others(
    biobench, results, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    assert "in short" not in biobench("report").out, "there are two own models"
    foot = biobench("report --model my-org/my-encoder --task gad,hoc").out.splitlines()[-4:]
    assert "in short" not in "".join(foot), "the filter leaves no other model to be beside"
    shutil.rmtree(results / "runs")
    save_runs(results, "my-org/my-encoder", "gad", {42: 0.790, 43: 0.801, 44: 0.795})
    *_, title, own, published = biobench("report").out.splitlines()
    assert title == "gad in short (macro F1, in percent):"
    assert own == "  79.5 ±1.4   my-org/my-encoder"
    assert published == "  79.7 ‡      best published: ModernBERT-bio-large CLM detour (50B)"
    shutil.rmtree(results / "runs")
    save_runs(results, "my-org/my-encoder", "gad", {42: 0.790, 43: 0.801}, limit=20)
    assert "in short" not in biobench("report").out, "a part of the data is compared with none"


def test_failed_runs_do_not_touch_the_name_in_short(biobench, results):
    shutil.rmtree(results / "runs")
    save_runs(results, "my-org/my-encoder", "gad", {42: 0.790, 43: 0.801, 44: 0.795, 45: 0.0})
    lines = biobench("report").out.splitlines()
    own, published = lines[lines.index("gad in short (macro F1, in percent):") + 1 :]
    assert "failed" in own
    assert own.index("my-org") == published.index("best"), "one column"


def test_suites_of_folders_make_one_report(biobench, results):
    out = biobench("report --suite fr --suite en").ok().out
    assert "French\n" in out
    assert "English\n" in out
    said = biobench("report --suite fr --suite blurb")
    assert said.refusal() == "--suite blurb has a report of its own"


@pytest.mark.parametrize("suite", ["blurb", "drbenchmark"])
def test_a_declared_suite_folds(suite, biobench, results, monkeypatch):
    save_runs(results, "my-org/my-encoder", "quaero_medline", {42: 0.601, 43: 0.611})
    monkeypatch.setenv("COLUMNS", "80")
    same_as_golden(biobench("report --suite", suite).out, f"report_{suite}_80.txt")


@pytest.mark.parametrize("format_", ["table", "md", "latex", "html"])
def test_own_rows_come_first_and_published_ones_for_their_tasks_alone(format_, biobench, results):
    out = biobench("report --average paper --format", format_).out
    assert ("| gad" if format_ == "md" else "gad") in out
    assert out.index("my-encoder") < out.index("PubMedBERT")
    assert "jnlpba" not in out
    assert "DrBERT" not in out
    assert "jnlpba" in biobench("report --source published --average paper --format", format_).out


@pytest.mark.parametrize("option", ["--per-seed", "--per-label", "--probabilities"])
def test_what_only_data_formats_hold_is_refused_elsewhere(option, biobench, results):
    assert biobench("report", option).refusal() == f"{option} has no place in a table"


def test_a_list_with_commas_is_several_tasks_and_sources(biobench, results):
    report = ("report", "--source run --task")
    apart = biobench(*report, "gad", "--task hoc")
    assert biobench(*report, "gad,hoc") == apart
    assert "hoc" in apart.out
    assert " hoc " not in biobench(*report, "gad,bc5cdr").out


DETOUR, TWIN = (f"ModernCamemBERT-bio-base {name} (10B)" for name in ("CLM detour", "MLM twin"))


@pytest.fixture
def unequal(tmp_path: Path) -> Path:
    """Two models of unequal quality."""
    for model, quality in (("good", 0.9), ("bad", 0.5)):
        save_compared(tmp_path / "results", model, ("gad", "diamed"), quality)
    return tmp_path / "results"


def test_json_stands_alone_and_equals_the_library(biobench, unequal):
    said = biobench("compare good bad --json --rope 1 --average micro")
    assert said.err == ""
    held = compare("good", "bad", results_dir=unequal, rope=0.01, average="micro")
    assert said.json() == json.loads(json.dumps(held.as_json()))
    assert said.json()["pairs"][0]["rope"] == 0.01


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (("good",), "two models", "biobench compare A B"),
        (("good", "bda"), "'bda'", "did you mean 'bad'?"),
        (("good", "zzzz"), "'zzzz'", "of 2 models with runs the nearest: "),
        (("good", "bad", "--task gda"), "unknown task 'gda'", "gad"),
        (("good", "bad", "--suite germ"), "unknown suite 'germ'", "en"),
        (("good", "bad", "--average mikro"), "'mikro' is not one of", "--help"),
        (("good", "bad", "--alpha 2"), "alpha 2", "0.05"),
        ((DETOUR, TWIN, "--average macro"), "share no task", "--average paper"),
    ],
)
def test_wrong_input_is_one_line(biobench, unequal, arguments, what, hint):
    said = biobench("compare", *arguments)
    assert what in said.refusal()
    assert hint in said.err


SENTENCE = (
    "The\tO\npatient\tO\nhas\tO\n<asthma>\tB-Disease\ntoday\tO\n\n"
    "No\tO\nfever\tB-Disease\nnow\tO\n\n"
)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An own task's YAML with a stored run: the first mention missed, a false one said in the
    second sentence.
    """
    folder = tmp_path / "corpora" / "my_notes"
    folder.mkdir(parents=True)
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text(SENTENCE)
    files = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}
    reader = {
        "format": "iob",
        "columns": ["token", "tag"],
        "separator": "tab",
        "scheme": "IOB2",
        "decode": "strict",
    }
    spec = write_spec(
        tmp_path / "my_notes.yaml", source={"folder": "my_notes", "files": files, "reader": reader}
    )
    data = load_data(load_task(spec), tmp_path / "corpora")
    first, second = data.test
    assert first.text[16:24] == "<asthma>"
    made = save_run(tmp_path / "results", "org/mine", "my_notes", 42, 0.5, data=data.hash)
    said = [
        Prediction(first.id),
        Prediction(second.id, spans=(*second.spans, Span(0, 2, "Disease"))),
    ]
    Store(tmp_path / "results").save(made, data.test, said)
    return spec


def errors(biobench: Run, own: Path, *more: str, data: str = "corpora") -> Said:
    return biobench("errors org/mine --task", own, "--data-dir", data, *more)


def test_mentions_in_context_of_an_own_task(own, biobench):
    said = errors(biobench, own).ok()
    assert said.out.startswith("org/mine on my_notes, seed 42: mistakes in 2 of 2 test documents\n")
    assert "missed: Disease: The patient has [<asthma>] today\n" in said.out
    assert "false: Disease: [No] fever now\n" in said.out
    assert "gold \\ predicted" not in said.out
    assert "false: " not in errors(biobench, own, "--kind", "missed").out
    rows = [
        (r["kind"], r["gold_text"], r["said_text"]) for r in errors(biobench, own, "--json").json()
    ]
    assert rows == [("missed", "<asthma>", None), ("spurious", None, "No")]
    without = errors(biobench, own, data="elsewhere").out
    assert "missed: Disease 16-24" in without
    assert "asthma" not in without
    assert "no text: " in without


def test_the_page_is_whole_and_inert(own, biobench, tmp_path):
    assert errors(biobench, own, "--html", "page.html").out == "page.html: written\n"
    page = (tmp_path / "page.html").read_text()
    assert "&lt;asthma&gt;" in page
    assert "<asthma>" not in page
    assert "<script" not in page


def test_confusion_of_single_labels(biobench, tmp_path):
    record = honest_run(tmp_path / "results")
    gold, said = Store(tmp_path / "results").load_predictions(record)
    found = read_mistakes(load(tmp_path / "results"), "org/tiny", record.task.id)
    expected = Counter((d.labels[0], p.labels[0]) for d, p in zip(gold, said, strict=True))
    assert {
        (g, s): n for g, counted in found.confusion.items() for s, n in counted.items()
    } == expected
    command = ("errors", "org/tiny", "--task", record.task.id)
    assert biobench(*command, "--label", "Foo").refusal().endswith(" has no label 'Foo'")
    out = biobench(*command).out
    assert ("gold \\ predicted" in out, "more documents: --documents" in out) == (True, True)
    wrong = next(pair for pair in expected if pair[0] != pair[1])
    assert f"  gold {wrong[0]}, predicted {wrong[1]}\n" in biobench(*command, "--documents 999").out


def test_mistakes_are_of_full_runs_and_name_the_others(biobench, tmp_path):
    record = honest_run(tmp_path / "results", 1)
    honest_run(tmp_path / "results", 7, limit=24)
    command = ("errors", "org/tiny", "--task", record.task.id)
    title, others, *_ = biobench(*command).ok().out.splitlines()
    assert title.startswith(f"org/tiny on {record.task.id}, seed 1: ")
    assert others == "other runs: 'org/tiny [limit 24]' (seeds: 7)"
    refused = biobench(*command, "--seed 7")
    assert refused.refusal() == "'org/tiny' has no run with seed 7"
    assert f"stored: 1; {others}" in refused.err
    for name, seeds in (("org/tiny", {1, 7}), ("org/tiny [limit 24]", {7})):
        kept = biobench("report", "--model", name, "--format json --per-seed --source run").json()
        assert {row["seed"] for row in kept} == seeds, "a name as the report prints it"
    limited = biobench("errors", "org/tiny [limit 24]", *command[2:]).ok().out
    assert limited.startswith(f"org/tiny [limit 24] on {record.task.id}, seed 7: ")


def test_what_is_not_there_is_named(own, biobench, tmp_path):
    said = biobench("errors org/mine --task gad")
    assert said.refusal() == "'org/mine' has no stored run on 'gad'"
    assert "my_notes" in said.err
    assert "only published scores are known" in biobench("errors PubMedBERT --task gad").err
    assert "no run with seed 7" in errors(biobench, own, "--seed", "7").refusal()
    assert errors(biobench, own, "--kind", "mised").refusal() == "--kind 'mised' is not known"


def test_every_help_but_that_of_run_fits_a_screen(biobench, monkeypatch):
    names = set(commands.NAMES) - {"run", "needle"}  # one command under two names
    groups = {name: list(getattr(commands.load(name), "commands", ())) for name in names}
    for words in (
        [],
        *([name, *sub] for name, subs in groups.items() for sub in ([], *([s] for s in subs))),
    ):
        monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 100)
        lines = biobench(*words, "--help").out.strip().splitlines()
        assert 5 < len(lines) <= 40, words
        assert max(map(len, lines)) <= 100, words
        monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
        # choices wider than their column would go on in the next line, inside a word
        assert not re.search(r"<\w+\|[\w|]+ ", biobench(*words, "--help").out), words
