"""A pretraining corpus from end to end: built, trained on, compared with the tasks; text, ledger,
record, report.
"""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from biobench.core import stop
from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.reporting.frame import build
from biobench.runs.provenance import contamination
from biobench.store import Store
from biobench.workflows.decontamination import MOST_NAMED, guard
from tests.helpers.cli_make import FAST, Run, Said
from tests.helpers.generators import diamed, meddialog
from tests.helpers.trainer_make import SMALL, TEXTS
from trainer import api
from trainer.corpus import tokenised


def sets(*values: str) -> list[str]:
    """Options that shrink toy_detour to a second, with `values` besides."""
    small = (*SMALL[:6], "corpus.sequence_length=48", "phases.0.schedule.warmup=500")
    return [part for text in (*small, *values) for part in ("--set", text)]


SETS = sets(
    *(
        "phases.0.tokens=3072",
        "phases.1.tokens=1536",
        "checkpoints.every=1024",
        "checkpoints.keep=9",
    ),
    *(
        "checkpoints.export=true",
        "corpus.sources=[{id: own, path: text.jsonl.gz}, {id: more, path: more.csv}]",
    ),
)
FEW = sets(
    "phases.0.tokens=1536", "phases.1.tokens=1536", "corpus.sources=[{id: own, path: text.jsonl}]"
)
LEAKED = 3
"""Test documents put into the training text: two as they are, one inside a longer text."""


@pytest.fixture
def text(biobench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources in the working folder, and no benchmark task at hand."""
    monkeypatch.setattr("biobench.data.catalog.list_tasks", list)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in TEXTS)
    (tmp_path / "text.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "more.csv").write_text("text\n" + "".join(f'"{t}"\n' for t in TEXTS[:20]))


@pytest.mark.usefixtures("text")
def test_a_corpus_is_built_looked_at_and_trained_on(biobench):
    folder = Path(biobench("corpus build toy_detour", *SETS, "--quiet").ok().out.partition(":")[0])
    assert folder.parent == Path("runs/corpora")
    rows = biobench("corpus stats", folder, "--json").json()
    assert [(r["source"], r["documents"], r["removed"]) for r in rows] == [
        ("own", 60, 0),
        ("more", 20, 0),
    ]
    assert rows[0]["tokens"] >= rows[0]["trained on"] > 1000
    table = biobench("corpus stats", folder).out.splitlines()
    assert len(table) == 4
    assert all(len(line) <= 80 for line in table)
    inspect = partial(biobench, "corpus inspect", folder)
    assert "all shards are whole" in inspect().out
    assert len(inspect("--window", 0).out.split()) == 48
    assert "no window 100000" in inspect("--window", 100000).refusal()

    before = {f.name: f.stat().st_mtime_ns for f in folder.glob("*.bin")}
    biobench("pretrain toy_detour", *SETS, "--quiet").ok()
    assert {f.name: f.stat().st_mtime_ns for f in folder.glob("*.bin")} == before, (
        "pretrain took it as it was"
    )
    words = inspect("--window", 0, "--tokenizer", "runs/toy_detour/start").out
    assert any(
        word in words for word in ("patient", "fever", "fièvre", "douleur", "pain", "traitement")
    )

    damaged = next(folder.glob("train-*.bin"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "content has changed" in inspect().refusal()


@pytest.mark.usefixtures("text")
def test_a_build_that_is_stopped_goes_on(biobench, monkeypatch):
    monkeypatch.setattr(tokenised, "DOCUMENTS", 5)
    monkeypatch.setattr(tokenised, "ALONE", 100)
    asked: list[int] = []
    monkeypatch.setattr(stop.StopFlag, "__call__", lambda _: (asked.append(1), len(asked) == 4)[1])
    said = biobench("corpus build toy_detour", *SETS, "--quiet")
    assert said.status == 75
    assert "continues" in said.err
    (journal,) = Path("runs/corpora").glob("*.parts/journal.jsonl")
    assert len(journal.read_text().splitlines()) == 3
    biobench("corpus build toy_detour", *SETS, "--quiet").ok()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus of seven test documents, and training text beside it that holds three of them."""
    # the generated needle documents, which are excluded too, take half a minute to write
    monkeypatch.setattr("biobench.data.catalog.list_tasks", lambda: [load_task("diamed")])
    folder = tmp_path / "data"
    diamed(folder)
    test = sorted(load_data(load_task("diamed"), folder).test, key=lambda d: len(d.text.split()))
    filler = [" ".join(f"w{i}x{j}" for j in range(60)) + "." for i in range(200)]
    texts = [*filler, test[0].text, test[1].text, f"Avant. {test[-1].text} Après."]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "text.jsonl").write_text(lines)
    return folder


