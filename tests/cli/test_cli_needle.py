"""`needle`: the runs, their grid and controls; and all lengths up to 8,192 tokens in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from biobench.core.machine import peak_memory_bytes, reset_peak_memory
from biobench.data.catalog import suite
from biobench.report.details.needle import needle_grids
from biobench.store import Store
from tests.helpers.cli_make import Said
from tests.helpers.tiny import make_tiny_encoder

SPEC = """
id: needle_tiny
version: 1
name: Made by a test
language: en
type: needle
source: {id: made, generated: true}
reader: {format: needle, READER}
labels: [absent, present]
unit: document
protocol: {max_length: 8192}
training: {encoder: frozen, epochs: 1, learning_rate: 5e-5}
head: {kind: sequence}
probe: {pooling: attention, learning_rates: [1e-3, 1e-2], epochs: 1, segments: 8}
metric: {primary: accuracy, paper: accuracy}
gate: {expect: chance}
access: open
licence: none
homepage: https://example.org
citation: none
"""
SMALL = "lengths: [128, 256], notes: 300, examples: {train: 96, validation: 48, test: 96}"
FAST = ("--device", "cpu", "--parallel", "1")


def spec(folder: Path, reader: str = SMALL) -> Path:
    path = folder / "needle_tiny.yaml"
    path.write_text(SPEC.replace("READER", reader), encoding="utf-8")
    return path


def test_it_prints_the_grid_with_intervals_and_the_controls(
    biobench: Callable[..., Said], tiny: Path, tmp_path: Path
) -> None:
    said = biobench("needle", tiny, "--task", spec(tmp_path), "--seeds", "1,2", *FAST)
    assert said.status == 0, said.err
    lines = said.out.splitlines()
    at = next(i for i, line in enumerate(lines) if "accuracy in %" in line)
    assert lines[at] == "tiny · needle_tiny: accuracy in %, 2 seeds, window 128"
    rows = {line.split()[0]: line for line in lines[at:] if line.strip()}
    assert rows["128"].rstrip().endswith("48")
    assert rows["128"].count("±") == 3
    assert rows["256"].split()[1:] == ["n/a"] * 4 + ["0"]
    assert "most frequent answer: 50.0" in lines
    assert "needle_tiny: controls on lengths up to 128" in lines
    assert rows["oracle"].split()[:2] == ["oracle", "100.0"]
    for name in ("document alone", "query alone", "lexical overlap", "exact match"):
        assert any(line.startswith(name) for line in lines)
    assert "NOT" not in said.out
    again = biobench("needle", tiny, "--task", spec(tmp_path), "--seeds", "1,2", "--no-controls", *FAST)
    assert again.out.count("skipped") == 2
    assert "accuracy in %" in again.out
    assert "controls" not in again.out


def test_controls_are_on_what_was_read_where_lengths_are_words(biobench: Callable[..., Said], tmp_path: Path) -> None:
    """512 words are more than a window of 512 tokens."""
    model = make_tiny_encoder(tmp_path / "wide", 512)
    reader = "lengths: [128, 512], fit: words, notes: 300, examples: {train: 48, validation: 24, test: 48}"
    said = biobench("needle", model, "--task", spec(tmp_path, reader), "--seeds", "1", *FAST)
    assert said.status == 0, said.err
    assert "needle_tiny: controls on lengths up to 128" in said.out.splitlines()


def test_plan_and_json_stand_alone(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    plan = biobench("needle", tiny, "--task", spec(tmp_path), "--seeds", "1", "--dry-run", *FAST)
    assert plan.status == 0
    assert "planned" in plan.out
    assert "accuracy" not in plan.out
    assert not (tmp_path / "results").exists()
    rows = biobench("needle", tiny, "--task", spec(tmp_path), "--seeds", "1", "--json", *FAST).json()
    assert [row["primary"] for row in rows] == ["accuracy"]
    scores = rows[0]["scores"]
    assert scores["accuracy.128"] == scores["accuracy"]
    assert not [name for name in scores if "256" in name]


def test_without_a_task_it_is_the_suite_s_two_languages(
    biobench: Callable[..., Said], tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("biobench.cli.run.run_request", lambda request, **_: asked.append(request) or 0)
    assert biobench("needle", tiny, "--dry-run").status == 0
    assert (asked[0].tasks, asked[0].suite) == ((), "needle")
    assert [task.id for task in suite("needle")] == ["needle_en", "needle_fr"], "variants stay out"


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_all_lengths_to_8192_tokens_run_in_bounded_memory(
    biobench: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One 8,192 x 8,192 matrix of fp32 would alone take 268 MB a head; nothing like it may be held."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not let a process measure its own peak memory")
    monkeypatch.setattr("biobench.cli.console.progress.QUIET", 0.0)
    model = make_tiny_encoder(tmp_path / "long", 8192)
    reader = "lengths: [512, 1024, 2048, 4096, 8192], notes: 1500, examples: {train: 10, validation: 10, test: 10}"
    # What is loaded and made once by any run is no part of what the lengths cost.
    biobench("needle", model, "--task", spec(tmp_path), "--seeds", "1", "--results-dir", "warm", "--no-controls", *FAST)
    before = resident()
    cpu = torch.device("cpu")
    reset_peak_memory(cpu)
    said = biobench("needle", model, "--task", spec(tmp_path, reader), "--seeds", "1", "--no-controls", *FAST)
    grown = peak_memory_bytes(cpu) - before
    assert said.status == 0, said.err
    (held,) = needle_grids(tmp_path / "results")
    assert [share.documents for n in held.lengths if (share := held.share(n))] == [2] * 5
    assert held.window == 8192
    (record,), _ = Store(tmp_path / "results").scan()
    assert record.training.attention == "packed"
    assert said.err.count("/95232, tokens encoded") >= 10, "progress is shown"
    assert grown < 128 * 2**20, f"{grown / 2**20:.0f} MiB"


def test_controls_through_the_encoder_are_asked_for(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    arguments = ("needle", tiny, "--task", spec(tmp_path), "--seeds", "1", *FAST)
    plain = biobench(*arguments)
    assert "exact match" in plain.out
    assert "needle removed" not in plain.out
    said = biobench(*arguments, "--controls")
    assert said.status == 0, said.err
    (removed,) = [line for line in said.out.splitlines() if line.startswith("needle removed")]
    assert removed.split()[2:5] == ["50.0", "[33.0,", "67.0]"], "48 examples, half of them right in every pair"
    assert removed.endswith("tiny: the haystack alone, to its full length")
    assert [line for line in said.out.splitlines() if line.startswith("needle swapped")]
    assert "is NOT" not in said.out
    assert len(Store(tmp_path / "results").scan()[0]) == 1, "controls are no runs"


def test_the_gate_s_slow_mode_plays_them(biobench: Callable[..., Said], tiny: Path, tmp_path: Path) -> None:
    arguments = ("tasks", "gate", spec(tmp_path), "--slow", "--seeds", "1", "--device", "cpu")
    assert "--slow needs an encoder" in biobench(*arguments).refusal()
    said = biobench(*arguments, "--model", tiny, "--json")
    found = said.json()
    assert [c["name"] for c in found["controls"]] == ["needle removed", "needle swapped"]
    assert found["controls"][0]["share"]["mean"] == 0.5
    assert said.status == (0 if found["passed"] and not any(c["leaks"] for c in found["controls"]) else 1)
    assert not any("needle" in check["name"] for check in found["checks"]), "the stored verdict knows no encoder"
    shown = biobench(*arguments, "--model", tiny)
    assert "needle_tiny: controls\nneedle removed" in shown.out
    other = biobench("tasks", "gate", "demo_topic", "--slow", "--model", tiny)
    assert "--slow does not apply to demo_topic" in other.refusal()
