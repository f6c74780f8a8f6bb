"""Laws of the scores: order, naming, perfection, and agreement with scikit-learn, seqeval and the
statistics.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_support
from seqeval.scheme import IOB2
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score
from sklearn.metrics import precision_recall_fscore_support as by_label
from sklearn.preprocessing import MultiLabelBinarizer

from biobench.schema.document import Document, Prediction
from biobench.schema.metric import F1_AVERAGES
from biobench.schema.tags import tags_to_spans
from biobench.score import compute, counts
from biobench.score.counting import overlap_matches, shares
from biobench.stats import Counts, f1_scores
from tests.helpers.score_make import LABELS, classified, pairs_of_labels, scores, spans, tag_rows

few = settings(max_examples=60)


def gold_of(gold: list[Document]) -> tuple[str, ...]:
    found = {x for d in gold for x in d.labels} | {s.label for d in gold for s in d.spans}
    return tuple(sorted(found))


@few
@given(pairs_of_labels())
def test_single_label_equals_scikit_learn(pair):
    gold, said = classified(*pair)
    true, found = [x[0] for x in pair[0]], [x[0] for x in pair[1]]
    values = scores(
        "single_label", LABELS, gold_of(gold), (gold, said), negative_label=LABELS[-1]
    ).values
    expected = {
        "micro_f1_positive": f1_score(
            true, found, average="micro", labels=LABELS[:-1], zero_division=0
        ),
        "macro_f1": f1_score(true, found, average="macro", labels=gold_of(gold), zero_division=0),
        "macro_f1_all": f1_score(true, found, average="macro", labels=LABELS, zero_division=0),
        "micro_f1": f1_score(true, found, average="micro"),
        "weighted_f1": f1_score(true, found, average="weighted", labels=LABELS, zero_division=0),
        "accuracy": accuracy_score(true, found),
    }
    assert {name: values[name] for name in expected} == pytest.approx(expected)


@few
@given(pairs_of_labels(label_sets=True).filter(lambda pair: any(pair[0])))
def test_multi_label_equals_scikit_learn(pair):
    gold, said = classified(*pair)
    binarizer = MultiLabelBinarizer(classes=LABELS)
    true, found = binarizer.fit_transform(pair[0]), binarizer.fit_transform(pair[1])
    whole = scores("multi_label", LABELS, gold_of(gold), (gold, said))
    columns = [LABELS.index(label) for label in gold_of(gold)]
    expected = {
        "macro_f1": f1_score(true, found, average="macro", labels=columns, zero_division=0),
        "macro_f1_all": f1_score(true, found, average="macro", zero_division=0),
        "micro_f1": f1_score(true, found, average="micro", zero_division=0),
        "micro_precision": precision_score(true, found, average="micro", zero_division=0),
        "micro_recall": recall_score(true, found, average="micro", zero_division=0),
        "weighted_f1": f1_score(true, found, average="weighted", zero_division=0),
        "example_f1": f1_score(true, found, average="samples", zero_division=1),
    }
    assert {name: whole.values[name] for name in expected} == pytest.approx(expected)
    columns_of = (
        *by_label(true, found, zero_division=0),
        found.sum(axis=0),
        (true & found).sum(axis=0),
    )
    names = ("precision", "recall", "f1", "support", "predicted", "tp")
    for label, *row in zip(LABELS, *columns_of, strict=True):
        assert whole.per_label[label] == pytest.approx(dict(zip(names, row, strict=True)))


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@few
@given(rows=tag_rows())
def test_entities_equal_seqeval(mode, rows):
    documents, predictions = [], []
    for i, (true, found) in enumerate(rows):
        tokens = tuple((2 * k, 2 * k + 1) for k in range(len(true)))
        gold, said = (tags_to_spans(tags, tokens, mode) for tags in (true, found))
        documents.append(Document(f"d{i}", "g", "x " * len(true), "test", spans=gold))
        predictions.append(Prediction(document=f"d{i}", spans=said))
    if not gold_of(documents):
        return
    values = scores("token_ner", "XY", gold_of(documents), (documents, predictions)).values
    true, found = [t for t, _ in rows], [f for _, f in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for average in ("micro", "weighted"):
            if mode == "lenient":
                reference = precision_recall_fscore_support(true, found, average=average)
            else:
                reference = strict_support(true, found, average=average, scheme=IOB2)
            assert values[f"{average}_f1"] == pytest.approx(reference[2])


def most_pairs(a, b):
    """Overlapping pairs of two lists of spans, none used twice, as many as can be: by trying them
    all.
    """

    def most(left: int, free: frozenset[int]) -> int:
        if left == len(a):
            return 0
        best = most(left + 1, free)
        for j in free:
            if a[left].start < b[j].end and b[j].start < a[left].end:
                best = max(best, 1 + most(left + 1, free - {j}))
        return best

    return most(0, frozenset(range(len(b))))


@few
@given(spans(), spans())
def test_overlap_matching_equals_brute_force(first, second):
    a, b = [(s.start, s.end) for s in first], [(s.start, s.end) for s in second]
    assert overlap_matches(a, b) == most_pairs(first, second)


@few
@given(pairs_of_labels(label_sets=True).filter(lambda pair: any(pair[0])), st.integers(1, 4))
def test_counts_by_group_add_up_to_the_scores(pair, groups):
    gold, said = classified(*pair)
    gold = [
        Document(d.id, f"g{i % groups}", "", "test", labels=d.labels) for i, d in enumerate(gold)
    ]
    call = {"type": "multi_label", "labels": LABELS, "gold": gold, "predictions": said}
    counted = counts(**call)
    assert counted.groups == tuple(sorted({d.group for d in gold}))
    assert counted.tp.shape == (len(counted.groups), len(LABELS))
    assert counted.tp.dtype == np.int64
    values = compute(**call, gold_labels=gold_of(gold)).values
    of_one_seed = Counts.of([counted.tp], [counted.fp], [counted.fn])
    for metric in F1_AVERAGES:
        assert f1_scores(of_one_seed, metric.average)[0] == values[metric.name], metric.name


@pytest.mark.parametrize(
    ("type", "metrics"),
    [
        ("multiple_choice", ("exact_match", "hamming")),
        ("synonyms", ("accuracy_at_1", "accuracy_at_5", "mrr")),
    ],
)
def test_shares_of_documents_have_the_score_as_their_micro_f1(type, metrics):
    rng = np.random.default_rng(0)
    labels = tuple("ABCDEFG")
    gold, said = [], []
    for number in range(40):
        right, order = (
            rng.choice(labels, rng.integers(1, 4), replace=False),
            rng.permutation(labels),
        )
        gold.append(
            Document(f"d{number:02}", f"g{number % 9}", "", "test", labels=tuple(sorted(right)))
        )
        if number % 10:  # every tenth has no prediction
            said.append(Prediction(f"d{number:02}", labels=tuple(order[: rng.integers(1, 8)])))
    about = {"type": type, "labels": labels, "gold": gold, "predictions": said}
    scores = compute(**about, gold_labels=labels).values
    for metric in metrics:
        counted = shares(**about, metric=metric)
        assert counted.groups == tuple(f"g{i}" for i in range(9))
        tp, fp, fn = (int(getattr(counted, side).sum()) for side in ("tp", "fp", "fn"))
        assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(scores[metric])
        one = [d for d in gold if d.group == "g3"]
        part = {"gold": one, "predictions": [p for p in said if p.document in {d.id for d in one}]}
        alone = shares(**about | part, metric=metric)
        assert alone.tp.tolist() == counted.tp[3:4].tolist()
    assert shares(**about, metric="accuracy") is None
