"""`run --track ready`: checkpoints that bring a head answer the test split without training."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import biobench as package
from biobench.models.stored_head import HEAD_ABOUT
from biobench.store import Store
from tests.helpers.checkpoints import configure, make_checkpoint, reweigh

OPTIONS = ("--limit", "60", "--device", "cpu", "--no-gate", "--set", "training.precision=fp32")
READY = ("--track", "ready", *OPTIONS)
NER = ("run", "foreign", "--task", "demo_ner", *READY)
TOPIC = ("run", "foreign", "--task", "demo_topic", *READY)


class Kept(NamedTuple):
    """A fine-tuned model that was kept, its run's scores and predictions by document."""

    folder: Path
    scores: dict[str, float]
    predictions: dict[str, Any]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kept]:
    """Random heads on a random BERT: tags in the library's layout, topics with the head beside the
    encoder.
    """
    folder = tmp_path_factory.mktemp("kept")
    model = make_checkpoint("bert", folder / "bert")
    models = {}
    for task, pooling in (("demo_ner", ()), ("demo_topic", ("head.pooling=mean",))):
        recipe = ("training.precision=fp32", "training.epochs=1", "training.learning_rate=1e-9")
        (result,) = package.run(
            model,
            tasks=task,
            seeds=1,
            limit=60,
            gate=False,
            overrides=(*recipe, *pooling),
            device="cpu",
            results_dir=folder / "results",
            keep_model=folder / "models",
        )
        answers = predictions_of(folder / "results", task, result.key)
        models[task] = Kept(Path(result.model_folder), result.scores, answers)
    return models


@pytest.fixture
def foreign(kept: dict[str, Kept], tmp_path: Path) -> Path:
    """A copy of the tagger, to be given other labels."""
    return shutil.copytree(kept["demo_ner"].folder, tmp_path / "foreign")


def predictions_of(results: str | Path, task: str, key: str) -> dict[str, Any]:
    store = Store(results)
    record = store.get(task, key)
    assert record is not None
    return {answer.document: answer for answer in store.stored_predictions(record)[1]}


def rename(folder: Path, names: dict[str, str]) -> None:
    """Give the labels of a library's model other names: tags by their entity, or whole."""
    labels = json.loads((folder / "config.json").read_text())["id2label"]
    for place, tag in labels.items():
        letter, dash, entity = tag.partition("-")
        labels[place] = names.get(tag, letter + dash + names.get(entity, entity))
    configure(folder, id2label=labels, label2id={name: int(at) for at, name in labels.items()})


def prefer(folder: Path, label: int) -> None:
    """Let a tagger give every word the label of this number."""

    def raised(weights: dict[str, Any]) -> dict[str, Any]:
        weights["classifier.bias"][label] = 10.0
        return weights

    reweigh(folder, raised)


@pytest.mark.parametrize("task", ["demo_ner", "demo_topic"])
def test_a_kept_model_gives_its_own_runs_score_and_answers(biobench, kept, task):
    model = kept[task]
    assert (model.folder / "head.safetensors").exists() == (task == "demo_topic"), "both layouts"
    (row,) = biobench("run", model.folder, "--task", task, *READY, "--json").ok().json()
    assert (row["status"], row["seed"], row["track"]) == ("done", None, "ready")
    assert row["scores"] == pytest.approx(model.scores, abs=1e-6)
    assert max(row["scores"].values()) > 0
    answers = predictions_of("results", task, row["key"])
    assert answers.keys() == model.predictions.keys()
    for document, wanted in model.predictions.items():
        answer = answers[document]
        assert (answer.spans, answer.labels) == (wanted.spans, wanted.labels)
        assert answer.span_scores == pytest.approx(wanted.span_scores, abs=1e-5)
    again = biobench("run", model.folder, "--task", task, *READY, "--json").json()[0]
    assert again["status"] == "skipped"


def test_other_labels_are_matched_by_case_and_by_a_map(biobench, kept, foreign):
    rename(foreign, {"Anatomy": "ANATOMY", "Disease": "PROBLEM", "Drug": "TREATMENT"})
    Path("map.yaml").write_text("PROBLEM: Disease\nTREATMENT: Drug\n")
    (row,) = biobench(*NER, "--label-map", "map.yaml", "--json").ok().json()
    assert row["scores"] == pytest.approx(kept["demo_ner"].scores, abs=1e-6)
    record = Store("results").get("demo_ner", row["key"])
    assert record.label_map["B-PROBLEM"] == "B-Disease"
    assert record.label_map["I-ANATOMY"] == "I-Anatomy"
    assert record.model.notes == ()


def test_labels_that_stand_for_nothing_are_dropped_and_counted(biobench, kept, foreign):
    rename(foreign, {"Anatomy": "PLACE", "Disease": "PROBLEM", "Drug": "SIGN"})
    prefer(foreign, 3)
    Path("map.yaml").write_text("PROBLEM: Disease\nSIGN: Disease\n")
    said = biobench(*NER, "--label-map", "map.yaml", "--json").ok()
    note = "2 of 7 labels are dropped: B-PLACE, I-PLACE"
    assert note in said.err
    (row,) = said.json()
    assert Store("results").get("demo_ner", row["key"]).model.notes == (note,)
    answers = predictions_of("results", "demo_ner", row["key"]).values()
    assert {span.label for answer in answers for span in answer.spans} == {"Disease"}


