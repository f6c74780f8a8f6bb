"""The fine-tuning loop: one network, one task, one seed.

A step takes the recipe's batch whatever the micro-batches; gradients are those of the batch's mean loss.
After each epoch (or every k steps) the validation score decides; the best weights stay in memory and are
the ones that predict the test split. A non-finite loss restarts the run in fp32; an out-of-memory halves
the micro-batch and repeats the step. Both are recorded, and neither changes the effective batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from biobench.encode.batches import cut_packed, cut_padded, epoch_order, steps_per_epoch
from biobench.errors import TrainingError
from biobench.finetune.machine import Precision
from biobench.finetune.network import Network
from biobench.finetune.objective import batch_units, loss_sum, positive_weights
from biobench.finetune.optim import all_finite, make_optimizer, rate
from biobench.finetune.predict import decide, fixed_threshold, probabilities, tune_threshold
from biobench.finetune.prepare import Prepared
from biobench.finetune.vocabulary import UsedRows, trained_rows
from biobench.schema.document import Prediction
from biobench.schema.record import CurvePoint
from biobench.schema.record import Training as TrainingRecord

Progress = Callable[[int, int, str], None]
"""(steps done, steps in all, what is happening)."""

_SMALLEST_BUDGET = 16


class NonFiniteLossError(Exception):
    """The loss became NaN or infinite; caught by the run, which goes on in fp32."""


@dataclass(slots=True)
class Outcome:
    """What a run gave: test predictions, the record of the training, seconds and tokens.

    best_score, threshold, network: the selection score on validation, and the weights that reached it.
    """

    predictions: list[Prediction]
    record: TrainingRecord
    train_seconds: float
    evaluation_seconds: float
    train_tokens: int
    best_score: float = 0.0
    threshold: float = 0.5
    network: Network | None = None


@dataclass(slots=True)
class _State:
    best_score: float = -1.0
    best_step: int = 0
    best_weights: dict[str, Tensor] | None = None
    threshold: float = 0.5
    waited: int = 0
    curve: list[CurvePoint] = field(default_factory=list)
    evaluation_seconds: float = 0.0


class Run:
    """One seed of one task on one network. Use `finetune`."""

    def __init__(
        self,
        network: Network,
        prepared: Prepared,
        seed: int,
        precision: Precision,
        budget: int,
        backoffs: list[str],
        progress: Progress,
    ) -> None:
        self.network = network
        self.prepared = prepared
        self.recipe = prepared.spec.training
        self.seed = seed
        self.precision: Precision = precision
        self.budget = budget
        self.backoffs = backoffs
        self.progress = progress
        self.device = network.encoder.device
        self.rows: UsedRows | None = None
        self.state = _State(threshold=fixed_threshold(prepared.spec.head))
        per_epoch = steps_per_epoch(len(prepared.train.encoded), self.recipe.batch_size)
        self.total = self.recipe.max_steps or per_epoch * (self.recipe.epochs or 1)
        every = self.recipe.evaluate_every
        self.every = per_epoch if every == "epoch" else int(every)
        self.per_epoch = per_epoch
        self.weights = positive_weights(prepared.spec, prepared.train)
        if self.weights is not None:
            self.weights = self.weights.to(self.device)

    def train(self) -> Outcome:
        """Train, restore the best weights, predict the test split."""
        with trained_rows(self.network.encoder, [e.ids for e in self.prepared.train.encoded]) as rows:
            self.rows = rows
            return self._train()

    def _train(self) -> Outcome:
        began = time.perf_counter()
        optimizer = make_optimizer(self.network, self.recipe)
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        losses: list[float] = []
        tokens, step, stopped = 0, 0, False
        for step, batch in enumerate(self._batches(), start=1):
            for group in optimizer.param_groups:
                group["lr"] = rate(step - 1, self.total, self.recipe) * group.get("scale", 1.0)
            losses.append(self._backward(batch))
            if not all_finite(losses[-1:]):
                raise NonFiniteLossError(f"step {step}")
            clip_grad_norm_(parameters, self.recipe.max_grad_norm)
            optimizer.step()
            if self.rows is not None:
                self.rows.decayed(optimizer.param_groups[0]["lr"], self.recipe.weight_decay)
            optimizer.zero_grad(set_to_none=self.device.type != "cpu")
            tokens += sum(self.prepared.train.lengths[i] for i in batch)
            self.progress(step, self.total, f"loss {losses[-1]:.3f}")
            if step % self.every == 0 or step == self.total:
                if self._validate(step, losses):
                    stopped = True
                    break
                losses = []
        return self._finish(began, step, tokens, stopped)

    def _batches(self) -> Iterator[list[int]]:
        """Batches of the whole run, epoch after epoch, cut at the last step."""
        step, epoch = 0, 0
        train = self.prepared.train
        while True:
            for batch in epoch_order(train.lengths, self.recipe.batch_size, self.seed, epoch, self.recipe.batching):
                if step == self.total:
                    return
                yield batch
                step += 1
            epoch += 1

    def _backward(self, batch: list[int]) -> float:
        """Gradients of the batch's mean loss; the loss. Halves the micro-batch when memory does not suffice."""
        while True:
            rng = torch.get_rng_state()
            try:
                return self._backward_once(batch)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                if self.budget <= _SMALLEST_BUDGET or len(batch) == 1:
                    raise TrainingError(
                        "memory does not suffice for a single document",
                        hint="lower --set protocol.max_length, or use a machine with more memory",
                    ) from error
            self.network.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            torch.set_rng_state(rng)
            self.budget = min(self.budget, sum(self.prepared.train.lengths[i] for i in batch)) // 2
            self.backoffs.append(f"out of memory: micro-batch cut to {self.budget} tokens")

    def _backward_once(self, batch: list[int]) -> float:
        split, spec = self.prepared.train, self.prepared.spec
        units = batch_units(spec, [split.targets[i] for i in batch], [len(split.encoded[i].words) for i in batch])
        cut = cut_padded if self.network.attention == "padded" else cut_packed
        total = 0.0
        self.network.train()
        for part in cut(batch, split.lengths, self.budget):
            targets = [split.targets[i] for i in part]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                logits = self.network([split.encoded[i] for i in part])
            loss = loss_sum(spec, logits, targets, self.weights) / max(units, 1)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def _validate(self, step: int, losses: list[float]) -> bool:
        """Score validation, keep the best weights; True when patience is exhausted."""
        began = time.perf_counter()
        split, state = self.prepared.validation, self.state
        self.progress(step, self.total, "validation")
        if self.rows is not None:
            self.rows.write_back()
        chances = probabilities(self.network, self.prepared, split, self.precision, self.budget)
        threshold = fixed_threshold(self.prepared.spec.head)
        if self.prepared.spec.head.threshold == "tuned":
            threshold = tune_threshold(self.prepared, chances)
        scores = self.prepared.score(split.documents, decide(self.prepared, split, chances, threshold)).values
        state.curve.append(
            CurvePoint(
                step=step,
                epoch=round(step / self.per_epoch, 4),
                train_loss=sum(losses) / len(losses),
                validation={k: scores[k] for k in ("macro_f1", "micro_f1", "weighted_f1")},
                learning_rate=rate(step - 1, self.total, self.recipe),
            )
        )
        score = scores[self.prepared.spec.selection]
        if score > state.best_score:
            state.best_score, state.best_step, state.threshold, state.waited = score, step, threshold, 0
            last = step == self.total
            state.best_weights = None if last else {k: v.detach().clone() for k, v in self.network.state_dict().items()}
        else:
            state.waited += 1
        state.evaluation_seconds += time.perf_counter() - began
        return self.recipe.patience is not None and state.waited >= self.recipe.patience

    def _finish(self, began: float, steps: int, tokens: int, stopped: bool) -> Outcome:
        state = self.state
        train_seconds = time.perf_counter() - began - state.evaluation_seconds
        if state.best_weights is not None:
            self.network.load_state_dict(state.best_weights)
        testing = time.perf_counter()
        self.progress(self.total, self.total, "test")
        test = self.prepared.test
        chances = probabilities(self.network, self.prepared, test, self.precision, self.budget)
        predictions = decide(self.prepared, test, chances, state.threshold)
        record = TrainingRecord(
            steps=steps,
            best_step=state.best_step,
            curve=tuple(state.curve),
            precision=self.precision,
            attention=self.network.attention,
            batch_size=self.recipe.batch_size,
            micro_batch_tokens=self.budget,
            backoffs=tuple(self.backoffs),
            threshold=state.threshold if self.prepared.spec.type == "multi_label" else None,
            stopped_early=stopped,
        )
        evaluation = state.evaluation_seconds + time.perf_counter() - testing
        best = (state.best_score, state.threshold, self.network)
        return Outcome(predictions, record, train_seconds, evaluation, tokens, *best)


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error)
