"""More submissions with recomputed hashes that must not be taken: names, seeds, claims of the run, uploads."""

from __future__ import annotations

import io
import json
import random
import unicodedata
import zipfile
from dataclasses import replace

import pytest

from biobench.schema.document import Document, Prediction, Span
from biobench.schema.record import Resampling
from biobench.store import Store
from biobench.submission.duplicates import answers_of, check_copies
from biobench.submission.layout import MOST_FILES, check_name
from biobench.submission.pack import MANIFEST, submit
from biobench.submission.unpack import unpack
from biobench.submission.verify import examine
from tests.helpers.store_make import record
from tests.helpers.submission_make import TASK, change_record, codes, honest_run, near, relist
from tests.submission.test_attacks import rekeyed


def with_manifest(packed, change):
    manifest = json.loads((packed / MANIFEST).read_text())
    change(manifest)
    (packed / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False))


COSTS = {
    "longer training than run": lambda r: r["cost"].update(train_seconds=1e6),
    "no time at all": lambda r: r["cost"].update(seconds=0, train_seconds=0, evaluation_seconds=0),
    "less memory than the weights": lambda r: r["cost"].update(peak_memory_bytes=1),
}


@pytest.mark.parametrize("lie", COSTS.values(), ids=COSTS.keys())
def test_costs_that_contradict_each_other(packed, lie):
    change_record(packed, lie)
    assert codes(packed) == {"S06"}


@pytest.mark.parametrize("resampling", [{"fold": 0, "folds": 1, "train_documents": 9}])
def test_a_split_of_a_task_that_has_none(packed, resampling):
    change_record(packed, lambda r: r.update(resampling=resampling))
    assert codes(packed) & {"T03"}


@pytest.mark.parametrize(
    "fields", [{"split": "validation"}, {"origin": "outside"}, {"origin": "checkpoint"}, {"label_map": {"a": "b"}}]
)
def test_scores_of_another_split_or_of_no_training_here(packed, fields):
    change_record(packed, lambda r: r.update(fields))
    assert codes(packed) == {"R04"}


def test_mentions_that_the_data_does_not_lose(packed):
    change_record(packed, lambda r: r.update(unexpressed_gold={"test": {"x": 5}}))
    assert codes(packed) == {"D01"}


def test_objects_in_objects_without_end(packed):
    path = next(packed.glob("runs/*/*.json"))
    deep = b'"protocol": {"x": ' + b"[" * 700 + b"]" * 700 + b","
    path.write_bytes(path.read_bytes().replace(b'"protocol": {', deep, 1))
    relist(packed)
    found = examine(packed)
    assert found.state == "refused"
    assert any(c.code == "R01" and "nested too deeply" in c.what for c in found.checks)
    records, unusable = Store(packed).scan()
    assert (len(records), len(unusable)) == (1, 1), "a results folder is read past it"


# several checkpoints, chosen seeds


@pytest.mark.parametrize("fields", [{"parameters": 999}, {"architecture": "OtherModel"}, {"max_positions": 256}])
def test_one_checkpoint_that_is_described_in_two_ways(packed, fields):
    change_record(packed, lambda r: r["model"].update(fields))
    assert "R09" in codes(packed)


@pytest.mark.parametrize(("licences", "found"), [(("mit", "apache-2.0"), {"R09"}), (("mit", None), set())])
def test_the_licence_of_one_checkpoint_is_one_and_older_runs_name_none(tmp_path, licences, found):
    for seed in (42, 43):
        honest_run(tmp_path / "results", seed)
    store = Store(tmp_path / "results")
    for run, licence in zip(store.records(), licences, strict=True):
        store.update(run.model_copy(update={"model": run.model.model_copy(update={"licence": licence})}))
    pack = submit("org/tiny", tmp_path / "results", tmp_path / "pack")
    assert {c.code for c in examine(pack).checks if c.grade == "error"} == found


