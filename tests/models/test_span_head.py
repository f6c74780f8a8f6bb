"""The span head: what it computes, cell by cell, and that sequences do not see each other; the
losses of its scores.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as binary
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from biobench.encode.tokens import Encoded
from biobench.kinds.span_ner import bioul_targets, span_answers, span_loss
from biobench.models.crf import BEGIN, INSIDE, LAST, OUTSIDE, UNIT
from biobench.models.heads import LinearHead, Units, pool
from biobench.models.span_head import (
    GatedBiLSTM,
    SpanHead,
    SpanScores,
    Tagged,
    _band,
    _logit,
    _span_chances,
)
from biobench.schema.training import SpanOptions

COUNTS = [5, 0, 4]
TARGETS = [
    np.array([[0, 1, 2], [0, 1, 0], [1, 1, 0], [0, 4, 1]]),
    np.zeros((0, 3), np.int64),
    np.array([[0, 3, 1]]),
]
"""The span 0-4 is longer than the band of 4."""


def _head(variant: str) -> SpanHead:
    torch.manual_seed(1)
    small = {"layers": 1, "width": 12, "biaffine_width": 5, "max_span": 4}
    head = SpanHead(
        8, 3, 0.0, "first", SpanOptions.model_validate({"variant": variant, **small})
    ).eval()
    for name, values in head.named_parameters():
        if name != "bias":
            torch.nn.init.normal_(values, std=0.5)
    return head


def _units(counts: list[int]) -> Units:
    at = torch.arange(sum(counts))
    return Units(at, at + 1, counts)


@pytest.mark.parametrize(("count", "longest"), [(1, 7), (3, 1), (64, 40), (65, 7), (150, 40)])
def test_the_band_holds_begin_times_end(count: int, longest: int) -> None:
    begin, end = torch.randn(2, count, 3, 4)
    band = _band(begin, end, longest)
    assert band.shape == (count, longest, 3)
    square = torch.einsum("icd,jcd->ijc", begin, end)
    for i in range(count):
        for k in range(min(longest, count - i)):
            torch.testing.assert_close(band[i, k], square[i, i + k])


def test_pooling_takes_the_first_token_or_the_mean() -> None:
    hidden = torch.randn(6, 4)
    begins, ends = torch.tensor([0, 2, 5]), torch.tensor([2, 5, 6])
    units = Units(begins, ends, [3], lengths=[2, 4])
    torch.testing.assert_close(pool(hidden, units, "first"), hidden[begins])
    means = [hidden[a:b].mean(0) for a, b in ((0, 2), (2, 5), (5, 6), (2, 6))]
    torch.testing.assert_close(pool(hidden, units, "mean"), torch.stack(means[:3]))
    for pooling, rows in (("cls", hidden[[0, 2]]), ("mean", torch.stack(means[::3]))):
        head = LinearHead(4, 3, 0.0, 0.5, pooling)
        torch.testing.assert_close(head(hidden, units), head.linear(rows))


def test_padded_sequences_give_the_states_of_packed_ones() -> None:
    """Dropout on, lengths with ties: states, gradients and random numbers of the library's packed
    layers.
    """
    torch.manual_seed(0)
    counts = [3, 7, 1, 7, 5, 3, 2]
    layers = GatedBiLSTM(12, 2, 0.3).train()
    mask = torch.arange(7)[None] < torch.tensor(counts)[:, None]
    states = torch.randn(len(counts), 7, 12, requires_grad=True)
    torch.manual_seed(1)
    ours = layers(states, mask)
    after = torch.get_rng_state()
    weigh = torch.randn(*ours.shape) * mask[..., None]
    changes = torch.autograd.grad((ours * weigh).sum(), [states, *layers.parameters()])
    torch.manual_seed(1)
    theirs = states
    for rnn, gate, norm in zip(layers.rnns, layers.gates, layers.norms, strict=True):
        packed = pack_padded_sequence(
            theirs, torch.tensor(counts), batch_first=True, enforce_sorted=False
        )
        context = layers.dropout(pad_packed_sequence(rnn(packed)[0], batch_first=True)[0])
        share = torch.sigmoid(gate(context))
        theirs = norm((1 - share) * theirs + share * context)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert torch.equal(after, torch.get_rng_state())
    wanted = torch.autograd.grad((theirs * weigh).sum(), [states, *layers.parameters()])
    torch.testing.assert_close(changes, wanted, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("variant", ["crf_biaffine", "biaffine"])
def test_a_sequence_is_scored_alike_alone_and_in_company(variant: str) -> None:
    head = _head(variant)
    hidden = torch.randn(9, 8)
    both = head(hidden, _units(COUNTS))
    for rows, counts in ((slice(0, 5), [5]), (slice(5, 9), [4])):
        alone = head(hidden[rows], _units(counts))
        torch.testing.assert_close(both.inside[rows], alone.inside)
        inside = alone.inside
        torch.testing.assert_close(
            both.logits[rows][inside], alone.logits[inside], rtol=1e-4, atol=1e-5
        )
        assert not both.inside[4, 1:].any()


@pytest.mark.parametrize("variant", ["crf_biaffine", "biaffine"])
def test_a_batch_without_words_has_no_spans_and_can_be_trained_on(variant: str) -> None:
    head = _head(variant)
    scores = head(torch.randn(4, 8), _units([0, 0]))
    nothing = np.zeros((0, 3), np.int64)
    loss = span_loss(scores, [nothing, nothing])
    loss.backward()
    assert loss.item() == 0
    windows = [Encoded(np.arange(2)), Encoded(np.arange(2))]
    with torch.no_grad():
        answers = span_answers(head(torch.randn(4, 8), _units([0, 0])), windows)
    assert [spans.shape for spans in answers] == [(0, 4), (0, 4)]


def test_the_tagger_learns_the_outermost_spans_only() -> None:
    rows = np.array([[0, 3, 1], [1, 2, 1], [2, 5, 1], [1, 2, 0], [4, 4, 0], [5, 5, 1]])
    tags = bioul_targets([rows], [6], 2)[0]
    assert tags[:, 0].tolist() == [OUTSIDE, BEGIN, LAST, OUTSIDE, UNIT, OUTSIDE]
    # Of the crossing spans 0-3 and 2-5 the first stays; the unit inside the dropped one is then
    # outermost.
    assert tags[:, 1].tolist() == [BEGIN, INSIDE, INSIDE, LAST, OUTSIDE, UNIT]


def _scores(head: SpanHead) -> tuple[SpanScores, Tensor]:
    hidden = torch.randn(9, 8)
    return head(hidden, _units(COUNTS)), hidden


BEGINS = np.cumsum([0, *COUNTS[:-1]]).tolist()
CELLS = [
    (s, a, b)
    for s, n in enumerate(COUNTS)
    for a, b in product(range(n), repeat=2)
    if a <= b < a + 4
]
"""(sequence, first, last) of every span of up to 4 units that ends in its own sequence."""


def test_a_span_s_logit_is_begin_times_end_over_the_root_of_the_width() -> None:
    head = _head("biaffine")
    assert head.bias.item() == -5.0
    scores, hidden = _scores(head)
    begin, end = (part(hidden).view(9, 3, 5) for part in (head.begin, head.end))
    for s, a, b in CELLS:
        i, j = BEGINS[s] + a, BEGINS[s] + b
        wanted = (begin[i] * end[j]).sum(-1) / math.sqrt(5) - 5.0
        torch.testing.assert_close(scores.logits[i, b - a], wanted)
    assert int(scores.inside.sum()) == len(CELLS)


def test_the_tagger_s_chance_of_a_span_is_the_least_of_begin_end_and_no_hole() -> None:
    torch.manual_seed(3)
    logs = torch.randn(9, 3, 5).log_softmax(-1)
    left = torch.tensor([n - at for n in COUNTS for at in range(n)])
    chances = _span_chances(logs, torch.arange(4)[None] < left[:, None])

    def of(unit: int, kind: int, *tags: int) -> float:
        return float(sum(logs[unit, kind, tag].exp() for tag in tags))

    assert (OUTSIDE, INSIDE, BEGIN, LAST, UNIT) == (0, 1, 2, 3, 4)
    for s, a, b in CELLS:
        for kind in range(3):
            i, j = BEGINS[s] + a, BEGINS[s] + b
            covered = math.prod(of(u, kind, INSIDE, BEGIN, LAST, UNIT) for u in range(i, j + 1))
            wanted = min(of(i, kind, BEGIN, UNIT), of(j, kind, LAST, UNIT), covered)
            assert float(chances[i, b - a, kind].exp()) == pytest.approx(wanted, rel=1e-4)


def test_the_tagger_s_term_is_a_logit_and_a_constant() -> None:
    head = _head("crf_biaffine")
    scores, hidden = _scores(head)
    crf, emissions, mask, sums = scores.tagger
    chance = _span_chances(crf.log_marginals(emissions, sums)[mask], scores.inside)
    padded = head.project(hidden).new_zeros(2, 5, 12)
    padded[0], padded[1, :4] = head.project(hidden)[:5], head.project(hidden)[5:]
    context = head.context(padded, mask)
    term = scores.logits - head._biaffine(torch.cat([context[0], context[1, :4]]), 4)
    p = chance.exp().clamp(max=1 - 1e-6)
    wanted = (p / (1 - p)).log().clamp(-10, 10)
    torch.testing.assert_close(term[scores.inside], wanted[scores.inside], atol=2e-3, rtol=2e-3)
    (scores.logits * scores.inside[..., None]).sum().backward()
    assert head.tagger.weight.grad is None


def test_a_certain_tagger_is_held_to_ten() -> None:
    chances = torch.tensor([-50.0, -10.5, -2.0, math.log(0.5), 0.0])
    assert _logit(chances).tolist() == pytest.approx(
        [-10, -10, math.log(math.exp(-2) / (1 - math.exp(-2))), 0, 10]
    )


def _wanted_cells(scores: SpanScores) -> float:
    total = 0.0
    for s, a, b in CELLS:
        for kind in range(3):
            gold = torch.tensor(float([a, b, kind] in TARGETS[s].tolist()))
            total += binary(scores.logits[BEGINS[s] + a, b - a, kind], gold).item()
    return total


def test_the_loss_is_that_of_every_span_and_type_and_of_the_tags() -> None:
    scores, _ = _scores(_head("biaffine"))
    assert span_loss(scores, TARGETS).item() == pytest.approx(_wanted_cells(scores), rel=1e-5)
    head = _head("crf_biaffine")
    scores, _ = _scores(head)
    # The outermost spans' tags, by hand, of the sequences that have units.
    tags = torch.zeros(2, 5, 3, dtype=torch.long)
    tags[0, :2, 0] = torch.tensor([BEGIN, LAST])  # of type 0 the span 0-1 holds 1-1
    tags[0, :, 1] = torch.tensor([BEGIN, INSIDE, INSIDE, INSIDE, LAST])
    tags[0, :2, 2] = torch.tensor([BEGIN, LAST])
    tags[1, :4, 1] = torch.tensor([BEGIN, INSIDE, INSIDE, LAST])
    crf, emissions, mask, sums = scores.tagger
    likelihood = float(crf.log_likelihood(emissions, mask, tags, sums).sum())
    wanted = _wanted_cells(scores) - likelihood
    assert span_loss(scores, TARGETS).item() == pytest.approx(wanted, rel=1e-5)


def _window(count: int) -> Encoded:
    at = np.arange(count)
    return Encoded(ids=at, first=at, words=at + 100, truncated=False)


def test_a_span_is_said_above_one_half_and_not_at_it() -> None:
    logits = torch.full((3, 2, 2), -9.0)
    logits[0, 0] = torch.tensor([0.0, 0.01])
    logits[1, 1] = torch.tensor([0.02, -0.01])
    logits[2, 1] = 9.0  # ends beyond the sequence
    inside = torch.tensor([[True, True], [True, True], [True, False]])
    (found,) = span_answers(SpanScores(logits, inside, [3]), [_window(3)])
    assert [tuple(row[:3]) for row in found.tolist()] == [(100, 100, 1), (101, 102, 0)]
    assert found[:, 3].tolist() == pytest.approx(
        [1 / (1 + math.exp(-0.01)), 1 / (1 + math.exp(-0.02))]
    )


@pytest.mark.parametrize("length", [4, 5])
def test_the_tagger_speaks_for_spans_one_unit_beyond_the_band_and_more(length: int) -> None:
    head = _head("crf_biaffine")
    with torch.no_grad():
        for values in head.crf.parameters():
            values.zero_()
        scores = head(torch.randn(length, 8), _units([length]))
        crf, emissions, mask, _ = scores.tagger
        emissions.fill_(-30.0)
        emissions[..., OUTSIDE] = 0.0
        said = [BEGIN, *[INSIDE] * (length - 2), LAST]
        for place, tag in enumerate(said):
            emissions[0, place, 1, OUTSIDE] = -30.0
            emissions[0, place, 1, tag] = 0.0
        # The last word may also be inside or outside after an earlier end: its end is the less
        # certain one.
        emissions[0, length - 2, 1, LAST] = 0.0
        emissions[0, length - 1, 1, OUTSIDE] = -1.0
        scores = replace(scores, tagger=Tagged(crf, emissions, mask, crf.sums(emissions, mask)))
        scores.logits.fill_(-9.0)
        (found,) = span_answers(scores, [_window(length)])
    # Two paths: weight 1 for the whole span, 1/e for the one that ends a word earlier. Both begin
    # here.
    beyond = [(100, 99 + length, 1, pytest.approx(1 / (1 + math.exp(-1)), rel=1e-3))]
    assert [tuple(row) for row in found.tolist()] == (beyond if length > 4 else [])
