"""What `compare` prints, whole: read sentence by sentence when a file below `golden/` changes.

BIOBENCH_GOLDEN=write makes the files anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from biobench.comparison.compare import Comparison, compare
from tests.helpers.compare_make import save_runs

GOLDEN = Path(__file__).parent / "golden"
ENGLISH = ("gad", "anatem", "hoc", "ncbi_disease", "chemprot", "bc5cdr")
SEEDS = (42, 43, 44)


def published(results: Path) -> Comparison:
    return compare(
        "ModernCamemBERT-bio-base CLM detour (10B)",
        "ModernCamemBERT-bio-base MLM twin (10B)",
        results_dir=results,
    )


def clear(results: Path) -> Comparison:
    """Better by about ten points everywhere."""
    save_runs(results, "north", ENGLISH, 0.82, SEEDS, count=300)
    save_runs(results, "south", ENGLISH, 0.72, SEEDS, count=300)
    return compare("north", "south", results_dir=results)


def tie(results: Path) -> Comparison:
    """Equally good, asked for sameness within 3 points."""
    save_runs(results, "north", ENGLISH, 0.80, (*SEEDS, 45, 46), count=300)
    save_runs(results, "south", ENGLISH, 0.80, (*SEEDS, 45, 46), count=300)
    return compare("north", "south", results_dir=results, rope=0.03)


def fading(results: Path) -> Comparison:
    """Better by less and less from corpus to corpus: shown on these tasks, not on tasks like
    these."""
    for place, task in enumerate(ENGLISH):
        save_runs(results, "north", (task,), 0.86 - 0.011 * place, SEEDS, count=600)
    save_runs(results, "south", ENGLISH, 0.80, SEEDS, count=600)
    return compare("north", "south", results_dir=results)


def one_seed(results: Path) -> Comparison:
    save_runs(results, "north", ENGLISH[:1], 0.9, (42,), count=300)
    save_runs(results, "south", ENGLISH[:1], 0.6, (42,), count=300)
    return compare("north", "south", results_dir=results)


def languages(results: Path) -> Comparison:
    """Better in English, worse in French; three models."""
    french = ("diamed", "meddialog_fr", "quaero_emea", "distemist")
    for model, english, other in (
        ("north", 0.85, 0.70),
        ("south", 0.70, 0.85),
        ("west", 0.70, 0.70),
    ):
        save_runs(results, model, ENGLISH, english, SEEDS, count=200)
        save_runs(results, model, french, other, SEEDS, count=200)
    return compare("north", "south", "west", results_dir=results)


WORLDS = (published, clear, tie, fading, one_seed, languages)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_the_whole_text(tmp_path, world):
    held = world(tmp_path)
    text = held.text() + "\n"
    path = GOLDEN / f"{world.__name__}.txt"
    if os.environ.get("BIOBENCH_GOLDEN") == "write":
        GOLDEN.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
