"""Exports read back by the hub's own code, and against the required fields of Every Eval Ever 0.2.1."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries
from report_make import save_run, save_runs

from biobench.errors import UsageError
from biobench.report.export import FORMATS, export
from biobench.report.tasks import shipped

SEEDS = {42: 0.60, 43: 0.64, 44: 0.62}

STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        *("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info"),
        *("eval_library", "evaluation_results"),
    ],
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("schema_version", "evaluation_id", "evaluation_timestamp", "retrieved_timestamp")
        },
        "source_metadata": {
            "required": ["source_type", "source_organization_name", "evaluator_relationship"],
            "properties": {
                "source_type": {"enum": ["documentation", "evaluation_run"]},
                "evaluator_relationship": {"enum": ["first_party", "third_party", "collaborative", "other"]},
            },
        },
        "eval_library": {"required": ["name", "version"]},
        "model_info": {"required": ["name", "id"], "properties": {"additional_details": STRINGS}},
        "evaluation_results": {
            "type": "array",
            "items": {
                "required": ["evaluation_name", "source_data", "metric_config", "score_details"],
                "properties": {
                    "source_data": {
                        "required": ["dataset_name", "source_type"],
                        "oneOf": [
                            {
                                "properties": {
                                    "source_type": {"const": "url"},
                                    "url": {"type": "array", "minItems": 1},
                                },
                                "required": ["url"],
                            },
                            {"properties": {"source_type": {"const": "hf_dataset"}}},
                            {"properties": {"source_type": {"const": "other"}}},
                        ],
                    },
                    "metric_config": {
                        "required": ["lower_is_better", "min_score", "max_score"],
                        "properties": {"score_type": {"const": "continuous"}},
                    },
                    "score_details": {
                        "required": ["score"],
                        "properties": {
                            "score": {"type": "number"},
                            "details": STRINGS,
                            "uncertainty": {
                                "properties": {
                                    "standard_error": {"required": ["value"]},
                                    "confidence_interval": {"required": ["lower", "upper"]},
                                    "num_samples": {"type": "integer"},
                                }
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What the published schema asks of the fields that we write, in our own transcription."""


@pytest.fixture
def results(tmp_path):
    save_runs(tmp_path, "org/tiny", "bc5cdr", SEEDS)
    save_runs(tmp_path, "org/tiny", "gad", {42: 0.7})
    save_run(tmp_path, "org/tiny", "anatem", 42, 0.9, limit=8)
    save_run(tmp_path, "other", "bc5cdr", 42, 0.1)
    return tmp_path


def test_the_hub_reads_the_model_card(results):
    card = ModelCard(export("org/tiny", "model-card", results))
    found = {(r.dataset_type, r.metric_name): r.metric_value for r in card.data.eval_results}
    assert card.data.model_name == "org/tiny"
    assert {d for d, _ in found} == {"bc5cdr", "gad"}
    assert found["bc5cdr", "macro F1 (mean of 3 seeds)"] == 0.62
    assert found["gad", "macro F1 (one seed)"] == 0.7
    assert len(found) == 6
    assert "62.0 ±5.0" in card.text


def test_the_hub_reads_the_result_file(results):
    text = export("org/tiny", "eval-results", results, dataset="org/biobench")
    entries = parse_eval_result_entries(yaml.safe_load(text))
    values = {e.task_id: (e.dataset_id, e.value) for e in entries}
    assert values == {"bc5cdr": ("org/biobench", 62.0), "gad": ("org/biobench", 70.0)}
    assert entries[0].date == "2026-01-01"
    notes = {e.task_id: e.notes for e in entries}
    assert re.match(r"macro F1, mean of 3 seeds, 95% 57\.0 to 67\.0; BioBench ", notes["bc5cdr"])


def test_without_a_dataset_repository_only_hub_tasks_are_named(results):
    with pytest.raises(UsageError, match="none of these tasks is read from a dataset on the hub") as caught:
        export("org/tiny", "eval-results", results)
    assert "--dataset" in caught.value.hint


def test_every_eval_ever_holds_what_its_schema_asks(results):
    document = json.loads(export("org/tiny", "every-eval-ever", results))
    jsonschema.validate(document, SCHEMA)
    assert document["model_info"]["developer"] == "org"
    found = {r["evaluation_name"]: r["score_details"] for r in document["evaluation_results"]}
    assert len(found) == 6
    details = found["bc5cdr/micro_f1"]
    assert details["score"] == pytest.approx(0.62)
    assert details["uncertainty"]["standard_error"]["value"] == pytest.approx(0.02 / 3**0.5)
    assert "standard_error" not in found["gad/macro_f1"]["uncertainty"]
    assert document["retrieved_timestamp"] == "1767225600"


def test_bibtex_names_every_task_once(results):
    text = export("org/tiny", "bibtex", results)
    assert re.findall(r"@misc\{(\w+),", text) == ["biobench_bc5cdr", "biobench_gad"]
    for entry in text.split("\n\n"):
        assert entry.count("{") == entry.count("}")
    title = shipped()["gad"].spec.name
    assert title.split()[0] in text


@pytest.mark.parametrize("format", FORMATS)
def test_limited_runs_are_never_exported(results, format):
    assert "anatem" not in export("org/tiny", format, results, dataset="org/biobench")
    save_run(results, "small", "gad", 42, 0.5, limit=8)
    with pytest.raises(UsageError, match="only limited or overridden runs"):
        export("small", format, results)


def test_unknown_models_and_formats_are_refused(results):
    with pytest.raises(UsageError, match="'org/tinny' has no runs here") as caught:
        export("org/tinny", "model-card", results)
    assert "org/tiny" in caught.value.hint
    with pytest.raises(UsageError, match="unknown format 'pdf'"):
        export("org/tiny", "pdf", results)


def test_a_folder_names_its_model(results, tmp_path):
    assert "other" in export("/somewhere/else/other", "model-card", results)
