"""`run` in other modes: validation only, with the model kept; its progress, its end and what
follows.
"""

import io
import json
import shlex
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, pipeline
from transformers.utils import logging

from biobench.cli.console.progress import BriefRunTerminal, RunTerminal
from biobench.core.progress import ProgressNote
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.models.loading import find_checkpoint
from biobench.models.weights import load_base
from biobench.runs.gates import below_baselines
from biobench.runs.result import RunName, RunResult
from biobench.runs.table import cells_of, end_of_run, print_results
from biobench.schema.baseline import BaselineRecord, PolicyScores
from biobench.store import Store
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.cli_make import FAST
from tests.helpers.compare_make import save_runs


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT."""
    return make_checkpoint("bert", tmp_path_factory.mktemp("families") / "bert")


def test_validation_only_runs_never_meet_the_test_split(biobench, tiny, tmp_path):
    base = ("run", tiny, "--task demo_topic --seeds 1 --json", *FAST)
    spared = biobench(*base, "--no-test").json()[0]
    assert (spared["status"], spared["split"]) == ("done", "validation")
    (record,) = Store("results").records()
    best = max(record.training.curve, key=lambda point: point.validation["macro_f1"])
    assert spared["scores"]["micro_f1"] == pytest.approx(best.validation["micro_f1"])
    answered = {p.document for p in Store("results").stored_predictions(record)[1]}
    assert answered == {d.id for d in load_data(load_task("demo_topic"), None, 24).validation}
    assert not (tmp_path / "results" / "floors").exists(), (
        "not even the policies without skill look at the test split"
    )
    tested = biobench(*base).json()[0]
    assert tested["key"] != spared["key"]
    rows = [r for r in biobench("report --format json").json() if r["source"] == "run"]
    assert {r["variant"] for r in rows if "validation only" in r["variant"]}
    assert all(r["n_seeds"] == 1 for r in rows), "the two stand on lines of their own"
    assert biobench("rescore --json").json()[0]["outcome"] == "unchanged"
    assert "validation only" in biobench("report --format md").out


def test_fractions_make_a_run_each_and_the_report_draws_their_curve(biobench, tiny):
    command = ("run", tiny, "--task", "demo_topic", "--seeds", "1-3", *FAST)
    rows = biobench(*command, "--fractions", "0.5,0.25,1", "--json").ok().json()
    assert [row["status"] for row in rows] == ["done"] * 9
    assert len({row["key"] for row in rows}) == 9
    counts = {record.train_documents for record in Store("results").records()}
    whole = max(counts)
    assert counts == {round(whole / 4), round(whole / 2), whole}
    again = biobench(*command, "--json").json()
    assert {row["status"] for row in again} == {"skipped"}, "a share of 1 is the run itself"
    drawn = biobench("report", "--curve").ok().out
    assert f"with {round(whole / 2)} of {whole} texts: " in drawn
    assert "doubling from there gives " in drawn
    points = biobench("report", "--curve", "--format", "json").json()
    assert [point["share"] for point in points] == [0.25, 0.5, 1]
    # three seeds of a tiny encoder may give the same score, which has no interval
    spread = [point for point in points if point["low"] is not None]
    assert spread
    assert all(point["low"] <= point["mean"] <= point["high"] for point in spread)


def test_a_report_without_fractions_says_how_to_make_a_curve(biobench):
    save_runs(Path("results"), "a", ["demo_topic"], 0.5)
    done = biobench("report", "--curve")
    assert done.status == 2
    assert "--fractions 0.1,0.2,0.5,1" in done.err


KEPT = ("--seeds 1 --json", *FAST, "--set training.precision=fp32 --keep-model kept")


def test_a_kept_token_model_loads_in_the_pipeline_and_answers_as_the_run_did(
    biobench, bert, tmp_path
):
    more = ("--set training.adapter.rank=4 --set training.learning_rate=1e-2", *KEPT)
    row = biobench("run", bert, "--task demo_ner", *more).ok().json()[0]
    kept = tmp_path / row["model_folder"]
    answers = pipeline("token-classification", model=str(kept))("Aspirin against fever.")
    assert all(set(a) >= {"entity", "score", "start", "end"} for a in answers)
    assert "B-" in " ".join(json.loads((kept / "config.json").read_text())["id2label"].values())
    again = biobench("run", bert, "--task demo_ner", *more, "--keep-model elsewhere").json()[0]
    assert (again["status"], "--force" in again["reason"]) == ("skipped", True)


def test_a_kept_sequence_model_is_the_librarys_where_the_head_is(biobench, bert, tmp_path):
    modernbert = make_checkpoint("modernbert", tmp_path / "modernbert")
    base = ("--task demo_topic", *KEPT, "--set")
    linear = biobench("run", modernbert, *base, "head.pooling=cls").json()[0]
    kept = tmp_path / linear["model_folder"]
    assert not (kept / "head.safetensors").exists()
    answer = pipeline("text-classification", model=str(kept))("A study of asthma.")[0]
    assert answer["label"] in load_data(load_task("demo_topic"), None).labels
    pooled = biobench("run", bert, *base, "head.pooling=mean").json()[0]
    assert (tmp_path / pooled["model_folder"] / "head.safetensors").exists(), (
        "BERT's own head has another pooling"
    )


def test_loading_a_masked_lm_prints_no_report_of_the_library(bert, tmp_path, caplog):
    folder = shutil.copytree(bert, tmp_path / "mlm")
    BertForMaskedLM.from_pretrained(bert).save_pretrained(folder)
    library, verbosity = logging.get_logger("transformers"), logging.get_verbosity()
    library.addHandler(caplog.handler)
    logging.set_verbosity_warning()
    try:
        caplog.clear()
        load_base(find_checkpoint(str(folder)), torch.float32)
        assert not caplog.records, "a report of the pooler and the head"
        assert logging.get_verbosity() == logging.WARNING, "the caller's own setting"
    finally:
        library.removeHandler(caplog.handler)
        logging.set_verbosity(verbosity)


ONE, TWO = RunName("k1", "tiny", "demo_topic", 1), RunName("k2", "tiny", "demo_ner", 2)
DONE = RunResult(
    "tiny", "demo_topic", 1, 1, "done", key="k1", scores={"macro_f1": 0.5}, seconds=3.0
)


def test_lines_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("biobench.cli.console.progress.QUIET", 0.0)
    with RunTerminal() as terminal:
        terminal.start(ONE, 1, 2)
        terminal.start(TWO, 2, 2)
        terminal.step(ONE, 3, 10, "loss 1.000")
        terminal.step(TWO, 4, 20, "loss 2.000")
        for _ in ("one worker", "another"):
            terminal.warn("demo_topic fails its gate")
        terminal.finish(DONE)
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] demo_topic · seed 1 · tiny: started",
        "[2/2] demo_ner · seed 2 · tiny: started",
        "[1/2] demo_topic · seed 1 · tiny: step 3/10, loss 1.000",
        "[2/2] demo_ner · seed 2 · tiny: step 4/20, loss 2.000",
        "demo_topic fails its gate",
        "tiny · demo_topic · seed 1: done, macro_f1 50.00 in 3.0 s",
    ]


def test_a_brief_terminal_has_one_line_a_run(capsys):
    ended_before = replace(DONE, key="k0", seed=7, status="skipped", scores={})
    with BriefRunTerminal() as terminal:
        terminal.finish(ended_before)
        terminal.start(ONE, 1, 2)
        terminal.step(ONE, 0, 0, ProgressNote("loading model"))
        terminal.start(TWO, 2, 2)
        terminal.finish(DONE)
        terminal.finish(replace(DONE, key="k2", task="demo_ner", seed=2))
    assert capsys.readouterr().err.splitlines() == [
        "tiny · demo_topic · seed 7: skipped",
        "[1/2] tiny · demo_topic · seed 1: done, macro_f1 50.00 in 3.0 s; under a second left",
        "[2/2] tiny · demo_ner · seed 2: done, macro_f1 50.00 in 3.0 s",
    ]


def test_a_bar_for_each_run_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    monkeypatch.setattr("biobench.core.progress.Console", lambda stderr: console)
    with RunTerminal() as terminal:
        terminal.start(ONE, 1, 2)
        terminal.start(TWO, 2, 2)
        terminal.step(TWO, 3, 20, ProgressNote("continues where it was stopped"))
        terminal.step(TWO, 4, 20, "loss 2.000")
        shown = {task.description: (task.completed, task.total) for task in terminal.bar.tasks}
        assert shown == {
            "[1/2] demo_topic · seed 1 · tiny": (0, None),
            "[2/2] demo_ner · seed 2 · tiny": (4, 20),
        }
        terminal.finish(DONE)
        assert [task.description for task in terminal.bar.tasks] == [
            "[2/2] demo_ner · seed 2 · tiny"
        ]
        terminal.start(TWO, 2, 2)
        assert len(terminal.bar.tasks) == 1, (
            "a run that a dead worker left and another began again has one bar"
        )
        terminal.finish(
            replace(DONE, key=None, seed=None, status="unavailable", scores={}, reason="no data")
        )
    assert "done, macro_f1 50.00 in 3.0 s" in screen.getvalue()
    assert "seed 2 · tiny: step 3/20, continues where it was stopped\n" in screen.getvalue()


def scored(model: str, seed: int, score: float, **fields: object) -> RunResult:
    return RunResult(model, "gad", 1, seed, "done", scores={"macro_f1": score}, **fields)


def test_means_words_and_next_command():
    results = [
        scored("a", s, v, truncated_documents=3, lost_gold=0, seconds=2.0)
        for s, v in ((1, 0.5), (2, 0.6), (3, 0.7))
    ]
    results += [replace(results[0], seed=7, status="failed", scores={}), scored("b c", 1, 0.4)]
    row, other = cells_of(results)
    assert (row["seeds"], row["status"], row["seconds"]) == (
        "1, 2, 3, 7",
        "3 done, 1 failed",
        "8.0",
    )
    assert (row["score"], row["macro"]) == ("macro_f1 60.00 ± 24.84", "60.00")
    assert (row["micro"], row["cut"], row["lost"]) == ("–", "3", "–")
    assert (other["status"], other["score"], other["seconds"]) == ("done", "macro_f1 40.00", "–")
    lines = list(end_of_run(results, "my results"))
    assert lines == [
        "cut: test documents longer than the model's window; the rest of them is not read",
        "Results: my results. Next: `biobench report --results-dir 'my results'`, "
        "`biobench compare a 'b c' --results-dir 'my results'`",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_heading_and_no_status_is_broken_in_a_narrow_table(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    scores = {"macro_f1": 0.51234, "micro_f1": 0.61234}
    done = replace(
        scored("sentence-transformers/all-MiniLM-L6-v2", 42, 0.5),
        task="quaero_medline",
        paper="micro_f1",
        scores=scores,
        overrides=("training.learning_rate=3e-5",),
        truncated_documents=1234,
        seconds=12345.6,
    )
    print_results([done, replace(done, seed=44, status="failed", reason="it broke")])
    head, *lines = capsys.readouterr().out.splitlines()
    names = head.split()
    assert names[:5] == ["model", "task", "seeds", "status", "score"]
    assert {"done,", "failed"} <= {*" ".join(lines).split()}
    assert "micro_f1 61.23" in lines[0]
    assert max(map(len, [head, *lines[:3]])) <= max(width, 80)
    left_out = {"macro", "micro", "seconds", "cut"} - {*names}
    told = [line for line in lines if line.endswith(": in a wider terminal, or with --json")]
    assert bool(left_out) == bool(told)
    assert all(name in told[0] for name in left_out)
    assert "lost" not in head, "nothing was lost"


def test_minor_columns_give_way_before_a_name_is_broken(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    done = scored("all-MiniLM-L6-v2", 42, 0.5)
    print_results([replace(done, limit=300, overrides=("training.epochs=2",), seconds=42.6)])
    head, *lines = capsys.readouterr().out.splitlines()
    assert "all-MiniLM-L6-v2" in lines[0]
    assert "training.epochs=2" in " ".join(lines)
    assert "macro" not in head.split(), "the score is macro F1 itself"


def test_scores_below_a_baseline_say_so():
    low = {"baseline": ("majority class", 0.397)}
    (line, _) = end_of_run([scored("a", 1, 0.0, **low), scored("a", 2, 0.6)], "results")
    assert line == "a on gad: 1 of 2 runs below the baseline 39.70 (majority class)"
    tuned = scored("a", 1, 0.0, **low, overrides=("training.epochs=1",))
    line = next(end_of_run([tuned, scored("a", 1, 0.5)], "results"))
    assert line == "a on gad (training.epochs=1): below the baseline 39.70 (majority class)"


def test_runs_with_nothing_right_say_so():
    short = scored("a", 1, 0.0, limit=40)
    line = next(end_of_run([short, scored("a", 1, 0.5)], "results"))
    assert line == "a on gad (limit 40): nothing is right, as after too short a training"


def test_the_published_average_is_the_number_and_macro_f1_stands_beside_it():
    scores = {"macro_f1": 0.5, "micro_f1": 0.6, "weighted_f1": 0.7}
    runs = [
        replace(DONE, seed=seed, paper="micro_f1", scores=scores, baseline=None) for seed in (1, 2)
    ]
    (row,) = cells_of(runs)
    assert (row["seeds"], row["score"], row["macro"]) == ("1-2", "micro_f1 60.00", "50.00")
    assert {row["primary"] for row in map(asdict, runs)} == {"macro_f1"}


BASELINES = BaselineRecord.model_construct(
    policies=[
        PolicyScores.model_construct(name=name, kind="floor", scores=scores)
        for name, scores in (
            ("majority", {"macro_f1": 0.3, "micro_f1": 0.8}),
            ("random", {"macro_f1": 0.6, "micro_f1": 0.4}),
        )
    ]
)


def test_a_run_is_compared_with_the_best_baseline_under_the_published_average():
    run = scored("a", 1, 0.5, paper="micro_f1")
    run.scores["micro_f1"] = 0.7
    (marked,) = below_baselines([run], {"gad": BASELINES})
    assert marked.baseline == ("majority", 0.8)
    (other,) = below_baselines([scored("a", 1, 0.5)], {"gad": BASELINES})
    assert other.baseline == ("random", 0.6)


def test_a_limited_run_is_compared_with_no_baseline_that_learnt_from_all_documents():
    limited = scored("a", 1, 0.1, limit=20)
    assert below_baselines([limited], {"gad": BASELINES}) == [limited]
    assert (
        "limit: no baseline is compared, because baselines learn from all documents"
        in end_of_run([limited], "results")
    )


def test_two_models_of_one_name_are_told_apart_everywhere(biobench, tiny, tmp_path):
    for team in ("a", "b"):
        shutil.copytree(tiny, tmp_path / team / "encoder-x")
    models = ("a/encoder-x", "b/encoder-x")
    (weights,) = (tmp_path / models[1]).glob("*.safetensors")
    larger = {name: 3 * tensor for name, tensor in load_file(weights).items()}
    save_file(larger, weights, metadata={"format": "pt"})
    command = ("run", *models, "--task", "demo_topic", "--seeds", "1-3", *FAST[2:])
    planned = biobench(*command, "--dry-run").ok().out
    assert "encoder-x (2)" in planned
    said = biobench(*command).ok()
    assert "[4/6] demo_topic · seed 1 · encoder-x (2)" in said.err
    lines = said.out.splitlines()
    means = [line.partition(" demo_topic ")[0].strip() for line in lines if " 1-3 " in line]
    assert means == ["encoder-x", "encoder-x (2)"]
    assert {f"encoder-x: {models[0]}", f"encoder-x (2): {models[1]}"} <= {*lines}
    following = lines[-1].split("`")[-2]
    assert following == f"biobench compare {models[0]} {models[1]}"
    compared = biobench(*shlex.split(following)[1:], "--json").ok().json()
    assert compared["pairs"][0]["difference"] != 0.0, "the two folders are two models"
    rows = biobench(*command, "--json").ok().json()
    assert len({row["weights"] for row in rows}) == 2
    assert {row["model"] for row in rows} == {"encoder-x", "encoder-x (2)"}


def test_an_interrupt_says_what_is_kept(biobench, tiny, monkeypatch):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("biobench.runs.api.run_plan", stopped)
    said = biobench("run", tiny, "--task demo_ner --seeds 1", *FAST)
    assert said.status == 130
    assert "repeat the same command" in said.err


def test_what_was_run_is_compared_with_a_pulled_model(biobench, tiny):
    same = ("--task demo_topic --seeds 1-3", *FAST[2:])  # of limited runs none is shared
    pulled = "results/submitted/org--dummy"
    biobench("run dummy", *same, "--results-dir", pulled).ok()
    command = ("run", tiny, *same, "--against")
    assert "dummy" in biobench(*command, "dumy").err, "the nearest name"
    assert not Path("results/runs").exists(), "refused before anything is trained"

    said = biobench(*command, "dummy").ok()
    table, _, verdict = said.out.partition("Results: results.")
    assert "demo_topic" in table
    first = verdict.splitlines()[1]
    for words in (
        "tiny",
        "dummy",
        "Shown for this task",
        "Not tested for other tasks like these: one corpus.",
    ):
        assert words in first
    as_json = biobench(*command, "dummy", "--json")
    assert first in as_json.err
    assert [row["status"] for row in json.loads(as_json.out)] == ["skipped"] * 3


def test_the_runs_of_the_command_are_compared_and_not_others_of_the_model(biobench, tiny):
    full = ("--task demo_topic --seeds 1-3", *FAST[2:])
    limited = ("--task demo_topic --seeds 1-3", *FAST)
    biobench("run dummy", *full).ok()
    biobench("run", tiny, *full).ok()
    whole = biobench("compare", tiny, "dummy").ok().out.splitlines()[0]

    said = biobench("run", tiny, *limited, "--against dummy").ok().out
    assert "are not compared: " in said, "there are no such runs of the other"
    assert whole not in said
    biobench("run dummy", *limited).ok()
    said = biobench("run", tiny, *limited, "--against dummy").ok().out
    assert "[limit 24, " in said
    assert whole not in said


def test_runs_that_cannot_be_compared_are_shown_with_the_reason(biobench, tiny):
    save_runs(Path("results"), "org/theirs", ("demo_ner",), 0.9, (1, 2, 3))
    said = biobench("run", tiny, "--task demo_topic --seeds 1", *FAST, "--against org/theirs")
    assert said.status == 0, "the runs are made and stored"
    assert "] and org/theirs are not compared: " in said.out
    assert "demo_topic" in said.out


def test_runs_on_several_shares_are_no_seeds_of_one_mean(biobench, tiny):
    said = biobench("run", tiny, "--task demo_topic --seeds 1,2 --fractions 0.5,1", *FAST).ok()
    means = [line for line in said.out.splitlines() if " 1-2 " in line]
    assert ["fraction 0.5" in line for line in means] == [False, True]
