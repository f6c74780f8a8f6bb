"""Exports read back by the hub's own code, and against what Every Eval Ever 0.3.0 asks."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from biobench.errors import UsageError
from biobench.export.bibtex import bibtex
from biobench.export.formats import FORMATS, export
from biobench.reporting.results import load
from biobench.reporting.tasks import shipped
from biobench.store import Store
from biobench.submission.pack import submitted_groups
from tests.helpers.report_make import save_run, save_runs

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "results"
SEEDS = {42: 0.60, 43: 0.64, 44: 0.62}


def of(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


TEXT = {"type": "string"}
STRINGS = {"type": "object", "additionalProperties": TEXT}
SOURCES = [
    of("url", source_type={"const": "url"}, url={"type": "array", "minItems": 1}),
    of("", source_type={"const": "hf_dataset"}),
    of("", source_type={"const": "other"}),
]
RESULT = of(
    "evaluation_name source_data metric_config score_details",
    source_data=of("dataset_name source_type") | {"oneOf": SOURCES},
    metric_config=of("lower_is_better min_score max_score", score_type={"const": "continuous"}),
    score_details=of(
        "score",
        score={"type": "number"},
        details=STRINGS,
        uncertainty=of(
            "",
            standard_error=of("value"),
            confidence_interval=of("lower upper"),
            num_samples={"type": "integer"},
        ),
    ),
)
DETAILS = of(
    "deployment_type model_availability",
    deployment_type={"enum": ["self_deployed", "externally_managed", "unknown"]},
    model_availability={"enum": ["open_weights", "closed_weights", "unknown"]},
)
SCHEMA = {"additionalProperties": False} | of(
    "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library "
    "evaluation_results",
    **dict.fromkeys(
        ("schema_version", "evaluation_id", "evaluation_timestamp", "retrieved_timestamp"), TEXT
    ),
    source_metadata=of(
        "source_type source_organization_name evaluator_relationship",
        source_type={"enum": ["documentation", "evaluation_run"]},
        evaluator_relationship={"enum": ["first_party", "third_party", "collaborative", "other"]},
    ),
    eval_library=of("name version"),
    model_info=of("name id additional_details", additional_details=STRINGS | DETAILS),
    evaluation_results={"type": "array", "items": RESULT},
)
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
    first = next(r for r in card.data.eval_results if r.dataset_type == "bc5cdr")
    assert first.metric_name == "micro F1 (mean of 3 seeds)", "the published average comes first"
    assert found["bc5cdr", "macro F1 (mean of 3 seeds)"] == 0.62
    assert found["gad", "macro F1 (one seed)"] == 0.7
    assert len(found) == 6
    assert "| 3 | micro F1 62.0 ±5.0 | 62.0 ±5.0 | 62.0 ±5.0 | 31.0 ±2.5 |" in card.text


def test_an_accuracy_is_not_called_f1():
    card = ModelCard(export("all-MiniLM-L6-v2", "model-card", ROOT / "results"))
    types = {r.metric_name: r.metric_type for r in card.data.eval_results}
    assert types["accuracy (mean of 3 seeds, not above guessing)"] == "accuracy"
    assert types["macro F1 (mean of 3 seeds)"] == "f1"


def test_a_score_of_guessing_is_called_so():
    card = export("all-MiniLM-L6-v2", "model-card", ROOT / "results")
    guessed = [line for line in card.splitlines() if "not above guessing" in line]
    assert len(guessed) == 5, "four averages and a line of the table"
    assert guessed[-1].startswith("| PubMedQA, expert-labelled questions | 3 | accuracy 55.1")
    file = export("all-MiniLM-L6-v2", "eval-results", ROOT / "results", dataset="org/bench")
    noted = {entry["dataset"]["task_id"]: entry["notes"] for entry in yaml.safe_load(file)}
    assert [task for task, notes in noted.items() if "guessing" in notes] == ["pubmedqa"]


def test_the_hub_reads_the_result_file(results):
    text = export("org/tiny", "eval-results", results, dataset="org/biobench")
    entries = parse_eval_result_entries(yaml.safe_load(text))
    values = {e.task_id: (e.dataset_id, e.value) for e in entries}
    assert values == {"bc5cdr": ("org/biobench", 62.0), "gad": ("org/biobench", 70.0)}
    assert entries[0].date == "2026-01-01"
    notes = {e.task_id: e.notes for e in entries}
    score = r"micro F1, mean of 3 seeds, 95% 57\.0 to 67\.0; macro F1 62\.0; BioBench "
    assert re.match(score, notes["bc5cdr"]), "the published average, and macro F1 beside it"


def test_tasks_outside_the_hub_need_the_benchmarks_repository_named(results):
    with pytest.raises(UsageError, match="in no dataset repository of the hub"):
        export("org/tiny", "eval-results", results)
    for wrong in ("nowhere", "a/b/c", "a b/c", "x: y/z", "../x"):
        with pytest.raises(UsageError, match="not a dataset repository"):
            export("org/tiny", "eval-results", results, dataset=wrong)


def test_the_page_of_a_benchmark_lists_the_ids_of_the_result_file(results):
    declared = yaml.safe_load(export("org/tiny", "eval-yaml", results))
    assert set(declared) == {"name", "description", "evaluation_framework", "tasks"}
    written = yaml.safe_load(export("org/tiny", "eval-results", results, dataset="org/biobench"))
    ids = [entry.task_id for entry in parse_eval_result_entries(written)]
    assert declared["tasks"] == [{"id": task, "config": task, "split": "test"} for task in ids]


def test_every_eval_ever_holds_what_its_schema_asks(results):
    document = json.loads(export("org/tiny", "every-eval-ever", results))
    jsonschema.validate(document, SCHEMA)
    assert (document["schema_version"], document["model_info"]["developer"]) == ("0.3.0", "org")
    found = {r["evaluation_name"]: r["score_details"] for r in document["evaluation_results"]}
    assert len(found) == 6
    details = found["bc5cdr/micro_f1"]
    assert details["score"] == pytest.approx(0.62)
    primary = [n for n, s in found.items() if s["details"]["published_average"] == "true"]
    assert len(primary) == 2
    assert primary[0] == "bc5cdr/micro_f1"
    assert details["uncertainty"]["standard_error"]["value"] == pytest.approx(0.02 / 3**0.5)
    assert "standard_error" not in found["gad/macro_f1"]["uncertainty"]
    assert document["retrieved_timestamp"] == "1767225600"
    gad = document["evaluation_results"][-1]
    assert gad["evaluation_name"].startswith("gad/")
    # none of the hub's own
    assert gad["source_data"]["url"] == ["https://huggingface.co/datasets/bigbio/gad"]


def test_bibtex_names_every_work_once(results):
    text = export("org/tiny", "bibtex", results)
    # bc5cdr cites its corpus and its token files, gad its corpus
    keys = ["li2016biocreative", "crichton2017neural", "bravo2015extraction"]
    assert re.findall(r"@misc\{(\w+),", text) == keys
    assert "author = {Bravo and Piñero and Queralt-Rosinach and Rautschka and Furlong}" in text
    assert "doi = {10.1186/s12859-015-0472-9}" in text
    assert "keywords = {biobench: gad}" in text


def test_bibtex_of_all_tasks_balances_and_repeats_nothing():
    text = bibtex(shipped().values())
    keys = re.findall(r"^@misc\{([a-z0-9_]+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) == text.count("@misc")
    for entry in text.split("\n\n"):
        assert entry.count("{") == entry.count("}")
    cited = {info.id for info in shipped().values() if info.spec.citation}
    listed = ", ".join(re.findall(r"biobench: (.*)\},", text)).replace("\\", "")
    assert set(listed.split(", ")) == cited


def test_a_citation_of_unknown_form_is_kept_whole():
    info = shipped()["gad"]
    odd = "Somebody & others: 100% {of} it \\input{x}"
    info = dataclasses.replace(info, spec=info.spec.model_copy(update={"citation": odd}))
    text = bibtex([info])
    assert r"note = {Somebody \& others: 100\% of it inputx}" in text


HOSTILE = [
    "evil\n---\nlicense: mit\nmodel-index: []",
    "a: b # c",
    '"}],"x":[{"',
    "}\n@article{x,",
    "- [x](javascript:1)",
    "*anchor &x !!python/object:os.system",
    "\x1b[31m\u202e",
    "null",
    "%TAG ! tag:",
    "| piped | name |",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_any_format(tmp_path, name):
    save_runs(tmp_path, name, "gad", SEEDS)
    card = ModelCard(export(name, "model-card", tmp_path))
    assert set(card.data.to_dict()) == {"language", "tags", "model-index"}
    assert len(card.data.eval_results) == 3
    assert isinstance(card.data.model_name, str)
    assert "\n" not in card.data.model_name
    entries = parse_eval_result_entries(
        yaml.safe_load(export(name, "eval-results", tmp_path, dataset="org/biobench"))
    )
    assert [e.task_id for e in entries] == ["gad"]
    document = json.loads(export(name, "every-eval-ever", tmp_path))
    jsonschema.validate(document, SCHEMA)
    assert document["model_info"]["name"] == name
    assert export(name, "bibtex", tmp_path).count("@") == 1


SAMPLE = {"additionalProperties": False} | of(
    "schema_version evaluation_id model_id evaluation_name sample_id interaction_type input output "
    "answer_attribution evaluation",
    **dict.fromkeys(
        ("schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id"), TEXT
    ),
    evaluation_result_id=TEXT,
    interaction_type={"const": "single_turn"},
    input=of("raw reference", raw=TEXT, reference={"type": "array", "items": TEXT}),
    output=of("raw", raw={"type": "array", "items": TEXT}),
    answer_attribution={"type": "array", "items": of("turn_idx source extracted_value")},
    evaluation=of("score is_correct", score={"type": "number"}, is_correct={"type": "boolean"}),
    metadata=STRINGS,
)


def test_samples_say_of_each_document_what_was_right() -> None:
    """Of the shipped runs: the share of right answers is the stored accuracy, and a mention is
    named by its characters.
    """
    model = "all-MiniLM-L6-v2"
    lines = export(model, "every-eval-ever-samples", SHIPPED).splitlines()
    written = [json.loads(line) for line in lines]
    checker = jsonschema.Draft7Validator(SAMPLE)
    assert [checker.is_valid(sample) for sample in written] == [True] * len(written)
    whole = json.loads(export(model, "every-eval-ever", SHIPPED))
    ids = {result["evaluation_result_id"] for result in whole["evaluation_results"]}
    assert {sample["evaluation_result_id"] for sample in written} <= ids
    assert {sample["evaluation_id"] for sample in written} == {whole["evaluation_id"]}
    right: dict[str, list[bool]] = {}
    for sample in written:
        if sample["evaluation_name"] == "pubmedqa/accuracy":
            seed = sample["metadata"]["seed"]
            right.setdefault(seed, []).append(sample["evaluation"]["is_correct"])
    runs = [r for r in Store(SHIPPED).records() if (r.task.id, r.model.id) == ("pubmedqa", model)]
    full = {str(run.seed): run.scores["accuracy"] for run in runs if not run.overrides}
    assert {seed: sum(s) / len(s) for seed, s in right.items()} == pytest.approx(full)
    mentions = [s for s in written if s["evaluation_name"].startswith("ncbi_disease")]
    answers = {answer for sample in mentions for answer in sample["input"]["reference"]}
    assert all(re.fullmatch(r"\w+ \d+:\d+", answer) for answer in answers)


def test_samples_of_data_under_an_agreement_stay_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_runs(tmp_path, "org/model", "gad", SEEDS)
    save_runs(tmp_path, "org/model", "deid", SEEDS)
    written = export("org/model", "every-eval-ever-samples", tmp_path).splitlines()
    assert {json.loads(line)["evaluation_name"].partition("/")[0] for line in written} == {"gad"}
    assert "no samples of deid may be written" in caplog.text
    store = Store(tmp_path)
    for stored in list(store.records()):
        store.update(stored.model_copy(update={"redacted": True}))
    with pytest.raises(UsageError, match="no samples of deid, gad may be written"):
        export("org/model", "every-eval-ever-samples", tmp_path)


def test_a_published_model_has_no_runs_to_export(results):
    with pytest.raises(UsageError, match="published"):
        export("DrBERT", "model-card", results)


@pytest.mark.parametrize("format", FORMATS)
def test_limited_runs_are_never_exported(results, format):
    assert "anatem" not in export("org/tiny", format, results, dataset="org/biobench")
    save_run(results, "small", "gad", 42, 0.5, limit=8)
    with pytest.raises(UsageError, match="only limited or overridden runs"):
        export("small", format, results)


def test_a_ready_made_model_is_told_to_be_fine_tuned(results):
    save_run(results, "bought", "gad", 42, 0.5, origin="checkpoint", track="ready")
    with pytest.raises(UsageError, match="nothing was trained here") as exported:
        export("bought", "model-card", results)
    with pytest.raises(UsageError, match="was not fine-tuned here") as submitted:
        submitted_groups(load(results), "bought")
    for error in (exported.value, submitted.value):
        assert "run it without --track" in error.hint


def test_unknown_models_and_formats_are_refused(results):
    with pytest.raises(UsageError, match="no results of a model 'org/tinny'") as caught:
        export("org/tinny", "model-card", results)
    assert "org/tiny" in caught.value.hint
    with pytest.raises(UsageError, match="unknown format 'pdf'"):
        export("org/tiny", "pdf", results)
