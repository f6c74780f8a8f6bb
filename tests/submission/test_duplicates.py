"""Exact copies of other runs, or of weights; and honest runs that are none."""

import random
from dataclasses import replace

import pytest

from biobench.schema.document import Prediction
from biobench.store import Store
from biobench.submission.duplicates import StoredRun, check_copies, digest_of
from biobench.submission.pack import submit
from biobench.submission.verify import examine
from tests.helpers.submission_make import (
    TASK,
    checked,
    every_code,
    findings,
    honest_run,
    save_rekeyed,
)


def trained(seed: int) -> list[Prediction]:
    """Scores that vary by document and by seed."""
    chance = random.Random(seed)
    predictions = []
    for number in range(20):
        score = round(0.6 + 0.3 * chance.random(), 6)
        scores = (score, round(1 - score, 6))
        predictions.append(Prediction(f"d{number:03d}", labels=("no",), label_scores=scores))
    return predictions


def test_a_copy_is_the_same_to_the_last_digit_in_whatever_order():
    source = trained(1)
    assert digest_of("single_label", source[::-1]) == digest_of("single_label", trained(1)) != ""
    turned = replace(source[0], label_scores=source[0].label_scores[::-1])
    for others in (trained(2), [turned, *source[1:]], source[1:]):
        assert digest_of("single_label", others) != digest_of("single_label", source)


@pytest.mark.parametrize(
    ("kind", "scores", "is_telling"),
    [
        ("single_label", (1.0, 0.0), False),
        ("single_label", (0.9995, 0.0005), False),
        ("single_label", (0.99, 0.01), True),
        ("token_ner", (), False),
        ("synonyms", (), True),
        ("regression", (4.0,), True),
    ],
)
def test_scores_next_to_0_and_1_tell_no_two_trainings_apart(kind, scores, is_telling):
    predictions = [Prediction("d1", labels=("no",), label_scores=scores)]
    assert bool(digest_of(kind, predictions)) == is_telling


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
    found = findings(examine(pack, against=board), "P02")
    assert [check.grade for check in found] == ["error", "error"]
    assert all(check.what.startswith("has the predictions of org/theirs, seed") for check in found)


def test_another_models_predictions_under_its_own_name(tmp_path):
    """Other weights are another model, whatever it is called."""
    copied = honest_run(tmp_path / "board", weights="7" * 64)
    gold, predictions = Store(tmp_path / "board").load_predictions(copied)
    save_rekeyed(tmp_path / "mine", copied, predictions, gold, hash="8" * 64)
    (found,) = findings(checked(tmp_path / "mine", against=tmp_path / "board"), "P02")
    assert found.grade == "error"
    assert found.what == "has the predictions of org/tiny, seed 42, in the results"


def test_one_run_under_two_seeds(tmp_path):
    run = honest_run(tmp_path / "mine")
    predictions = Store(tmp_path / "mine").load_predictions(run)[1]
    save_rekeyed(tmp_path / "mine", run, predictions, seed=43)
    (found,) = findings(checked(tmp_path / "mine"), "P02")
    assert found.what == "has the predictions of seed 42"


@pytest.mark.parametrize(("kind", "copies"), [("single_label", 1), ("synonyms", 0)])
def test_where_nothing_is_trained_all_seeds_say_the_same(tmp_path, kind, copies):
    run = honest_run(tmp_path)
    save_rekeyed(tmp_path, run, Store(tmp_path).load_predictions(run)[1], seed=43)
    store = Store(tmp_path)
    runs = [StoredRun(brief._replace(type=kind), store) for brief in store.briefs()[0]]
    assert len(check_copies(runs, [])) == copies


def test_a_checkpoint_under_a_new_name_is_seen_by_its_weights(tmp_path):
    """Its seeds are others, so that neither answers nor scores are equal."""
    board = tmp_path / "board"
    honest_run(board, 43, model="org/theirs", weights="7" * 64)
    honest_run(tmp_path / "mine", weights="7" * 64)
    (found,) = findings(checked(tmp_path / "mine", against=board), "P02")
    assert found.grade == "person"
    assert "the weights, under another name, of org/theirs" in found.what


def test_the_same_submission_again_and_honest_others_are_no_finding(tmp_path):
    board = tmp_path / "board"
    for seed in (42, 43):
        honest_run(tmp_path / "mine", seed)
        honest_run(board, seed, model="org/theirs", weights="7" * 64)
    next(board.glob("runs/*/*.parquet")).write_bytes(b"damaged")
    pack = submit("org/tiny", tmp_path / "mine", board / "submitted" / "mine")
    assert every_code(examine(pack, against=board)) <= {"W01"}
    assert every_code(checked(tmp_path / "mine", against=board)) <= {"W01"}


def test_only_runs_of_the_same_score_are_read(tmp_path, monkeypatch):
    """Thousands of earlier runs took longer than a check may."""
    board = tmp_path / "board"
    for seed in range(42, 46):
        honest_run(board, seed, model="org/theirs", weights="7" * 64)
    copied = honest_run(tmp_path / "mine")
    gold, predictions = Store(tmp_path / "mine").load_predictions(copied)
    save_rekeyed(board, copied, predictions, gold, id="org/copy", hash="8" * 64)
    pack = submit("org/tiny", tmp_path / "mine", tmp_path / "pack")
    whole = Store.stored_predictions
    read = []

    def stored_predictions(store, record):
        read.append((store.root, record.model.id))
        return whole(store, record)

    monkeypatch.setattr(Store, "stored_predictions", stored_predictions)
    assert findings(examine(pack, against=board), "P02")
    assert set(read) == {(pack, "org/tiny"), (board, "org/copy")}
