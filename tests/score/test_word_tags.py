"""seqeval's figures: what they count, where there are none, and that they are seqeval's own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from seqeval.metrics import classification_report
from seqeval.scheme import IOB2

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.schema.tags import Mode, tags_to_spans
from biobench.score import scored
from biobench.submission.verify import _score_problems
from tests.helpers.store_make import record

MICRO, MACRO = "seqeval_micro_f1", "seqeval_macro_f1"
GOLD = ("B-Disease I-Disease O B-Drug", "O I-Disease O", "B-Drug O B-Disease")
SAID = ("B-Disease I-Disease O O", "O I-Disease O", "B-Drug O O")


def tagged(
    rows: Sequence[str], said: Sequence[str], mode: Mode
) -> tuple[list[Document], list[Prediction]]:
    """A document of two-letter words a row."""
    documents, predictions = [], []
    for number, (true, found) in enumerate(zip(rows, said, strict=True)):
        gold_tags, tags = tuple(true.split()), tuple(found.split())
        words = tuple((3 * k, 3 * k + 2) for k in range(len(gold_tags)))
        spans = tags_to_spans(gold_tags, words, mode)
        name = f"d{number}"
        documents.append(Document(name, "g", "", "test", spans=spans, tokens=words, tags=gold_tags))
        predictions.append(Prediction(name, spans=tags_to_spans(tags, words, mode), tags=tags))
    return documents, predictions


def run(
    mode: Mode = "strict", shown: dict[str, int] | None = None, truncated: int = 0
) -> RunRecord:
    base = record(score=False)
    windows = {"shown_words": shown or {}, "truncated_documents": truncated}
    return base.model_copy(
        update={
            "task": base.task.model_copy(update={"decode": mode}),
            "windows": base.windows.model_copy(update=windows),
        }
    )


@pytest.mark.parametrize(
    ("mode", "micro", "macro"),
    [
        # strict: Disease 1 of 2 found, Drug 1 of 2, nothing false
        ("strict", 2 / 3, 2 / 3),
        # lenient: the stray I-Disease is a third Disease, and found
        ("lenient", 6 / 8, (4 / 5 + 2 / 3) / 2),
    ],
)
def test_figures_by_hand_in_both_decodings(mode: Mode, micro: float, macro: float) -> None:
    scores = scored(run(mode), *tagged(GOLD, SAID, mode)).scores
    assert scores[MICRO] == pytest.approx(micro)
    assert scores[MACRO] == pytest.approx(macro)
    assert scores["micro_f1"] == pytest.approx(micro), "nothing is cut: ours is the same"


def test_gold_beyond_the_window_is_missed_by_our_score_and_not_counted_by_seqeval() -> None:
    cut = run(shown={"d0": 3, "d2": 2}, truncated=2)
    scores = scored(cut, *tagged(GOLD, SAID, "strict")).scores
    assert scores[MICRO] == 1.0
    assert scores["micro_f1"] == pytest.approx(2 / 3)


def test_macro_f1_of_seqeval_counts_a_label_that_is_predicted_and_has_no_gold() -> None:
    gold, said = tagged(("B-Disease B-Drug O",), ("B-Disease B-Drug B-Other",), "strict")
    scores = scored(run(), gold, said).scores
    assert scores[MACRO] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == 1.0


def test_a_document_without_an_answer_has_all_its_gold_missed() -> None:
    gold, said = tagged(GOLD, SAID, "strict")
    assert scored(run(), gold, said[:1]).scores[MICRO] == pytest.approx(2 * 1 / (1 + 4))


def test_there_are_no_figures_without_tags_to_compare() -> None:
    gold, said = tagged(GOLD, SAID, "strict")
    for case, made, answers in (
        ("an earlier record does not say where documents were cut", run(truncated=1), said),
        ("spans alone", run(), [replace(p, tags=()) for p in said]),
        ("tags that the task does not have", run(), [replace(said[0], tags=("Z-Drug",) * 4)]),
    ):
        assert not {MICRO, MACRO} & scored(made, gold, answers).scores.keys(), case


def test_without_seqeval_a_new_run_has_no_figures_and_a_stored_one_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gold, said = tagged(GOLD, SAID, "strict")
    stored = scored(run(), gold, said)
    for module in ("seqeval", "seqeval.metrics", "seqeval.scheme"):
        monkeypatch.setitem(sys.modules, module, None)
    assert MICRO not in scored(run(), gold, said).scores
    assert scored(stored, gold, said).scores == stored.scores


def test_a_submission_may_lack_later_scores_and_may_not_claim_others() -> None:
    gold, said = tagged(GOLD, SAID, "strict")
    honest = scored(run(), gold, said)
    later = (MICRO, MACRO, "partial_macro_f1")
    without = {name: value for name, value in honest.scores.items() if name not in later}
    ranked = {name: value for name, value in honest.scores.items() if name != "macro_f1_all"}
    claims = {
        "all": (honest.scores, []),
        "none": (without, []),
        "one that ranks": (ranked, ["S01"]),
        "false": (honest.scores | {MACRO: 0.9}, ["S01"]),
    }
    for claim, (scores, codes) in claims.items():
        made = honest.model_copy(update={"scores": scores})
        found = [check.code for check in _score_problems(made, gold, said)]
        assert found == codes, claim


@pytest.mark.real
@pytest.mark.parametrize("name", ["ncbi_disease", "bc5cdr", "social_history"])
def test_figures_of_a_corpus_are_those_of_seqeval_s_report(name: str, data_dir: Path) -> None:
    data = load_data(load_task(name), data_dir)
    mode: Mode = "lenient" if data.decode == "lenient" else "strict"
    shown, said, true, found = {}, [], [], []
    for number, document in enumerate(data.test):
        words = len(document.tags)
        tags = ["O" if (number + k) % 7 == 0 else tag for k, tag in enumerate(document.tags)]
        if number % 5 == 0:  # a window that shows two words in three
            shown[document.id] = 2 * words // 3
            tags[2 * words // 3 :] = ["O"] * (words - 2 * words // 3)
        spans = tags_to_spans(tags, document.tokens, mode)
        said.append(Prediction(document.id, spans=spans, tags=tuple(tags)))
        end = shown.get(document.id, words)
        true.append(list(document.tags[:end]))
        found.append(tags[:end])
    strict = {"mode": "strict", "scheme": IOB2} if mode == "strict" else {}
    report = classification_report(true, found, output_dict=True, zero_division=0, **strict)
    made = run(mode, shown, len(shown))
    labels = {"labels": data.labels, "gold_labels": data.gold_labels}
    made = made.model_copy(update={"task": made.task.model_copy(update=labels)})
    scores = scored(made, data.test, said).scores
    assert 0.5 < scores["micro_f1"] < scores[MICRO] < 1
    assert scores[MICRO] == pytest.approx(report["micro avg"]["f1-score"], abs=1e-12)
    assert scores[MACRO] == pytest.approx(report["macro avg"]["f1-score"], abs=1e-12)
