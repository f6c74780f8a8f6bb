"""A document of 4,096 tokens, whole and through windows of 512: offsets are right at every join.

The encoder, the encoding, the batching, the merging and the decoding are the engine's; only what the network
says is planted. It knows the gold by the characters of the tokens in front of it, and at a cut it says what
a trained one would: the visible piece of a mention as a mention of its own, and wrong tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from biobench.encode.tokens import Encoded, encode_windows, special_tokens
from biobench.finetune.network import Network, decide, probabilities
from biobench.finetune.prepare import Prepared, prepare
from biobench.kinds.span_ner import with_words
from biobench.models.encoder import Encoder
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from biobench.models.span_head import SpanScores
from biobench.models.weights import load_base
from biobench.schema.document import Document, Span, TaskData
from biobench.schema.tags import spans_to_tags
from biobench.schema.task import TaskSpec
from tests.benchmarks.labels_make import multi_label_spec
from tests.helpers.checkpoints import make_checkpoint

TOKENS = 4_096
LABELS = ("X", "Y")
LOADED = dict[str, tuple[Encoder, Any, int]]
_WORDS = ("patient", "œdème", "IL-2", "l'hémoglobine", "5", "mg/kg", "(matin)", "d’insuline", "foie", "rein")


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LOADED:
    """Family to a tiny random encoder, its tokenizer and its window."""
    root, found = tmp_path_factory.mktemp("long"), {}
    for family, positions, limit in (("modernbert", TOKENS, None), ("bert", 512, 512)):
        folder: Path = make_checkpoint(family, root / family, positions=positions, limit=limit)
        checkpoint = find_checkpoint(str(folder))
        tokenizer = load_tokenizer(checkpoint)
        encoder = Encoder(load_base(checkpoint, torch.float32), int(tokenizer.pad_token_id))
        found[family] = (encoder, tokenizer, window(tokenizer, checkpoint.config, 8192))
    return found


def _text(tokenizer: Any, seed: int) -> str:
    """Text of exactly `TOKENS` tokens, special ones included."""
    rng = np.random.default_rng(seed)
    text = " ".join(rng.choice(_WORDS, 700))
    while (missing := TOKENS - len(tokenizer(text)["input_ids"])) > 0:
        text += "." if missing < 40 else " " + " ".join(rng.choice(_WORDS, max(1, missing // 20)))
    assert missing == 0
    return text


def _gold(units: Sequence[tuple[int, int]], joins: Sequence[int], shape: Sequence[tuple[int, int]]) -> list[Span]:
    """Mentions over every join (a unit that a cut leaves outside or ends with) and over both ends of the text.

    shape: for each join in turn, units before and after it. Each mention has another type on its very span and
    holds one of its own type.
    """
    spans = []
    last = len(units) - 1
    for number, join in enumerate((0, *joins, last)):
        before, after = shape[number % len(shape)]
        first, stop = max(0, join - before), min(last, join + after)
        kind = LABELS[number % 2]
        spans.append(Span(units[first][0], units[stop][1], kind))
        spans.append(Span(units[first][0], units[stop][1], LABELS[1 - number % 2]))
        spans.append(Span(units[stop][0], units[stop][1], kind))
    return spans


def _joins(windows: Sequence[Encoded]) -> list[int]:
    """The first and last unit of each window on the sides where it is cut."""
    found = {int(w.words[0]) for w in windows if w.cut_left} | {int(w.words[-1]) for w in windows if w.cut_right}
    return sorted(found)


def _spec(type: str, limit: int, overlap: int | None) -> TaskSpec:
    protocol: dict[str, Any] = {"max_length": limit}
    if overlap is not None:
        protocol |= {"long_documents": "stride", "stride": overlap}
    reader = {"id": "s", "folder": "f", "files": {"all": "x"}, "reader": {"format": "brat"}}
    head = {"kind": "span" if type == "span_ner" else "token"}
    training = {"epochs": 1, "learning_rate": 1e-3}
    return multi_label_spec(
        type=type, labels=list(LABELS), source=reader, protocol=protocol, training=training, head=head
    )


def _prepared(document: Document, tokenizer: Any, type: str, limit: int, overlap: int | None) -> Prepared:
    short = Document("s", "s", "foie", "train", tokens=((0, 4),), tags=("O",))
    data = TaskData({"train": [short], "validation": [short], "test": [document]}, LABELS, LABELS, "s", "h")
    return prepare(_spec(type, limit, overlap), data, tokenizer, limit)


class Planted(Network):
    """The real encoder, and a head that knows the gold by the characters of the tokens that it is shown."""

    def __init__(self, encoder: Encoder, prepared: Prepared, tokenizer: Any) -> None:
        super().__init__(encoder, nn.Identity())
        self.prepared = prepared
        (self.document,) = prepared.test.documents
        self.before = len(special_tokens(tokenizer)[0])
        coded = tokenizer(self.document.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        self.offsets, self.ids = coded["offset_mapping"], coded["input_ids"]

    def places(self, encoded: Encoded) -> list[tuple[int, int]]:
        """Characters of each visible unit, read from its tokens' places in the window."""
        at = next(i for i, e in enumerate(self.prepared.test.encoded) if e is encoded)
        room = self.prepared.windows.max_length - 2
        begin = at * (room - self.prepared.spec.protocol.stride)
        body = encoded.ids[self.before : len(encoded) - 1].tolist()
        assert body == self.ids[begin : begin + len(body)]
        shift = begin - self.before
        pairs = zip((encoded.first + shift).tolist(), (encoded.stop + shift - 1).tolist(), strict=True)
        text = self.document.text
        found = []
        for first, last in pairs:
            start, end = self.offsets[first][0], self.offsets[last][1]
            found.append((start + len(text[start:end]) - len(text[start:end].lstrip()), end))
        return found

    def forward(self, encoded: Sequence[Encoded]) -> Tensor | SpanScores:
        """Scores of spans, or tag logits."""
        hidden = self.encoder([e.ids for e in encoded])
        assert len(hidden) == sum(len(e) for e in encoded)
        assert torch.isfinite(hidden).all()
        if self.prepared.spec.head.span is None:
            return torch.cat([self.tags(e) for e in encoded])
        longest = self.prepared.spec.head.span.max_span
        parts = [self.spans(e, longest) for e in encoded]
        counts = [len(e.words) for e in encoded]
        left = torch.tensor([n - at for n in counts for at in range(n)])
        return SpanScores(torch.cat(parts), torch.arange(longest)[None] < left[:, None], counts)

    def spans(self, encoded: Encoded, longest: int) -> Tensor:
        """(units, longest, types): gold that the window shows, and the visible pieces of gold that it cuts."""
        places = self.places(encoded)
        logits = torch.full((len(places), longest, len(LABELS)), -9.0)
        for start, end, label in self.document.spans:
            inside = [i for i, (a, b) in enumerate(places) if a < end and b > start]
            if inside:
                logits[inside[0], inside[-1] - inside[0], LABELS.index(label)] = 9.0
        return logits

    def tags(self, encoded: Encoded) -> Tensor:
        """(words, tags): the gold's tags, but wrong ones on the five words beside a cut."""
        places, outputs = self.places(encoded), list(self.prepared.outputs)
        logits = torch.zeros(len(places), len(outputs))
        known = dict(zip(self.document.tokens, self.document.tags, strict=True))
        for i, place in enumerate(places):
            near = (encoded.cut_left and i < 5) or (encoded.cut_right and i >= len(places) - 5)
            logits[i, outputs.index("B-Y" if near else known[place])] = 9.0
        return logits


