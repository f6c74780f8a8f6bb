"""Scores on parts of the gold: the worked example of docs/results.md, each slice, and the stored
runs counted again with plain Python.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from biobench.baselines.reading import dictionary
from biobench.baselines.verdict import gate
from biobench.data.catalog import load_task
from biobench.data.load import load_data, subset
from biobench.reporting.rescore import rescore_all
from biobench.reporting.results import load
from biobench.reporting.slices import sliced
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.kind import KINDS
from biobench.schema.record import RunRecord, TaskIdentity
from biobench.score.slices import SLICES, parts_of, slice_scores, surface
from biobench.store import Store
from tests.helpers.store_make import documents, predictions, record

RESULTS = Path(__file__).parents[2] / "results"


def document(name: str, text: str, *mentions: str, label: str = "Disease") -> Document:
    """A document in which each of these words is a mention."""
    spans = tuple(Span(text.index(m), text.index(m) + len(m), label) for m in mentions)
    return Document(id=name, group=name, text=text, split="test", spans=spans)


def identity(kind: str, *labels: str) -> TaskIdentity:
    return record(score=False).task.model_copy(
        update={"type": kind, "labels": labels, "gold_labels": labels}
    )


TRAINED_ON = [document("t", "Breast cancer and fever.", "Breast cancer", "fever")]
GOLD = [
    document("a", "breast-cancer, then gout", "breast-cancer", "gout"),
    document("b", "Fever and rash", "Fever"),
]
SAID = [
    Prediction("a", spans=(Span(0, 13, "Disease"), Span(20, 24, "Disease"))),
    Prediction("b", spans=(Span(10, 14, "Disease"),)),
]


def test_worked_slices_of_mentions() -> None:
    """Seen: breast-cancer (found) and Fever (missed). Unseen: gout, and the false alarm `rash`."""
    scores = slice_scores(
        identity("span_ner", "Disease"), parts_of("span_ner", TRAINED_ON, GOLD), SAID
    )
    seen, unseen = scores["seen"], scores["unseen"]
    assert (seen.gold, unseen.gold) == (2, 1)
    assert seen.scores["micro_precision"] == 1
    assert seen.scores["micro_recall"] == pytest.approx(1 / 2)
    assert seen.scores["micro_f1"] == pytest.approx(2 / 3)
    assert unseen.scores["micro_precision"] == pytest.approx(1 / 2)
    assert unseen.scores["micro_recall"] == 1
    assert unseen.scores["micro_f1"] == pytest.approx(2 / 3)


def test_a_concept_is_seen_under_any_name() -> None:
    """`carcinoma` is new as a name of a concept that training names; `gout` is a new concept, and
    the mention without one is told by its text, as is the false alarm `rash`.
    """
    trained_on = [replace(TRAINED_ON[0], concepts=((0, 13, "D001943"),))]
    gold = [
        replace(
            document("a", "carcinoma, then gout", "carcinoma", "gout"),
            concepts=((0, 9, "D001943"), (0, 9, "D010051"), (16, 20, "D006073")),
        ),
        document("b", "Fever and rash", "Fever"),
    ]
    said = [
        Prediction("a", spans=(Span(0, 9, "Disease"),)),
        Prediction("b", spans=(Span(10, 14, "Disease"),)),
    ]
    parts = parts_of("span_ner", trained_on, gold)
    scores = slice_scores(identity("span_ner", "Disease"), parts, said)
    seen, unseen = scores["seen_concepts"], scores["unseen_concepts"]
    assert (seen.gold, seen.scores["micro_recall"]) == (2, 1 / 2)
    assert (unseen.gold, unseen.scores["micro_recall"]) == (1, 0)
    assert unseen.scores["micro_precision"] == 0, "rash is counted here"
    assert scores["unseen"].scores["micro_recall"] == 1 / 2, "carcinoma and gout are new texts"
    bare = parts_of("span_ner", TRAINED_ON, GOLD)
    assert not {"seen_concepts", "unseen_concepts"} & bare.keys(), "no concept is known"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Breast-Cancer", "breast cancer"),
        ("breast\n  cancer.", "breast cancer"),
        ("(β-thalassémie)", "β thalassémie"),
        ("STRASSE", surface("Straße")),
        ("p_53", "p 53"),
    ],
)
def test_a_surface_folds_case_and_makes_white_space_and_punctuation_one_blank(
    text: str, normal: str
) -> None:
    assert surface(text) == normal


def test_rare_labels_stand_in_fewer_than_ten_training_documents() -> None:
    trained_on = [
        *(Document(f"t{i}", f"t{i}", "", "train", labels=("A",)) for i in range(10)),
        *(Document(f"u{i}", f"u{i}", "", "train", labels=("B",)) for i in range(9)),
    ]
    gold = [
        Document("a", "a", "one", "test", labels=("A",)),
        Document("b", "b", "two", "test", labels=("B",)),
        Document("c", "c", "three", "test", labels=("C",)),
    ]
    said = [Prediction(name, labels=(label,)) for name, label in zip("abc", "ABA", strict=True)]
    task = identity("single_label", "A", "B", "C")
    scores = slice_scores(task, parts_of("single_label", trained_on, gold), said)
    assert (scores["rare"].gold, scores["frequent"].gold) == (2, 1)
    assert scores["rare"].scores["macro_f1"] == pytest.approx((1 + 0) / 2)
    assert scores["frequent"].scores["micro_precision"] == pytest.approx(1 / 2), "c is a false A"
    assert not {"seen", "unseen"} & scores.keys(), "labels of documents have no surface"


def test_clean_leaves_out_documents_that_nearly_stand_in_training() -> None:
    words = "a man of sixty years came with sudden chest pain and short breath"
    trained_on = [Document("t", "t", f"{words} today", "train", labels=("A",))]
    gold = [
        Document("copy", "g1", f"{words.upper()}  today", "test", labels=("A",)),
        Document("near", "g2", f"{words} now", "test", labels=("A",)),
        Document(
            "new", "g3", "a child was seen for a yearly check of its eyes", "test", labels=("B",)
        ),
    ]
    said = [Prediction(d.id, labels=("B",)) for d in gold]
    scores = slice_scores(
        identity("single_label", "A", "B"), parts_of("single_label", trained_on, gold), said
    )
    assert scores["clean"].gold == 1
    assert scores["clean"].scores["accuracy"] == 1


@pytest.mark.parametrize("kind", sorted(name for name, kind in KINDS.items() if not kind.counted))
def test_kinds_without_f1_have_no_slices(kind: str) -> None:
    assert parts_of(kind, [], [Document("a", "a", "x", "test", labels=("1",))]) == {}


def shipped_run(target: Store) -> RunRecord:
    """A full run of the results that ship, copied and with every score of today."""
    source = Store(RESULTS)
    run = next(r for r in source.records() if r.task.id == "ncbi_disease" and not r.overrides)
    target.copy(source, run)
    (result,) = rescore_all(target.root)
    assert result.record is not None
    return result.record


def test_rescoring_with_the_corpora_adds_slices_and_changes_no_key(
    tmp_path: Path, data_dir: Path
) -> None:
    target = Store(tmp_path)
    stored = shipped_run(target)
    bare = stored.model_copy(update={"slices": {}})
    target.update(bare)
    assert [r.outcome for r in rescore_all(tmp_path)] == ["unchanged"]
    (result,) = rescore_all(tmp_path, data_dir)
    assert result.changed is not None
    assert {name.split()[0] for name in result.changed} >= {"seen", "unseen", "clean"}
    after = target.get(stored.task.id, stored.key)
    assert after is not None
    assert after.model_copy(update={"slices": {}}) == bare
    assert [r.outcome for r in rescore_all(tmp_path, data_dir)] == ["unchanged"]


def test_without_the_corpora_rescoring_keeps_the_slices_and_says_why(tmp_path: Path) -> None:
    target = Store(tmp_path / "results")
    stored = shipped_run(target)
    (result,) = rescore_all(tmp_path / "results", tmp_path / "no corpora")
    assert result.outcome == "unchanged"
    assert result.reason is not None
    assert result.reason.startswith("its slices stay as they are: ")
    assert target.get(stored.task.id, stored.key) == stored


def recalls(record: RunRecord, data_dir: Path) -> tuple[float, float]:
    """Recall of seen and of unseen gold mentions of one stored run, counted with plain Python."""
    task = load_task(record.task.id, record.overrides)
    data = load_data(task, data_dir)
    recipe = task.spec.training
    train = subset(data.train, recipe.train_fraction, recipe.train_documents)

    def normal(text: str) -> str:
        return " ".join(re.sub(r"[\W_]+", " ", text.casefold()).split())

    trained = {normal(d.text[start:end]) for d in train for start, end, _ in d.spans}
    _, said = Store(RESULTS).load_predictions(record)
    said_of = {p.document: set(p.spans) for p in said}
    found, whole = [0, 0], [0, 0]
    for gold in data.test:
        for span in set(gold.spans):
            place = int(normal(gold.text[span.start : span.end]) not in trained)
            whole[place] += 1
            found[place] += span in said_of.get(gold.id, ())
    return found[0] / whole[0], found[1] / whole[1]


@pytest.mark.real
@pytest.mark.parametrize(
    ("task", "model", "seen", "unseen"),
    [
        ("ncbi_disease", "all-MiniLM-L6-v2", 86.0, 60.6),
        ("ncbi_disease", "paraphrase-MiniLM-L3-v2", 80.4, 42.9),
        ("quaero_medline", "all-MiniLM-L6-v2", 82.5, 35.5),
        ("quaero_medline", "paraphrase-MiniLM-L3-v2", 81.3, 30.1),
    ],
)
def test_stored_recalls_are_those_of_plain_counting(
    task: str, model: str, seen: float, unseen: float, data_dir: Path
) -> None:
    (group,) = (
        g for g in load(RESULTS).groups if (g.task, g.model, g.variant) == (task, model, "")
    )
    means = [0.0, 0.0]
    for stored in group.records:
        counted = recalls(stored, data_dir)
        slices = [stored.slices[name].scores["micro_recall"] for name in ("seen", "unseen")]
        assert slices == pytest.approx(counted, abs=1e-12)
        for place, recall in enumerate(counted):
            means[place] += 100 * recall / len(group.records)
    assert means == pytest.approx([seen, unseen], abs=0.06)


@pytest.mark.real
def test_stored_recalls_of_concepts_are_those_of_plain_counting(data_dir: Path) -> None:
    """The original release read here line by line: a mention is of an unseen concept where no
    training row names one of its concepts."""
    named: dict[str, dict[str, list[set[str]]]] = {"train": {}, "test": {}}
    for split, folder in (("train", "train/NCBItrainset"), ("test", "test/NCBItestset")):
        for line in (data_dir / f"ncbi_disease_pubtator/{folder}_corpus.txt").open():
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 6:
                concepts = set(re.split(r"[|+,]", fields[5].strip()))
                named[split].setdefault(fields[0], []).append(concepts)
    trained = set().union(*(c for rows in named["train"].values() for c in rows))
    unseen = sum(not c & trained for rows in named["test"].values() for c in rows)
    runs = [r for r in Store(RESULTS).records() if r.task.id == "ncbi_disease" and not r.overrides]
    assert len(runs) == 6
    for run in runs:
        assert run.slices["unseen_concepts"].gold == unseen == 165
        assert run.slices["seen_concepts"].gold == 960 - unseen


@pytest.mark.real
@pytest.mark.parametrize("task", ["ncbi_disease", "quaero_emea"])
def test_the_training_dictionary_finds_no_unseen_mention(task: str, data_dir: Path) -> None:
    data = load_data(load_task(task), data_dir)
    (answers,) = dictionary(data).draws
    parts = parts_of("token_ner" if data.train[0].tags else "span_ner", data.train, data.test)
    kind = load_task(task).spec.type
    scores = slice_scores(identity(kind, *data.labels), parts, answers)
    assert scores["unseen"].scores["micro_recall"] == 0
    assert scores["seen"].scores["micro_recall"] > 0.3


def test_baselines_stand_beside_a_slice_with_their_scores_on_it() -> None:
    """The gate stores them, and what is read on a slice shows them in the place of the others."""
    task = load_task("demo_ner")
    verdict = gate(task, load_data(task, None))
    by_name = {policy.name: policy for policy in verdict.policies}
    assert by_name["oracle"].slices["seen"].scores["micro_f1"] == 1
    assert by_name["no mention"].slices["seen"].scores["micro_recall"] == 0
    shown = {
        (record.task, policy.name): policy.scores["micro_recall"]
        for record in sliced(load(RESULTS), "unseen").baselines
        for policy in record.policies
    }
    for name in ("ncbi_disease", "quaero_medline", "bc5cdr", "anatem"):
        assert shown[name, "training dictionary"] == 0
        assert shown[name, "oracle"] == 1
    assert not any(name == "hoc" for name, _ in shown), "it has no mentions"


def test_every_slice_has_a_name_and_words() -> None:
    assert list(SLICES) == [
        "seen",
        "unseen",
        "seen_concepts",
        "unseen_concepts",
        "rare",
        "frequent",
        "clean",
    ]
    assert all(one.words for one in SLICES.values())
    parts = parts_of("token_ner", documents(), documents())
    gold = {name: s.gold for name, s in slice_scores(record().task, parts, predictions()).items()}
    assert gold == {"seen": 5, "rare": 5}, "what no part holds has no score"
