"""A model's answers, a line a sample, in the schema of Every Eval Ever (instance level, 0.3.0).

The corpora's texts are not copied: a sample is named by its document, answers by their characters.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from biobench.errors import UsageError, shown_json
from biobench.export.every_eval_ever import VERSION, evaluation_id
from biobench.export.results import TaskResult
from biobench.kinds import get_kind
from biobench.schema.document import Document, Prediction
from biobench.schema.record import RunRecord
from biobench.score.counting import Item


def samples(results: Sequence[TaskResult]) -> str:
    """JSON lines, one for each run and test document, and a warning of tasks that may have none:
    data under an agreement leaves nothing, and numbers are not right or wrong. Raises UsageError
    where no task may have any.
    """
    shared = []
    withheld = []
    for result in results:
        if _is_shown(result):
            shared.append(result)
        else:
            withheld.append(result.info.id)
    left_out = ", ".join(withheld)
    message = f"no samples of {left_out} may be written"
    reason = "data under an agreement stays here, and numbers are not right or wrong"
    if not shared:
        raise UsageError(message, hint=reason)
    if left_out:
        logging.getLogger("biobench").warning(f"{message}: {reason}")
    evaluation = evaluation_id(results)
    lines = ""
    for result in shared:
        for sample in _samples_of(result, evaluation):
            lines += shown_json(json.dumps(sample, ensure_ascii=False, allow_nan=False)) + "\n"
    return lines


def _is_shown(result: TaskResult) -> bool:
    spec = result.info.spec
    under_agreement = spec is not None and spec.access == "agreement"
    if under_agreement or any(record.redacted for record in result.group.records):
        return False
    return not get_kind(result.info.type).numeric


def _samples_of(result: TaskResult, evaluation: str) -> Iterator[dict[str, Any]]:
    metric = result.rows[0].metric
    for record in result.group.records:
        gold, predictions = result.group.store.load_predictions(record)
        by_document = {prediction.document: prediction for prediction in predictions}
        for document in gold:
            yield {
                "schema_version": VERSION,
                "evaluation_id": evaluation,
                "model_id": record.model.id,
                "evaluation_name": f"{result.info.id}/{metric}",
                "evaluation_result_id": f"{result.info.id}/{metric}",
                "sample_id": document.id,
                "interaction_type": "single_turn",
                **_answered(record, document, by_document.get(document.id)),
                "metadata": {"seed": str(record.seed), "text": "not copied"},
            }


def _answered(
    record: RunRecord, document: Document, prediction: Prediction | None
) -> dict[str, Any]:
    """The sides of a sample, and its score: F1 of its answers, 1 where neither side has any. Of a
    ranking the likeliest answer counts, which is right where it is one of the right ones.
    """
    kind = get_kind(record.task.type)
    gold = kind.items(document)
    given = set()
    if prediction is not None:
        given = kind.items(prediction)
        if kind.ranked:
            given = {(label, 0, 0) for label in prediction.labels[:1]}
            gold = (gold & given) or gold
    score = 1.0
    if gold or given:
        score = 2 * len(gold & given) / (len(gold) + len(given))
    answers = _shown(given)
    return {
        "input": {"raw": "", "reference": _shown(gold)},
        "output": {"raw": answers},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": "; ".join(answers),
                "extraction_method": "exact_match",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": score, "is_correct": gold == given},
    }


def _shown(items: Iterable[Item]) -> list[str]:
    """In reading order, ``Disease 12:20`` for characters [12, 20); the label alone for a whole
    document.
    """
    shown = []
    for label, start, end in sorted(items, key=lambda item: (item[1], item[2], item[0])):
        shown.append(f"{label} {start}:{end}" if end else label)
    return shown
