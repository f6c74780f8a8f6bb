"""`errors`: what a stored run got wrong, in context; own tasks too, data under an agreement without text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.report.details.mistaken import read_mistakes
from biobench.report.results import load
from biobench.schema.document import Prediction, Span
from biobench.store import Store
from tests.helpers.cli_make import Run, Said
from tests.helpers.report_make import save_run
from tests.helpers.spec_make import write_spec
from tests.helpers.submission_make import honest_run

SENTENCE = "The\tO\npatient\tO\nhas\tO\n<asthma>\tB-Disease\ntoday\tO\n\nNo\tO\nfever\tB-Disease\nnow\tO\n\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An own task's YAML with a stored run: the first mention missed, a false one said in the second sentence."""
    folder = tmp_path / "corpora" / "my_notes"
    folder.mkdir(parents=True)
    for name in ("train", "dev", "test"):
        (folder / f"{name}.tsv").write_text(SENTENCE, encoding="utf-8")
    files = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}
    reader = {"format": "iob", "columns": ["token", "tag"], "separator": "tab", "scheme": "IOB2", "decode": "strict"}
    spec = write_spec(tmp_path / "my_notes.yaml", source={"folder": "my_notes", "files": files, "reader": reader})
    data = load_data(load_task(spec), tmp_path / "corpora")
    first, second = data.test
    assert first.text[16:24] == "<asthma>"
    made = save_run(tmp_path / "results", "org/mine", "my_notes", 42, 0.5, data=data.hash)
    said = [Prediction(first.id), Prediction(second.id, spans=(*second.spans, Span(0, 2, "Disease")))]
    Store(tmp_path / "results").save(made, data.test, said)
    return spec


def errors(biobench: Run, own: Path, *more: str, data: str = "corpora") -> Said:
    return biobench("errors", "org/mine", "--task", own, "--data-dir", data, *more)


def test_mentions_in_context_of_an_own_task(own: Path, biobench: Run) -> None:
    said = errors(biobench, own).ok()
    assert said.out.startswith("org/mine on my_notes, seed 42: mistakes in 2 of 2 test documents\n")
    assert "missed: Disease …The patient has [<asthma>] today…" in said.out
    assert "false: Disease …[No] fever now…" in said.out
    assert "gold \\ predicted" not in said.out
    assert "false: " not in errors(biobench, own, "--kind", "missed").out
    rows = [(r["kind"], r["gold_text"], r["said_text"]) for r in errors(biobench, own, "--json").json()]
    assert rows == [("missed", "<asthma>", None), ("spurious", None, "No")]
    without = errors(biobench, own, data="elsewhere").out
    assert "missed: Disease 16-24" in without
    assert "asthma" not in without
    assert "no text: " in without


def test_the_page_is_whole_and_inert(own: Path, biobench: Run, tmp_path: Path) -> None:
    assert errors(biobench, own, "--html", "page.html").out == "page.html: written\n"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;asthma&gt;" in page
    assert "<asthma>" not in page
    assert "<script" not in page


def test_confusion_of_single_labels(biobench: Run, tmp_path: Path) -> None:
    record = honest_run(tmp_path / "results")
    gold, said = Store(tmp_path / "results").load_predictions(record)
    found = read_mistakes(load(tmp_path / "results"), "org/tiny", record.task.id)
    expected = Counter((d.labels[0], p.labels[0]) for d, p in zip(gold, said, strict=True))
    assert found.confusion is not None
    assert {(g, s): n for g, counted in found.confusion.items() for s, n in counted.items()} == expected
    command = ("errors", "org/tiny", "--task", record.task.id)
    out = biobench(*command).out
    assert ("gold \\ predicted" in out, "more documents: --documents" in out) == (True, True)
    wrong = next(pair for pair in expected if pair[0] != pair[1])
    assert f"  gold {wrong[0]}, predicted {wrong[1]}\n" in biobench(*command, "--documents", "999").out


def test_what_is_not_there_is_named(own: Path, biobench: Run, tmp_path: Path) -> None:
    said = biobench("errors", "org/mine", "--task", "gad")
    assert said.refusal() == "'org/mine' has no stored run on 'gad'"
    assert "my_notes" in said.err
    assert "no run with seed 7" in errors(biobench, own, "--seed", "7").refusal()
    assert errors(biobench, own, "--kind", "mised").refusal() == "--kind 'mised' is not known"
