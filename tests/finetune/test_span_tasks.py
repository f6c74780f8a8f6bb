"""Span tasks through the whole engine: nested gold, variants, optimiser groups, ceilings, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from biobench.data.catalog import load_task
from biobench.data.hashing import task_hash
from biobench.data.load import load_data
from biobench.errors import SpecError
from biobench.finetune.engine import LoadedEncoder, finetune, load_encoder
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from tests.helpers.span_make import make_nested

SMALL = ("head.span.layers=1", "head.span.width=32", "head.span.biaffine_width=16", "training.precision=fp32")
Nested = Callable[..., tuple[LoadedEncoder, Prepared]]


@pytest.fixture
def nested(folders: Callable[[str], Path], tmp_path: Path) -> Nested:
    """`nested(*overrides)`: a tiny encoder and the nested task."""
    path = make_nested(tmp_path)

    def make(*overrides: str) -> tuple[LoadedEncoder, Prepared]:
        task = load_task(str(path), [*SMALL, *overrides])
        checkpoint = find_checkpoint(str(folders("bert")))
        tokenizer = load_tokenizer(checkpoint)
        size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
        prepared = prepare(task.spec, load_data(task, tmp_path), tokenizer, size)
        return load_encoder(checkpoint, torch.device("cpu")), prepared

    return make


def _silent(done: int, total: int, what: str) -> None:
    """No progress."""


@pytest.mark.parametrize(
    ("variant", "pooling"), [("crf_biaffine", "mean"), ("biaffine", "first"), ("paper_variant", "none")]
)
def test_every_variant_and_pooling_runs(nested: Nested, variant: str, pooling: str) -> None:
    loaded, prepared = nested(f"head.span.variant={variant}", f"head.pooling={pooling}", "training.epochs=1")
    assert prepared.windows.truncated_documents == 0
    outcome = finetune(loaded, prepared, 1, "fp32", _silent)
    assert [p.document for p in outcome.predictions] == [d.id for d in prepared.test.documents]
    for document, said in zip(prepared.test.documents, outcome.predictions, strict=True):
        assert len(said.spans) == len(set(said.spans)) == len(said.span_scores)
        assert all(document.text[s.start : s.end] == document.text[s.start : s.end].strip() for s in said.spans)
    assert all(0.0 <= v <= 1.0 for v in prepared.score(prepared.test.documents, outcome.predictions).values.values())


def test_it_learns_nested_spans_and_two_types_on_one(nested: Nested) -> None:
    loaded, prepared = nested("training.epochs=20", "training.learning_rate=2e-3")
    outcome = finetune(loaded, prepared, 1, "fp32", _silent)
    assert prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"] > 0.85
    said = {(p.document, s) for p in outcome.predictions for s in p.spans}
    inner = double = 0
    for document, own in ((d, set(d.spans)) for d in prepared.test.documents):
        for s in own:
            others = [o for o in own if o != s and o.start <= s.start and s.end <= o.end]
            inner += (document.id, s) in said and any(o[:2] != s[:2] for o in others)
            double += any(o[:2] == s[:2] and {(document.id, s), (document.id, o)} <= said for o in others)
    assert inner > 10
    assert double > 4


def test_the_filter_costs_the_oracle_its_same_type_nests(nested: Nested) -> None:
    _, kept = nested()
    _, filtered = nested("head.span.same_type_overlaps=filter")
    assert kept.windows.lost_gold == 0
    assert kept.windows.ceiling["macro_f1"] == 1.0
    twice = sum(
        any(o != s and o.label == s.label and o.start <= s.start and s.end <= o.end for o in d.spans)
        for d in filtered.test.documents
        for s in d.spans
    )
    assert filtered.windows.lost_gold == twice > 0
    assert filtered.windows.ceiling["micro_recall"] < 1.0


def test_a_window_that_is_too_small_loses_gold_unless_it_strides(nested: Nested) -> None:
    _, cut = nested("protocol.max_length=16")
    assert cut.windows.truncated_documents > 0
    assert cut.windows.lost_gold > 0
    assert cut.windows.strided_documents == 0
    loaded, strided = nested("protocol.max_length=16", "protocol.long_documents=stride", "protocol.stride=8")
    assert strided.windows.truncated_documents == 0
    assert strided.windows.strided_documents == cut.windows.truncated_documents
    assert strided.windows.lost_gold < cut.windows.lost_gold
    assert len(strided.train.encoded) > len(strided.train.documents)
    outcome = finetune(loaded, strided, 1, "fp32", _silent)
    assert [p.document for p in outcome.predictions] == [d.id for d in strided.test.documents]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["head.pooling=cls"], "head.pooling 'cls' does not fit a span head"),
        (["head.kind=token"], "does not fit"),
        (["head.span.variant=crf"], "variant"),
        (["head.span.width=33"], "width"),
        (["protocol.stride=0"], "stride"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        load_task(str(make_nested(tmp_path)), overrides)


def test_new_fields_enter_the_hash_only_when_they_are_used(tmp_path: Path) -> None:
    path = str(make_nested(tmp_path))
    hashes: dict[str, Any] = {
        text: task_hash(load_task(path, [text] if text else []), "made")
        for text in (
            *("", "protocol.stride=128", "protocol.long_documents=stride", "head.span.variant=biaffine"),
            *("head.pooling=mean", "training.head_learning_rate=1e-3", "protocol.merge=mean"),
        )
    }
    assert hashes.pop("protocol.stride=128") == hashes[""]
    assert len(set(hashes.values())) == len(hashes)
