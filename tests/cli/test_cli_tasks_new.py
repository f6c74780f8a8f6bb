"""`tasks new` says what it took the data for, and refuses what it would take for something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cli_make import Said

Run = Callable[..., Said]
DRUGS = ("aspirin", "warfarin", "heparin", "morphine", "codeine", "ibuprofen")
ILLS = ("headache", "thrombosis", "embolism", "chronic pain", "cough", "fever")


def triplets(header: str) -> str:
    rows = [f"{d}\t{'treats' if i % 2 else 'causes'}\t{ill}" for i, d in enumerate(DRUGS) for ill in ILLS]
    return "\n".join([*([header] if header else []), *rows]) + "\n"


@pytest.mark.parametrize("header", ["head\trelation\ttail", "drug\trelation\tillness", ""])
def test_triplets_are_no_classification(header: str, biobench: Run, tmp_path: Path) -> None:
    (tmp_path / "kb.tsv").write_text(triplets(header), encoding="utf-8")
    said = biobench("tasks", "new", "kb.tsv", "--id", "kb")
    assert said.refusal().startswith("kb.tsv: its rows look like relations: ")
    assert "--type single_label" in said.err
    assert not (tmp_path / "kb.yaml").exists()
    assert biobench("tasks", "new", "kb.tsv", "--id", "kb", "--type", "single_label").status == 0


def test_triplets_as_objects(biobench: Run, tmp_path: Path) -> None:
    rows = [{"subject": d, "predicate": "treats" if i % 2 else "causes", "object": ill, "score": 1}
            for i, d in enumerate(DRUGS) for ill in ILLS]  # fmt: skip
    (tmp_path / "kb.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    assert "'subject' and 'object'" in biobench("tasks", "new", "kb.jsonl", "--id", "kb").refusal()


def notes(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = [
        f"The patient number {i} was seen today for a check.\t{'urgent' if i % 3 else 'routine'}" for i in range(30)
    ]
    (folder / "all.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")


def test_what_was_detected_and_the_next_command(biobench: Run, tmp_path: Path) -> None:
    notes(tmp_path / "my corpora" / "triage")
    said = biobench("tasks", "new", "my corpora/triage/all.tsv", "--id", "triage")
    assert said.status == 0, said.err
    for line in ("  type: single_label", "  labels: 2: routine, urgent", "  splits: all = all.tsv"):
        assert line in said.out.splitlines()
    assert "`biobench tasks validate triage.yaml --data-dir 'my corpora'`" in said.out
    assert biobench("tasks", "validate", "triage.yaml", "--data-dir", "my corpora").status == 0


def test_short_texts_with_ids_are_still_documents(biobench: Run, tmp_path: Path) -> None:
    rows = [f"{'fièvre' if i % 2 else 'toux'} {i}\t{'R50' if i % 2 else 'R05'}\tdoc{i}" for i in range(40)]
    (tmp_path / "codes.tsv").write_text("text\tcode\tdoc_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert biobench("tasks", "new", "codes.tsv", "--id", "codes").status == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("token_ner", "all.tsv: looks like single_label (2: routine, urgent), not token_ner"),
        ("relation", "--type 'relation' cannot be read from data files"),
    ],
)
def test_another_type_is_refused(given: str, said: str, biobench: Run, tmp_path: Path) -> None:
    notes(tmp_path / "triage")
    refusal = biobench("tasks", "new", "triage/all.tsv", "--id", "triage", "--type", given).refusal()
    assert refusal.endswith(said)
