"""Mentions as spans that may nest; the head stands in `biobench/models/span_head.py`.

A unit is a word (a run of letters, a run of digits, or one other sign that is not white space), or
a sub-token where the head pools nothing. A gold span whose ends are not unit ends is trained on as
the units that it touches; it cannot be predicted, and the oracle says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from biobench.encode.merge import PlacedSpans, merge_spans
from biobench.encode.tokens import Encoded, Ints
from biobench.errors import ModelError
from biobench.kinds.base import Answers, Documents, SpanKind, Targets, Task, Windows, register
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.task import TaskSpec
from biobench.schema.training import Head, SpanOptions

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from biobench.models.loading import Checkpoint
    from biobench.models.span_head import SpanScores


def _options(spec: TaskSpec) -> SpanOptions:
    assert spec.head.span is not None
    return spec.head.span


@register
class SpanNer(SpanKind):
    """A target is spans (first, last, type) in places of the window's units; an answer is
    `PlacedSpans`.
    """

    name, head, probes = "span_ner", "span", False

    def units(self, spec: TaskSpec, documents: Documents, tokenizer: Tokenizer) -> Documents:
        """Words, or sub-tokens where the head pools nothing."""
        if spec.head.pooling == "none":
            return with_subtokens(documents, tokenizer)
        return with_words(documents)

    def target(self, task: Task, document: Document, encoded: Encoded) -> Ints:
        """(visible spans, 3)."""
        return span_targets(document, encoded, task.index)

    def build_head(self, head: Head, checkpoint: Checkpoint, width: int, outputs: int) -> nn.Module:
        """The span head of the spec's variant."""
        from biobench.models.span_head import SpanHead

        assert head.span is not None
        return SpanHead(width, outputs, head.dropout, head.pooling, head.span)

    def terms(self, spec: TaskSpec, targets: Targets, words: Sequence[int]) -> int:
        """Units."""
        return sum(words)

    def loss(
        self, spec: TaskSpec, logits: SpanScores, targets: Targets, weights: Tensor | None
    ) -> Tensor:
        """That of the spec's variant."""
        return span_loss(logits, targets)

    def answers(
        self, task: Task, logits: SpanScores, encoded: Sequence[Encoded]
    ) -> list[PlacedSpans]:
        """The spans that each window shows."""
        return span_answers(logits, encoded)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The spans that their deciding windows show."""
        spans = merge_spans(seen, answers)
        return predict_spans(
            document,
            spans,
            task.outputs,
            filtered=_options(task.spec).same_type_overlaps == "filter",
        )

    def oracle(self, task: Task, document: Document, encoded: Sequence[Encoded]) -> Prediction:
        """Gold that the windows show whole and the head can express (ends at unit ends, not too
        long).
        """
        options = _options(task.spec)
        tagger = options.variant == "crf_biaffine"
        answers = [
            gold_answers(document, e, task.index, options.max_span, tagger=tagger) for e in encoded
        ]
        return self.predict(task, document, encoded, answers, 0.0)


_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def with_words(documents: Sequence[Document]) -> list[Document]:
    """The documents with words as their tokens."""
    return [
        replace(d, tokens=tuple(m.span() for m in _WORD.finditer(d.text)), tags=())
        for d in documents
    ]


def with_subtokens(documents: Sequence[Document], tokenizer: Tokenizer) -> list[Document]:
    """The documents with the tokenizer's own pieces as tokens, white space stripped.

    Pieces of the same characters (bytes of one sign) are one unit. Raises ModelError for a
    tokenizer without character offsets.
    """
    if not tokenizer.is_fast:
        raise ModelError(
            "this tokenizer gives no character offsets", hint="use --set head.pooling=first"
        )
    encoding: Any = tokenizer(
        [d.text for d in documents],
        add_special_tokens=False,
        return_offsets_mapping=True,
        verbose=False,
    )
    return [
        replace(d, tokens=_stripped(d.text, offsets), tags=())
        for d, offsets in zip(documents, encoding["offset_mapping"], strict=True)
    ]


def _stripped(text: str, offsets: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    units: list[tuple[int, int]] = []
    for start, end in offsets:
        piece = text[start:end]
        bare = piece.strip()
        if not bare:
            continue
        start += len(piece) - len(piece.lstrip())
        # Two pieces of one multi-byte sign may also overlap in part; units must run left to right.
        if not units or start >= units[-1][1]:
            units.append((start, start + len(bare)))
    return tuple(units)


def touched(document: Document) -> Ints:
    """(spans, 3): first unit, last unit of every gold span, and the span's place in
    `document.spans`.

    A span that touches no unit (white space alone) has no row.
    """
    units = np.asarray(document.tokens, dtype=np.int64).reshape(-1, 2)
    bounds = [(span.start, span.end) for span in document.spans]
    spans = np.asarray(bounds, dtype=np.int64).reshape(-1, 2)
    begins = np.searchsorted(units[:, 1], spans[:, 0], side="right")
    ends = np.searchsorted(units[:, 0], spans[:, 1], side="left") - 1
    return np.stack([begins, ends, np.arange(len(spans))], axis=1)[begins <= ends]


def visible(encoded: Encoded, spans: Ints) -> Ints:
    """The rows of `spans` (first, last, ...) whose units the window shows all, in places of the
    window's units.
    """
    placed: Ints = spans[np.isin(spans[:, :2], encoded.words).all(axis=1)]
    placed[:, :2] = np.searchsorted(encoded.words, placed[:, :2])
    return placed


def span_targets(document: Document, encoded: Encoded, index: dict[str, int]) -> Ints:
    """(visible spans, 3): first unit, last unit (places in the window), type; each once, in
    order."""
    rows = touched(document)
    rows[:, 2] = [index[document.spans[at].label] for at in rows[:, 2]]
    return np.unique(visible(encoded, rows), axis=0)


def outermost(spans: Ints) -> Ints:
    """The spans (first, last, type) that a tagger per type can express: none inside or across
    another of its type.

    Longer spans go first; of crossing ones the earlier of equal length stays.
    """
    ordered = np.lexsort((spans[:, 2], spans[:, 0], spans[:, 0] - spans[:, 1]))
    flat = spans[_apart(spans, ordered)]
    return flat[np.lexsort(flat.T[::-1])]


def same_type_filter(spans: PlacedSpans) -> PlacedSpans:
    """Of overlapping spans of one type the most confident stays (ties: the earlier, then the
    longer).
    """
    ordered = np.lexsort((-spans[:, 1], spans[:, 0], -spans[:, 3]))
    return spans[sorted(_apart(spans, ordered))]


def _apart(spans: NDArray[Any], ordered: Ints) -> list[int]:
    """Of the spans (first, last, type, ...), in this order, those that overlap none of their type
    before.

    What was taken of a type lies apart, so it has one order and only neighbours need a look.
    """
    taken: list[int] = []
    taken_ends: dict[float, tuple[list[float], list[float]]] = {}
    for at in ordered.tolist():
        begin, end, kind = spans[at, :3].tolist()
        begins, ends = taken_ends.setdefault(kind, ([], []))
        position = bisect_left(ends, begin)
        if position < len(begins) and begins[position] <= end:
            continue
        begins.insert(position, begin)
        ends.insert(position, end)
        taken.append(at)
    return taken


def predict_spans(
    document: Document, answers: PlacedSpans, outputs: Sequence[str], *, filtered: bool
) -> Prediction:
    """Prediction from spans over the document's units."""
    if filtered:
        answers = same_type_filter(answers)
    scores: dict[Span, float] = {}
    for begin, end, kind, score in answers.tolist():
        start, stop = document.tokens[int(begin)][0], document.tokens[int(end)][1]
        span = Span(start, stop, outputs[int(kind)])
        scores[span] = max(scores.get(span, 0.0), score)
    spans = sorted(scores)
    return Prediction(
        document=document.id,
        spans=tuple(spans),
        span_scores=tuple(round(scores[s], 6) for s in spans),
    )


