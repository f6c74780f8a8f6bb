"""A small task, encoded for a tiny encoder, that every engine test trains on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune import loop
from biobench.finetune.engine import LoadedEncoder, load_encoder
from biobench.finetune.network import Network, copied_weights
from biobench.finetune.prepare import Prepared, prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from tests.helpers.checkpoints import make_checkpoint
from tests.helpers.tiny import make_tiny_encoder

Setup = Callable[..., tuple[LoadedEncoder, Prepared]]


def silent(done: int, total: int, what: str) -> None:
    """A listener that shows no progress."""


class Stage:
    """The loop with scripted validation scores; keeps the weights that each decision saw, and its
    threshold.
    """

    def __init__(
        self, patch: pytest.MonkeyPatch, scores: list[float], thresholds: list[float] | None = None
    ) -> None:
        self.validated: list[dict[str, torch.Tensor]] = []
        self.tested: list[dict[str, torch.Tensor]] = []
        self.used: list[float] = []
        self.scores = iter(scores)
        patch.setattr(loop, "probabilities", self._probabilities)
        patch.setattr(loop, "decide", lambda *arguments: self.used.append(arguments[-1]))
        patch.setattr(Prepared, "score", lambda *_: self._score(next(self.scores)))
        if thresholds:
            patch.setattr(loop, "threshold_of", Mock(side_effect=thresholds))

    def _probabilities(self, network: Network, prepared: Prepared, split: Any, *_: Any) -> None:
        seen = self.tested if split is prepared.test else self.validated
        seen.append(copied_weights(network))

    def _score(self, value: float) -> Any:
        return SimpleNamespace(values={"macro_f1": -value, "micro_f1": value, "weighted_f1": 0.5})


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of the random checkpoint of a family, made once; a folder that exists already is
    itself.
    """
    root = tmp_path_factory.mktemp("families")

    def folder(family: str) -> Path:
        path = root / family
        if path.exists():
            return path
        return make_tiny_encoder(path) if family == "tiny" else make_checkpoint(family, path)

    return folder


@pytest.fixture
def setup(folders: Callable[[str], Path]) -> Setup:
    """`setup(family, task, *overrides, limit=, folder=)`: a loaded encoder and the encoded task."""

    def make(
        family: str, task: str, *overrides: str, limit: int | None = 48, folder: Path | None = None
    ) -> tuple[LoadedEncoder, Prepared]:
        loaded_task = load_task(task, ["training.precision=fp32", *overrides])
        data = load_data(loaded_task, folder, limit)
        checkpoint = find_checkpoint(str(folders(family)))
        tokenizer = load_tokenizer(checkpoint)
        size = window(tokenizer, checkpoint.config, loaded_task.spec.protocol.max_length)
        return load_encoder(checkpoint, torch.device("cpu")), prepare(
            loaded_task.spec, data, tokenizer, size
        )

    return make


@pytest.fixture
def no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout that drops nothing, in modules and in attention."""
    import biobench.models.dropout as dropout
    import biobench.models.grouped as grouped
    from biobench.models.dropout import Dropout

    whole = grouped.scaled_dot_product_attention

    def kept(*arguments: object, **options: object) -> torch.Tensor:
        return whole(*arguments, **{**options, "dropout_p": 0.0})  # type: ignore[arg-type]

    monkeypatch.setattr(grouped, "scaled_dot_product_attention", kept)
    # The node with dropout runs, at a threshold that every draw passes.
    for module in (dropout, grouped):
        monkeypatch.setattr(module, "threshold", lambda rate: (-(1 << 15), 1.0))
    for kind in (torch.nn.Dropout, Dropout):
        monkeypatch.setattr(kind, "forward", lambda _, states: states)
