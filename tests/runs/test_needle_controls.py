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
from tests.helpers.needle_make import needle_spec

SEEDS = 8


def made(folder: Path, seed: int, more: str = "") -> LoadedTask:
    examples = "examples: {train: 384, validation: 48, test: 384}"
    return load_task(needle_spec(folder, f"lengths: [128], notes: 200, seed: {seed}, {examples}{more}", language="en"))


def test_controls_sit_at_chance_over_seeds(tmp_path: Path) -> None:
    alone: dict[str, list[float]] = {"document alone": [], "query alone": []}
    for seed in range(SEEDS):
        found = {c.name: c for c in controls(load_data(made(tmp_path, seed), None))}
        assert found["oracle"].share.mean == 1.0
        assert found["exact match"].share.mean == 1.0
        assert found["lexical overlap"].share.low > 0.8, "string matching does tell the answers apart"
        for name, shares in alone.items():
            shares.append(found[name].share.mean)
    for name, shares in alone.items():
        # The coin is tossed once a pair, so what is independent are the SEEDS x 192 pairs, both answers of one
        # right or wrong together where they differ.
        limit = 1.96 * 0.5 / (SEEDS * 192) ** 0.5
        assert abs(sum(shares) / SEEDS - 0.5) <= limit, (name, shares)
        each = 1.96 * 0.5 / 192**0.5
        assert sum(abs(s - 0.5) > each for s in shares) <= 2, (name, shares)


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
