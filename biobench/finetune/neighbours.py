"""Answers from the training documents whose pooled states are most similar; nothing is trained."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from biobench.finetune.features import Features
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.predict import decide
from biobench.finetune.prepare import Prepared
from biobench.kinds import Answers
from biobench.models.encoder import Encoder
from biobench.models.probe import ProbeHead
from biobench.schema.record import CurvePoint
from biobench.schema.record import Training as TrainingRecord

_SMALLEST = 1e-6
"""Share of the votes below which no output falls, so that its logarithm is finite."""


def ask_neighbours(features: Features, prepared: Prepared, encoder: Encoder, progress: Progress) -> Outcome:
    """The shares of the neighbours' labels as probabilities, or the mean of their numbers.

    The number of neighbours is that of `probe.neighbours` with the best validation score (the earliest of equal ones).
    Every seed gives the same answers, as nothing is drawn.
    """
    began = time.perf_counter()
    probe, kind = prepared.spec.probe, prepared.kind
    assert probe is not None
    scaler = ProbeHead(encoder.width, 1, probe)
    if probe.standardise:
        scaler.standardise(features.states["train"], features.real["train"])
    units = {
        name: normalize((states[:, 0].float() - scaler.mean) * scaler.scale, dim=-1)
        for name, states in features.states.items()
    }
    votes = torch.from_numpy(_votes(prepared))
    curve: list[CurvePoint] = []
    best, threshold, score = probe.neighbours[0], 0.5, -2.0
    for number, count in enumerate(probe.neighbours):
        progress(number, len(probe.neighbours), f"{count} neighbours")
        answers = _answers(prepared, units["validation"], units["train"], votes, count)
        cut = kind.threshold(prepared, prepared.validation, answers)
        scores = prepared.score(
            prepared.validation.documents, decide(prepared, prepared.validation, answers, cut)
        ).values
        point = {"step": number + 1, "epoch": 0.0, "train_loss": 0.0, "learning_rate": 0.0}
        curve.append(CurvePoint.model_validate({**point, "validation": kind.curve(scores)}))
        if scores[prepared.spec.selection] > score:
            best, threshold, score = count, cut, scores[prepared.spec.selection]
    searched = time.perf_counter() - began
    testing = time.perf_counter()
    answers = _answers(prepared, units["test"], units["train"], votes, best)
    record = TrainingRecord(
        steps=len(probe.neighbours),
        best_step=probe.neighbours.index(best) + 1,
        curve=tuple(curve),
        precision=features.precision,
        attention=encoder.attention,
        batch_size=probe.batch_size,
        micro_batch_tokens=features.budget,
        backoffs=tuple(features.backoffs),
        threshold=threshold if kind.thresholds else None,
    )
    return Outcome(
        decide(prepared, prepared.test, answers, threshold),
        record,
        features.seconds + searched,
        time.perf_counter() - testing,
        features.tokens,
        score,
        threshold,
    )


def _votes(prepared: Prepared) -> np.ndarray:
    """(training windows, outputs): 1 at each output of a window's target; the number itself of a numeric kind."""
    targets, outputs = prepared.train.targets, len(prepared.outputs)
    if prepared.kind.numeric:
        return np.asarray(targets, dtype=np.float32)[:, None]
    votes = np.zeros((len(targets), outputs), dtype=np.float32)
    for row, target in zip(votes, targets, strict=True):
        if target.dtype.kind == "f":  # one answer an output
            row[:] = target
        else:
            row[target] = 1.0
    return votes


def _answers(prepared: Prepared, asked: Tensor, known: Tensor, votes: Tensor, count: int) -> Answers:
    """Per window what the neighbours say, in the form that `Kind.predict` takes."""
    rows = []
    for part in torch.split(asked, 256):
        nearest = torch.argsort(part @ known.T, dim=-1, descending=True, stable=True)[:, :count]
        rows.append(votes[nearest].mean(1))
    shares = torch.cat(rows) if rows else torch.zeros(0, votes.shape[1])
    if not prepared.kind.numeric:
        shares = shares.clamp(_SMALLEST, 1 - _SMALLEST)
        # what the kind turns back into these shares
        each = prepared.kind.thresholds or prepared.spec.head.choice == "options"
        shares = shares.logit() if each else shares.log()
    return prepared.kind.by_window(prepared.kind.probabilities(shares).numpy(), prepared.test.encoded)