def test_seeds_that_may_have_been_chosen(tmp_path):
    for seed in (42, 1007, 77):
        honest_run(tmp_path / "results", seed)
    found = examine(submit("org/tiny", tmp_path / "results", tmp_path / "pack"))
    assert found.state == "person"
    assert [c.code for c in found.checks if c.grade == "person"] == ["C05"]


def test_more_seeds_than_the_protocol_are_no_finding(tmp_path):
    for seed in (42, 43, 44):
        honest_run(tmp_path / "results", seed)
    assert examine(submit("org/tiny", tmp_path / "results", tmp_path / "pack")).state == "verified"


# names


@pytest.mark.parametrize(
    "name",
    [
        "\u043erg/tiny",
        "org/tiny ",
        "org/ti\u3164ny",
        unicodedata.normalize("NFD", "org/modèle"),
    ],
)
def test_letters_that_look_like_others_need_a_person(tmp_path, name):
    honest_run(tmp_path / "results", model=name)
    found = examine(submit(name, tmp_path / "results", tmp_path / "pack"))
    assert found.state == "person"
    assert [c.code for c in found.checks if c.grade == "person"] == ["M06"]


def test_names_as_people_give_them_are_no_finding():
    for name in ("org/tiny", "google-bert/bert-base@v1.0", "modèle français", "Grösse_2 (mlm)", "cœur", "<b>&'\""):
        assert check_name(name) == [], name


@pytest.mark.parametrize(
    "name",
    [
        *("org/tiny [submission a]", "org/tiny [weights 12345678]", "org/tiny (verified)", "org/tiny (Reproduced)"),
        *(
            "org/tiny (re-scored)",
            "org/tiny ( published )",
            "org/tiny (verified, 5 seeds)",
            "org/tiny \uff3bfrozen\uff3d",
        ),
        *("org/tiny \uff08verified\uff09", "oracle (baseline)"),
    ],
)
def test_names_that_imitate_a_mark_of_the_board_are_refused(tmp_path, name):
    honest_run(tmp_path / "results", model=name)
    pack = submit(name, tmp_path / "results", tmp_path / "pack")
    assert codes(pack) == {"M06"}


def test_the_weights_of_another_under_a_new_name(tmp_path):
    """The same key and the same predictions; the board would show a second line of them."""
    honest_run(tmp_path / "board", model="org/tiny", weights="a" * 64)
    made = honest_run(tmp_path / "mine", model="org/tiny", weights="a" * 64)
    rekeyed(made, tmp_path / "mine", id="org/better")
    found = examine(submit("org/better", tmp_path / "mine", tmp_path / "pack"), against=tmp_path / "board")
    assert found.state == "person"
    assert any(c.code == "P02" and "under another name, of org/tiny" in c.what for c in found.checks)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: m.update(version=7), "M01"),
        (lambda m: m["files"].append(m["files"][0]), "M02"),
        (lambda m: m["files"].insert(0, m["files"][0] | {"sha256": "0" * 64}), "M02"),
    ],
)
def test_manifests_with_two_readings(packed, change, code):
    with_manifest(packed, change)
    assert codes(packed) == {code}


# predictions: five hundred documents, of which a third is hard for every model

LABELS = ("no", "yes")
DOCUMENTS = [Document(f"d{i:03d}", f"d{i:03d}", "", "test", labels=(LABELS[i % 2],)) for i in range(500)]


def run_of(said, seed=1, place="", weights="a"):
    made = record(seed=seed, score=False)
    task = made.task.model_copy(update={"labels": LABELS, "gold_labels": LABELS, "type": "single_label"})
    made = made.model_copy(
        update={"task": task, "model": made.model.model_copy(update={"id": f"org/{weights}", "hash": weights * 64})}
    )
    return answers_of(made.model_copy(update={"key": f"{seed:032x}"}), DOCUMENTS, said, place)


def answer(document, right, strength):
    label = document.labels[0] if right else LABELS[1 - LABELS.index(document.labels[0])]
    return Prediction(
        document.id, labels=(label,), label_scores=tuple(strength if n == label else 1 - strength for n in LABELS)
    )


