"""The CRF against brute force: every path of short chains written out and summed."""

from __future__ import annotations

from itertools import compress, pairwise, product

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from biobench.models.crf import OUTSIDE, TAGS, LinearCRF


class Counting(TorchDispatchMode):
    """Counts the operations that compute, in `count`."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):  # type: ignore[no-untyped-def]
        self.count += not function.is_view
        return function(*arguments, **keywords or {})


def _chain(groups: int, lengths: list[int]) -> tuple:  # type: ignore[type-arg]
    torch.manual_seed(len(lengths) + groups)
    crf = LinearCRF(groups).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return crf, torch.randn(len(lengths), max(lengths), groups, TAGS, dtype=torch.float64), mask


def _paths(crf: LinearCRF, emissions: torch.Tensor, group: int) -> dict:  # type: ignore[type-arg]
    """Score of every allowed path of one chain (words, tags)."""
    scores = {}
    for path in product(range(TAGS), repeat=len(emissions)):
        moves = list(pairwise(path))
        forbidden = crf.forbidden_first[path[0]] + crf.forbidden_last[path[-1]]
        forbidden = forbidden + sum(crf.forbidden_moves[move] for move in moves)
        if forbidden == 0:
            total = crf.first[group, path[0]] + crf.last[group, path[-1]]
            total = total + sum(emissions[at, tag] for at, tag in enumerate(path))
            total = total + sum(crf.moves[group, a, b] for a, b in moves)
            scores[path] = float(total.detach())
    return scores


def test_sums_marginals_and_best_paths_are_those_of_all_paths() -> None:
    groups, lengths = 3, [1, 4, 2, 5]
    crf, emissions, mask = _chain(groups, lengths)
    sums = crf.sums(emissions, mask)
    best = crf.viterbi(emissions, mask)
    marginals = crf.log_marginals(emissions, sums).exp()
    for (row, length), group in product(enumerate(lengths), range(groups)):
        scores = _paths(crf, emissions[row, :length, group], group)
        values = torch.tensor(list(scores.values()), dtype=torch.float64)
        torch.testing.assert_close(sums.total[row, group], values.logsumexp(0), atol=1e-9, rtol=0)
        assert tuple(best[row, :length, group].tolist()) == max(scores, key=lambda p: scores[p])
        assert (best[row, length:, group] == OUTSIDE).all()
        # (paths, words, tags): which tag a path has at each word.
        tags = torch.nn.functional.one_hot(torch.tensor(list(scores)), TAGS)
        wanted = (values.softmax(0)[:, None, None] * tags).sum(0)
        found = marginals[row, :length, group]
        torch.testing.assert_close(found, wanted, atol=1e-9, rtol=0)


def test_likelihood_of_every_path_sums_to_one() -> None:
    crf, emissions, mask = _chain(2, [3])
    sums = crf.sums(emissions, mask)
    total = torch.zeros(1, 2, dtype=torch.float64)
    for path in product(range(TAGS), repeat=3):
        tags = torch.tensor(path)[None, :, None].expand(1, 3, 2)
        total += crf.log_likelihood(emissions, mask, tags, sums).exp()
    assert total[0].tolist() == pytest.approx([1.0, 1.0], abs=1e-9)


def test_the_structure_of_tags() -> None:
    crf, names = LinearCRF(1), "OIBLU"
    for forbidden, allowed in ((crf.forbidden_first, "OBU"), (crf.forbidden_last, "OLU")):
        assert "".join(compress(names, forbidden == 0)) == allowed
    moves = compress(product(names, repeat=2), crf.forbidden_moves.view(-1) == 0)
    wanted = ["OO", "OB", "OU", "II", "IL", "BI", "BL", "LO", "LB", "LU", "UO", "UB", "UU"]
    assert sorted(map("".join, moves)) == sorted(wanted)


@pytest.mark.parametrize("known", [False, True])
def test_gradients_are_right(known: bool) -> None:
    """By differences, of emissions and moves; known: the sums are made without a way back, as in
    training.
    """
    crf, emissions, mask = _chain(2, [3, 2])
    tags = crf.viterbi(emissions, mask)
    moves, first, last = (p.detach().requires_grad_() for p in crf.parameters())

    def loss(*values: torch.Tensor) -> torch.Tensor:
        for name, value in zip(("moves", "first", "last"), values[1:], strict=True):
            del crf._parameters[name]
            setattr(crf, name, value)
            crf._parameters[name] = value  # type: ignore[assignment]
            del crf.__dict__[name]
        with torch.set_grad_enabled(not known):
            sums = crf.sums(values[0], mask)
        return crf.log_likelihood(values[0], mask, tags, sums).sum()

    assert torch.autograd.gradcheck(loss, (emissions.requires_grad_(), moves, first, last))


def test_large_scores_beyond_the_mask_leave_the_gradients_numbers() -> None:
    crf, _, mask = _chain(1, [90, 2])
    crf, emissions = crf.float(), torch.full((2, 90, 1, TAGS), 30.0, requires_grad=True)
    tags = crf.viterbi(emissions, mask)
    crf.log_likelihood(emissions, mask, tags, crf.sums(emissions, mask)).sum().backward()
    assert bool(crf.moves.grad.isfinite().all())


def test_a_word_more_costs_four_operations_with_the_gradient_and_all_sequences_at_once() -> None:
    counts = []
    for words in (60, 61):
        crf, emissions, mask = _chain(10, [words, 7, 30])
        tags = torch.zeros(*mask.shape, 10, dtype=torch.long)
        emissions.requires_grad_()
        with Counting() as counting:
            with torch.no_grad():
                sums = crf.sums(emissions, mask)
            crf.log_likelihood(emissions, mask, tags, sums).sum().backward()
        counts.append(counting.count)
    assert counts[1] - counts[0] <= 4
    assert counts[0] < 300
