"""The fine-tuning loop: one network, one task, one seed.

A step takes the recipe's batch whatever the micro-batches; gradients are those of the batch's mean loss.
After each epoch (or every k steps) the validation score decides; the best weights stay in memory and are
the ones that predict the test split. A non-finite loss restarts the run in fp32; an out-of-memory halves
the micro-batch and repeats the step. Both are recorded, and neither changes the effective batch. On an
accelerator the host queues steps and reads their losses late, so that the device never waits for it. With a
savepoint the state between two steps is kept on disk, and a run that was killed continues from it, bit by bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from biobench.core.machine import Precision
from biobench.core.memory import is_out_of_memory
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.transfer import is_asynchronous
from biobench.encode.batches import cut_packed, cut_padded, epoch_order, steps_per_epoch
from biobench.errors import TrainingError
from biobench.finetune.adaptation import trained_parameters
from biobench.finetune.network import Network
from biobench.finetune.optim import all_finite, make_optimizer, rate
from biobench.finetune.predict import decide, probabilities
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import Savepoint
from biobench.finetune.vocabulary import UsedRows, trained_rows
from biobench.schema.document import Prediction
from biobench.schema.record import CurvePoint, TrainingRecord

Progress = Callable[[int, int, str], None]
"""(steps done, steps in all, what is happening: text, or a `ProgressNote`)."""


class ProgressNote(str):
    """What is happening, and worth a line that stays."""

    __slots__ = ()


_SMALLEST_BUDGET = 16
READ_EVERY = 50
"""Steps after which their losses are read from an asynchronous device; a loss that is not finite is seen then."""


class NonFiniteLossError(Exception):
    """The loss became NaN or infinite; caught by the run, which continues in fp32."""


class MemoryShortError(TrainingError):
    """Memory does not suffice for the smallest piece of work; where runs share a device, one alone may fit."""


@dataclass(slots=True)
class Outcome:
    """What a run gave: test predictions, the record of the training, seconds and tokens.

    best_score, threshold, network: the selection score on validation, and the weights that reached it.
    earlier_seconds: what of the run's time was spent by processes that were killed, up to their last savepoint.
    """

    predictions: list[Prediction]
    record: TrainingRecord
    train_seconds: float
    evaluation_seconds: float
    train_tokens: int
    best_score: float = 0.0
    threshold: float = 0.5
    network: Network | None = None
    earlier_seconds: float = 0.0


@dataclass(slots=True)
class _State:
    """What changes from step to step, besides weights, optimiser and random numbers."""

    step: int = 0
    tokens: int = 0
    losses: list[float] = field(default_factory=list)
    """Of the steps since the last validation."""
    best_score: float = -2.0
    """Below every score, correlations included."""
    best_step: int = 0
    best_weights: dict[str, Tensor] | None = None
    threshold: float = 0.5
    waited: int = 0
    curve: list[CurvePoint] = field(default_factory=list)
    evaluation_seconds: float = 0.0
    seconds: float = 0.0
    """Of killed processes, writing of savepoints left out."""
    resumed: int = 0
    """How often the state was resumed from disk."""


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
        keep: Savepoint | None = None,
    ) -> None:
        self.network = network
        self.prepared = prepared
        self.recipe = prepared.spec.training
        self.order_seed = seed if self.recipe.order_seed is None else self.recipe.order_seed
        self.precision: Precision = precision
        self.budget = budget
        self.backoffs = backoffs
        self.progress = progress
        self.keep, self.written = keep, 0.0
        self.device = network.encoder.device
        self.rows: UsedRows | None = None
        self.state = _State()
        self.late = is_asynchronous(self.device)
        self.unread: list[Tensor] = []
        """Losses of the last steps, on the device."""
        per_epoch = steps_per_epoch(len(prepared.train.encoded), self.recipe.batch_size)
        self.total = self.recipe.max_steps or per_epoch * (self.recipe.epochs or 1)
        every = self.recipe.evaluate_every
        self.every = per_epoch if every == "epoch" else int(every)
        self.per_epoch = per_epoch
        self.weights = prepared.kind.weights(prepared.spec, prepared.train)
        if self.weights is not None:
            self.weights = self.weights.to(self.device)

    def train(self, saved: dict[str, Any] | None = None) -> Outcome:
        """Train, restore the best weights, predict the test split. saved: a savepoint's state to continue from."""
        with trained_rows(self.network.encoder, [e.ids for e in self.prepared.train.encoded]) as rows:
            self.rows = rows
            began = time.perf_counter()
            return self.finish(began, self.fit(saved))

    def optimizer(self) -> torch.optim.Optimizer:
        """A fresh optimiser of what is trained."""
        return make_optimizer(self.network, self.recipe)

    def rate(self, step: int) -> float:
        """Learning rate of optimiser step `step` (0-based)."""
        return rate(step, self.total, self.recipe)

    def fit(self, saved: dict[str, Any] | None = None) -> bool:
        """Train, keep the best weights; whether patience ended it early. Raises NonFiniteLossError.

        Asked to stop, it saves its state after the step in hand and raises RunStoppedError.
        """
        began, state = time.perf_counter(), self.state
        optimizer = self.optimizer()
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        if saved is not None:
            self._resume(saved, optimizer)
        self.written = 0.0 if self.keep is None else self.keep.seconds
        for batch in self._batches(state.step):
            for group in optimizer.param_groups:
                group["lr"] = self.rate(state.step) * group.get("scale", 1.0)
            self.unread.append(self._backward(batch))
            state.step += 1
            if not self.late:
                self._read_losses()
            clip_grad_norm_(parameters, self.recipe.max_grad_norm)
            optimizer.step()
            if self.rows is not None:
                self.rows.decayed(optimizer.param_groups[0]["lr"], self.recipe.weight_decay)
            optimizer.zero_grad(set_to_none=self.device.type != "cpu")
            state.tokens += sum(self.prepared.train.lengths[i] for i in batch)
            validates = state.step % self.every == 0 or state.step == self.total
            stops = STOP()
            saves = self.keep is not None and (stops or self.keep.due())
            if validates or saves or len(self.unread) == READ_EVERY:
                self._read_losses()
            loss = f"loss {state.losses[-1]:.3f}" if state.losses else "loss not read yet"
            self.progress(state.step, self.total, f"{loss}{self._unkept()}")
            self._warn_of_slow_attention()
            if validates:
                if self._validate(state.step, state.losses):
                    return state.step < self.total
                state.losses = []
            if saves and self.keep is not None:
                self.keep.save(lambda: self._saved_state(optimizer, began))
            if stops:
                raise RunStoppedError
        return False

    def _read_losses(self) -> None:
        """Bring the losses of the last steps to the host. Raises NonFiniteLossError for the first that is none."""
        if not self.unread:
            return
        losses = torch.stack(self.unread).tolist()
        begin = self.state.step - len(losses)
        self.unread = []
        for place, loss in enumerate(losses, start=begin + 1):
            if not all_finite([loss]):
                raise NonFiniteLossError(f"step {place}")
        self.state.losses += losses

    def _warn_of_slow_attention(self) -> None:
        """Say once for an encoder why its attention is not computed by a kernel of the accelerator."""
        encoder = self.network.encoder
        reason = encoder.slow_attention()
        if reason is not None and not encoder.warned:
            encoder.warned = True
            self.progress(self.state.step, self.total, ProgressNote(f"slow attention: {reason}"))

    def _unkept(self) -> str:
        """A word about a savepoint that could not be written."""
        problem = None if self.keep is None else self.keep.problem
        return "" if problem is None else f" (cannot be resumed later: {problem})"

    def _seconds(self, began: float) -> float:
        """Of the run so far, by this process and those before it, writing of savepoints left out."""
        writing = 0.0 if self.keep is None else self.keep.seconds - self.written
        return self.state.seconds + time.perf_counter() - began - writing

    def _saved_state(self, optimizer: torch.optim.Optimizer, began: float) -> dict[str, Any]:
        """Everything that the next step depends on, and what the record tells of the steps before it."""
        state = {f.name: getattr(self.state, f.name) for f in fields(_State)}
        state["curve"] = [point.model_dump() for point in self.state.curve]
        state["seconds"] = self._seconds(began)
        cuda = torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None
        return {
            "state": state,
            "network": self.network.state_dict(),
            "rows": None if self.rows is None else self.rows.pending,
            "optimizer": optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "cuda_random": cuda,
            "precision": self.precision,
            "budget": self.budget,
            "backoffs": list(self.backoffs),
        }

    def _resume(self, saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
        state = dict(saved["state"])
        state["curve"] = [CurvePoint.model_validate(point) for point in state["curve"]]
        state["resumed"] += 1
        for name, value in state.items():
            setattr(self.state, name, value)
        if self.state.best_weights is not None:
            self.state.best_weights = {k: v.to(self.device) for k, v in self.state.best_weights.items()}
        self.network.load_state_dict(saved["network"])
        if self.rows is not None:
            self.rows.pending = saved["rows"]
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        if saved["cuda_random"] is not None:
            torch.cuda.set_rng_state(saved["cuda_random"], self.device)
        self.budget = saved["budget"]
        saved.clear()  # two copies of the weights, and two of the optimiser's moments
        self.progress(self.state.step, self.total, ProgressNote("continues where it was stopped"))

    def _batches(self, done: int) -> Iterator[list[int]]:
        """Batches of the whole run after the first `done`, epoch after epoch, cut at the last step."""
        epoch = done // self.per_epoch
        step, train = epoch * self.per_epoch, self.prepared.train
        while True:
            recipe = self.recipe
            for batch in epoch_order(train.lengths, recipe.batch_size, self.order_seed, epoch, recipe.batching):
                if step == self.total:
                    return
                step += 1
                if step > done:
                    yield batch
            epoch += 1

    def _backward(self, batch: list[int]) -> Tensor:
        """Gradients of the batch's mean loss; the loss. Halves the micro-batch when memory does not suffice."""
        while True:
            rng = torch.get_rng_state()
            cuda = torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None
            try:
                return self._backward_once(batch)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.budget <= _SMALLEST_BUDGET or len(batch) == 1:
                    raise MemoryShortError(
                        "memory does not suffice for a single document",
                        hint="lower --set protocol.max_length, or use a machine with more memory",
                    ) from error
            self.network.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            if cuda is not None:
                torch.cuda.set_rng_state(cuda, self.device)
            torch.set_rng_state(rng)
            self.budget = min(self.budget, sum(self.prepared.train.lengths[i] for i in batch)) // 2
            self.backoffs.append(f"out of memory: micro-batch cut to {self.budget} tokens")

    def _backward_once(self, batch: list[int]) -> Tensor:
        """The loss, () in fp64 on the device; nothing here waits for it."""
        split, spec, kind = self.prepared.train, self.prepared.spec, self.prepared.kind
        terms = kind.terms(spec, [split.targets[i] for i in batch], [len(split.encoded[i].words) for i in batch])
        cut = cut_packed if self.network.attention == "packed" else cut_padded
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.network.train()
        for part in cut(batch, split.lengths, self.budget):
            targets = [split.targets[i] for i in part]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
                logits = self.network([split.encoded[i] for i in part])
            loss = kind.loss(spec, logits, targets, self.weights) / max(terms, 1)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    def _validate(self, step: int, losses: list[float]) -> bool:
        """Score validation, keep the best weights; True when patience is exhausted."""
        began = time.perf_counter()
        split, state = self.prepared.validation, self.state
        self.progress(step, self.total, "validation")
        if self.rows is not None:
            self.rows.write_back()
        chances = probabilities(self.network, self.prepared, split, self.precision, self.budget)
        threshold = self.prepared.kind.threshold(self.prepared, split, chances)
        scores = self.prepared.score(split.documents, decide(self.prepared, split, chances, threshold)).values
        state.curve.append(
            CurvePoint(
                step=step,
                epoch=round(step / self.per_epoch, 4),
                train_loss=sum(losses) / len(losses),
                validation=self.prepared.kind.curve(scores),
                learning_rate=self.rate(step - 1),
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

    def finish(self, began: float, stopped: bool) -> Outcome:
        """Predict the test split with the best weights. began: when `fit` was called; stopped: what it gave."""
        state = self.state
        train_seconds = self._seconds(began) - state.evaluation_seconds
        if state.best_weights is not None:
            self.network.load_state_dict(state.best_weights)
        testing = time.perf_counter()
        self.progress(self.total, self.total, "test")
        test = self.prepared.test
        chances = probabilities(self.network, self.prepared, test, self.precision, self.budget)
        predictions = decide(self.prepared, test, chances, state.threshold)
        record = TrainingRecord(
            steps=state.step,
            best_step=state.best_step,
            curve=tuple(state.curve),
            precision=self.precision,
            attention=self.network.attention,
            kernels=dict(self.network.encoder.paths),
            batch_size=self.recipe.batch_size,
            micro_batch_tokens=self.budget,
            backoffs=tuple(self.backoffs),
            threshold=state.threshold if self.prepared.kind.thresholds else None,
            stopped_early=stopped,
            resumed=state.resumed,
            trained_parameters=trained_parameters(self.network, self.recipe),
        )
        evaluation = state.evaluation_seconds + time.perf_counter() - testing
        best = (state.best_score, state.threshold, self.network)
        return Outcome(predictions, record, train_seconds, evaluation, state.tokens, *best, state.seconds)
