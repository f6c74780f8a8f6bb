"""Needle controls through an encoder: at chance on the task as it is, not where a leak is planted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.errors import UsageError
from biobench.runs.needle_controls import (
    Control,
    encoder_controls,
    render_controls,
    with_another_needle,
    without_needle,
)
from biobench.schema.document import Document, TaskData
from biobench.schema.needle import ABSENT, PRESENT, cell_of
from tests.helpers.needle_make import needle_spec
from tests.helpers.tiny import make_tiny_encoder

FITS = {"tokens": "lengths: [128, 256]", "words": "lengths: [128], fit: words"}
EXAMPLES = ", notes: 300, examples: {train: 192, validation: 96, test: 192}"
PROBE = "pooling: attention, learning_rates: [3e-3, 1e-2], epochs: 4, segments: 8"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_encoder(tmp_path_factory.mktemp("model") / "tiny", 512))


def made(folder: Path, fit: str = "tokens") -> LoadedTask:
    return load_task(needle_spec(folder, FITS[fit] + EXAMPLES, PROBE))


def changed(data: TaskData, change: object) -> TaskData:
    return replace(data, documents={s: [change(d) for d in own] for s, own in data.documents.items()})  # type: ignore[operator]


def played(model: str, task: LoadedTask, data: TaskData, seeds: str = "1-2") -> dict[str, Control]:
    return {c.name: c for c in encoder_controls(model, task, data, seeds=seeds, device="cpu")}


def test_without_the_needle_only_chance_is_left(model: str, tmp_path: Path) -> None:
    task = made(tmp_path)
    found = played(model, task, load_data(task, None))
    assert list(found) == ["needle removed", "needle swapped"]
    removed, swapped = found.values()
    assert removed.share.documents == 192
    assert removed.share.mean == 0.5, "the two documents of a pair are the same"
    assert 0 < swapped.share.low <= 0.5 <= swapped.share.high < 1
    assert not removed.leaks
    assert not swapped.leaks
    assert "NOT" not in render_controls(task.id, list(found.values()), None)


def shouting(document: Document) -> Document:
    """A haystack that tells the answer: in capitals where the fact is absent."""
    assert document.plan is not None
    if document.labels != (ABSENT,):
        return document
    before, after = (tuple(s.upper() for s in side) for side in (document.plan.before, document.plan.after))
    return replace(document, plan=document.plan._replace(before=before, after=after))


def test_a_haystack_that_tells_the_answer_is_caught(model: str, tmp_path: Path) -> None:
    task = made(tmp_path)
    found = played(model, task, changed(load_data(task, None), shouting), "1")
    assert found["needle removed"].leaks
    assert found["needle removed"].share.mean > 0.9
    assert "must be at chance and is NOT" in render_controls(task.id, list(found.values()), None)


def loud(document: Document) -> Document:
    """A needle that tells its answer by itself, whatever was asked."""
    assert document.plan is not None
    if document.labels != (PRESENT,):
        return document
    return replace(document, plan=document.plan._replace(needle=document.plan.needle + " patient" * 25))


def test_a_needle_that_tells_the_answer_is_caught(model: str, tmp_path: Path) -> None:
    task = made(tmp_path)
    found = played(model, task, changed(load_data(task, None), loud), "1")
    assert not found["needle removed"].leaks
    assert found["needle swapped"].leaks
    assert found["needle swapped"].share.mean > 0.7


@pytest.mark.parametrize("fit", FITS)
def test_what_the_alterations_keep_and_what_they_change(fit: str, tmp_path: Path) -> None:
    test = load_data(made(tmp_path, fit), None).test
    needles = {d.plan.needle for d in test if d.plan is not None}
    for old, new in zip(test, without_needle(test), strict=True):
        assert old.plan is not None
        assert new.plan is not None
        assert (new.id, new.group, new.query, new.labels) == (old.id, old.group, old.query, old.labels)
        assert old.plan.needle not in new.text
        assert new.plan.needle == ""
        if fit == "words":
            assert len(new.text.split()) == len(old.text.split())
    swapped = with_another_needle(test)
    held = [d.plan.needle for d in swapped if d.plan is not None]
    assert set(held) == needles, "every needle goes to exactly one other document"
    assert len(set(held)) == len(held)
    own = {d.plan.needle: d for d in test if d.plan is not None}
    same = 0
    for old, new in zip(test, swapped, strict=True):
        assert new.plan is not None
        donor = own[new.plan.needle]
        assert donor.group != old.group
        assert donor.labels == old.labels
        assert new.plan.needle in new.text
        assert new.query not in new.text, "what is asked is in no document"
        old_cell, donor_cell = cell_of(old.id), cell_of(donor.id)
        assert old_cell is not None
        assert donor_cell is not None
        same += old_cell.template == donor_cell.template
    assert same == len(test) - 16, "but for the last of each of the eight templates, twice"


def test_refusals(model: str, tmp_path: Path) -> None:
    task = made(tmp_path)
    with pytest.raises(UsageError, match="fewer than two pairs"):
        encoder_controls(model, task, load_data(task, None, 2), seeds="1", device="cpu")
    demo = load_task("demo_topic")
    with pytest.raises(UsageError, match="hides no needles"):
        encoder_controls(model, demo, load_data(demo, None), device="cpu")
