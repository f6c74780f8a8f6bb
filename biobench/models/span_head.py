"""The span head: states of words to scores of spans that may nest, several types on one span
allowed.

Words or sub-tokens -> gated BiLSTM -> a BIOUL tagger for each type and a biaffine scorer of every
span up to a length. The tagger's log probability of a span is a constant (detached) term of that
span's logit. Scores are stored in a band (units, max_span, types), never units x units. After the
nested-NER recipe of nlstruct (BiTag with a biaffine scorer; facts in docs/tasks.md), in a lighter
form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from biobench.core.machine import computing_in, to_device
from biobench.models.crf import BEGIN, INSIDE, LAST, TAGS, UNIT, LinearCRF, PathSums, turn
from biobench.models.heads import Units, pool
from biobench.schema.training import SpanOptions

_RARE = -5.0
"""Where the span logits begin: nearly no span is a mention, so the first steps need not learn that.
"""
_BLOCK = 64
"""Units whose spans are scored by one matrix product."""


class Tagged(NamedTuple):
    """emissions: (sequences, words, groups, tags); mask: (sequences, words)."""

    crf: LinearCRF
    emissions: Tensor
    mask: Tensor
    sums: PathSums


@dataclass(frozen=True, slots=True)
class SpanScores:
    """What the head says of the units of all sequences, end to end (units).

    logits: (units, longest, types), of the span that begins at a unit and is 1..longest units long;
    longest is max_span, or the units of the longest sequence if these are fewer. inside: (units,
    longest), whether that span ends in its own sequence. tagger: None in the variant without one.
    """

    logits: Tensor
    inside: Tensor
    counts: Sequence[int]
    tagger: Tagged | None = None


class GatedBiLSTM(nn.Module):
    """Layers of BiLSTM, each mixed into its input by one gate a word: norm((1 - g) x + g y)."""

    def __init__(self, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.rnns = nn.ModuleList(
            nn.LSTM(width, width // 2, batch_first=True, bidirectional=True) for _ in range(layers)
        )
        self.gates = nn.ModuleList(nn.Linear(width, 1) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states: (sequences, words, width) -> the same; mask: (sequences, words), True first."""
        turned = turn(mask)
        for rnn, gate, norm in zip(self.rnns, self.gates, self.norms, strict=True):
            forward = _one_way(rnn, states, "")
            backward = _one_way(rnn, states[turned], "_reverse")[turned]
            context = torch.cat([forward, backward], dim=-1)
            context = self.dropout(context * mask[..., None])
            share = torch.sigmoid(gate(context))
            states = norm((1 - share) * states + share * context)
        return states