def trained(seed, hard=0.5, easy=0.05):
    """Errors mostly on the documents that are hard for all; scores that vary by document and by seed."""
    chance, said = random.Random(seed), []
    for i, document in enumerate(DOCUMENTS):
        wrong = chance.random() < (hard if i % 3 == 0 else easy)
        said.append(answer(document, not wrong, round(0.6 + 0.1 * (i % 7) / 7 + 0.25 * chance.random(), 6)))
    return said


def noisy_gold(seed, share):
    chance = random.Random(seed)
    return [answer(d, chance.random() >= share, round(chance.uniform(0.6, 0.99), 6)) for d in DOCUMENTS]


def found_in(runs, others=()):
    return {(c.code, c.grade) for c in check_copies(runs, others)}


def test_trainings_that_share_what_is_hard_are_no_finding():
    runs = [run_of(trained(seed), seed) for seed in (1, 2, 3)]
    others = [run_of(trained(seed, 0.6), seed, "results", "b") for seed in (4, 5)]
    assert found_in(runs, others) == set()


def test_a_copy_with_other_scores_and_a_few_turned_answers_is_near():
    chance, source = random.Random(9), trained(1)
    for turned, expected in ((0, {("P02", "person")}), (5, {("P02", "person")}), (250, set())):
        places = set(chance.sample(range(len(source)), turned))
        copy = [
            answer(d, (p.labels == d.labels) != (i in places), round(chance.uniform(0.6, 0.99), 6))
            for i, (d, p) in enumerate(zip(DOCUMENTS, source, strict=True))
        ]
        assert found_in([run_of(copy)], [run_of(source, 1, "results", "b")]) == expected


def test_probes_of_several_seeds_on_the_same_states_may_answer_alike():
    chance, source = random.Random(9), trained(1)
    again = [
        replace(p, label_scores=tuple(round(s - 1e-3 * chance.random(), 6) for s in p.label_scores)) for p in source
    ]
    first, second = run_of(source, 1), run_of(again, 2)
    assert found_in([first, second]) == {("P02", "person")}
    frozen = [replace(run, record=run.record.model_copy(update={"track": "frozen"})) for run in (first, second)]
    assert found_in(frozen) == set()
    assert found_in([frozen[0], replace(frozen[0], record=frozen[1].record)]) == {("P02", "error")}, "the same scores"


def test_a_copied_checkpoint_under_a_new_name_is_found_by_its_weights():
    """Its seeds are others, or its thresholds were fitted anew, so that neither answers nor scores are equal."""
    mine = run_of(trained(1), 1)
    theirs = run_of(trained(2), 2, "results")
    renamed = theirs.record.model_copy(update={"model": theirs.record.model.model_copy(update={"id": "org/else"})})
    assert found_in([mine], [theirs]) == set(), "another seed of the same model"
    assert found_in([mine], [replace(theirs, record=renamed)]) == {("P02", "person")}


def test_splits_of_one_task_are_not_compared_with_each_other():
    first, second = run_of(trained(1), 1), run_of(trained(2), 2)
    fold = second.record.model_copy(update={"resampling": Resampling(fold=1, folds=5, train_documents=9)})
    assert found_in([first, replace(second, record=fold, documents=b"others")]) == set()
    assert found_in([first, replace(second, documents=b"others")]) == {("P02", "person")}


# numbers

NUMBERED = [Document(f"d{i:03d}", f"d{i:03d}", "", "test", labels=(str(i % 5),)) for i in range(100)]


def numbers_of(said, seed=1, place="", weights="a"):
    made = record(seed=seed, score=False)
    task = made.task.model_copy(update={"labels": (), "gold_labels": (), "type": "regression"})
    model = made.model.model_copy(update={"id": f"org/{weights}", "hash": weights * 64})
    made = made.model_copy(update={"task": task, "model": model, "key": f"{seed:032x}"})
    return answers_of(made, NUMBERED, said, place)