def _said(encoder: Encoder, prepared: Prepared, tokenizer: Any) -> Any:
    network = Planted(encoder, prepared, tokenizer)
    chances = probabilities(network, prepared, prepared.test, "fp32", 2 * TOKENS)
    (said,) = decide(prepared, prepared.test, chances, 0.5)
    return said


shapes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=4)
@given(
    seed=st.integers(0, 1000),
    overlap=st.integers(110, 200),
    shape=shapes,
    family=st.sampled_from(["modernbert", "bert"]),
)
def test_nested_mentions_over_every_join_keep_their_offsets(
    loaded: LOADED, seed: int, overlap: int, shape: list[tuple[int, int]], family: str
) -> None:
    encoder, tokenizer, limit = loaded[family]
    assert limit == {"modernbert": TOKENS, "bert": 512}[family]
    text = _text(tokenizer, seed)
    (bare,) = with_words([Document("d", "d", text, "test")])
    strided = overlap if limit < TOKENS else None
    windows, _ = encode_windows([bare], tokenizer, min(limit, 512), overlap, words=True)
    joins = _joins(windows)
    assert len(joins) == 2 * (len(windows) - 1) > 15
    gold = sorted(set(_gold(bare.tokens, joins, shape)))
    document = Document("d", "d", text, "test", spans=tuple(gold))
    prepared = _prepared(document, tokenizer, "span_ner", limit, strided)
    assert [len(e) for e in prepared.test.encoded] == [len(w) for w in windows] if strided else [TOKENS]
    assert prepared.windows.truncated_documents == prepared.windows.lost_gold == 0
    assert list(_said(encoder, prepared, tokenizer).spans) == gold


@settings(deadline=None, max_examples=4)
@given(
    seed=st.integers(0, 1000),
    overlap=st.integers(110, 200),
    shape=shapes,
    family=st.sampled_from(["modernbert", "bert"]),
)
def test_flat_tags_over_every_join_keep_their_offsets(
    loaded: LOADED, seed: int, overlap: int, shape: list[tuple[int, int]], family: str
) -> None:
    encoder, tokenizer, limit = loaded[family]
    text = _text(tokenizer, seed)
    (bare,) = with_words([Document("d", "d", text, "test")])
    windows, _ = encode_windows([bare], tokenizer, min(limit, 512), overlap, words=True)
    flat: list[Span] = []
    for span in _gold(bare.tokens, _joins(windows), shape)[::3]:
        if not flat or span.start > flat[-1].end:
            flat.append(span)
    tags = tuple(spans_to_tags(flat, bare.tokens))
    document = replace(bare, spans=tuple(flat), tags=tags)
    prepared = _prepared(document, tokenizer, "token_ner", limit, overlap if limit < TOKENS else None)
    said = _said(encoder, prepared, tokenizer)
    assert said.tags == tags
    assert list(said.spans) == flat


def test_one_token_less_and_the_last_mention_is_lost(loaded: LOADED) -> None:
    """The window of 4,096 is exact: what the whole document just fits, one token less cuts."""
    encoder, tokenizer, _ = loaded["modernbert"]
    text = _text(tokenizer, 3)
    units = with_words([Document("d", "d", text, "test")])[0].tokens
    gold = (Span(*units[0], "X"), Span(*units[-1], "X"))
    document = Document("d", "d", text, "test", spans=gold)
    whole, cut = (_prepared(document, tokenizer, "span_ner", size, None) for size in (TOKENS, TOKENS - 1))
    assert (whole.windows.truncated_documents, cut.windows.truncated_documents) == (0, 1)
    assert (whole.windows.lost_gold, cut.windows.lost_gold) == (0, 1)
    assert _said(encoder, whole, tokenizer).spans == gold
    assert _said(encoder, cut, tokenizer).spans == gold[:1]
