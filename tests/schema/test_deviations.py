"""What a spec says it does otherwise than the protocol it is compared with: checked, shown, in no hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.errors import SpecError


def test_deviations_describe_and_enter_no_hash(tmp_path: Path) -> None:
    text = load_task("gad").path.read_text(encoding="utf-8")
    start, end = text.index("deviations:\n"), text.index("counts:\n")
    bare = tmp_path / "gad.yaml"
    bare.write_text(text[:start] + text[end:], encoding="utf-8")
    assert load_task(bare).spec.deviations == []
    assert task_hash(load_task(bare), "fold1") == task_hash(load_task("gad"), "fold1")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('{aspect: patiense, here: "3", compared: "none"}', "patiense"),
        ('{aspect: patience, here: "3"}', "compared"),
        ('{aspect: patience, here: "3", compared: "5"}\n  - {aspect: patience, here: "4", compared: "5"}', "twice"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line(tmp_path: Path, entry: str, said: str) -> None:
    text = load_task("demo_topic").path.read_text(encoding="utf-8")
    spec = tmp_path / "demo_topic.yaml"
    spec.write_text(text + f"deviations:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(SpecError, match=said) as caught:
        load_task(spec)
    assert caught.value.file == str(spec)
    assert caught.value.line
