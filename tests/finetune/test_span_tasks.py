"""Span tasks through the whole engine: nested gold, variants, optimiser groups, ceilings, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.errors import SpecError
from biobench.finetune.engine import LoadedEncoder, finetune
from biobench.finetune.prepare import Prepared
from tests.finetune.conftest import Setup
from tests.helpers.span_make import make_nested

SMALL = ("head.span.layers=1", "head.span.width=32", "head.span.biaffine_width=16")
Nested = Callable[..., tuple[LoadedEncoder, Prepared]]


@pytest.fixture
def nested(setup: Setup, tmp_path: Path) -> Nested:
    """`nested(*overrides)`: a tiny encoder and the nested task."""
    path = str(make_nested(tmp_path))
    return lambda *overrides: setup("bert", path, *SMALL, *overrides, limit=None, folder=tmp_path)


def _silent(done: int, total: int, what: str) -> None:
    """No progress."""


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
