"""How alike two texts are, by the cosine of their states alone; nothing is learned from any document."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from torch.nn.functional import normalize
from transformers import PreTrainedTokenizerBase

from biobench.core.machine import Precision
from biobench.encode.tokens import encode_documents
from biobench.errors import TrainingError
from biobench.finetune.features import Features, extract
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.predict import decide
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint
from biobench.kinds import Answers, Split
from biobench.models.encoder import Encoder
from biobench.schema.record import CurvePoint, TrainingRecord


def compare_texts(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    keep: Savepoint | None = None,
) -> Outcome:
    """Each text of a pair is encoded by itself and pooled; a cosine of -1 is the scale's low end, 1 its high one.

    Correlations do not depend on that map; errors do. Raises TrainingError where a document is no pair.
    """
    window = prepared.windows.max_length
    halves: dict[str, Split] = {}
    for name in ("validation", "test"):
        documents = getattr(prepared, name).documents
        if any(not d.query for d in documents):
            raise TrainingError(
                "probe.kind 'similarity' compares two texts, and a document has one", hint="use --set probe.kind=linear"
            )
        for side in ("query", "text"):
            texts = [replace(d, text=getattr(d, side), query="", tokens=(), tags=()) for d in documents]
            encoded = encode_documents(texts, tokenizer, window, words=False)
            places = [[i] for i in range(len(texts))]
            halves[f"{name} {side}"] = Split(texts, texts, encoded, [], [len(e) for e in encoded], places)
    features = extract(encoder, prepared, precision, progress, halves, keep)

    def answers(name: str) -> list[np.ndarray]:
        states = [features.states[f"{name} {side}"][:, 0].float() for side in ("query", "text")]
        first, second = (normalize(rows, dim=-1) for rows in states)
        return list((((first * second).sum(-1, keepdim=True) + 1) / 2).numpy())

    return features.mark(without_training(prepared, features, encoder, answers))


def without_training(
    prepared: Prepared, features: Features, encoder: Encoder, answers: Callable[[str], Answers]
) -> Outcome:
    """The outcome of answers that no document was trained for. answers: of the split with this name."""
    began = time.perf_counter()
    probe = prepared.spec.probe
    assert probe is not None
    validated = decide(prepared, prepared.validation, answers("validation"), 0.5)
    scores = prepared.score(prepared.validation.documents, validated).values
    point = {"step": 1, "epoch": 0.0, "train_loss": 0.0, "learning_rate": 0.0}
    record = TrainingRecord(
        steps=1,
        best_step=1,
        curve=(CurvePoint.model_validate({**point, "validation": prepared.kind.curve(scores)}),),
        precision=features.precision,
        attention=encoder.attention,
        batch_size=probe.batch_size,
        micro_batch_tokens=features.budget,
        backoffs=tuple(features.backoffs),
    )
    predictions = decide(prepared, prepared.test, answers("test"), 0.5)
    seconds = time.perf_counter() - began
    return Outcome(
        predictions, record, 0.0, features.seconds + seconds, features.tokens, scores[prepared.spec.selection]
    )
