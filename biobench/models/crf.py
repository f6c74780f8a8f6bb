"""Linear-chain CRFs over many label groups at once: likelihood, marginals, best paths.

A group is an independent chain on the same words. The tagger of nested spans has one group of five tags
(O, I, B, L, U) for each type; the variant of the published French table has one group of 1 + 4 x types tags.
Scans run over words; sequences and groups are one batch. Recursions: Lafferty, McCallum and Pereira,
"Conditional random fields", ICML 2001; the forward and backward sums in log space.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

OUTSIDE, INSIDE, BEGIN, LAST, UNIT = range(5)
TAGS = 5
_FORBIDDEN = -1e4
"""Score of a move that the structure does not allow: finite, so that sums of them stay numbers."""

_AFTER = {
    OUTSIDE: (OUTSIDE, BEGIN, UNIT),
    INSIDE: (INSIDE, LAST),
    BEGIN: (INSIDE, LAST),
    LAST: (OUTSIDE, BEGIN, UNIT),
    UNIT: (OUTSIDE, BEGIN, UNIT),
}
"""Tag to the tags that may follow it."""

_AFTER_OVERLAP = {
    OUTSIDE: (OUTSIDE, BEGIN, UNIT),
    INSIDE: (INSIDE, LAST, BEGIN, UNIT),
    BEGIN: (INSIDE, LAST, BEGIN, UNIT),
    LAST: (OUTSIDE, BEGIN, UNIT, INSIDE, LAST),
    UNIT: (OUTSIDE, BEGIN, UNIT, INSIDE, LAST),
}
"""The same where a span may begin or end inside another one of its class."""


def bioul() -> tuple[Tensor, Tensor, Tensor]:
    """What one group of five tags allows: moves (5, 5), first tags (5,), last tags (5,); True is allowed."""
    moves = torch.zeros(TAGS, TAGS, dtype=torch.bool)
    for tag, following in _AFTER.items():
        moves[tag, list(following)] = True
    first = torch.tensor([True, False, True, False, True])
    last = torch.tensor([True, False, False, True, True])
    return moves, first, last


def shared_bioul(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same for one group of 1 + 4 x classes tags (0 outside; 1 + 4c inside, begin, last, unit of class c).

    Spans of one class may overlap; another class may only begin where the one before has ended.
    """
    tags = 1 + 4 * classes
    moves = torch.zeros(tags, tags, dtype=torch.bool)
    kind = torch.tensor([0, *[INSIDE, BEGIN, LAST, UNIT] * classes])
    owner = torch.tensor([-1, *[c for c in range(classes) for _ in range(4)]])
    for a in range(tags):
        for b in range(tags):
            one, two = int(kind[a]), int(kind[b])
            if owner[a] == owner[b]:
                moves[a, b] = two in _AFTER_OVERLAP[one]
            else:
                moves[a, b] = two in _AFTER[one] and two not in (INSIDE, LAST)
    begins, ends = torch.tensor([OUTSIDE, BEGIN, UNIT]), torch.tensor([OUTSIDE, LAST, UNIT])
    return moves, torch.isin(kind, begins), torch.isin(kind, ends)


class LinearCRF(nn.Module):
    """Chains with learnt moves. emissions: (sequences, words, groups, tags); mask: (sequences, words), True first.

    Every sequence has at least one word.
    """

    forbidden_moves: Tensor
    forbidden_first: Tensor
    forbidden_last: Tensor

    def __init__(self, groups: int, allowed: tuple[Tensor, Tensor, Tensor]) -> None:
        super().__init__()
        moves, first, last = allowed
        self.moves = nn.Parameter(torch.zeros(groups, *moves.shape))
        self.first = nn.Parameter(torch.zeros(groups, len(first)))
        self.last = nn.Parameter(torch.zeros(groups, len(last)))
        self.register_buffer("forbidden_moves", (~moves).float() * _FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_first", (~first).float() * _FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_last", (~last).float() * _FORBIDDEN, persistent=False)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self.moves + self.forbidden_moves,
            self.first + self.forbidden_first,
            self.last + self.forbidden_last,
        )

    def forward_sums(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(sequences, words, groups, tags): log sum over paths that end in a tag at a word, its emission included."""
        moves, first, _ = self._scores()
        sums = [emissions[:, 0] + first]
        for at in range(1, emissions.shape[1]):
            step = torch.logsumexp(sums[-1][..., :, None] + moves, dim=-2) + emissions[:, at]
            sums.append(torch.where(mask[:, at, None, None], step, sums[-1]))
        return torch.stack(sums, dim=1)

    def backward_sums(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(sequences, words, groups, tags): log sum over what may follow a tag at a word, its emission left out."""
        moves, _, last = self._scores()
        end = last.expand(emissions.shape[0], *last.shape)
        sums = [end]
        for at in range(emissions.shape[1] - 1, 0, -1):
            step = torch.logsumexp(moves + (sums[-1] + emissions[:, at])[..., None, :], dim=-1)
            sums.append(torch.where(mask[:, at, None, None], step, end))
        return torch.stack(sums[::-1], dim=1)

    def partition(self, forward_sums: Tensor) -> Tensor:
        """(sequences, groups): log sum over all paths."""
        return torch.logsumexp(forward_sums[:, -1] + self._scores()[2], dim=-1)

    def path_scores(self, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """(sequences, groups): score of `tags` (sequences, words, groups)."""
        moves, first, last = self._scores()
        groups = torch.arange(tags.shape[2], device=tags.device)
        real = mask[:, :, None]
        emitted = emissions.gather(3, tags[..., None])[..., 0]
        moved = moves[groups, tags[:, :-1], tags[:, 1:]]
        end = tags[torch.arange(len(tags), device=tags.device), mask.sum(1) - 1]
        total = (emitted * real).sum(1) + (moved * real[:, 1:]).sum(1)
        return total + first[groups, tags[:, 0]] + last[groups, end]

    def log_likelihood(self, emissions: Tensor, mask: Tensor, tags: Tensor, forward_sums: Tensor) -> Tensor:
        """(sequences, groups): log probability of `tags`."""
        return self.path_scores(emissions, mask, tags) - self.partition(forward_sums)

    def log_marginals(self, emissions: Tensor, mask: Tensor, forward_sums: Tensor) -> Tensor:
        """(sequences, words, groups, tags): log probability of each tag at each word; rows beyond mask mean nothing."""
        joint = forward_sums + self.backward_sums(emissions, mask)
        return joint - self.partition(forward_sums)[:, None, :, None]

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(sequences, words, groups) best tags; words beyond the mask are outside."""
        moves, first, last = self._scores()
        best = emissions[:, 0] + first
        came: list[Tensor] = []
        for at in range(1, emissions.shape[1]):
            step, source = (best[..., :, None] + moves).max(dim=-2)
            real = mask[:, at, None, None]
            same = torch.arange(step.shape[-1], device=step.device).expand_as(source)
            best = torch.where(real, step + emissions[:, at], best)
            came.append(torch.where(real, source, same))
        tag = (best + last).argmax(dim=-1)
        tags = [tag]
        for source in reversed(came):
            tag = source.gather(-1, tag[..., None])[..., 0]
            tags.append(tag)
        path = torch.stack(tags[::-1], dim=1)
        return torch.where(mask[:, :, None], path, OUTSIDE)
