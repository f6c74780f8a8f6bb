"""Mentions as spans that may nest; the head stands in `biobench/models/span_head.py`.

A unit is a word (a run of letters, a run of digits, or one other sign that is not white space), or
a sub-token where the head pools nothing. A gold span whose ends are not unit ends is trained on as
the units that it touches; it cannot be predicted, and the oracle says so.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from biobench.core.arrays import Array, Ints, ints
from biobench.encode.merge import PlacedSpans, merge_spans
from biobench.encode.tokens import Encoded, Offsets, tokenised
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

    name = "span_ner"
    head = "span"
    probes = False

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

    def answers(self, task: Task, logits: SpanScores, encoded: Windows) -> list[PlacedSpans]:
        """The spans that each window shows."""
        return span_answers(logits, encoded)

    def predict(
        self, task: Task, document: Document, seen: Windows, answers: Answers, threshold: float
    ) -> Prediction:
        """The spans that their deciding windows show."""
        spans = merge_spans(seen, answers)
        if _options(task.spec).same_type_overlaps == "filter":
            spans = same_type_filter(spans)
        return predict_spans(document, spans, task.outputs)

    def oracle(self, task: Task, document: Document, encoded: Windows) -> Prediction:
        """Gold that the windows show whole and the head can express (ends at unit ends, not too
        long).
        """
        options = _options(task.spec)
        tagger = options.variant == "crf_biaffine"
        answers: list[PlacedSpans] = []
        for window in encoded:
            spans = gold_answers(document, window, task.index, options.max_span, tagger=tagger)
            answers.append(spans)
        return self.predict(task, document, encoded, answers, 0.0)


_WORD = re.compile(r"[^\W\d_]+|\d+|[^\w\s]|_")


def with_words(documents: Documents) -> list[Document]:
    """The documents with words as their tokens."""
    worded: list[Document] = []
    for document in documents:
        words = tuple(match.span() for match in _WORD.finditer(document.text))
        worded.append(replace(document, tokens=words, tags=()))
    return worded


def with_subtokens(documents: Documents, tokenizer: Tokenizer) -> list[Document]:
    """The documents with the tokenizer's own pieces as tokens, white space stripped.

    Pieces of the same characters (bytes of one sign) are one unit. Raises ModelError for a
    tokenizer without character offsets.
    """
    if not tokenizer.is_fast:
        raise ModelError(
            "this tokenizer gives no character offsets", hint="use --set head.pooling=first"
        )
    texts = [document.text for document in documents]
    pieced: list[Document] = []
    rows = tokenised(texts, tokenizer, offsets=True)
    for document, (_, offsets) in zip(documents, rows, strict=True):
        units = _stripped(document.text, offsets)
        pieced.append(replace(document, tokens=units, tags=()))
    return pieced


def _stripped(text: str, offsets: Offsets) -> tuple[tuple[int, int], ...]:
    units: list[tuple[int, int]] = []
    reached = 0
    for start, end in offsets:
        piece = text[start:end]
        bare = piece.strip()
        start += len(piece) - len(piece.lstrip())
        # Two pieces of one multi-byte sign may also overlap in part; units must run left to right.
        if bare and start >= reached:
            reached = start + len(bare)
            units.append((start, reached))
    return tuple(units)


def touched(document: Document) -> Ints:
    """(spans, 3): first unit, last unit of every gold span, and the span's place in
    `document.spans`.

    A span that touches no unit (white space alone) has no row.
    """
    unit_starts, unit_ends = ints(document.tokens).reshape(-1, 2).T
    starts = [span.start for span in document.spans]
    ends = [span.end for span in document.spans]
    begin_units = unit_ends.searchsorted(starts, side="right")
    end_units = unit_starts.searchsorted(ends, side="left") - 1
    numbers = np.arange(len(starts))
    rows = np.stack([begin_units, end_units, numbers], axis=1)
    return rows[begin_units <= end_units]


def visible(encoded: Encoded, spans: Ints) -> Ints:
    """The rows of `spans` (first, last, ...) whose units the window shows all, in places of the
    window's units.
    """
    is_shown = np.isin(spans[:, :2], encoded.words).all(axis=1)
    placed: Ints = spans[is_shown]
    placed[:, :2] = np.searchsorted(encoded.words, placed[:, :2])
    return placed


def span_targets(document: Document, encoded: Encoded, index: dict[str, int]) -> Ints:
    """(visible spans, 3): first unit, last unit (places in the window), type; each once, in
    order."""
    types = ints([index[span.label] for span in document.spans])
    rows = touched(document)
    rows[:, 2] = types[rows[:, 2]]
    shown = visible(encoded, rows)
    return np.unique(shown, axis=0)


def outermost(spans: Ints) -> Ints:
    """The spans (first, last, type) that a tagger per type can express: none inside or across
    another of its type.

    Longer spans go first; of crossing ones the earlier of equal length stays.
    """
    begin, end, kind = spans.T
    longest_first = np.lexsort((kind, begin, begin - end))
    flat = spans[_apart(spans, longest_first)]
    return flat[np.lexsort(flat.T[::-1])]


def same_type_filter(spans: PlacedSpans) -> PlacedSpans:
    """Of overlapping spans of one type the most confident stays (ties: the earlier, then the
    longer).
    """
    begin, end, _, score = spans.T
    surest_first = np.lexsort((-end, begin, -score))
    return spans[sorted(_apart(spans, surest_first))]


def _apart(spans: Array, ordered: Ints) -> list[int]:
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


def predict_spans(document: Document, answers: PlacedSpans, outputs: Sequence[str]) -> Prediction:
    """Prediction from spans over the document's units."""
    scores: dict[Span, float] = {}
    for begin, end, kind, score in answers.tolist():
        start, _ = document.tokens[int(begin)]
        _, stop = document.tokens[int(end)]
        span = Span(start, stop, outputs[int(kind)])
        scores[span] = max(scores.get(span, 0.0), score)
    spans = sorted(scores)
    rounded = [round(scores[span], 6) for span in spans]
    return Prediction(document.id, spans=tuple(spans), span_scores=tuple(rounded))


