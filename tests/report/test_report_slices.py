"""`report --slices`: scores of runs by length, label and what training has shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.kinds import get_kind
from biobench.report.details.slices import counted, slicers_of
from biobench.schema.document import Document, Prediction, Span
from tests.helpers.cli_make import Said, call


@pytest.fixture
def biobench(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Said]:
    """The command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: call(monkeypatch, capfd, *arguments)


def test_a_worked_case_of_seen_and_unseen_mentions() -> None:
    train = [Document("t", "t", "Severe ASTHMA  attack", "train", spans=(Span(7, 21, "D"),))]
    text = "asthma attack and flu and gout"
    test = [Document("d", "d", text, "test", spans=(Span(0, 13, "D"), Span(18, 21, "D")))]
    said = [Prediction("d", spans=(Span(0, 13, "D"), Span(26, 30, "D")))]
    kind = get_kind("token_ner")
    found = counted(kind, slicers_of(kind, train, test), test, said)
    assert found["mention in training", "seen"] == (1, 0, 0)
    assert found["mention in training", "unseen"] == (0, 1, 1)
    assert found["words of the mention", "2"] == (1, 0, 0)
    assert found["words of the mention", "1"] == (0, 1, 1)
    assert found["training documents of the label", "1-50"] == (1, 1, 1)


def test_the_slices_of_a_dimension_add_up_to_the_whole(biobench: Callable[..., Said], tmp_path: Path) -> None:
    data = load_data(load_task("demo_ner"), None)
    rows = [{"document": d.id, "spans": [s._asdict() for s in d.spans[:1]]} for d in data.test]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    biobench("score", "--predictions", "p.jsonl", "--task", "demo_ner", "--model", "half", "--no-gate")
    shown = biobench("report", "--slices", "--format", "json").json()
    gold = sum(len(d.spans) for d in data.test)
    for dimension in {row["dimension"] for row in shown}:
        recalls = [row for row in shown if row["dimension"] == dimension and row["metric"] == "recall"]
        assert sum(row["gold"] for row in recalls) == gold, dimension
        found = sum(row["gold"] * row["mean"] for row in recalls)
        assert found == pytest.approx(sum(bool(d.spans) for d in data.test)), dimension
    text = biobench("report", "--slices").out
    assert "mention in training" in text
    assert "words of the mention" in text
    assert biobench("report", "--slices", "--format", "csv").out.startswith("model,variant,source,task,dimension")
    assert "no form in html" in biobench("report", "--slices", "--format", "html").refusal()