def test_numbers_of_two_trainings_are_no_finding():
    runs = [numbers_of(near(NUMBERED, (0, 4), str(seed)), seed) for seed in (1, 2)]
    assert found_in(runs, [numbers_of(near(NUMBERED, (0, 4), "9"), 1, "results", "b")]) == set()


def test_copied_numbers_are_found():
    source = near(NUMBERED, (0, 4), "1")
    assert found_in([numbers_of(source)], [numbers_of(source, 1, "results", "b")]) == {("P02", "error")}


# spans


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (Span(-5, 3, "Disease"), "end before"),
        (Span(3, 3, "Disease"), "end before"),
        (Span(9, 3, "Disease"), "end before"),
        (Span(10**6, 10**6 + 3, "Disease"), ""),
    ],
)
def test_spans_that_no_text_has(span, said):
    from biobench.submission.content import check_predictions

    made = record()
    gold = [Document("n", "n", "", "test", tokens=((0, 5),), tags=("O",))]
    found = check_predictions(made, "here", gold, [Prediction("n", spans=(span,))])
    assert [said in c.what for c in found] == ([True] if said else [])


@pytest.mark.parametrize("tags", [("B-Evil",), ("O",), ("X-\x1b",), ("I-Disease",)])
def test_tags_that_do_not_give_the_spans(tags):
    from biobench.submission.content import check_predictions

    gold = [Document("n", "n", "", "test", tokens=((0, 5),), tags=("O",))]
    said = Prediction("n", spans=(Span(0, 5, "Disease"),), tags=tags)
    assert [c.code for c in check_predictions(record(), "here", gold, [said])] == ["P01"]
    honest = replace(said, tags=("B-Disease",))
    assert check_predictions(record(), "here", gold, [honest]) == []


# time, and the upload


@pytest.mark.parametrize(
    ("names", "packing", "code"),
    [
        ([f"{n}" for n in range(MOST_FILES + 1)], zipfile.ZIP_STORED, "L04"),
        ([MANIFEST, f"runs/{TASK}/{0:032x}.parquet"], zipfile.ZIP_DEFLATED, "L03"),
        ([MANIFEST], zipfile.ZIP_LZMA, "L01"),
        (["evil.py"], zipfile.ZIP_STORED, "L02"),
    ],
)
def test_an_upload_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, names, packing, code):
    monkeypatch.setattr("biobench.submission.unpack.UNPACKED_BYTES", 2_000)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", packing) as archive:
        for name in names:
            archive.writestr(name, bytes(1_001))
    assert {c.code for c in unpack(held, tmp_path)} == {code}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("top", ["../", "/", "C:\\x/", "sub/../../"])
def test_an_upload_does_not_leave_its_folder(packed, tmp_path, top):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for path in sorted(p for p in packed.rglob("*") if p.is_file()):
            archive.write(path, top + path.relative_to(packed).as_posix())
    target = tmp_path / "a" / "target"
    target.mkdir(parents=True)
    refused = unpack(held, target)
    written = [p for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert all(target in p.resolve().parents for p in written)
    assert refused or examine(target).state == "verified"


def test_runs_that_learnt_nothing_decide_the_same_and_are_no_copies():
    """Seen: five encoders without any label on Hallmarks of Cancer, each the copy of the first by their decisions."""

    def idle(seed, others=0):
        chance, said = random.Random(seed), []
        for document in DOCUMENTS:
            right = document.labels[0] == "no"
            said.append(answer(document, right, round(chance.uniform(0.6, 0.99), 6)))
        for place in chance.sample(range(len(said)), others):
            said[place] = answer(DOCUMENTS[place], DOCUMENTS[place].labels[0] == "yes", 0.7)
        return said

    honest = [run_of(idle(1), 1), run_of(idle(2, 3), 2), run_of(idle(3), 3, weights="b")]
    assert found_in(honest) == set()
    assert found_in(honest[:1], [run_of(idle(4), 4, "results", weights="c")]) == set()
    assert found_in(honest[:1], [run_of(idle(1), 5, "results", weights="c")]) == set(), "in all forms"
