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


class ChainScores(NamedTuple):
    """moves: (groups, tags, tags), from a tag to the next one; first, last: (groups, tags)."""

    moves: Tensor
    first: Tensor
    last: Tensor


def turn(mask: Tensor) -> tuple[Tensor, Tensor]:
    """The index (sequences, words) that puts the words of each sequence in reverse; padding stays
    where it is.
    """
    sequences, words = mask.shape
    rows = torch.arange(sequences, device=mask.device)[:, None]
    positions = torch.arange(words, device=mask.device)[None]
    last_positions = mask.sum(1, keepdim=True) - 1
    return rows, torch.where(mask, last_positions - positions, positions)


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

    def _scores(self) -> ChainScores:
        return ChainScores(
            moves=self.moves + self.forbidden_moves,
            first=self.first + self.forbidden_first,
            last=self.last + self.forbidden_last,
        )

    def sums(self, emissions: Tensor, mask: Tensor) -> PathSums:
        """The sums of both directions, in one scan: the backward one is the forward one of the
        turned sequences.
        """
        scores = self._scores()
        turned = turn(mask)
        both = torch.stack([emissions, emissions[turned]])
        # The tags come first and the chains last, so that every step works on long rows:
        # (words, tags, 2, sequences, groups).
        both = both.permute(2, 4, 0, 1, 3).contiguous()
        moves = torch.stack([scores.moves, scores.moves.transpose(1, 2)])
        moves = moves.permute(2, 3, 0, 1)[:, :, :, None]
        begins = torch.stack([scores.first, scores.last])
        begins = begins.permute(2, 0, 1)[:, :, None]
        sums = both[0] + begins
        steps = [sums]
        for emitted in both[1:]:
            arriving = torch.logsumexp(sums[:, None] + moves, dim=0)
            sums = arriving + emitted
            steps.append(sums)
        forward, backward = torch.stack(steps).permute(2, 3, 0, 4, 1)
        backward = backward[turned]
        total = torch.logsumexp(backward[:, 0] + scores.first, dim=-1)
        return PathSums(forward, backward, total)

    def log_likelihood(
        self, emissions: Tensor, mask: Tensor, tags: Tensor, sums: PathSums
    ) -> Tensor:
        """(sequences, groups): log probability of `tags` (sequences, words, groups).

        Differentiable once, whether or not the sums are.

        The gradient of the log sum over all paths is the chance of each tag and move, so it needs
        no way back through the scan.
        """
        scores = self._scores()
        with torch.no_grad():
            # Masked before they are raised: what stands beyond the mask may be too large.
            beyond = ~mask[:, :, None, None]
            tag_chances = self.log_marginals(emissions, sums)
            tag_chances = tag_chances.masked_fill(beyond, -torch.inf).exp()
            move_chances = _log_moves(scores.moves, sums)
            move_chances = move_chances.masked_fill(beyond[:, 1:, ..., None], -torch.inf).exp()
            moves_taken = move_chances.sum(1)
            at_end = _at_last_word(tag_chances, mask)
        of_words = (tag_chances * emissions).sum((1, 3))
        of_moves = (moves_taken * scores.moves).sum((2, 3))
        of_begin = (tag_chances[:, 0] * scores.first).sum(2)
        of_end = (at_end * scores.last).sum(2)
        expected = (of_words + of_moves) + (of_begin + of_end)
        total = sums.total.detach() + (expected - expected.detach())
        return _path_score(scores, emissions, mask, tags) - total

    def log_marginals(self, emissions: Tensor, sums: PathSums) -> Tensor:
        """(sequences, words, groups, tags): log probability of each tag at each word; rows beyond
        mask mean nothing.
        """
        return sums.forward + sums.backward - emissions - sums.total[:, None, :, None]

    @torch.no_grad()
    def viterbi(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """(sequences, words, groups) best tags; words beyond the mask are outside."""
        scores = self._scores()
        same_tag = torch.arange(TAGS, device=emissions.device)
        best = emissions[:, 0] + scores.first
        came_from: list[Tensor] = []
        for word in range(1, emissions.shape[1]):
            arriving = best[..., :, None] + scores.moves
            step, source = arriving.max(dim=-2)
            real = mask[:, word, None, None]
            best = torch.where(real, step + emissions[:, word], best)
            came_from.append(torch.where(real, source, same_tag))
        tag = (best + scores.last).argmax(dim=-1)
        tags = [tag]
        for source in reversed(came_from):
            tag = source.gather(-1, tag[..., None])[..., 0]
            tags.append(tag)
        path = torch.stack(tags[::-1], dim=1)
        return torch.where(mask[:, :, None], path, OUTSIDE)


def _log_moves(moves: Tensor, sums: PathSums) -> Tensor:
    """(sequences, words - 1, groups, tags, tags): log probability of each move between two
    words; those that end beyond the mask mean nothing.
    """
    arriving = sums.forward[:, :-1, :, :, None]
    leaving = sums.backward[:, 1:, :, None, :]
    total = sums.total[:, None, :, None, None]
    return arriving + moves + leaving - total


def _path_score(scores: ChainScores, emissions: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
    """(sequences, groups): the score of the path through these tags."""
    groups = torch.arange(tags.shape[2], device=tags.device)
    real = mask[:, :, None]
    first_tags = tags[:, 0]
    last_tags = _at_last_word(tags, mask)
    emitted = emissions.gather(3, tags[..., None])[..., 0]
    moved = scores.moves[groups, tags[:, :-1], tags[:, 1:]]
    of_words = (emitted * real).sum(1)
    of_moves = (moved * real[:, 1:]).sum(1)
    of_begin = scores.first[groups, first_tags]
    of_end = scores.last[groups, last_tags]
    return of_words + of_moves + of_begin + of_end


def _at_last_word(values: Tensor, mask: Tensor) -> Tensor:
    """(sequences, ...): of (sequences, words, ...) those at the last word of each sequence."""
    rows = torch.arange(len(mask), device=mask.device)
    return values[rows, mask.sum(1) - 1]
