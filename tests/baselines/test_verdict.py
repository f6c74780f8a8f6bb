"""The gate passes what it should and refuses labels shuffled against the text and moved
mentions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biobench.baselines import gate
from biobench.baselines.permutation import beats, labels_beat_permuted
from biobench.baselines.surface import surface
from biobench.baselines.verdict import baselines
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.schema.baseline import BaselineRecord
from biobench.schema.document import Document, Prediction, TaskData
from biobench.score import counts, score_task
from tests.helpers.broken_corpora import (
    broken,
    characters_moved,
    labels_shuffled,
    tokens_moved,
    types_shuffled,
)


@pytest.fixture(scope="module")
def demo() -> dict[str, tuple[LoadedTask, TaskData]]:
    """The two generated corpora."""
    tasks = [load_task(name) for name in ("demo_ner", "demo_topic")]
    return {t.id: (t, load_data(t, None)) for t in tasks}


def test_a_baseline_of_several_draws_has_their_mean(
    demo: dict[str, tuple[LoadedTask, TaskData]],
) -> None:
    task, data = demo["demo_topic"]
    draws = next(b for b in baselines(task.spec, data) if len(b.draws) > 1).draws
    stored = next(p for p in gate(task, data).policies if p.draws > 1)
    one_by_one = [
        score_task(task.spec, data, data.test, predictions).values["macro_f1"]
        for predictions in draws
    ]
    assert stored.scores["macro_f1"] == pytest.approx(sum(one_by_one) / len(draws), abs=1e-12)


Judge = Callable[..., BaselineRecord]


@pytest.fixture(scope="module")
def judge(demo: dict[str, tuple[LoadedTask, TaskData]]) -> Judge:
    """The gate on documents of the training and the test split with these labels, after a
    change."""

    def judged(
        train: list[Document],
        test: list[Document],
        labels: Sequence[str] = "AB",
        change: Any = None,
    ) -> Any:
        task = demo["demo_topic"][0]
        spec = task.spec.model_copy(update={"labels": list(labels)})
        parts = {"train": train, "validation": train[:5], "test": test}
        data = TaskData(parts, tuple(labels), tuple(labels), "generated", "h")
        return gate(replace(task, spec=spec), data if change is None else broken(data, change))

    return judged


def failed(verdict: BaselineRecord) -> set[str]:
    return {c.name for c in verdict.checks if not c.passed}


@pytest.mark.parametrize("name", ["demo_ner", "demo_topic"])
def test_generated_corpora_pass(demo: dict[str, tuple[LoadedTask, TaskData]], name: str) -> None:
    verdict = gate(*demo[name])
    assert verdict.passed, verdict.reasons
    scores = {p.name: p.scores for p in verdict.policies}
    assert {scores["oracle"][average] for average in ("macro_f1", "micro_f1", "weighted_f1")} == {
        1.0
    }
    reader = scores["training dictionary" if name == "demo_ner" else "bag of words"]
    assert reader["macro_f1"] > 0.9
    again, apart = gate(*demo[name]), {"seconds", "made"}
    assert again.model_dump(exclude=apart) == verdict.model_dump(exclude=apart), (
        "seeded: the same verdict again"
    )


@pytest.mark.parametrize("name", ["demo_ner", "demo_topic"])
def test_labels_shuffled_against_the_text_fail(
    demo: dict[str, tuple[LoadedTask, TaskData]], name: str
) -> None:
    task, data = demo[name]
    verdict = gate(task, broken(data, labels_shuffled(1)))
    assert "beats permuted" in failed(verdict)
    assert "oracle" not in failed(verdict), "the scorer is not what failed"


def test_types_shuffled_among_mentions_fail(demo: dict[str, tuple[LoadedTask, TaskData]]) -> None:
    task, data = demo["demo_ner"]
    assert failed(gate(task, broken(data, types_shuffled(1)))) == {"beats permuted types"}


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize(
    ("moved", "unit"), [(characters_moved, "character"), (tokens_moved, "token")]
)
def test_moved_mentions_fail_the_surface_check(demo, moved, unit: str, step: int) -> None:
    _, data = demo["demo_ner"]
    changed = broken(data, moved(step))
    check = surface([*changed.train, *changed.test])
    assert not check.passed
    assert (
        f"if all were moved 1 {unit} to the {'left' if step > 0 else 'right'}: offsets are shifted"
        in check.words
    )


def test_a_task_that_expects_chance(demo: dict[str, tuple[LoadedTask, TaskData]]) -> None:
    task, data = demo["demo_topic"]
    spec = task.spec.model_copy(
        update={"gate": task.spec.gate.model_copy(update={"expect": "chance"})}
    )
    chance = replace(task, spec=spec)
    leaks = gate(chance, data)
    assert failed(leaks) == {"chance", "chance: length only"}, "its texts differ in length, too"
    assert "must not be below" in leaks.reasons[0]
    assert gate(chance, broken(data, labels_shuffled(4))).passed


def test_beating_the_majority_alone_proves_nothing() -> None:
    """Guessing has a better macro F1 than the majority class; only permuting its guesses tells it
    from reading.
    """
    rng = np.random.default_rng(0)
    gold = [
        Document(f"{i}", f"{i}", "t", "test", labels=(str(x),))
        for i, x in enumerate(rng.choice(["A", "B"], 300))
    ]
    guesses = [
        Prediction(document=d.id, labels=(str(x),))
        for d, x in zip(gold, rng.choice(["A", "B"], 300), strict=True)
    ]
    constant = [Prediction(document=d.id, labels=("A",)) for d in gold]
    both = np.array([True, True])
    own, other = (
        counts(type="single_label", labels="AB", gold=gold, predictions=p)
        for p in (guesses, constant)
    )
    assert beats(own, other, both, 0).significant
    assert not beats(other, own, both, 0).significant
    permuted = labels_beat_permuted(gold, guesses, "AB", both, 0)
    assert not permuted.significant
    assert permuted.opponent == pytest.approx(0.5, abs=0.03)


def test_permuting_keeps_groups_together() -> None:
    """Ten groups of thirty equal documents: a policy right on whole groups by luck must not look
    certain.
    """
    significant = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth, said = rng.choice(["A", "B"], 10), rng.choice(["A", "B"], 10)
        gold = [
            Document(f"{g}-{i}", f"{g}", "t", "test", labels=(str(truth[g]),))
            for g in range(10)
            for i in range(30)
        ]
        guesses = [Prediction(document=d.id, labels=(str(said[int(d.group)]),)) for d in gold]
        significant += labels_beat_permuted(
            gold, guesses, "AB", np.array([True, True]), seed
        ).significant
    assert significant <= 2


def in_groups(
    groups: int, size: int, labels: Sequence[str] = "ABC"
) -> tuple[list[Document], list[Document]]:
    """Sentences whose last word tells their label; in each group labels keep their order and mostly
    stay a row.
    """
    rng = np.random.default_rng(7)

    def made(split: str, count: int) -> list[Document]:
        found = []
        for g in range(count):
            at = int(rng.integers(len(labels)))
            for i in range(size):
                at = (at + int(rng.random() < 0.5)) % len(labels)
                words = " ".join(f"w{n}" for n in rng.integers(50, size=5))
                found.append(
                    Document(
                        f"{split}{g}-{i}",
                        f"{split}{g}",
                        f"{words} says{labels[at]}",
                        split,
                        labels=(labels[at],),
                    )
                )
        return found

    return made("train", 40), made("test", groups)


def test_few_groups_are_asked_by_documents(judge: Judge) -> None:
    """Four hospitals have 24 orders, so no p below 0.01; their forty documents have enough."""
    few = in_groups(4, 10)
    verdict = judge(*few, "ABC")
    assert verdict.passed, verdict.reasons
    assert verdict.test_groups == 4
    assert any(
        "by documents, as 4 test groups are too few" in check.words for check in verdict.checks
    )
    assert not judge(*few, "ABC", labels_shuffled(1)).passed
    tiny = judge(*in_groups(1, 5), "ABC")
    assert not tiny.passed
    assert all(
        "5 test documents cannot show it, the gate needs 8" in reason for reason in tiny.reasons
    )


def test_pairs_of_texts_are_read_together(judge: Judge) -> None:
    """The label says whether both texts are of one kind; neither text alone tells it."""
    rng = np.random.default_rng(3)
    kinds = {"heart": ["cardiac", "pulse", "valve"], "lung": ["cough", "asthma", "airway"]}

    def made(split: str, count: int) -> list[Document]:
        found = []
        for i in range(count):
            picked = [str(rng.choice(list(kinds))) for _ in range(2)]
            first, second = (" ".join(rng.choice([*kinds[k], "the", "was"], 6)) for k in picked)
            label = "same" if picked[0] == picked[1] else "other"
            found.append(
                Document(f"{split}{i}", f"{split}{i}", second, split, labels=(label,), query=first)
            )
        return found

    texts = made("train", 150), made("test", 60), ("other", "same")
    assert judge(*texts).passed
    for alone in ({"query": ""}, {"text": "none"}):
        assert not judge(
            *texts, lambda documents, a=alone: [replace(d, **a) for d in documents]
        ).passed
    assert "beats permuted" in failed(judge(*texts, labels_shuffled(2)))


def test_labels_learned_by_heart_are_no_information(judge: Judge) -> None:
    """Random labels, and a test split that repeats training: the reader is right everywhere and has
    read nothing.
    """
    rng = np.random.default_rng(5)
    made = [
        Document(
            f"d{i}",
            f"d{i}",
            " ".join(f"w{n}" for n in rng.integers(500, size=12)),
            "train",
            labels=(str(x),),
        )
        for i, x in enumerate(rng.choice(["A", "B"], 300))
    ]
    copies = [
        replace(d, id=f"t{d.id}", group=f"t{d.id}", split="test", text=d.text.upper())
        for d in made[:60]
    ]
    new = [replace(d, split="test") for d in made[200:]]
    only = judge(made[:200], copies)
    assert failed(only) == {"overlap"}
    assert "of 60 test documents 60 occur verbatim in training" in only.reasons[0]
    both = judge(made[:200], copies + new)
    assert "beats permuted" in failed(both)
    assert any("the text is tested on the other 100" in check.words for check in both.checks)
    few = judge(made[:200], copies[:5] + new)
    assert few.flags == (), "few copies are excluded, and nothing else"
    assert any(
        "5 occur verbatim in training; the text is tested on the other 100" in c.words
        for c in few.checks
    )


def test_labels_that_follow_from_the_length_are_refused(judge: Judge) -> None:
    rng = np.random.default_rng(1)

    def made(split: str, count: int) -> list[Document]:
        documents = []
        for i in range(count):
            words = [f"w{n}" for n in rng.integers(400, size=rng.integers(8, 40))]
            labels = ("AB"[len(words) > 22],)
            documents.append(
                Document(f"{split}{i}", f"{split}{i}", " ".join(words), split, labels=labels)
            )
        return documents

    verdict = judge(made("train", 400), made("test", 150))
    assert "beats length only" in failed(verdict)
    (policy,) = [p for p in verdict.policies if p.name == "length only"]
    assert policy.scores["macro_f1"] > 0.95


def test_patients_in_both_splits_are_refused_or_flagged(judge: Judge) -> None:
    """Each patient has one label and words of their own, which tell the patient and nothing
    else."""
    rng = np.random.default_rng(3)
    label = {patient: str(rng.choice(["A", "B"])) for patient in range(80)}

    def notes(split: str, patients: Sequence[int]) -> list[Document]:
        return [
            Document(
                f"{split}{p}-{i}",
                f"patient{p}",
                " ".join(f"p{p}w{n}" for n in rng.integers(30, size=12)),
                split,
                labels=(label[p],),
            )
            for p in patients
            for i in range(4)
        ]

    shared = judge(notes("train", range(40)), notes("test", range(40)))
    assert failed(shared) == {"overlap"}
    assert "160 are of groups (patients, articles) that training has too" in shared.reasons[0]
    partly = judge(notes("train", range(40)), notes("test", range(20, 60)))
    assert "beats permuted" in failed(partly), "asked of new patients, the words tell nothing"
    assert "overlap" not in failed(partly)
    assert any("80 are of groups (patients, articles)" in flag for flag in partly.flags)
