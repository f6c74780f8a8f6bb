"""`needle`: the runs and their grid; and all lengths up to 8,192 tokens in bounded memory."""

import json
import os
from pathlib import Path

import pytest
import torch

from biobench.core.machine import peak_memory_bytes, reset_peak_memory
from biobench.data.suite import suite_tasks
from biobench.reporting.details.needle import needle_grids
from biobench.store import Store
from tests.helpers.needle_make import needle_spec
from tests.helpers.tiny import make_tiny_encoder

FAST = "--device cpu --parallel 1"


def spec(
    folder: Path, lengths: tuple[int, ...] = (128, 256), notes: int = 300, *parts: int
) -> Path:
    """A needle task of these lengths; parts: examples of train, validation and test."""
    examples = dict(zip(("train", "validation", "test"), parts or (96, 48, 96), strict=True))
    reader = json.dumps({"lengths": lengths, "notes": notes, "examples": examples})[1:-1]
    probe = "pooling: attention, learning_rates: [1e-3, 1e-2], epochs: 1, segments: 8"
    return needle_spec(folder, reader, probe, language="en")


def test_its_runs_are_those_of_run_and_the_report_has_the_grid(biobench, tiny, tmp_path):
    arguments = (tiny, "--task", spec(tmp_path), "--seeds 1,2", FAST)
    rows = biobench("needle", *arguments, "--json").json()
    assert [row["primary"] for row in rows] == ["accuracy"] * 2
    scores = rows[0]["scores"]
    assert scores["accuracy.128"] == scores["accuracy"]
    assert not [name for name in scores if "256" in name], "the model reads 128 tokens"
    shown = biobench("needle", *arguments).out
    (row,) = [line for line in shown.splitlines() if "skipped" in line]
    assert row.split()[:3] == ["tiny", "needle_made", "1-2"]
    assert "tiny · needle_made: accuracy in %, 2 seeds, window 128, most frequent" in shown
    (grid,) = needle_grids(tmp_path / "results")
    assert (grid.share(128).documents, grid.share(256), grid.window) == (48, None, 128)


def test_without_a_task_it_is_the_suite_s_two_languages(biobench, tiny, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "biobench.cli.runs.run_request", lambda request, **_: asked.append(request) or 0
    )
    biobench("needle", tiny, "--dry-run").ok()
    assert (asked[0].tasks, asked[0].suite) == ((), "needle")
    assert [task.id for task in suite_tasks("needle")] == ["needle_en", "needle_fr"], (
        "variants stay out"
    )


def test_all_lengths_to_8192_tokens_run_in_bounded_memory(biobench, tmp_path, monkeypatch):
    """One 8,192 x 8,192 matrix of fp32 would alone take 268 MB a head; nothing like it may be
    held."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not let a process measure its own peak memory")
    monkeypatch.setattr("biobench.cli.console.progress.QUIET", 0.0)
    model = make_tiny_encoder(tmp_path / "long", 8192)
    lengths = (512, 1024, 2048, 4096, 8192)
    # What is loaded and made once by any run is no part of what the lengths cost.
    biobench("needle", model, "--task", spec(tmp_path), "--seeds 1 --results-dir warm", FAST)
    before, cpu = (
        int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        torch.device("cpu"),
    )
    reset_peak_memory(cpu)
    said = biobench(
        "needle", model, "--task", spec(tmp_path, lengths, 1500, 10, 10, 10), "--seeds 1", FAST
    ).ok()
    grown = peak_memory_bytes(cpu) - before
    (held,) = needle_grids(tmp_path / "results")
    assert [share.documents for n in held.lengths if (share := held.share(n))] == [2] * 5
    assert held.window == 8192
    (record,), _ = Store(tmp_path / "results").scan()
    assert record.training.attention == "packed"
    assert said.err.count("/95232, tokens encoded") >= 10, "progress is shown"
    assert grown < 128 * 2**20, f"{grown / 2**20:.0f} MiB"