def pretrain(biobench: Run, out: str, *more: str) -> Path:
    """A toy checkpoint trained on the text; its model folder."""
    biobench("pretrain toy_detour", *FEW, "--out", out, "--data-dir data", *more).ok()
    return Path(out) / "model"


def run(biobench: Run, model: Path, seeds: str = "1-2") -> None:
    biobench(
        "run",
        model,
        "--task diamed --data-dir data --seeds",
        seeds,
        "--no-gate",
        *FAST[2:],
    ).ok()


def overlap(biobench: Run, text: str | Path, *more: str | Path, task: str = "diamed") -> Said:
    return biobench("analyze overlap", text, "--task", task, "--data-dir data", *more)


def seen() -> set[int]:
    """Leaked test documents, as the records that know of any say."""
    return {r.contamination.seen for r in Store("results").records() if r.contamination}


@pytest.mark.usefixtures("data")
def test_a_leak_stands_in_the_record_and_on_the_report(biobench):
    model = pretrain(biobench, "leaky", "--no-exclude-tasks")
    again = biobench("pretrain toy_detour --out leaky --data-dir data")
    assert again.refusal() == "leaky holds a run already", "before any task is read"
    assert "guard" not in again.err
    run(biobench, model)
    before = Store("results").records()[0].contamination
    assert (before.corpus, before.test, before.excluded) == ("toy_detour", None, False)
    assert any("has not been compared" in note for note in build("results").notes)

    rows = {row["split"]: row for row in overlap(biobench, "leaky", "--json").ok().json()}
    assert (rows["test"]["seen"], rows["test"]["exact"], rows["test"]["excluded"]) == (
        LEAKED,
        2,
        False,
    )
    assert rows["validation"]["seen"] == 0
    for record in Store("results").records():
        known = record.contamination
        assert (known.seen, known.corpus_hash, known.base) == (
            LEAKED,
            before.corpus_hash,
            "fresh weights",
        )

    row = next(r for r in biobench("report --format json").json() if r["source"] == "run")
    documents = rows["test"]["documents"]
    assert (row["contamination"]["test"]["seen"], row["contamination"]["test"]["documents"]) == (
        LEAKED,
        documents,
    )
    markdown = biobench("report --format md").out
    assert "†" in next(line for line in markdown.splitlines() if line.startswith("| leaky/model"))
    remark = f"† leaky/model [training.epochs=1] on diamed: {LEAKED} of {documents} test documents"
    assert remark in markdown.replace("\\", "")

    # a run made after the measurement has it from the start
    run(biobench, model, "3")
    assert (seen(), len(Store("results").records())) == ({LEAKED}, 3)


def test_excluded_documents_are_said_to_be(biobench, data):
    model = pretrain(biobench, "clean")
    run(biobench, model)
    known = Store("results").records()[0].contamination
    assert (known.excluded, known.test) == (True, None)
    assert any(
        "were excluded from its training text 'toy_detour'" in note
        for note in build("results").notes
    )

    said = overlap(biobench, model / "ledger.json", "--json").ok()
    assert [(r["seen"], r["excluded"]) for r in said.json()] == [(0, True)] * 2
    assert any(
        "none of" in note and "all of them were excluded" in note for note in build("results").notes
    )

    # the list belongs to the task's data as it was, and to that run
    def excluded(listed: dict[str, object], data_hash: str) -> bool:
        """What a new results folder would say of the checkpoint with this list."""
        (model / "exclusion.json").write_text(json.dumps(listed))
        known = contamination(model, "any", "diamed", data_hash, "nowhere")
        return known.excluded

    listed = json.loads((model / "exclusion.json").read_text())
    digest = listed["tasks"]["diamed"]["data_hash"]
    assert not excluded(listed, "another")
    assert not any(
        excluded(listed | c, digest)
        for c in ({"exclusion_hash": "0"}, {"ngram": 20}, {"tasks": {}})
    )
    assert excluded(listed, digest)

    # other documents to exclude, or another text, are not those of the run
    exclusions = data / "DiaMED" / "splits" / "validation.json"
    cases = exclusions.read_text()
    exclusions.write_text(cases.replace('"clinical_case": "', '"clinical_case": "Ajout. ', 1))
    assert "not those that the run excluded" in overlap(biobench, "clean").refusal()
    exclusions.write_text(cases)
    with Path("text.jsonl").open("a") as stream:
        stream.write('{"text": "One line more."}\n')
    assert "cannot be shown to be the text of this run" in overlap(biobench, "clean").refusal()