def gold_answers(
    document: Document, encoded: Encoded, index: dict[str, int], longest: int, *, tagger: bool
) -> PlacedSpans:
    """What a perfect head says of this window: visible gold spans, in units of the document.

    longest: units of the longest span that the scorer sees; a tagger carries longer ones if they
    are outermost.
    """
    rows = span_targets(document, encoded, index)
    expressible = rows[_lengths(rows) <= longest]
    if tagger:
        flat = outermost(rows)
        long_flat = flat[_lengths(flat) > longest]
        expressible = np.concatenate([expressible, long_flat])
    begin, end, kind = np.unique(expressible, axis=0).T
    words = encoded.words
    certain = np.ones(len(kind))
    return np.stack([words[begin], words[end], kind, certain], axis=1)


def _lengths(spans: Ints) -> Ints:
    """(spans,) units of spans (first, last, ...)."""
    lengths: Ints = spans[:, 1] - spans[:, 0] + 1
    return lengths


def span_loss(scores: SpanScores, targets: Targets) -> Tensor:
    """Negative log likelihood of the outermost spans' tags, plus the binary loss of every span and
    type.

    targets: per sequence (spans, 3): first unit, last unit, type.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    from biobench.core.machine import to_device

    logits = scores.logits
    begin_of_sequence = np.cumsum([0, *scores.counts[:-1]])
    numbers_of_spans = [len(spans) for spans in targets]
    shift = np.repeat(begin_of_sequence, numbers_of_spans)
    begin, end, kind = np.concatenate(targets).T
    cells = np.stack([begin + shift, end - begin, kind])
    in_band = cells[:, cells[1] < logits.shape[1]]
    positions = to_device(in_band, logits.device)
    wanted = torch.zeros_like(logits)
    wanted.index_put_(tuple(positions), wanted.new_ones(()))
    losses = binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    total = (losses * scores.inside[..., None]).sum()
    if scores.tagger is None:
        return total
    crf, emissions, mask, sums = scores.tagger
    types = emissions.shape[2]
    tags = to_device(bioul_targets(targets, scores.counts, types), logits.device)
    likelihood = crf.log_likelihood(emissions, mask, tags, sums)
    return total - likelihood.sum()


def bioul_targets(targets: Targets, counts: Sequence[int], types: int) -> Ints:
    """(sequences with units, units of the longest, types) BIOUL tags of the outermost spans of each
    type.
    """
    from biobench.models.crf import BEGIN, INSIDE, LAST, UNIT

    with_units = [spans for spans, count in zip(targets, counts, strict=True) if count > 0]
    shape = (len(with_units), max(counts), types)
    tags = np.zeros(shape, dtype=np.int64)
    for row, spans in zip(tags, with_units, strict=True):
        for begin, end, kind in outermost(spans).tolist():
            row[begin : end + 1, kind] = INSIDE
            row[end, kind] = LAST
            row[begin, kind] = BEGIN if begin < end else UNIT
    return tags


def span_answers(scores: SpanScores, encoded: Windows) -> list[PlacedSpans]:
    """Per window: (spans, 4) first unit, last unit, type, probability; units counted in the
    document.

    A span and type counts when its own sigmoid passes 0.5, so one span may have two types.
    Outermost spans longer than the scorer's band are taken from the tagger's best path.
    """
    spans = np.concatenate([_in_band(scores), *_beyond_band(scores)])
    begins = spans[:, 0].copy()
    units = np.concatenate([window.words for window in encoded])
    spans[:, :2] = units[ints(spans[:, :2])]
    answers: list[PlacedSpans] = []
    borders = np.cumsum([0, *scores.counts])
    for begin, end in pairwise(borders):
        of_window = (begin <= begins) & (begins < end)
        answers.append(spans[of_window])
    return answers


def _in_band(scores: SpanScores) -> PlacedSpans:
    """The scorer's spans, in units of all windows end to end."""
    import torch

    outside = ~scores.inside[..., None]
    chances = torch.sigmoid(scores.logits).masked_fill(outside, 0.0)
    is_found = chances > 0.5
    begin, more_units, kind = is_found.nonzero().cpu().numpy().T
    chance = chances[is_found].cpu().numpy()
    return np.stack([begin, begin + more_units, kind, chance], axis=1)


