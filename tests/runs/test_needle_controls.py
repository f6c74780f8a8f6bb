"""Controls of the needle task: no answer in the query or the document alone, and a planted leak is caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.baselines import gate
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.runs.needle_controls import controls, render_controls
from biobench.schema.document import Document, TaskData
from biobench.schema.needle import ABSENT

SEEDS = 20


def made(folder: Path, seed: int, more: str = "") -> LoadedTask:
    path = folder / f"n{seed}.yaml"
    path.write_text(
        f"""
id: needle_made
version: 1
name: Made by a test
language: en
type: needle
source: {{id: made, generated: true}}
reader:
  {{format: needle, lengths: [128], notes: 200, seed: {seed},
   examples: {{train: 384, validation: 48, test: 384}}{more}}}
labels: [absent, present]
unit: document
training: {{epochs: 1, learning_rate: 5e-5}}
head: {{kind: sequence}}
metric: {{primary: accuracy, paper: accuracy}}
gate: {{expect: chance}}
access: open
licence: none
homepage: https://example.org
citation: none
""",
        encoding="utf-8",
    )
    return load_task(path)


def test_controls_sit_at_chance_over_twenty_seeds(tmp_path: Path) -> None:
    alone: dict[str, list[float]] = {"document alone": [], "query alone": []}
    for seed in range(SEEDS):
        found = {c.name: c for c in controls(load_data(made(tmp_path, seed), None))}
        assert found["oracle"].share.mean == 1.0
        assert found["exact match"].share.mean == 1.0
        assert found["lexical overlap"].share.low > 0.8, "string matching does tell the answers apart"
        for name, shares in alone.items():
            shares.append(found[name].share.mean)
    for name, shares in alone.items():
        # The coin is tossed once a pair, so what is independent are the 20 x 192 pairs, both answers of one
        # right or wrong together where they differ.
        limit = 1.96 * 0.5 / (SEEDS * 192) ** 0.5
        assert abs(sum(shares) / SEEDS - 0.5) <= limit, (name, shares)
        each = 1.96 * 0.5 / 192**0.5
        assert sum(abs(s - 0.5) > each for s in shares) <= 3, (name, shares)


@pytest.mark.parametrize("hardness", ["all", "one"])
def test_the_gate_passes_the_task_as_it_is(tmp_path: Path, hardness: str) -> None:
    task = made(tmp_path, 42, f", hardness: {hardness}")
    verdict = gate(task, load_data(task, None))
    assert verdict.passed, verdict.reasons


def shortened(document: Document) -> Document:
    if document.labels != (ABSENT,):
        return document
    words = document.text.split()
    return replace(document, text=" ".join(words[: len(words) * 3 // 4]))


def test_negatives_that_are_always_shorter_are_caught(tmp_path: Path) -> None:
    task = made(tmp_path, 42)
    data = load_data(task, None)
    leaky: TaskData = replace(data, documents={s: [shortened(d) for d in own] for s, own in data.documents.items()})
    assert not gate(task, leaky).passed
    assert {c.name for c in controls(leaky) if c.leaks} == {"document alone"}
    assert "must be at chance and is NOT" in render_controls("needle_made", controls(leaky), None)


def test_controls_on_the_lengths_that_a_model_reads(tmp_path: Path) -> None:
    task = made(tmp_path, 42, "")
    data = load_data(task, None)
    assert {c.share.documents for c in controls(data, 128)} == {384}
