"""Answers from a frozen encoder's states: a trained probe, the cosine of two texts, or the nearest
known names.

A probe is trained by the fine-tuning loop on cached states, for each learning rate once; the best
on validation is used. The other two learn nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import PreTrainedTokenizerBase

from biobench.core.arrays import Array, ints
from biobench.core.machine import Precision
from biobench.encode.tokens import Encoded, encode_documents
from biobench.errors import TrainingError
from biobench.finetune.features import Features, extract
from biobench.finetune.loop import NonFiniteLossError, Outcome, Progress, Run
from biobench.finetune.network import Network, chosen_seed, decide
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import NOT_KEPT, Savepoint
from biobench.kinds import Answers, Split
from biobench.kinds.synonyms import first_concepts
from biobench.models.encoder import Attention, Encoder
from biobench.models.heads import ProbeHead
from biobench.schema.document import Document
from biobench.schema.record import CurvePoint, TrainingRecord
from biobench.schema.training import Probe, Training

_WHOLE_BATCH = 2**40
"""Tokens of a micro-batch: cached states of a batch are few, so a batch is never cut."""
_CHUNK = 256
"""Units that are answered at once."""
Cached = dict[str, tuple[Tensor, Tensor]]


class ProbeNetwork(Network):
    """A head on cached states in the place of an encoder with a head; the encoder has no part in
    it.
    """

    def __init__(
        self, encoder: Encoder, head: nn.Module, features: Features, cached: Cached
    ) -> None:
        """cached: the features' states and which are real, on the encoder's device."""
        nn.Module.__init__(self)
        # named for its device; its weights are neither trained nor kept
        self.__dict__["encoder"] = encoder
        self.head = head
        self.cached = cached
        self.units: dict[int, tuple[str, int, int]] = {}
        for name, split in features.splits.items():
            for window, (begin, end) in zip(
                split.encoded, pairwise(features.bounds[name]), strict=True
            ):
                self.units[id(window)] = (name, begin, end)

    @property
    def attention(self) -> Attention:
        """Batches keep their order."""
        return "packed"

    def forward(self, encoded: Sequence[Encoded]) -> Tensor:
        """(units, outputs) logits in fp32 of windows of one split, in their order."""
        splits, begins, ends = zip(*(self.units[id(window)] for window in encoded), strict=True)
        numbers = np.concatenate(list(map(np.arange, begins, ends)))
        rows = torch.from_numpy(numbers).to(self.device)
        all_states, all_real = self.cached[splits[0]]
        states = all_states[rows]
        real = all_real[rows]
        if self.training:
            return self.head(states, real)  # type: ignore[no-any-return]
        chunks = zip(torch.split(states, _CHUNK), torch.split(real, _CHUNK), strict=True)
        return torch.cat([self.head(*chunk) for chunk in chunks])


class ProbeRun(Run):
    """One learning rate of a probe: AdamW that decays all weights alike, and a rate that falls by
    the step to 0.
    """

    def optimizer(self) -> torch.optim.Optimizer:
        """A fresh optimiser of the head."""
        return torch.optim.AdamW(
            self.network.parameters(),
            lr=self.recipe.learning_rate,
            weight_decay=self.recipe.weight_decay,
        )

    def rate(self, step: int) -> float:
        """Learning rate of optimiser step `step` (0-based)."""
        return self.recipe.learning_rate * (1 - step / self.total)


def train_probe(
    features: Features, prepared: Prepared, seed: int, encoder: Encoder, progress: Progress
) -> Outcome:
    """Train the spec's probe with this seed; the encoder only names width, device and attention.

    The same seed draws the same initial weights and batches for every learning rate. Raises
    TrainingError where no learning rate gives a finite loss.
    """
    began = time.perf_counter()
    probe = prepared.probe
    training = prepared.spec.training
    cached: Cached = {}
    for split, states in features.states.items():
        cached[split] = (states.to(encoder.device), features.real[split].to(encoder.device))
    best: Run | None = None
    backoffs = list(features.backoffs)
    trials = len(probe.learning_rates)
    for number, learning_rate in enumerate(probe.learning_rates):
        torch.manual_seed(chosen_seed(training.head_seed, seed))
        head = ProbeHead(encoder.width, len(prepared.outputs), probe).to(encoder.device)
        network = ProbeNetwork(encoder, head, features, cached)
        if probe.standardise:
            head.standardise(*cached["train"])
        tell = _trial_progress(progress, number, trials, f"probe, learning rate {learning_rate:g}")
        recipe = probe_recipe(training, probe, learning_rate)
        trial = replace(prepared, spec=prepared.spec.model_copy(update={"training": recipe}))
        run = ProbeRun(network, trial, seed, "fp32", _WHOLE_BATCH, backoffs, tell)
        try:
            run.fit()
        except NonFiniteLossError:
            backoffs.append(f"the loss is not finite at learning rate {learning_rate:g}: skipped")
            continue
        if best is None or run.state.best_score > best.state.best_score:
            best = run
    if best is None:
        raise TrainingError(
            "no learning rate gives a finite loss", hint="lower --set probe.learning_rates"
        )
    train_seconds = time.perf_counter() - began
    testing = time.perf_counter()
    outcome = best.finish(stopped=False)
    outcome.record = outcome.record.model_copy(
        update={
            "steps": trials * best.total,
            "precision": features.precision,
            "attention": encoder.attention,
            "micro_batch_tokens": features.budget,
        }
    )
    # The states are computed once for all seeds; each run's cost names them whole, as if it stood
    # alone.
    outcome.train_seconds = features.seconds + train_seconds
    outcome.evaluation_seconds = time.perf_counter() - testing
    outcome.train_tokens = features.tokens
    outcome.network = None
    return outcome


def _trial_progress(progress: Progress, number: int, trials: int, name: str) -> Progress:
    """What hears of one of several equal trials, and reports it as a part of all."""

    def tell(done: int, total: int, stage: str) -> None:
        progress(number * total + done, trials * total, f"{name}: {stage}")

    return tell


def probe_recipe(training: Training, probe: Probe, learning_rate: float) -> Training:
    """The recipe by which the loop trains a probe; the task's weights of positives and seed of the
    order stay.
    """
    return Training(
        epochs=probe.epochs,
        learning_rate=learning_rate,
        batch_size=probe.batch_size,
        weight_decay=probe.weight_decay,
        encoder="frozen",
        positive_weights=training.positive_weights,
        order_seed=training.order_seed,
    )


def compare_texts(
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    prepared: Prepared,
    precision: Precision,
    progress: Progress,
    keep: Savepoint = NOT_KEPT,
) -> Outcome:
    """Each text of a pair is encoded by itself and pooled; a cosine of -1 is the scale's low end, 1
    its high one.

    Correlations do not depend on that map; errors do. Raises TrainingError where a document is no
    pair.
    """
    halves: dict[str, Split] = {}
    for name in ("validation", "test"):
        documents = getattr(prepared, name).documents
        for side in ("query", "text"):
            halves[f"{name} {side}"] = _half(documents, side, prepared, tokenizer)
    features = extract(encoder, prepared, precision, progress, halves, keep)

    def answers(name: str) -> list[Array]:
        query = _directions(features, f"{name} query")
        text = _directions(features, f"{name} text")
        cosines = (query * text).sum(-1, keepdim=True)
        return list(((cosines + 1) / 2).numpy())

    outcome = _without_training(prepared, features, encoder, answers)
    features.mark(outcome)
    return outcome


def _half(
    documents: Sequence[Document],
    side: str,
    prepared: Prepared,
    tokenizer: PreTrainedTokenizerBase,
) -> Split:
    """One text of each pair by itself. side: query or text."""
    texts: list[Document] = []
    for document in documents:
        if not document.query:
            raise TrainingError(
                "probe.kind 'similarity' compares two texts, and a document has one",
                hint="use --set probe.kind=linear",
            )
        text = getattr(document, side)
        texts.append(replace(document, text=text, query="", tokens=(), tags=()))
    encoded = encode_documents(texts, tokenizer, prepared.windows.max_length, words=False)
    return Split(
        documents=texts,
        units=texts,
        encoded=encoded,
        targets=[],
        lengths=list(map(len, encoded)),
        windows=[[number] for number in range(len(texts))],
    )


def _directions(features: Features, split: str) -> Tensor:
    """(units, width): the states of a split, of length 1."""
    return normalize(features.states[split][:, 0].float(), dim=-1)


def rank_concepts(features: Features, prepared: Prepared, encoder: Encoder) -> Outcome:
    """For each query the concepts of the candidates, in order of the candidates' cosines with it.

    A concept stands where its most similar candidate stands; equally similar candidates keep their
    order, as do the concepts of one candidate.
    """
    candidates = _directions(features, "train")
    concepts = [target.tolist() for target in prepared.train.targets]

    def answers(name: str) -> list[Array]:
        rows: list[Array] = []
        for chunk in torch.split(_directions(features, name), _CHUNK):
            nearest = torch.argsort(chunk @ candidates.T, dim=-1, descending=True, stable=True)
            for order in nearest.tolist():
                rows.append(ints(first_concepts(order, concepts)))
        return rows

    return _without_training(prepared, features, encoder, answers)


def _without_training(
    prepared: Prepared, features: Features, encoder: Encoder, answers: Callable[[str], Answers]
) -> Outcome:
    """The outcome of answers that no document was trained for. answers: of the split with this
    name.
    """
    began = time.perf_counter()
    validated = decide(prepared, prepared.validation, answers("validation"), 0.5)
    scores = prepared.score(prepared.validation.documents, validated).values
    curve = CurvePoint(
        step=1, epoch=0.0, train_loss=0.0, validation=prepared.kind.curve(scores), learning_rate=0.0
    )
    record = TrainingRecord(
        steps=1,
        best_step=1,
        curve=(curve,),
        precision=features.precision,
        attention=encoder.attention,
        batch_size=prepared.probe.batch_size,
        micro_batch_tokens=features.budget,
        backoffs=tuple(features.backoffs),
    )
    predictions = decide(prepared, prepared.test, answers("test"), 0.5)
    return Outcome(
        predictions,
        record,
        evaluation_seconds=features.seconds + time.perf_counter() - began,
        train_tokens=features.tokens,
        best_score=scores[prepared.spec.selection],
    )