def gold_answers(
    document: Document, encoded: Encoded, index: dict[str, int], longest: int, *, tagger: bool
) -> PlacedSpans:
    """What a perfect head says of this window: visible gold spans, in units of the document.

    longest: units of the longest span that the scorer sees; a tagger carries longer ones if they
    are outermost.
    """
    rows = span_targets(document, encoded, index)
    expressible = rows[:, 1] - rows[:, 0] < longest
    if tagger:
        flat = set(map(tuple, outermost(rows).tolist()))
        expressible |= np.array([tuple(row) in flat for row in rows.tolist()], dtype=bool)
    rows = rows[expressible]
    answers = np.ones((len(rows), 4), dtype=np.float64)
    answers[:, :2] = encoded.words[rows[:, :2]]
    answers[:, 2] = rows[:, 2]
    return answers


def span_loss(scores: SpanScores, targets: Sequence[NDArray[Any]]) -> Tensor:
    """Negative log likelihood of the outermost spans' tags, plus the binary loss of every span and
    type.

    targets: per sequence (spans, 3): first unit, last unit, type.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from biobench.core.machine import to_device

    wanted = torch.zeros_like(scores.logits)
    shifted = []
    window_begins = np.cumsum([0, *scores.counts[:-1]])
    for rows, window_begin in zip(targets, window_begins, strict=True):
        in_band = rows[rows[:, 1] - rows[:, 0] < scores.logits.shape[1]]
        in_band[:, :2] += window_begin
        shifted.append(in_band)
    begin, end, kind = to_device(np.ascontiguousarray(np.concatenate(shifted).T), wanted.device)
    wanted.index_put_((begin, end - begin, kind), wanted.new_ones(()))
    cells = binary_cross_entropy_with_logits(scores.logits, wanted, reduction="none")
    total = (cells * scores.inside[..., None]).sum()
    if scores.tagger is None:
        return total
    crf, emissions, mask, sums = scores.tagger
    tags = to_device(bioul_targets(targets, scores.counts, emissions.shape[2]), wanted.device)
    return total - crf.log_likelihood(emissions, mask, tags, sums).sum()


def bioul_targets(targets: Sequence[NDArray[Any]], counts: Sequence[int], types: int) -> Ints:
    """(sequences with units, units of the longest, types) BIOUL tags of the outermost spans of each
    type.
    """
    from biobench.models.crf import BEGIN, INSIDE, LAST, UNIT

    with_units = [spans for spans, count in zip(targets, counts, strict=True) if count > 0]
    tags = np.zeros((len(with_units), max(counts), types), dtype=np.int64)
    for row, spans in enumerate(with_units):
        for begin, end, kind in outermost(spans).tolist():
            tags[row, begin : end + 1, kind] = INSIDE
            tags[row, end, kind] = LAST
            tags[row, begin, kind] = BEGIN if begin < end else UNIT
    return tags


def span_answers(scores: SpanScores, encoded: Sequence[Encoded]) -> list[PlacedSpans]:
    """Per window: (spans, 4) first unit, last unit, type, probability; units counted in the
    document.

    A span and type counts when its own sigmoid passes 0.5, so one span may have two types.
    Outermost spans longer than the scorer's band are taken from the tagger's best path.
    """
    import torch

    chances = torch.sigmoid(scores.logits).masked_fill(~scores.inside[..., None], 0.0)
    at = (chances > 0.5).nonzero()
    values = chances[at[:, 0], at[:, 1], at[:, 2]].cpu().numpy()
    rows = at.cpu().numpy()
    answers: list[PlacedSpans] = []
    begin = 0
    for window, extra, count in zip(encoded, _longer(scores), scores.counts, strict=True):
        in_window = (rows[:, 0] >= begin) & (rows[:, 0] < begin + count)
        start, length, kind = (rows[in_window] - [begin, 0, 0]).T
        short = np.stack([start, start + length, kind, values[in_window]], axis=1)
        spans = np.concatenate([short, np.asarray(extra, dtype=np.float64).reshape(-1, 4)])
        spans[:, :2] = window.words[spans[:, :2].astype(np.int64)]
        answers.append(spans)
        begin += count
    return answers


def _longer(scores: SpanScores) -> list[list[tuple[int, int, int, float]]]:
    """Per sequence, the tagger's spans beyond the band; the score is the lesser chance of begin and
    end.
    """
    from biobench.models.crf import BEGIN, LAST, UNIT

    longest = scores.logits.shape[1]
    spans: list[list[tuple[int, int, int, float]]] = [[] for _ in scores.counts]
    if scores.tagger is None or max(scores.counts) <= longest:
        return spans
    crf, emissions, mask, sums = scores.tagger
    rows = [at for at, count in enumerate(scores.counts) if count > 0]
    tags = crf.viterbi(emissions, mask).cpu().numpy()
    chances: Tensor = crf.log_marginals(emissions, sums).exp()
    begins = (chances[..., BEGIN] + chances[..., UNIT]).cpu().numpy()
    ends = (chances[..., LAST] + chances[..., UNIT]).cpu().numpy()
    for at, row in enumerate(rows):
        for begin, kind in np.argwhere(tags[at] == BEGIN).tolist():
            end = begin + int(np.argmax(tags[at, begin:, kind] == LAST))
            if end - begin >= longest:
                score = float(min(begins[at, begin, kind], ends[at, end, kind]))
                spans[row].append((begin, end, kind, score))
    return spans
