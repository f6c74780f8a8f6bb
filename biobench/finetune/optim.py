"""AdamW with a linear schedule, and the gradient of the token embedding kept in place.

Only the rows of the tokens in the batch have a gradient. The embedding gives it sparse; it is written into
one buffer that lives as long as the run, so that no step allocates and clears a table of vocabulary x width.
The update itself is the dense AdamW update of every row.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from biobench.schema.task import Training


def parameter_groups(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """No decay on biases and norms (everything with fewer than two dimensions)."""
    trained = [p for p in network.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]


def make_optimizer(network: nn.Module, recipe: Training) -> torch.optim.AdamW:
    """AdamW as the recipe says."""
    return torch.optim.AdamW(
        parameter_groups(network, recipe.weight_decay),
        lr=recipe.learning_rate,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        eps=recipe.adam_epsilon,
        fused=True,
    )


def rate(step: int, total: int, recipe: Training) -> float:
    """Learning rate of optimiser step `step` (0-based): linear warm-up, then linear to 0."""
    warmup = round(total * recipe.warmup_ratio)
    if step < warmup:
        return recipe.learning_rate * step / max(1, warmup)
    return recipe.learning_rate * max(0.0, (total - step) / max(1, total - warmup))


class EmbeddingGradient:
    """Moves the sparse gradient of an embedding into a dense buffer that is reused.

    Call `collect` after the last backward of a step: the embedding's grad is then dense.
    """

    def __init__(self, embedding: nn.Embedding) -> None:
        self.embedding = embedding
        embedding.sparse = True
        self._buffer = torch.zeros_like(embedding.weight)
        self._rows: Tensor | None = None

    def collect(self) -> None:
        """Write this step's rows; rows of the step before are cleared."""
        sparse = self.embedding.weight.grad
        if self._rows is not None:
            self._buffer[self._rows] = 0.0
            self._rows = None
        if sparse is not None and sparse.is_sparse:
            sparse = sparse.coalesce()
            self._rows = sparse.indices()[0]
            self._buffer[self._rows] = sparse.values()
        self.embedding.weight.grad = self._buffer


def all_finite(values: Iterable[float]) -> bool:
    """True when no value is NaN or infinite."""
    return all(v == v and abs(v) != float("inf") for v in values)
