"""The span head: the band holds the right products, sequences do not see each other, memory stays small."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from biobench.kinds.span_ner import bioul_targets
from biobench.models.crf import BEGIN, INSIDE, LAST, OUTSIDE, UNIT
from biobench.models.span_head import GatedBiLSTM, SpanHead, Units, _band, pool_units
from biobench.schema.training import SpanOptions

VARIANTS = ("crf_biaffine", "biaffine")


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


def test_the_tagger_learns_the_outermost_spans_only() -> None:
    rows = np.array([[0, 3, 1], [1, 2, 1], [2, 5, 1], [1, 2, 0], [4, 4, 0], [5, 5, 1]])
    tags = bioul_targets([rows], [6], 2)[0]
    assert tags[:, 0].tolist() == [OUTSIDE, BEGIN, LAST, OUTSIDE, UNIT, OUTSIDE]
    # Of the crossing spans 0-3 and 2-5 the first stays; the unit inside the dropped one is then outermost.
    assert tags[:, 1].tolist() == [BEGIN, INSIDE, INSIDE, LAST, OUTSIDE, UNIT]
