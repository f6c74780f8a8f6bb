"""A submission that would lead: a seed that a maintainer draws lets it in, or shows that it is made
up.
"""

import secrets
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from biobench.cli.share import packed_findings
from biobench.score import oracle, scored
from biobench.store import Store
from biobench.store.statements import make_statement, mark_of, save_statement, statement_path
from biobench.submission.checks import Check, RunState, Verification
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from biobench.workflows.draws import agreement_interval, prediction_interval
from tests.helpers.cli_make import Said, call
from tests.helpers.submission_make import TASK, findings, honest_run, refused, save_rekeyed
from tests.helpers.tiny import make_tiny_encoder

DRAWING = ("--draw", "--models", "models", "--device", "cpu", "--against", "board")


@pytest.fixture
def biobench(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Said]:
    """`biobench(ARGUMENTS)` in this process, in an empty folder; seeds are drawn always alike."""
    monkeypatch.delenv("BIOBENCH_DATA_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(secrets, "randbelow", lambda most: 7)
    return lambda *arguments: call(monkeypatch, capfd, *arguments)


def weak_rival(board: Path) -> None:
    """A model on the board that gives one answer to everything."""
    run = honest_run(board, model="org/weak")
    answer = {"labels": ("cardiology",), "label_scores": (1.0, 0, 0, 0)}
    predictions = Store(board).load_predictions(run)[1]
    save_rekeyed(board, run, [replace(prediction, **answer) for prediction in predictions])


def invent(results: Path) -> None:
    """Every run's answers drawn from the gold, wrong on nearly every second, with scores of their
    own.

    The tiny encoder solves the demo task, so these are worse than its own answers; what counts is
    that they are others.
    """
    store = Store(results)
    for made in list(store.records()):
        gold, said = store.load_predictions(made)
        chance, labels = np.random.default_rng(made.seed), made.task.labels
        invented = []
        for document, p in zip(gold, said, strict=True):
            label = document.labels[0]
            if chance.random() <= 0.6:
                label = labels[chance.integers(len(labels))]
            raw = chance.random(len(labels)) + 2.0 * np.array([name == label for name in labels])
            scores = tuple(round(float(x), 6) for x in raw / raw.sum())
            invented.append(replace(p, labels=(label,), label_scores=scores))
        made = made.model_copy(update={"slices": {}})
        store.save(scored(made, gold, invented), gold, invented)


def test_a_drawn_seed_lets_an_honest_leader_in_and_an_invented_one_out(biobench, tmp_path):
    """Before, gold with a few errors was verified like any training: no file of a submission tells
    them apart.
    """
    make_tiny_encoder(tmp_path / "models" / "tiny")
    options = "--seeds 42-44 --track frozen --device cpu --parallel 1 --no-gate --results-dir mine"
    assert biobench("run", "models/tiny", "--task", TASK, *options.split()).status == 0
    weak_rival(tmp_path / "board")
    honest = submit("tiny [frozen]", tmp_path / "mine", tmp_path / "board" / "submitted" / "honest")
    (invented_runs := tmp_path / "invented").mkdir()
    for made in list(Store(tmp_path / "mine").records()):
        Store(invented_runs).copy(Store(tmp_path / "mine"), made)
    invent(invented_runs)
    cheat = submit("tiny [frozen]", invented_runs, tmp_path / "cheat")
    for pack in (honest, cheat):
        waits = biobench("verify-submission", pack, "--against", "board")
        assert waits.status == 1
        assert f"W01 person: runs/{TASK}: mean macro_f1 " in waits.out
        assert waits.out.splitlines()[-1].startswith("waits for a maintainer")
    agrees = biobench("reproduce", "--of", honest, *DRAWING)
    assert agrees.status == 0, agrees.out + agrees.err
    assert f"{TASK} · seed 7: macro_f1 " in agrees.out
    assert agrees.out.splitlines()[-1] == "statement: board/statements/honest.json (reproduced)"
    found = examine(honest, against=tmp_path / "board")
    assert (found.accepted, found.mark, mark_of(honest)) == (True, "reproduced", "reproduced")
    denies = biobench("reproduce", "--of", cheat, *DRAWING, "--json")
    assert denies.status == 1
    (draw,) = denies.json()["draws"]
    assert (draw["seed"], draw["agrees"], draw["score"] > draw["high"]) == (7, False, True), draw
    found = examine(cheat, against=tmp_path / "board")
    assert (found.state, found.mark) == ("refused", "claimed")
    assert findings(found, "W02")


def test_two_seeds_are_too_few_and_a_refused_submission_is_not_run(biobench, packed):
    make_tiny_encoder(packed.parent / "models" / "org" / "tiny")
    (packed.parent / "board").mkdir()
    words = ("reproduce", "--of", packed)
    said = biobench(*words, *DRAWING)
    assert "2 submitted seeds do not tell what one more would score" in said.refusal()
    (packed / "extra").write_text("")
    assert "the submission is refused: extra" in biobench(*words, *DRAWING).refusal()
    assert "give RECORD, or --of SUBMISSION --draw" in biobench(*words).err
    assert "name their folder with --against" in biobench(*words, "--draw").err


def test_a_statement_holds_for_one_manifest_and_is_read_beside_the_submission_alone(tmp_path):
    honest_run(tmp_path / "results")
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "board" / "submitted" / "mine")
    assert mark_of(pack) == "claimed"
    save_statement(pack, pack, make_statement(pack, "reproduced"))
    assert mark_of(pack) == "claimed", "not inside the submission, where its author writes"
    assert refused(pack) == {"L02"}
    save_statement(pack, tmp_path / "board", make_statement(pack, "re-scored"))
    assert mark_of(pack) == "re-scored"
    manifest = pack / "submission.json"
    manifest.write_text(manifest.read_text().replace('"notes": ""', '"notes": "x"'))
    assert mark_of(pack) == "claimed", "the submission was changed since"
    statement_path(pack, tmp_path / "board").write_text("[" * 100_000)
    assert mark_of(pack) == "claimed"


