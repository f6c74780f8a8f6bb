"""A probe trained on cached states: for each learning rate once, the one with the best validation score kept."""

from __future__ import annotations

import copy
import time

import numpy as np
import torch
from torch import Tensor, nn

from biobench.encode.batches import epoch_order, steps_per_epoch
from biobench.errors import TrainingError
from biobench.finetune.features import Features, unit_bounds
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.predict import decide
from biobench.finetune.prepare import Prepared
from biobench.kinds import Answers, Split
from biobench.models.encoder import Encoder
from biobench.models.probe import ProbeHead
from biobench.schema.record import CurvePoint
from biobench.schema.record import Training as TrainingRecord


class _Attempt:
    """One learning rate: the best weights on validation, their score and threshold, and the curve."""

    def __init__(self, head: ProbeHead) -> None:
        self.head = head
        self.threshold = 0.5
        self.score = -2.0  # below every score, correlations included
        self.step = 0
        self.curve: list[CurvePoint] = []


def train_probe(features: Features, prepared: Prepared, seed: int, encoder: Encoder, progress: Progress) -> Outcome:
    """Train the spec's probe with this seed; the encoder only names width, device and attention.

    The same seed draws the same initial weights and batches for every learning rate. Raises TrainingError
    where no learning rate gives a finite loss.
    """
    began = time.perf_counter()
    probe = prepared.spec.probe
    assert probe is not None
    device = encoder.device
    states = {name: value.to(device) for name, value in features.states.items()}
    real = {name: value.to(device) for name, value in features.real.items()}
    steps = steps_per_epoch(len(prepared.train.encoded), probe.batch_size) * probe.epochs
    best: _Attempt | None = None
    backoffs = list(features.backoffs)
    for number, learning_rate in enumerate(probe.learning_rates):
        torch.manual_seed(seed)
        head = ProbeHead(encoder.width, len(prepared.outputs), probe).to(device)
        if probe.standardise:
            head.standardise(states["train"], real["train"])
        done = (number * steps, len(probe.learning_rates) * steps)
        attempt = _train(head, prepared, states, real, seed, learning_rate, done, progress)
        if attempt is None:
            backoffs.append(f"the loss is not finite at learning rate {learning_rate:g}: left out")
        elif best is None or attempt.score > best.score:
            best = attempt
    if best is None:
        raise TrainingError("no learning rate gives a finite loss", hint="lower --set probe.learning_rates")
    train_seconds = time.perf_counter() - began
    testing = time.perf_counter()
    chances = _probabilities(best.head, prepared, prepared.test, states["test"], real["test"])
    predictions = decide(prepared, prepared.test, chances, best.threshold)
    record = TrainingRecord(
        steps=len(probe.learning_rates) * steps,
        best_step=best.step,
        curve=tuple(best.curve),
        precision=features.precision,
        attention=encoder.attention,
        batch_size=probe.batch_size,
        micro_batch_tokens=features.budget,
        backoffs=tuple(backoffs),
        threshold=best.threshold if prepared.kind.thresholds else None,
    )
    # The states are computed once for all seeds; each run's cost names them whole, as if it stood alone.
    return Outcome(
        predictions,
        record,
        features.seconds + train_seconds,
        time.perf_counter() - testing,
        features.tokens,
        best.score,
        best.threshold,
    )


def _train(
    head: ProbeHead,
    prepared: Prepared,
    states: dict[str, Tensor],
    real: dict[str, Tensor],
    seed: int,
    learning_rate: float,
    place: tuple[int, int],
    progress: Progress,
) -> _Attempt | None:
    """The best epoch on validation (the earliest of equal ones); None where the loss is not finite."""
    probe = prepared.spec.probe
    assert probe is not None
    split, kind = prepared.train, prepared.kind
    weights = kind.weights(prepared.spec, split)
    weights = None if weights is None else weights.to(states["train"].device)
    bounds = unit_bounds(split, words=kind.words)
    optimizer = torch.optim.AdamW(head.parameters(), lr=learning_rate, weight_decay=probe.weight_decay)
    per_epoch = steps_per_epoch(len(split.encoded), probe.batch_size)
    total, step = per_epoch * probe.epochs, 0
    attempt = _Attempt(head)
    for epoch in range(probe.epochs):
        head.train(True)
        losses: list[float] = []
        for batch in epoch_order(split.lengths, probe.batch_size, seed, epoch, "random"):
            rate = learning_rate * (1 - step / total)
            for group in optimizer.param_groups:
                group["lr"] = rate
            units = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in batch])
            chosen = torch.from_numpy(units).to(states["train"].device)
            logits = head(states["train"][chosen], real["train"][chosen])
            targets = [split.targets[i] for i in batch]
            loss = kind.loss(prepared.spec, logits, targets, weights) / max(kind.terms(prepared.spec, targets, ()), 1)
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                return None
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            step += 1
        progress(place[0] + step, place[1], f"probe, learning rate {learning_rate:g}")
        chances = _probabilities(head, prepared, prepared.validation, states["validation"], real["validation"])
        threshold = kind.threshold(prepared, prepared.validation, chances)
        predictions = decide(prepared, prepared.validation, chances, threshold)
        scores = prepared.score(prepared.validation.documents, predictions).values
        attempt.curve.append(
            CurvePoint(
                step=step,
                epoch=float(epoch + 1),
                train_loss=sum(losses) / len(losses),
                validation=kind.curve(scores),
                learning_rate=rate,
            )
        )
        if scores[prepared.spec.selection] > attempt.score:
            attempt.score, attempt.step, attempt.threshold = scores[prepared.spec.selection], step, threshold
            attempt.head = copy.deepcopy(head)
    return attempt


@torch.inference_mode()
def _probabilities(head: ProbeHead, prepared: Prepared, split: Split, states: Tensor, real: Tensor) -> Answers:
    """What the probe says of each window, in the form that `decide` takes."""
    head.train(False)
    parts = [head(*part) for part in zip(torch.split(states, 256), torch.split(real, 256), strict=True)]
    rows = torch.cat([prepared.kind.probabilities(logits) for logits in parts]) if len(states) else torch.zeros(0)
    return prepared.kind.by_window(rows.cpu().numpy(), split.encoded)