@pytest.mark.usefixtures("data")
def test_text_is_given_to_a_model_by_name(biobench, tiny, tmp_path):
    run(biobench, tiny)
    assert Store("results").records()[0].contamination is None
    assert "2 stored runs" in overlap(biobench, "text.jsonl", "--model", tiny).ok().err
    assert seen() == {LEAKED}
    # text without a leak does not hide the one that has it
    (tmp_path / "other.txt").write_text("Nothing of the kind.")
    overlap(biobench, "other.txt", "--model", tiny)
    assert len(list(Path("results/overlap/diamed").iterdir())) == 2
    assert seen() == {LEAKED}
    said = overlap(biobench, "gone.txt")
    assert said.refusal() == "there is no training text at 'gone.txt'"
    assert "--set" not in said.err
    # without a model the figures are printed and nothing is kept
    assert (
        "2 of 7 documents verbatim" in overlap(biobench, "text.jsonl", "--results-dir", "new").out
    )
    assert not Path("new").exists()
    # where nothing was read, nothing is said to be clean
    (tmp_path / "blank.txt").write_text("\n")
    assert "'blank.txt' holds no text" in overlap(biobench, "blank.txt").refusal()


def test_tasks_that_are_not_guarded_are_named_and_can_be_counted_later(
    biobench, data, tmp_path, monkeypatch
):
    """Trained without the data of a task, then compared with it: what the run guarded is not what
    is at hand now.
    """
    tasks = [load_task("diamed"), load_task("meddialog_fr")]
    monkeypatch.setattr("biobench.data.catalog.list_tasks", lambda: tasks)
    meddialog(tmp_path / "other")
    secret = load_data(load_task("meddialog_fr"), tmp_path / "other").test[0].reading
    with (tmp_path / "text.jsonl").open("a") as stream:
        stream.write(json.dumps({"text": f"{secret} {secret}"}) + "\n")
    start = ("pretrain", "toy_detour", *FEW, "--out half --data-dir", data, "--require-tasks")
    for required, absent in (
        ("diamed,meddialog_fr", "meddialog_fr"),
        ("all", "meddialog_fr"),
        ("diamid", "diamid"),
    ):
        assert (
            biobench(*start, required)
            .refusal()
            .endswith(f"cannot exclude the documents of {absent}")
        )
    printed = biobench(*start, "diamed").ok().err
    assert "1 task NOT guarded" in printed
    assert "(--data-dir DIR): meddialog_fr" in printed
    assert f"removed from the corpus: {LEAKED} documents" in printed
    assert f"removed from the corpus because of diamed: {LEAKED} documents" in printed
    listed = json.loads(Path("half/exclusion.json").read_text())
    assert (list(listed["tasks"]), listed["not_guarded"]) == (["diamed"], ["meddialog_fr"])
    assert listed["tasks"]["diamed"]["removed"] == LEAKED
    assert "Tasks that were not guarded (1)" in Path("half/model/README.md").read_text()

    for name in (tmp_path / "other").iterdir():
        name.rename(data / name.name)
    said = overlap(biobench, "half", "--json", task="meddialog_fr").ok()
    assert {r["split"]: r["seen"] for r in said.json()}["test"] >= 1


def test_many_tasks_without_data_are_counted_and_a_command_lists_them():
    recipe = api.load_recipe("toy_detour", FEW[1::2], [])
    said: list[str] = []
    _, missing = guard(recipe, None, said.append, exclude_tasks=False, require_tasks=None)
    assert len(missing) > MOST_NAMED
    names = "`biobench data status` lists them"
    assert said == [f"{len(missing)} tasks NOT guarded, --no-exclude-tasks: {names}"]


def test_a_plan_says_what_a_toy_takes_and_what_this_machine_is(biobench, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    said = biobench("pretrain plan toy_detour").ok().out.splitlines()
    assert "  time on 1 x H200: under a second, at 35% of peak (--gpu, --gpus: on others)" in said
    assert any(line.startswith("  counted with a vocabulary of 1,600: ") for line in said)
    assert said[-1].startswith("  this machine: no GPU, ")
    assert said[-1].endswith("`biobench pretrain bench toy_detour` measures its speed")
