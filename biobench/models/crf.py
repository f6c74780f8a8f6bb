"""Linear-chain CRFs over many label groups at once: likelihood, marginals, best paths.

A group is an independent chain on the same words: the tagger of nested spans has one of five tags
(O, I, B, L, U) for each type.
Scans run over words; sequences, groups and both directions are one batch. Recursions: Lafferty,
McCallum and Pereira, "Conditional random fields", ICML 2001; the forward and backward sums in log
space.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

OUTSIDE, INSIDE, BEGIN, LAST, UNIT = range(5)
TAGS = 5
_FORBIDDEN = -1e4
"""Score of a move that the structure does not allow: finite, so that sums of them stay numbers."""


class PathSums(NamedTuple):
    """Log sums over paths. Rows of words beyond the mask mean nothing.

    forward: (sequences, words, groups, tags), of paths that end in a tag at a word, its emission
    included.
    backward: the same of paths that begin there. total: (sequences, groups), of all paths.
    """

    forward: Tensor
    backward: Tensor
    total: Tensor


def turn(mask: Tensor) -> Tensor:
    """(sequences, words): the places that put the words of each sequence in reverse; padding stays
    where it is.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)[None]
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - positions, positions)


class LinearCRF(nn.Module):
    """Chains with learnt moves. emissions: (sequences, words, groups, tags); mask: (sequences,
    words), True first.

    Every sequence has at least one word.
    """

    forbidden_moves: Tensor
    forbidden_first: Tensor
    forbidden_last: Tensor

    def __init__(self, groups: int) -> None:
        super().__init__()
        tag = torch.arange(TAGS)
        open_after = torch.isin(tag, torch.tensor([INSIDE, BEGIN]))
        open_before = torch.isin(tag, torch.tensor([INSIDE, LAST]))
        self.moves = nn.Parameter(torch.zeros(groups, TAGS, TAGS))
        self.first = nn.Parameter(torch.zeros(groups, TAGS))
        self.last = nn.Parameter(torch.zeros(groups, TAGS))
        moves = open_after[:, None] != open_before[None]
        self.register_buffer("forbidden_moves", moves.float() * _FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_first", open_before.float() * _FORBIDDEN, persistent=False)
        self.register_buffer("forbidden_last", open_after.float() * _FORBIDDEN, persistent=False)

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return (
            self.moves + self.forbidden_moves,
            self.first + self.forbidden_first,
            self.last + self.forbidden_last,
        )

    def sums(self, emissions: Tensor, mask: Tensor) -> PathSums:
        """The sums of both directions, in one scan: the backward one is the forward one of the
        turned sequences.
        """
        moves, first_scores, last_scores = self._scores()
        rows = torch.arange(len(mask), device=mask.device)[:, None]
        turned = turn(mask)
        both = torch.stack([emissions, emissions[rows, turned]])
        # The tags come first and the chains last, so that every step works on long rows:
        # (words, tags, 2, sequences, groups).
        both = both.permute(2, 4, 0, 1, 3).contiguous()
        between = torch.stack([moves, moves.transpose(1, 2)]).permute(2, 3, 0, 1)[:, :, :, None]
        begins = torch.stack([first_scores, last_scores]).permute(2, 0, 1)[:, :, None]
        sums = both[0] + begins
        steps = [sums]
        for emitted in both[1:]:
            sums = torch.logsumexp(sums[:, None] + between, dim=0) + emitted
            steps.append(sums)
        forward, backward = torch.stack(steps).permute(2, 3, 0, 4, 1)
        backward = backward[rows, turned]
        total = torch.logsumexp(backward[:, 0] + first_scores, dim=-1)
        return PathSums(forward, backward, total)

    def log_likelihood(
        self, emissions: Tensor, mask: Tensor, tags: Tensor, sums: PathSums
    ) -> Tensor:
        """(sequences, groups): log probability of `tags` (sequences, words, groups).

        Differentiable once, whether or not the sums are.

        The gradient of the log sum over all paths is the chance of each tag and move, so it needs
        no way back through the scan.
        """
        moves, first_scores, last_scores = self._scores()
        rows = torch.arange(len(tags), device=tags.device)
        groups = torch.arange(tags.shape[2], device=tags.device)
        ends_at = mask.sum(1) - 1
        with torch.no_grad():
            # Masked before they are raised: what stands beyond the mask may be too large.
            beyond = ~mask[:, :, None, None]
            chance = self.log_marginals(emissions, sums).masked_fill(beyond, -torch.inf).exp()
            pairs = sums.forward[:, :-1, :, :, None] + moves + sums.backward[:, 1:, :, None, :]
            pairs = pairs - sums.total[:, None, :, None, None]
            moved = pairs.masked_fill(beyond[:, 1:, ..., None], -torch.inf).exp().sum(1)
            ends = chance[rows, ends_at]
        expected = (chance * emissions).sum((1, 3)) + (moved * moves).sum((2, 3))
        expected = expected + (chance[:, 0] * first_scores).sum(2) + (ends * last_scores).sum(2)
        total = sums.total.detach() + (expected - expected.detach())
        real = mask[:, :, None]
        emitted = emissions.gather(3, tags[..., None])[..., 0]
        moved = moves[groups, tags[:, :-1], tags[:, 1:]]
        score = (emitted * real).sum(1) + (moved * real[:, 1:]).sum(1)
        return (
            score
            + first_scores[groups, tags[:, 0]]
            + last_scores[groups, tags[rows, ends_at]]
            - total
        )

    def log_marginals(self, emissions: Tensor, sums: PathSums) -> Tensor:
        """(sequences, words, groups, tags): log probability of each tag at each word; rows beyond
        mask mean nothing.
        """
        return sums.forward + sums.backward - emissions - sums.total[:, None, :, None]

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(sequences, words, groups) best tags; words beyond the mask are outside."""
        moves, first_scores, last_scores = self._scores()
        best = emissions[:, 0] + first_scores
        came: list[Tensor] = []
        for at in range(1, emissions.shape[1]):
            step, source = (best[..., :, None] + moves).max(dim=-2)
            real = mask[:, at, None, None]
            unmoved = torch.arange(step.shape[-1], device=step.device).expand_as(source)
            best = torch.where(real, step + emissions[:, at], best)
            came.append(torch.where(real, source, unmoved))
        tag = (best + last_scores).argmax(dim=-1)
        tags = [tag]
        for source in reversed(came):
            tag = source.gather(-1, tag[..., None])[..., 0]
            tags.append(tag)
        path = torch.stack(tags[::-1], dim=1)
        return torch.where(mask[:, :, None], path, OUTSIDE)
