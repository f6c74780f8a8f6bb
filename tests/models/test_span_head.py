"""The span head: the band holds the right products, sequences do not see each other, memory stays small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from biobench.kinds.span_ner import bioul_targets, sampled, span_answers, span_loss
from biobench.models.crf import BEGIN, INSIDE, LAST, OUTSIDE, UNIT
from biobench.models.span_head import GatedBiLSTM, SpanHead, SpanScores, Units, _band, pool_units
from biobench.schema.training import SpanOptions

VARIANTS = ("crf_biaffine", "biaffine", "paper_variant")


def _head(variant: str, **options: int) -> SpanHead:
    torch.manual_seed(0)
    small = {"layers": 2, "width": 12, "biaffine_width": 5, "max_span": 4, **options}
    return SpanHead(8, 3, 0.0, "first", SpanOptions.model_validate({"variant": variant, **small})).eval()


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
    units = Units(torch.tensor([0, 2, 5]), torch.tensor([2, 5, 6]), [3])
    torch.testing.assert_close(pool_units(hidden, units, "first"), hidden[[0, 2, 5]])
    mean = torch.stack([hidden[0:2].mean(0), hidden[2:5].mean(0), hidden[5]])
    torch.testing.assert_close(pool_units(hidden, units, "mean"), mean)


def test_padded_sequences_give_the_states_of_packed_ones() -> None:
    """Dropout on, lengths with ties: states, gradients and random numbers of the library's packed layers."""
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
        packed = pack_padded_sequence(theirs, torch.tensor(counts), batch_first=True, enforce_sorted=False)
        context = layers.dropout(pad_packed_sequence(rnn(packed)[0], batch_first=True)[0])
        share = torch.sigmoid(gate(context))
        theirs = norm((1 - share) * theirs + share * context)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert torch.equal(after, torch.get_rng_state())
    wanted = torch.autograd.grad((theirs * weigh).sum(), [states, *layers.parameters()])
    for found, right in zip(changes, wanted, strict=True):
        torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sequence_is_scored_alike_alone_and_in_company(variant: str) -> None:
    head = _head(variant)
    hidden = torch.randn(9, 8)
    both = head(hidden, _units([5, 0, 4]))
    for rows, counts in ((slice(0, 5), [5]), (slice(5, 9), [4])):
        alone = head(hidden[rows], _units(counts))
        torch.testing.assert_close(both.inside[rows], alone.inside)
        inside = alone.inside
        torch.testing.assert_close(both.logits[rows][inside], alone.logits[inside], rtol=1e-4, atol=1e-5)
        assert not both.inside[4, 1:].any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_weight_learns(variant: str) -> None:
    head = _head(variant).train()
    scores = head(torch.randn(9, 8), _units([5, 0, 4]))
    targets = [np.array([[0, 1, 2], [1, 1, 0], [0, 1, 1]]), np.zeros((0, 3), np.int64), np.array([[0, 3, 1]])]
    span_loss(scores, targets, paper=variant == "paper_variant").backward()
    still = [n for n, p in head.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not still
    assert sum(float(p.grad.abs().sum()) > 0 for p in head.parameters()) == len(list(head.parameters()))


def test_the_tagger_learns_the_outermost_spans_only() -> None:
    rows = np.array([[0, 3, 1], [1, 2, 1], [2, 5, 1], [1, 2, 0], [4, 4, 0], [5, 5, 1]])
    tags = bioul_targets([rows], [6], 2)[0]
    assert tags[:, 0].tolist() == [OUTSIDE, BEGIN, LAST, OUTSIDE, UNIT, OUTSIDE]
    # Of the crossing spans 0-3 and 2-5 the first stays; the unit inside the dropped one is then outermost.
    assert tags[:, 1].tolist() == [BEGIN, INSIDE, INSIDE, LAST, OUTSIDE, UNIT]


def _scores(cells: list[tuple[int, int, int]], counts: list[int], types: int = 3) -> SpanScores:
    logits = torch.full((sum(counts), 4, types), -9.0)
    for unit, length, kind in cells:
        logits[unit, length - 1, kind] = 9.0
    left = torch.tensor([n - i for n in counts for i in range(n)])
    return SpanScores(logits, torch.arange(4)[None] < left[:, None], counts)


def _window(words: list[int]) -> object:
    from biobench.encode.tokens import Encoded

    at = np.asarray(words)
    return Encoded(ids=at, first=at, words=at, truncated=False)


def test_one_span_may_have_two_types_and_hold_another() -> None:
    scores = _scores([(0, 3, 0), (0, 3, 2), (1, 1, 0), (4, 2, 1)], [3, 3])
    first, second = span_answers(scores, [_window([0, 1, 2]), _window([10, 11, 12])], paper=False)  # type: ignore[list-item]
    assert {tuple(row[:3]) for row in first.tolist()} == {(0, 2, 0), (0, 2, 2), (1, 1, 0)}
    assert {tuple(row[:3]) for row in second.tolist()} == {(11, 12, 1)}


def test_the_sample_of_the_paper_variant_is_counted_right() -> None:
    rows = np.array([[0, 1, 0], [0, 1, 2], [3, 3, 1]])
    cells = 4 * 3 + 3 + 2 + 1
    assert sampled(rows, 6, 4) == 3 + cells - 2
    assert sampled(rows, 600, 40) == 503
    assert sampled(np.stack([np.arange(300)] * 3, axis=1), 600, 40) == 512