def test_a_statement_without_a_draw_reproduces_nothing(packed, tmp_path):
    """Anybody can write the word."""
    board = tmp_path / "board"
    pack = Path(shutil.copytree(packed, board / "submitted" / "mine"))
    save_statement(pack, board, make_statement(pack, "reproduced"))
    found = examine(pack, against=board)
    assert (found.mark, found.state, mark_of(pack)) == ("re-scored", "person", "claimed")


def test_a_damaged_statement_is_said(packed, tmp_path):
    statement_path(packed, tmp_path / "board").parent.mkdir(parents=True)
    statement_path(packed, tmp_path / "board").write_text("{}{")
    assert findings(examine(packed, against=tmp_path / "board"), "W03")


def test_what_was_scored_again_is_stated_where_one_asks(biobench, packed):
    better = honest_run(packed.parent / "board", model="org/better")
    gold, _ = Store(packed.parent / "board").load_predictions(better)
    save_rekeyed(packed.parent / "board", better, oracle(gold))
    assert biobench("verify-submission", packed, "--against", "board").status == 0
    assert not (packed.parent / "board" / "statements").exists()
    said = biobench(
        "verify-submission", packed, "--against", "board", "--write-statement", "--json"
    ).json()
    assert said["mark"] == "re-scored"
    assert (packed.parent / "board" / "statements" / "submission.json").is_file()
    assert "add --against RESULTS" in biobench("verify-submission", packed, "--write-statement").err


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_intervals_hold_one_more_seed_of_the_same_kind_nineteen_times_in_twenty(seeds):
    chance, inside, alike = np.random.default_rng(1), 0, 0
    for _ in range(4_000):
        scores, effects = chance.normal(0.8, 0.02, seeds + 1), chance.normal(0, 0.01, seeds + 1)
        low, high = prediction_interval(scores[:-1].mean(), scores[:-1], 0.0)
        inside += low <= scores[-1] <= high
        pairs = 0.9 + effects[:, None] + effects[None, :]
        np.fill_diagonal(pairs, 1.0)
        low, high = agreement_interval(pairs[:-1, :-1], 10**9)
        alike += low <= pairs[-1, :-1].mean() <= high
    assert 0.94 < inside / 4_000 < 0.96
    assert 0.94 < alike / 4_000 < 0.96


def test_three_seeds_that_solve_a_task_leave_room_for_one_document():
    """Three perfect seeds of 85 documents: a fourth may err on one of them, not on four."""
    perfect = np.ones(3)
    low, _ = prediction_interval(1.0, perfect, 1 / 85**2)
    alike_low, _ = agreement_interval(np.ones((3, 3)), 85)
    for bound in (low, alike_low):
        assert 1 - 4 / 85 < bound < 1 - 1 / 85


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ((), "refused: 0 runs"),
        (("person", "person"), "waits for a maintainer: 2 runs"),
        (
            ("verified", "person", "person"),
            "waits for a maintainer: 3 runs (verified: 1, waits for a maintainer: 2)",
        ),
    ],
)
def test_the_states_of_runs_are_counted_where_they_differ(states, said):
    grade = "person" if states else "error"
    checks = (Check("W01", grade, "runs", "leads"),)
    runs = tuple(RunState("task", "", seed, state) for seed, state in enumerate(states))
    assert Verification("folder", "org/model", checks, runs).summary() == said


def test_a_pack_says_once_that_nothing_was_scored_again():
    unscored = [
        Check("D03", "warning", f"runs/{task}", f"not scored again: no {task}")
        for task in ("gad", "hoc")
    ]
    seeds = Check("C02", "warning", "runs/gad", "seeds 46 of the protocol are missing")
    lines = packed_findings(Verification("my pack", "org/model", (*unscored, seeds)))
    command = "biobench verify-submission 'my pack' --data-dir DIR"
    assert lines == [
        "C02 warning: runs/gad: seeds 46 of the protocol are missing",
        f"D03: 2 tasks not scored again here; `{command}` does it",
    ]