def test_a_model_with_bare_tags_begins_its_mentions(biobench, foreign):
    rename(foreign, {"B-Drug": "unused", "I-Drug": "Drug"})
    prefer(foreign, 6)
    (row,) = biobench(*NER, "--json").ok().json()
    answers = predictions_of("results", "demo_ner", row["key"]).values()
    assert any(span.label == "Drug" for answer in answers for span in answer.spans)


WRONG_MAPS = {
    "nothing": ("", "map.yaml: the file is empty"),
    "no lines": ("{}\n", "map.yaml:1: maps no labels"),
    "a list": ("- PROBLEM\n", "map.yaml:1: maps no labels"),
    "two targets": ("PROBLEM: [Disease, Drug]\n", "map.yaml:1: 'PROBLEM' is not mapped to one"),
    "an unknown label": ("PROBLEMS: Disease\n", "no checkpoint has a label 'PROBLEMS'"),
    "an unknown target": ("PROBLEM: Illness\n", "no task has a label 'Illness'"),
    "a label twice": ("PROBLEM: Disease\nPROBLEM: Drug\n", "map.yaml:2: "),
    "against an equal name": ("Drug: Disease\n", "gives 'B-Drug' to 'Disease', but the task has"),
}


@pytest.mark.parametrize("case", WRONG_MAPS)
def test_a_wrong_map_ends_in_one_line(biobench, foreign, case):
    rename(foreign, {"Disease": "PROBLEM"})
    content, problem = WRONG_MAPS[case]
    Path("map.yaml").write_text(content)
    assert problem in biobench(*NER, "--label-map", "map.yaml").refusal()


def test_where_nothing_can_be_answered_one_line_says_why(biobench, foreign, kept, tmp_path):
    rename(foreign, {"Anatomy": "A", "Disease": "B", "Drug": "C"})
    said = biobench(*NER).refusal()
    assert "it has O, B-A, I-A" in said
    assert "the task has Anatomy, Disease, Drug" in said
    topic = biobench(*TOPIC).refusal()
    assert "the checkpoint's is of type token classification" in topic
    bare = make_checkpoint("bert", tmp_path / "bare")
    assert "no classification head" in biobench("run", bare, "--task", "demo_ner", *READY).refusal()
    base = ("run", "foreign", "--task", "demo_ner")
    assert "goes with --track ready" in biobench(*base, "--label-map", "map.yaml").refusal()


def test_runs_by_two_label_maps_are_no_seeds_of_one_model(biobench, kept, foreign):
    rename(foreign, {"Anatomy": "PLACE", "Disease": "PROBLEM", "Drug": "SIGN"})
    for targets in (("Disease", "Drug"), ("Drug", "Disease")):
        Path("map.yaml").write_text("PROBLEM: {}\nSIGN: {}\n".format(*targets))
        biobench(*NER, "--label-map", "map.yaml").ok()
    rows = [r for r in biobench("report --format json").json() if r["source"] == "run"]
    assert len({row["variant"] for row in rows}) == 2
    assert all(", key " in row["variant"] and row["n_seeds"] == 1 for row in rows)


def test_every_reader_of_results_takes_a_ready_made_row(biobench, kept):
    folder = kept["demo_topic"].folder
    base = ("--task", "demo_topic", *OPTIONS, "--json")
    biobench("run", folder, "--track", "ready", *base).ok()
    biobench("run", "dummy", "--seeds", "1-3", *base, "--set", "training.epochs=1").ok()
    rows = biobench("report", "--format", "json").ok().json()
    (row,) = [row for row in rows if "ready-made" in row["variant"]]
    assert row["n_seeds"] == 1
    for form in ("table", "md", "csv", "latex", "html"):
        assert "ready-made" in biobench("report", "--format", form).ok().out
    compared = biobench("rescore", "--json").ok().json()
    assert {row["outcome"] for row in compared} == {"unchanged"}
    assert "done" in biobench("status").ok().out
    assert biobench("submit", folder.name).status == 2


def test_comparison_says_that_seeds_play_no_part_on_the_side_of_a_ready_made_model(biobench, kept):
    folder = kept["demo_topic"].folder
    settings = ("--task", "demo_topic", *OPTIONS)
    biobench("run", folder, "--track", "ready", *settings).ok()
    biobench("run", "dummy", "--seeds", "1-3", *settings).ok()
    said = biobench("compare", folder.name, "dummy", "--task", "demo_topic").ok().out
    assert "no seeds on its side" in " ".join(said.split())


def test_what_a_folder_says_of_its_head_is_bounded_and_decides_the_key(biobench, kept, tmp_path):
    folder = shutil.copytree(kept["demo_topic"].folder, tmp_path / "foreign")
    said = folder / HEAD_ABOUT
    about, keys = json.loads(said.read_text()), []
    for pooling in ("mean", "cls"):
        about["head"]["pooling"] = pooling
        said.write_text(json.dumps(about))
        keys += [row["key"] for row in biobench(*TOPIC, "--json").ok().json()]
    assert len(set(keys)) == 2
    about["outputs"].append("more than the weights hold")
    said.write_text(json.dumps(about))
    assert "the head cannot be loaded" in biobench(*TOPIC).err
    os.truncate(said, 2**27)
    assert "has more than" in biobench(*TOPIC).refusal()
