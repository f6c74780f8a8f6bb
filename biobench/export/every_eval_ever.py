"""A model's results in the schema of Every Eval Ever (evalevalai.com), aggregate form.

Field names and enumerations are those of version 0.3.0 as its Python package ships it
(eval.schema.json).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from biobench.export.results import TaskResult
from biobench.reporting.printers import as_json
from biobench.reporting.row import Row
from biobench.schema.kind import get_metric

VERSION = "0.3.0"
_METRIC_IDS = {"macro_f1": "f1_macro", "micro_f1": "f1_micro", "weighted_f1": "f1_weighted"}


def every_eval_ever(model: str, results: Sequence[TaskResult]) -> str:
    """One JSON document: the model, and a result for every task and average. Scores are
    fractions."""
    stamp = max(result.date for result in results)
    identity = results[0].group.records[0].model
    owner, slash, _ = identity.id.partition("/")
    details = {
        "deployment_type": "self_deployed",
        "model_availability": "unknown",
        "weights_hash": identity.hash,
        "architecture": identity.architecture,
        "parameters": str(identity.parameters),
    }
    if identity.revision:
        details["revision"] = identity.revision
    model_info: dict[str, Any] = {"name": model, "id": identity.id}
    if slash:
        model_info["developer"] = owner
    document: dict[str, Any] = {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id(results),
        "evaluation_timestamp": stamp,
        "retrieved_timestamp": _seconds(stamp),
        "source_metadata": {
            "source_name": "BioBench",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "biobench",
            "version": results[0].group.records[-1].provenance.biobench,
        },
        "model_info": {**model_info, "additional_details": details},
        "evaluation_results": [_result(result, row) for result in results for row in result.rows],
    }
    return as_json(document)


def evaluation_id(results: Sequence[TaskResult]) -> str:
    """What the document and the file of its samples are both named by."""
    model = results[0].group.records[0].model.id
    return f"biobench/{model}/{_seconds(max(r.date for r in results))}"


def _seconds(stamp: str) -> str:
    return str(int(datetime.fromisoformat(stamp).timestamp()))


def _result(result: TaskResult, row: Row) -> dict[str, Any]:
    record = result.group.records[0]
    uncertainty: dict[str, Any] = {"num_samples": row.n_seeds}
    if row.sd is not None and row.low is not None and row.high is not None:
        method = "Student t over fine-tuning seeds"
        ends = {"lower": row.low, "upper": row.high}
        uncertainty |= {
            "standard_deviation": row.sd,
            "standard_error": {
                "value": row.sd / math.sqrt(row.n_seeds),
                "method": "over fine-tuning seeds",
            },
            "confidence_interval": {**ends, "confidence_level": 0.95, "method": method},
        }
    details = {
        "seeds": ",".join(map(str, row.seeds)),
        "scores": ",".join(repr(v) for v in row.values),
        "task_version": str(record.task.version),
        "task_hash": record.task.hash,
        "data_hash": record.task.data_hash,
        "published_average": str(row is result.rows[0]).lower(),
        "truncated_documents": str(row.truncated_documents),
        "lost_gold": str(row.lost_gold),
    }
    metric = get_metric(row.metric)
    return {
        "evaluation_result_id": f"{result.info.id}/{row.metric}",
        "evaluation_name": f"{result.info.id}/{row.metric}",
        "source_data": _source(result),
        "evaluation_timestamp": result.date,
        "metric_config": {
            "evaluation_description": f"{metric.words} of the fine-tuned encoder on "
            f"{result.info.name}",
            "metric_id": _METRIC_IDS.get(row.metric, row.metric),
            "metric_name": metric.words,
            "metric_kind": "f1" if row.metric in _METRIC_IDS else row.metric,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": metric.lowest,
            "max_score": 1.0,
        },
        "score_details": {"score": row.mean, "uncertainty": uncertainty, "details": details},
    }


def _source(result: TaskResult) -> dict[str, Any]:
    name = {"dataset_name": result.info.name}
    spec = result.info.spec
    if result.hub_repo is not None:
        documents = result.group.records[0].task.test_documents
        hub = {"source_type": "hf_dataset", "hf_repo": result.hub_repo, "hf_split": "test"}
        return {**name, **hub, "samples_number": documents}
    if spec is not None and spec.homepage.startswith(("https://", "http://")):
        return {**name, "source_type": "url", "url": [spec.homepage]}
    return {**name, "source_type": "other"}
