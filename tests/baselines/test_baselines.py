"""The baselines: what they predict, and that they score what label counts alone tell."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from biobench.baselines.blind import Baseline, label_baselines, mention_baselines
from biobench.baselines.reading import bag_of_words, dictionary
from biobench.baselines.verdict import baselines
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.schema.baseline import READERS
from biobench.schema.document import Document, Span, TaskData
from biobench.schema.task import TaskType
from biobench.score import Scores, compute
from tests.helpers.golden_make import write_tasks
from tests.helpers.sts_make import STS, write_sts


def classified(train: list[str], test: list[str], labels: str = "ABC") -> TaskData:
    """One document a text; `AC` is a document with the labels A and C."""

    def made(name: str, given: list[str]) -> list[Document]:
        return [
            Document(f"{name}{i}", f"{name}{i}", f"word {x}", name, labels=tuple(x))
            for i, x in enumerate(given)
        ]

    gold = "".join(label for label in labels if any(label in own for own in test))
    return corpus(made("train", train), made("test", test), labels, gold)


def corpus(train: list[Document], test: list[Document], labels: str, gold: str = "") -> TaskData:
    """labels: of one letter each. gold: those of the test split, all where none are named."""
    documents = {"train": train, "test": test}
    return TaskData(documents, tuple(gold or labels), tuple(labels), "s", "h")


def mentions(split: str, *texts: tuple[str, list[tuple[str, str]]]) -> list[Document]:
    """Texts, each with the (surface, label) of its mentions."""
    found = []
    for i, (text, given) in enumerate(texts):
        spans = tuple(
            sorted(Span(text.index(s), text.index(s) + len(s), label) for s, label in given)
        )
        found.append(Document(f"{split}{i}", f"{split}{i}", text, split, spans=spans))
    return found


def scores(data: TaskData, policy: Baseline, type: TaskType, draw: int = 0) -> Scores:
    return compute(
        type=type,
        labels=data.labels,
        gold_labels=data.gold_labels,
        gold=data.test,
        predictions=policy.draws[draw],
    )


def test_the_majority_class_has_the_scores_of_its_share() -> None:
    data = classified(["B", "A", "B"], ["B", "B", "B", "A"])
    policy, _ = label_baselines(data, 1, single=True)
    assert {p.labels for p in policy.draws[0]} == {("B",)}
    found = scores(data, policy, "single_label").values
    assert found["accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((2 * 0.75 / 1.75) / 2)
    assert found["macro_f1_all"] == pytest.approx((2 * 0.75 / 1.75) / 3)
    assert found["weighted_f1"] == pytest.approx(0.75 * 2 * 0.75 / 1.75)


def test_the_prior_says_what_more_than_half_have() -> None:
    data = classified(["AB", "AB", "AC", "B"], ["AB", "A", "C", ""])
    _, policy, _ = label_baselines(data, 1, single=False)
    assert {p.labels for p in policy.draws[0]} == {("A", "B")}
    found = scores(data, policy, "multi_label").values
    # A: 2 of 4 under it, B: 1 of 4, C never said
    assert found["macro_f1"] == pytest.approx((4 / 6 + 2 / 5 + 0) / 3)
    assert found["micro_f1"] == pytest.approx(2 * 3 / (8 + 4))
    _, exactly_half, _ = label_baselines(classified(["A", "B"], ["A"]), 1, single=False)
    assert exactly_half.draws[0][0].labels == ()


def test_random_labels_hit_as_often_as_the_shares_say() -> None:
    rng = np.random.default_rng(3)
    single = classified(
        list(rng.choice(list("ABC"), 500, p=[0.6, 0.3, 0.1])), list(rng.choice(list("ABC"), 500))
    )
    several = classified(["AB", "A", "C", "A"] * 100, ["A", "BC", "ABC", ""] * 100)
    for data, one, type in ((single, True, "single_label"), (several, False, "multi_label")):
        policy = label_baselines(data, 7, single=one)[-1]
        assert len(policy.draws) > 1
        assert policy.draws[0] != policy.draws[1]
        assert policy.draws == label_baselines(data, 7, single=one)[-1].draws
        hits = [
            sum(row["tp"] for row in scores(data, policy, type, i).per_label.values())  # type: ignore[arg-type]
            for i in range(len(policy.draws))
        ]
        share = {x: sum(x in d.labels for d in data.train) / len(data.train) for x in "ABC"}
        hit = [share[x] for d in data.test for x in d.labels]
        spread = math.sqrt(sum(p * (1 - p) for p in hit))
        assert abs(np.mean(hits) - sum(hit)) < 4 * spread / math.sqrt(len(hits))


def test_no_mention_scores_nothing_and_random_mentions_little() -> None:
    text = ("The fever and cough of old men", [("fever", "D"), ("cough", "D"), ("old men", "P")])
    data = corpus(mentions("train", text), mentions("test", *[text] * 300), "DP")
    nothing, policy = mention_baselines(data, 1)
    assert set(scores(data, nothing, "span_ner").values.values()) == {0.0}
    # 7 words, two of them begin a D of one word and one a P of two
    hits = [
        sum(row["tp"] for row in scores(data, policy, "span_ner", i).per_label.values())
        for i in range(len(policy.draws))
    ]
    spread = math.sqrt(300 * (2 * (2 / 7) * (5 / 7) + (1 / 7) * (6 / 7)))
    assert abs(np.mean(hits) - 300 * (2 * 2 / 7 + 1 / 7)) < 4 * spread / math.sqrt(len(hits))
    assert all(0 <= s.start < s.end <= len(text[0]) for p in policy.draws[0] for s in p.spans)
    assert not any(
        s.label == "P" and s.start == text[0].index("men") for p in policy.draws[0] for s in p.spans
    )


def test_the_dictionary_takes_the_longest_match_and_the_majority_type() -> None:
    lungs = [
        (f"{word} lung", [("lung", label)])
        for word, label in (("a", "A"), ("no", "A"), ("odd", "D"))
    ]
    train = mentions(
        "train", ("lung cancer", [("lung cancer", "D")]), *lungs, ("BRCA1 here", [("BRCA1", "G")])
    )
    test = mentions(
        "test", ("Cancer? lung cancer, lung; brca1 lung", []), ("a lung", []), ("lung", [])
    )
    data = corpus(train, test, "ADG", "D")
    said = dictionary(data).draws[0]
    text = test[0].text
    wanted = [("lung cancer", "D"), ("lung", "A"), ("lung", "A")]
    assert [(text[s.start : s.end], s.label) for s in said[0].spans] == wanted
    assert [s.label for s in said[2].spans] == ["A"]
    tie = corpus([train[1], train[3]], test, "DA", "D")
    assert [s.label for s in dictionary(tie).draws[0][2].spans] == ["D"]


def test_the_dictionary_uses_the_corpus_tokens_and_gives_tags() -> None:
    def made(id: str, spans: tuple[Span, ...]) -> Document:
        return Document(
            id,
            id,
            "p53-null cells",
            "train",
            spans=spans,
            tokens=((0, 8), (9, 14)),
            tags=("O", "O"),
        )

    data = corpus([made("a", (Span(0, 8, "G"),))], [made("b", ())], "G")
    (said,) = dictionary(data).draws[0]
    assert said.spans == (Span(0, 8, "G"),)
    assert said.tags == ("B-G", "O")
    inside = corpus([made("a", (Span(0, 3, "G"),))], [made("b", ())], "G")
    assert "the 0 surfaces" in dictionary(inside).words, (
        "a mention inside a token is no surface of the tokens"
    )


def test_the_bag_of_words_reads() -> None:
    data = classified(["A", "B", "C"] * 10, ["A", "B", "C"] * 5)
    assert scores(data, bag_of_words(data, 0, single=True), "single_label").values["accuracy"] == 1
    several = classified(["AB", "A", "B", ""] * 10, ["AB", "A", "", "B"])
    policy = bag_of_words(several, 0, single=False)
    assert {p.document: p.labels for p in policy.draws[0]}["test2"] == ()
    assert all("C" not in p.labels for p in policy.draws[0]), (
        "a label without training documents is never predicted"
    )


def with_other_words(document: Document) -> Document:
    """The document with an x for each letter and digit of its texts."""
    texts = {name: re.sub(r"\w", "x", getattr(document, name)) for name in ("query", "text")}
    return replace(document, **texts)


def test_the_policies_that_read_are_those_that_predict_otherwise_for_other_words(
    tmp_path: Path,
) -> None:
    """One that is missing from the table would make models at its score guess."""
    readers: set[str] = set()
    write_sts(tmp_path / "sts")
    (tmp_path / "my_sts.yaml").write_text(STS, encoding="utf-8")
    paths = write_tasks(tmp_path)
    del paths["golden_needle"]  # its texts are made of a plan, and no policy has skill there
    for path in ("demo_ner", tmp_path / "my_sts.yaml", *paths.values()):
        task = load_task(path)
        data = load_data(task, tmp_path)
        other_words = replace(
            data, documents=data.documents | {"test": [with_other_words(d) for d in data.test]}
        )
        policies = zip(baselines(task.spec, data), baselines(task.spec, other_words), strict=True)
        readers |= {own.name for own, other in policies if own.draws != other.draws}
    assert readers == set(READERS)