def _one_way(rnn: nn.Module, states: Tensor, direction: str) -> Tensor:
    """(sequences, words, width / 2) of one direction of a layer.

    Each direction runs over padded sequences whose words come first: so oneDNN computes a layer on
    a CPU in one call, in 0.44 times the time of packed sequences, which it does not take.
    """
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = [getattr(rnn, f"{name}_l0{direction}") for name in names]
    empty = states.new_zeros(1, len(states), states.shape[2] // 2)
    out, _, _ = torch.lstm(
        states,
        (empty, empty),
        weights,
        has_biases=True,
        num_layers=1,
        dropout=0.0,
        train=rnn.training,
        bidirectional=False,
        batch_first=True,
    )
    return out


class SpanHead(nn.Module):
    """See the module. Runs in fp32 whatever the encoder's precision: sums of log probabilities need
    it.
    """

    def __init__(
        self, width: int, types: int, dropout: float, pooling: str, options: SpanOptions
    ) -> None:
        super().__init__()
        self.options = options
        self.pooling = pooling
        self.types = types
        self.dropout = nn.Dropout(dropout)
        self.project: nn.Module = nn.Identity()
        if options.variant != "biaffine":
            if width != options.width:
                self.project = nn.Sequential(nn.Linear(width, options.width), nn.GELU())
            self.context = GatedBiLSTM(options.width, options.layers, dropout)
            width = options.width
            self.tagger = nn.Linear(width, TAGS * types)
            self.crf = LinearCRF(types)
        self.begin = nn.Linear(width, types * options.biaffine_width)
        self.end = nn.Linear(width, types * options.biaffine_width)
        self.bias = nn.Parameter(torch.full((1,), _RARE))

    def forward(self, hidden: Tensor, units: Units) -> SpanScores:
        """hidden: (tokens, width)."""
        with computing_in("fp32", hidden.device):
            states = self.project(pool(hidden.float(), units, self.pooling))
            longest = min(self.options.max_span, max(units.counts, default=1))
            inside = _inside(units.counts, longest, states.device)
            if self.options.variant == "biaffine" or len(states) == 0:
                logits = self._biaffine(self.dropout(states), longest)
                return SpanScores(logits, inside, units.counts)
            return self._with_tagger(states, inside, units.counts)

    def _with_tagger(self, states: Tensor, inside: Tensor, counts: Sequence[int]) -> SpanScores:
        """states: (units, width), at least one; counts: units of each sequence, 0 included."""
        sizes = torch.tensor(list(filter(None, counts)))
        real = torch.arange(int(sizes.max())) < sizes[:, None]
        positions = real.flatten().nonzero()[:, 0]
        mask = to_device(real, states.device)
        rows = to_device(positions, states.device)
        words = _padded(states, rows, real.shape)
        in_context = self.context(words, mask).flatten(0, 1)[rows]
        tags = self.tagger(self.dropout(in_context))
        emissions = _padded(tags, rows, real.shape)
        emissions = emissions.view(*real.shape, self.types, -1)
        with torch.no_grad():
            sums = self.crf.sums(emissions, mask)
            marginals = self.crf.log_marginals(emissions, sums)
            chances = _span_chances(marginals.flatten(0, 1)[rows], inside)
            tagger_term = _logit(chances)
        logits = self._biaffine(self.dropout(in_context), inside.shape[1]) + tagger_term
        tagged = Tagged(self.crf, emissions, mask, sums)
        return SpanScores(logits, inside, counts, tagged)

    def _biaffine(self, states: Tensor, longest: int) -> Tensor:
        """(units, longest, types): begin vector of the first unit times end vector of the last."""
        size = self.options.biaffine_width
        begin = self.begin(states).view(-1, self.types, size)
        end = self.end(states).view(-1, self.types, size)
        scale = float(size) ** -0.5
        scores: Tensor = _band(begin, end, longest) * scale + self.bias
        return scores


def _padded(rows: Tensor, positions: Tensor, shape: torch.Size) -> Tensor:
    """rows: (units, width) -> (sequences, words, width), 0 between; positions: of each unit in
    sequences x words.
    """
    empty = rows.new_zeros(shape.numel(), rows.shape[1])
    return empty.index_copy(0, positions, rows).view(*shape, -1)


def _inside(counts: Sequence[int], longest: int, device: torch.device) -> Tensor:
    """(units, longest): whether a span of 1..longest units from each unit ends in its sequence."""
    units_left: list[int] = []
    for count in counts:
        units_left += range(count, 0, -1)
    reach = torch.tensor(units_left, dtype=torch.long)
    ends_inside = torch.arange(longest) < reach[:, None]
    return to_device(ends_inside, device)


def _band(begin: Tensor, end: Tensor, longest: int) -> Tensor:
    """begin, end: (units, columns, size) -> (units, longest, columns), [i, k] the product of begin
    i and end i + k.

    A block of units meets the units it can reach in one matrix product; the rest of that product is
    at most one block wide, so nothing grows with the square of the units. Beyond the last unit the
    product is 0.
    """
    count, columns, _ = begin.shape
    if count == 0:
        return begin.new_zeros(0, longest, columns)
    blocks = -(-count // _BLOCK)
    beyond = longest - 1  # units that the last one of a block can reach
    missing = blocks * _BLOCK - count
    begin = nn.functional.pad(begin, (0, 0, 0, 0, 0, missing))
    end = nn.functional.pad(end, (0, 0, 0, 0, 0, missing + beyond))
    begin_blocks = begin.view(blocks, _BLOCK, columns, -1).transpose(1, 2)
    end_blocks = end.unfold(0, _BLOCK + beyond, _BLOCK)  # (blocks, columns, size, reach)
    products = begin_blocks @ end_blocks  # (blocks, columns, _BLOCK, reach)
    ends = _ends(_BLOCK, longest, begin.device)
    spans = products.gather(3, ends.expand(blocks, columns, _BLOCK, longest))
    band = spans.permute(0, 2, 3, 1).reshape(blocks * _BLOCK, longest, columns)
    return band[:count]


def _span_chances(tags: Tensor, inside: Tensor) -> Tensor:
    """(units, longest, types) log probability of a span: the least of its begin, its end, and no
    hole between.

    tags: (units, types, tags) marginals.
    """
    begin = torch.logaddexp(tags[..., BEGIN], tags[..., UNIT])
    end = torch.logaddexp(tags[..., LAST], tags[..., UNIT])
    covered = torch.logsumexp(tags[..., INSIDE:], dim=-1).clamp(max=0.0)
    # In double: the sum runs over all sequences, and a short span is a small difference of it.
    sums = covered.double().cumsum(0)
    sums = nn.functional.pad(sums, (0, 0, 1, 0))
    units, longest = inside.shape
    ends = torch.where(inside, _ends(units, longest, begin.device), 0)
    unbroken = (sums[ends + 1] - sums[:-1, None]).float()
    least = torch.minimum(unbroken, begin[:, None])
    least = torch.minimum(least, end[ends])
    return torch.where(inside[..., None], least, 0.0).clamp(max=0.0)


def _ends(units: int, longest: int, device: torch.device) -> Tensor:
    """(units, longest): the last unit of the spans of 1..longest units that begin at each unit."""
    begins = torch.arange(units, device=device)
    offsets = torch.arange(longest, device=device)
    return begins[:, None] + offsets


def _logit(chance: Tensor) -> Tensor:
    """Log probabilities as logits, between -10 and 10."""
    complement = torch.log(-torch.expm1(chance.clamp(max=-1e-6)))
    return (chance - complement).clamp(-10.0, 10.0)
