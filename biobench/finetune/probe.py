"""A probe: the fine-tuning loop on cached states, for each learning rate once; the best on validation is used."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from biobench.encode.tokens import Encoded
from biobench.errors import TrainingError
from biobench.finetune.features import Features, unit_bounds
from biobench.finetune.loop import NonFiniteLossError, Outcome, Progress, Run
from biobench.finetune.network import Network
from biobench.finetune.prepare import Prepared
from biobench.models.encoder import Attention, Encoder
from biobench.models.probe import ProbeHead
from biobench.schema.training import Probe, Training

_WHOLE_BATCH = 2**40
"""Tokens of a micro-batch: cached states of a batch are few, so a batch is never cut."""

_CHUNK = 256
"""Units that are answered at once."""


class CachedStates:
    """The states of every window of a task, by the window."""

    def __init__(self, features: Features, prepared: Prepared, device: torch.device) -> None:
        self.device = device
        self.states = {name: value.to(device) for name, value in features.states.items()}
        self.real = {name: value.to(device) for name, value in features.real.items()}
        self._places: dict[int, tuple[str, int, int]] = {}
        for name in self.states:
            split = getattr(prepared, name)
            bounds = unit_bounds(split, words=prepared.kind.words).tolist()
            for window, begin, end in zip(split.encoded, bounds, bounds[1:], strict=False):
                self._places[id(window)] = (name, begin, end)

    def of(self, windows: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
        """(units, vectors, width) of windows of one split, in their order, and (units, vectors) which are real."""
        places = [self._places[id(window)] for window in windows]
        units = np.concatenate([np.arange(begin, end) for _, begin, end in places])
        rows = torch.from_numpy(units).to(self.device)
        name = places[0][0]
        return self.states[name][rows], self.real[name][rows]


class ProbeNetwork(Network):
    """A head on cached states in the place of an encoder with a head; the encoder has no part in it."""

    def __init__(self, encoder: Encoder, head: nn.Module, cached: CachedStates) -> None:
        nn.Module.__init__(self)
        self.__dict__["encoder"] = encoder  # named for its device; its weights are neither trained nor kept
        self.head = head
        self.cached = cached

    @property
    def attention(self) -> Attention:
        """Batches keep their order."""
        return "packed"

    def forward(self, encoded: Sequence[Encoded]) -> Tensor:
        """(units, outputs) logits in fp32."""
        states, real = self.cached.of(encoded)
        if self.training:
            return self.head(states, real)  # type: ignore[no-any-return]
        parts = zip(torch.split(states, _CHUNK), torch.split(real, _CHUNK), strict=True)
        return torch.cat([self.head(*part) for part in parts])


class ProbeRun(Run):
    """One learning rate of a probe: AdamW that decays all weights alike, and a rate that falls by the step to 0."""

    def optimizer(self) -> torch.optim.Optimizer:
        """A fresh optimiser of the head."""
        return torch.optim.AdamW(
            self.network.parameters(), lr=self.recipe.learning_rate, weight_decay=self.recipe.weight_decay
        )

    def rate(self, step: int) -> float:
        """Learning rate of optimiser step `step` (0-based)."""
        return self.recipe.learning_rate * (1 - step / self.total)


def train_probe(features: Features, prepared: Prepared, seed: int, encoder: Encoder, progress: Progress) -> Outcome:
    """Train the spec's probe with this seed; the encoder only names width, device and attention.

    The same seed draws the same initial weights and batches for every learning rate. Raises TrainingError
    where no learning rate gives a finite loss.
    """
    began = time.perf_counter()
    probe, training = prepared.spec.probe, prepared.spec.training
    assert probe is not None
    cached = CachedStates(features, prepared, encoder.device)
    best: Run | None = None
    backoffs, trials = list(features.backoffs), len(probe.learning_rates)
    for number, learning_rate in enumerate(probe.learning_rates):
        torch.manual_seed(seed if training.head_seed is None else training.head_seed)
        head = ProbeHead(encoder.width, len(prepared.outputs), probe).to(encoder.device)
        if probe.standardise:
            head.standardise(cached.states["train"], cached.real["train"])
        recipe = probe_recipe(training, probe, learning_rate)
        run = ProbeRun(
            ProbeNetwork(encoder, head, cached),
            replace(prepared, spec=prepared.spec.model_copy(update={"training": recipe})),
            seed,
            "fp32",
            _WHOLE_BATCH,
            backoffs,
            _named(progress, learning_rate, number, trials),
        )
        try:
            run.fit()
        except NonFiniteLossError:
            backoffs.append(f"the loss is not finite at learning rate {learning_rate:g}: left out")
            continue
        if best is None or run.state.best_score > best.state.best_score:
            best = run
    if best is None:
        raise TrainingError("no learning rate gives a finite loss", hint="lower --set probe.learning_rates")
    train_seconds = time.perf_counter() - began
    testing = time.perf_counter()
    outcome = best.finish(testing, stopped=False)
    outcome.record = outcome.record.model_copy(
        update={
            "steps": trials * best.total,
            "precision": features.precision,
            "attention": encoder.attention,
            "micro_batch_tokens": features.budget,
        }
    )
    # The states are computed once for all seeds; each run's cost names them whole, as if it stood alone.
    outcome.train_seconds = features.seconds + train_seconds
    outcome.evaluation_seconds = time.perf_counter() - testing
    outcome.train_tokens, outcome.network = features.tokens, None
    return outcome


def probe_recipe(training: Training, probe: Probe, learning_rate: float) -> Training:
    """The recipe by which the loop trains a probe; the task's weights of positives and seed of the order stay."""
    return Training(
        epochs=probe.epochs,
        learning_rate=learning_rate,
        batch_size=probe.batch_size,
        weight_decay=probe.weight_decay,
        encoder="frozen",
        positive_weights=training.positive_weights,
        order_seed=training.order_seed,
    )


def _named(progress: Progress, learning_rate: float, number: int, trials: int) -> Progress:
    def named(done: int, total: int, what: str) -> None:
        progress(number * total + done, trials * total, f"probe, learning rate {learning_rate:g}: {what}")

    return named
