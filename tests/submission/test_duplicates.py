"""Copies of other runs: exact, near, of weights; and honest runs that are none."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace

import pytest

from biobench.schema.document import Document, Prediction
from biobench.store import Store
from biobench.submission.duplicates import Answers, answers_of, check_copies
from biobench.submission.earlier import keep_answers
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.store_make import record
from tests.helpers.submission_make import TASK, checked, honest_run, save_rekeyed

LABELS = ("no", "yes")
DOCUMENTS = [
    Document(f"d{i:03d}", f"d{i:03d}", "", "test", labels=(LABELS[i % 2],)) for i in range(500)
]
"""Of which a third is hard for every model."""
NUMBERED = [
    Document(f"d{i:03d}", f"d{i:03d}", "", "test", labels=(str(i % 5),)) for i in range(100)
]


def run_of(
    predictions: Sequence[Prediction],
    seed: int = 1,
    place: str = "",
    weights: str = "a",
    kind: str = "single_label",
) -> Answers:
    run, labels = record(seed=seed, score=False), LABELS if kind == "single_label" else ()
    task = run.task.model_copy(update={"labels": labels, "gold_labels": labels, "type": kind})
    model = run.model.model_copy(update={"id": f"org/{weights}", "hash": weights * 64})
    run = run.model_copy(update={"task": task, "model": model, "key": f"{seed:032x}"})
    return answers_of(run, DOCUMENTS if labels else NUMBERED, predictions, place)


def answer(document: Document, right: bool, strength: float) -> Prediction:
    label = document.labels[0] if right else LABELS[1 - LABELS.index(document.labels[0])]
    scores = tuple(strength if name == label else 1 - strength for name in LABELS)
    return Prediction(document.id, labels=(label,), label_scores=scores)


def trained(seed: int, hard: float = 0.5, easy: float = 0.05) -> list[Prediction]:
    """Errors mostly on the documents that are hard for all; scores that vary by document and by
    seed.
    """
    chance = random.Random(seed)
    return [
        answer(
            d,
            chance.random() >= (hard if i % 3 == 0 else easy),
            round(0.6 + 0.3 * chance.random(), 6),
        )
        for i, d in enumerate(DOCUMENTS)
    ]


def findings(runs: Sequence[Answers], others: Sequence[Answers] = ()) -> set[tuple[str, str]]:
    return {(check.code, check.grade) for check in check_copies(runs, others)}


PERSON, ERROR = {("P02", "person")}, {("P02", "error")}


def test_trainings_that_share_what_is_hard_are_no_finding():
    runs = [run_of(trained(seed), seed) for seed in (1, 2, 3)]
    others = [run_of(trained(seed, 0.6), seed, "results", "b") for seed in (4, 5)]
    assert findings(runs, others) == set()


@pytest.mark.parametrize(("turned", "expected"), [(0, PERSON), (5, PERSON), (250, set())])
def test_a_copy_with_other_scores_and_a_few_turned_answers_is_near(turned, expected):
    chance, source = random.Random(9), trained(1)
    places = set(chance.sample(range(len(source)), turned))
    copy = [
        answer(d, (p.labels == d.labels) != (i in places), round(chance.uniform(0.6, 0.99), 6))
        for i, (d, p) in enumerate(zip(DOCUMENTS, source, strict=True))
    ]
    assert findings([run_of(copy)], [run_of(source, 1, "results", "b")]) == expected


@pytest.mark.parametrize(("copied", "expected"), [(249, set()), (250, ERROR)])
def test_half_of_the_scores_to_the_last_digit_are_a_copy(copied, expected):
    copy = [*trained(1)[:copied], *trained(2)[copied:]]
    assert findings([run_of(copy)], [run_of(trained(1), 1, "results", "b")]) == expected


@pytest.mark.parametrize(("copied", "expected"), [(9, set()), (10, ERROR)])
def test_scores_next_to_0_and_1_tell_no_two_trainings_apart(copied, expected):
    def sure(predictions: list[Prediction]) -> list[Prediction]:
        return [
            p
            if i < copied
            else replace(p, label_scores=tuple(float(s > 0.5) for s in p.label_scores))
            for i, p in enumerate(predictions)
        ]

    first, second = sure(trained(1)), sure([*trained(1)[:copied], *trained(2)[copied:]])
    assert findings([run_of(second)], [run_of(first, 1, "results", "b")]) == expected


def test_probes_of_several_seeds_on_the_same_states_may_answer_alike():
    chance, source = random.Random(9), trained(1)
    again = [
        replace(p, label_scores=tuple(round(s - 1e-3 * chance.random(), 6) for s in p.label_scores))
        for p in source
    ]
    first, second = run_of(source, 1), run_of(again, 2)
    assert findings([first, second]) == PERSON
    frozen = [replace(run, brief=run.brief._replace(track="frozen")) for run in (first, second)]
    assert findings(frozen) == set()
    assert findings([frozen[0], replace(frozen[0], brief=frozen[1].brief)]) == ERROR, (
        "the same scores"
    )


def test_a_copied_checkpoint_under_a_new_name_is_seen_by_its_weights():
    """Its seeds are others, or its thresholds were fitted anew, so that neither answers nor scores
    are equal.
    """
    mine, theirs = run_of(trained(1), 1), run_of(trained(2), 2, "results")
    renamed = theirs.brief._replace(model="org/else")
    assert findings([mine], [theirs]) == set(), "another seed of the same model"
    assert findings([mine], [replace(theirs, brief=renamed)]) == PERSON


def test_splits_of_one_task_are_not_compared_with_each_other():
    first, second = run_of(trained(1), 1), run_of(trained(2), 2)
    assert findings([first, replace(second, fold=1, documents=7)]) == set()
    assert findings([first, replace(second, documents=7)]) == PERSON


@pytest.mark.parametrize(("others", "expected"), [(10, set()), (11, PERSON)])
def test_runs_that_gave_one_answer_to_everything_are_no_copies(others, expected):
    """Seen: five encoders without any label on Hallmarks of Cancer, each the copy of the first by
    their decisions.
    """

    def idle(seed: int) -> Answers:
        chance = random.Random(seed)
        predictions = [
            answer(d, d.labels[0] == "no", round(chance.uniform(0.6, 0.99), 6)) for d in DOCUMENTS
        ]
        for place in range(1, 2 * others, 2):
            predictions[place] = answer(DOCUMENTS[place], True, round(chance.uniform(0.6, 0.99), 6))
        return run_of(predictions, seed, weights="abc"[seed])

    assert findings([idle(0), idle(1)], [idle(2)]) == expected


def test_numbers_are_copied_or_not():
    def numbers(seed: int) -> list[Prediction]:
        chance = random.Random(seed)
        return [
            Prediction(d.id, label_scores=(round(float(d.labels[0]) + chance.gauss(0, 0.5), 6),))
            for d in NUMBERED
        ]

    runs = [run_of(numbers(seed), seed, kind="regression") for seed in (1, 2)]
    assert findings(runs, [run_of(numbers(9), 1, "results", "b", "regression")]) == set()
    assert findings(runs[:1], [run_of(numbers(1), 1, "results", "b", "regression")]) == ERROR


# whole submissions


@pytest.mark.parametrize("seeds", [(42, 43), (43, 42)])
@pytest.mark.parametrize("place", ["results", "submitted/theirs"])
def test_another_models_predictions_under_a_new_name(tmp_path, seeds, place):
    board, mine = tmp_path / "board", tmp_path / "mine"
    (board / "runs").mkdir(parents=True)
    for seed, other in zip((42, 43), seeds, strict=True):
        honest_run(board if place == "results" else board / place, seed, model="org/theirs")
        copied = honest_run(mine, seed, model="org/theirs")
        (mine / "runs" / TASK / f"{copied.key}.json").unlink()
        save_rekeyed(mine, copied, seed=other, id="org/tiny", hash="f" * 64)
    pack = submit("org/tiny", mine, tmp_path / "pack")
    assert examine(pack).state == "verified"
    verification = examine(pack, against=board)
    assert [check.code for check in verification.checks if check.grade == "error"] == ["P02", "P02"]
    assert all("org/theirs" in check.what for check in verification.checks if check.code == "P02")


def test_the_same_submission_again_and_honest_others_are_no_finding(tmp_path):
    board = tmp_path / "board"
    for seed in (42, 43):
        honest_run(tmp_path / "mine", seed)
        honest_run(board, seed, model="org/theirs")
    pack = submit("org/tiny", tmp_path / "mine", board / "submitted" / "mine")
    assert {check.code for check in examine(pack, against=board).checks} <= {"W01"}
    assert {check.code for check in checked(tmp_path / "mine", against=board).checks} <= {"W01"}


def test_what_earlier_runs_answer_is_read_once(tmp_path, monkeypatch):
    """Thousands of earlier runs took longer than a check may."""
    board = tmp_path / "board"
    for seed in range(42, 46):
        honest_run(board, seed, model="org/theirs", weights="7" * 64)
    honest_run(tmp_path / "mine")
    pack = submit("org/tiny", tmp_path / "mine", tmp_path / "pack")
    keep_answers(board, pack)
    read = []
    whole = Store.stored_predictions
    monkeypatch.setattr(
        Store,
        "stored_predictions",
        lambda store, record: read.append(store.root) or whole(store, record),
    )
    before = examine(pack, against=board)
    assert set(read) == {pack}, "its own alone"
    shutil.rmtree(board / ".counts")
    assert examine(pack, against=board).checks == before.checks
    read.clear()
    honest_run(board, 42, model="org/theirs", weights="7" * 64)
    examine(pack, against=board)
    assert read.count(board) == 1, "the one that was written again"


def test_copies_are_found_by_what_is_kept_of_earlier_runs(tmp_path):
    run = honest_run(tmp_path / "board", model="org/theirs", weights="7" * 64)
    gold, answers = Store(tmp_path / "board").load_predictions(run)
    save_rekeyed(tmp_path / "mine", run, answers, gold, id="org/tiny", hash="8" * 64)
    pack = submit("org/tiny", tmp_path / "mine", tmp_path / "pack")
    for _ in range(2):
        (copy,) = [c for c in examine(pack, against=tmp_path / "board").checks if c.code == "P02"]
        assert copy.grade == "error"
        assert copy.what.endswith("of org/theirs, seed 42, in the results")