def _beyond_band(scores: SpanScores) -> list[PlacedSpans]:
    """The tagger's spans beyond the scorer's band, in units of all windows end to end; the score is
    the lesser chance of begin and end.
    """
    from biobench.models.crf import BEGIN, LAST, UNIT

    longest = scores.logits.shape[1]
    if scores.tagger is None or max(scores.counts) <= longest:
        return []
    crf, emissions, mask, sums = scores.tagger
    tags = crf.viterbi(emissions, mask).cpu().numpy()
    chances: Tensor = crf.log_marginals(emissions, sums).exp()
    begin_chances = (chances[..., BEGIN] + chances[..., UNIT]).cpu().numpy()
    end_chances = (chances[..., LAST] + chances[..., UNIT]).cpu().numpy()
    # The tagger's sequences are those that have units.
    begin_of_sequence = np.cumsum([0, *filter(None, scores.counts)])
    spans: list[PlacedSpans] = []
    for row, begin, kind in np.argwhere(tags == BEGIN):
        is_last = tags[row, begin:, kind] == LAST
        end = begin + np.argmax(is_last)
        if end - begin >= longest:
            begin_chance = begin_chances[row, begin, kind]
            end_chance = end_chances[row, end, kind]
            shift = begin_of_sequence[row]
            span = (begin + shift, end + shift, kind, min(begin_chance, end_chance))
            spans.append(np.array([span]))
    return spans
