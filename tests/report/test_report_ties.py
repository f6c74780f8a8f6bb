"""Letters by hand on a small suite, and where none are given."""

from __future__ import annotations

from biobench.comparison.compare import compare
from biobench.report.table import build
from biobench.report.tasks import shipped
from biobench.report.ties import MOST, tie_groups
from biobench.report.wide import blocks
from biobench.schema.document import Prediction
from biobench.stats import compare_many
from tests.helpers.compare_make import documents, save
from tests.helpers.floors_make import play
from tests.helpers.report_make import save_runs

FRENCH = [i.id for i in shipped().values() if i.suite == "fr" and i.in_suite]


def fill(folder, model, base):
    for i, task in enumerate(FRENCH):
        # tasks differ from each other a lot, models within a task by their base and a little noise
        noise = 0.004 * ((i * 7 + len(model)) % 5 - 2)
        save_runs(folder, model, task, {42: base + 0.03 * i + noise, 43: base + 0.03 * i + noise + 0.002})


def test_close_models_share_a_letter_and_distant_ones_do_not(tmp_path):
    for model, base in (("first", 0.62), ("second!", 0.62), ("third", 0.40)):
        fill(tmp_path, model, base)
    save_runs(tmp_path, "partly", FRENCH[0], {42: 0.9})
    letters = {line[0]: text for line, text in tie_groups(build(tmp_path, "macro"), "fr").items()}
    assert letters == {"first": "a", "second!": "a", "third": "b"}


def test_published_models_get_letters_too(tmp_path):
    letters = tie_groups(build(tmp_path, "paper"), "fr")
    assert len(letters) == 8
    found = compare(sorted(line[0] for line in letters), results_dir=tmp_path, suite="fr")
    assert {line[0]: text for line, text in letters.items()} == {s.model: s.ties for s in found.standings}


def test_no_letters_for_one_line_or_for_crowds(tmp_path):
    fill(tmp_path, "alone", 0.5)
    assert tie_groups(build(tmp_path, "macro"), "fr") == {}
    assert tie_groups(build(tmp_path, "macro"), "nowhere") == {}
    for i in range(MOST):
        for task in FRENCH:
            save_runs(tmp_path, f"m{i}", task, {42: 0.5})
    assert tie_groups(build(tmp_path, "macro"), "fr") == {}


def test_limited_runs_stand_behind_the_full_ones(tmp_path):
    for model, base in (("first", 0.6), ("second", 0.4)):
        fill(tmp_path, model, base)
    for task in FRENCH:
        save(tmp_path, "smoke", task, 42, 1.0, limit=20)
    built = build(tmp_path, "macro", sources=("run",))
    assert {row.model for row in built.averages} == {"first", "second"}
    assert {line[0] for line in tie_groups(built, "fr")} == {"first", "second"}
    (block,) = blocks(built)
    assert [line.model for line in block.lines] == ["first", "second", "smoke"]


def test_a_task_that_fails_its_gate_is_named_beside_the_average(tmp_path):
    for model, base in (("first", 0.62), ("third", 0.40)):
        fill(tmp_path, model, base)
    before = tie_groups(build(tmp_path, "macro"), "fr")
    play(tmp_path, FRENCH[0], 0.5, why="the surface tells it")
    built = build(tmp_path, "macro")
    said = [n for n in built.notes if n.startswith("the fr average leaves out ")]
    assert said == [
        f"the fr average leaves out {FRENCH[0]} for every line, published ones too: the gate refuses the runs here"
    ]
    assert {row.tasks for row in built.averages if row.suite == "fr"} == {len(FRENCH) - 1}
    assert tie_groups(built, "fr").keys() == before.keys()
    assert not any(n.startswith("the fr average leaves out ") for n in build(tmp_path, "macro", suites=("en",)).notes)


def test_equal_gaps_of_one_answer_are_chance_as_they_are_in_a_comparison(tmp_path):
    needles = [i.id for i in shipped().values() if i.suite == "needle" and i.in_suite]
    for task in needles:
        gold = documents(shipped()[task].corpus, 80)
        for model, wrong in (("a", 1), ("b", 2), ("c", 50)):
            wrongly = {d.id: ("B",) if d.labels == ("A",) else ("A",) for d in gold[:wrong]}
            said = [Prediction(document=d.id, labels=wrongly.get(d.id, d.labels)) for d in gold]
            for seed in (1, 2):
                save(tmp_path, model, task, seed, count=80, said=said)
    letters = tie_groups(build(tmp_path, "micro"), "needle")
    held = compare("a", "b", "c", results_dir=tmp_path, average="micro", suite="needle", documents=False)
    assert {line[0]: text for line, text in letters.items()} == {s.model: s.ties for s in held.standings}
    assert letters["a", "", "run"] == letters["b", "", "run"] != letters["c", "", "run"]


def test_letters_are_over_corpora_not_tasks(tmp_path):
    """Three tasks of one corpus agree that the one is better; the other corpora do not: as one, they prove nothing."""
    shared = [i.id for i in shipped().values() if i.id in FRENCH and i.corpus == shipped()["cantemist"].corpus]
    assert len(shared) == 3
    for place, task in enumerate(FRENCH):
        gap = 0.1 + 0.001 * place if task in shared else 0.02 + 0.025 * (place % 3)
        for model, own in (("first", gap), ("second", 0.0)):
            save_runs(tmp_path, model, task, {seed: 0.5 + own + 0.01 * (seed - 43) for seed in (42, 43, 44)})
    report = build(tmp_path, "macro", sources=["run"])
    scores = [[r.values for r in report.rows if r.model == model] for model in ("first", "second")]
    corpora = [shipped()[r.task].corpus for r in report.rows if r.model == "first"]
    options = {"resolution": 1 / 5, "paired_seeds": False}
    by_corpus = compare_many(scores, ["first", "second"], clusters=corpora, **options).pairs[0]
    by_task = compare_many(scores, ["first", "second"], **options).pairs[0]
    assert by_task.different != by_corpus.different
    assert set(tie_groups(report, "fr").values()) == {"a"}
