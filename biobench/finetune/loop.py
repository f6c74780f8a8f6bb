"""The fine-tuning loop: one network, one task, one seed.

A step takes the recipe's batch whatever the micro-batches; gradients are those of the batch's mean
loss. After each epoch (or every k steps) the validation score decides; the best weights stay in
memory and are the ones that predict the test split. A non-finite loss restarts the run in fp32; an
out-of-memory halves the micro-batch and repeats the step. Both are recorded, and neither changes
the effective batch. On an accelerator the host queues steps and reads their losses late, so that
the device never waits for it. With a savepoint the state between two steps is kept on disk, and a
killed run resumes from it, bit by bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from biobench.core.machine import (
    ASYNCHRONOUS,
    Precision,
    computing_in,
    insisting,
    is_out_of_memory,
    random_state,
    set_random_state,
)
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP, RunStoppedError
from biobench.core.text import first_line
from biobench.encode.batches import cut_packed, cut_padded, epoch_order, steps_per_epoch
from biobench.errors import TrainingError
from biobench.finetune.adapters import make_optimizer, rate, trained_parameters
from biobench.finetune.network import (
    Network,
    chosen_seed,
    copied_weights,
    decide,
    probabilities,
    threshold_of,
)
from biobench.finetune.prepare import Prepared
from biobench.finetune.savepoint import NOT_KEPT, Savepoint
from biobench.finetune.state import LoopState
from biobench.finetune.vocabulary import UsedRows, trained_rows
from biobench.models.encoder import PLAIN
from biobench.schema.document import Prediction
from biobench.schema.record import CurvePoint, TrainingRecord

Progress = Callable[[int, int, str], None]
"""(steps done, steps in all, what is happening: text, or a `ProgressNote`)."""
READ_EVERY = 50
"""Steps after which an asynchronous device's losses are read, and one that is not finite seen."""
_SMALLEST_BUDGET = 16
TRIAL_TOKENS = 8_192
"""At most so many tokens of the first batch are given to each kernel, to find the fastest."""


class NonFiniteLossError(Exception):
    """The loss became NaN or infinite; caught by the run, which continues in fp32."""


@dataclass(slots=True)
class Outcome:
    """What a run gave: test predictions, the record of the training, seconds and tokens.

    best_score, threshold, network: the best selection score on validation, and its weights.
    earlier_seconds: of processes that were killed, up to their last savepoint.
    """

    predictions: list[Prediction]
    record: TrainingRecord
    train_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    train_tokens: int = 0
    best_score: float = 0.0
    threshold: float = 0.5
    network: Network | None = None
    earlier_seconds: float = 0.0


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
        keep: Savepoint = NOT_KEPT,
    ) -> None:
        self.network, self.prepared, self.recipe = network, prepared, prepared.spec.training
        self.order_seed = chosen_seed(self.recipe.order_seed, seed)
        self.precision, self.budget, self.backoffs = precision, budget, backoffs
        self.progress, self.keep = progress, keep
        self.device = network.device
        self.rows: UsedRows | None = None
        self.state = LoopState()
        self.began, self.written = 0.0, keep.seconds
        self.late = self.device.type in ASYNCHRONOUS
        self.strict = True
        """Whether gradients are summed in one order, also where that must be insisted on."""
        self.unread: list[Tensor] = []
        """Losses of the last steps, on the device."""
        self.per_epoch = steps_per_epoch(len(prepared.train.encoded), self.recipe.batch_size)
        self.total = self.recipe.max_steps or self.per_epoch * (self.recipe.epochs or 1)
        every = self.recipe.evaluate_every
        self.every = self.per_epoch if every == "epoch" else int(every)
        self.weights = prepared.kind.weights(prepared.spec, prepared.train)
        if self.weights is not None:
            self.weights = self.weights.to(self.device)

    def train(self, saved: dict[str, Any] | None = None) -> Outcome:
        """Train, restore the best weights, predict the test split. saved: what to continue from."""
        ids = [window.ids for window in self.prepared.train.encoded]
        with trained_rows(self.network.encoder, ids) as self.rows:
            return self.finish(stopped=self.fit(saved))

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
        self.began, state = time.perf_counter(), self.state
        optimizer = self.optimizer()
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        if saved is not None:
            self._resume(saved, optimizer)
        else:
            self._time_kernels()
        self.network.train()
        for batch in self._batches(state.step):
            self._step(batch, optimizer, parameters)
            validates = state.step % self.every == 0 or state.step == self.total
            stops = STOP()
            saves = self.keep.is_due(stops=stops)
            if validates or saves or len(self.unread) == READ_EVERY:
                self._read_losses()
            self._tell()
            if validates:
                self._validate()
                if state.waited >= (self.recipe.patience or math.inf):
                    return state.step < self.total
                self.network.train()
            if saves:
                self.keep.save(lambda: self._saved_state(optimizer))
            if stops:
                raise RunStoppedError
        return False

    def _time_kernels(self) -> None:
        """Let the encoder choose its kernel by documents of the first batch."""
        train, encoder = self.prepared.train, self.network.encoder
        if len(encoder.kernels) > 1 and self.precision == "bf16":
            batch = next(self._batches(0))
            documents = cut_packed(batch, train.lengths, min(self.budget, TRIAL_TOKENS))[0]
            encoder.time_kernels([train.encoded[index].ids for index in documents])

    def _step(
        self, batch: list[int], optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter]
    ) -> None:
        """One optimiser step, its gradients clipped. On an accelerator its loss is read later."""
        state = self.state
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

    def _batches(self, done: int) -> Iterator[list[int]]:
        """Batches of the run after the first `done`, epoch after epoch, cut at the last step."""
        epoch, of_epoch = divmod(done, self.per_epoch)
        this_epoch = islice(self._epoch(epoch), of_epoch, None)
        epochs_after = chain.from_iterable(map(self._epoch, count(epoch + 1)))
        return islice(chain(this_epoch, epochs_after), self.total - done)

    def _epoch(self, epoch: int) -> Iterator[list[int]]:
        """Its batches."""
        recipe, lengths = self.recipe, self.prepared.train.lengths
        return epoch_order(lengths, recipe.batch_size, self.order_seed, epoch, recipe.batching)

    def _backward(self, batch: list[int]) -> Tensor:
        """Gradients of the batch's mean loss; the loss. Halves the micro-batch when memory does not
        suffice, and goes on with plain layers when compiled ones fail.
        """
        encoder = self.network.encoder
        while True:
            draws = random_state(self.device)
            try:
                return self._backward_once(batch)
            except (RuntimeError, MemoryError) as error:
                short = is_out_of_memory(error)
                if not (short or self._relaxes(error) or encoder.gives_up_compiling(error)):
                    raise
                if short and (self.budget <= _SMALLEST_BUDGET or len(batch) == 1):
                    raise TrainingError(
                        "memory does not suffice for a single document",
                        hint="lower --set protocol.max_length, or use a machine with more memory",
                    ) from error
            self.network.zero_grad(set_to_none=True)
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            set_random_state(draws, self.device)
            if short:
                tokens = sum(self.prepared.train.lengths[i] for i in batch)
                self.budget = min(self.budget, tokens) // 2
                self.backoffs.append(f"out of memory: micro-batch cut to {self.budget} tokens")

    def _relaxes(self, error: BaseException) -> bool:
        """Whether an operation that has no such order, as set or at all, was asked for it yet."""
        relaxes = self.strict and "use_deterministic_algorithms" in str(error)
        if relaxes:
            self.strict = False
            self.backoffs.append(f"sums in no fixed order: {first_line(error, 120)}")
        return relaxes

    def _backward_once(self, batch: list[int]) -> Tensor:
        """The loss, () in fp64 on the device; nothing here waits for it."""
        split, spec, kind = self.prepared.train, self.prepared.spec, self.prepared.kind
        words = [len(split.encoded[index].words) for index in batch]
        of_batch = [split.targets[index] for index in batch]
        terms = kind.terms(spec, of_batch, words)
        cut = cut_padded
        if self.network.attention == "packed":
            cut = cut_packed
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        # Autocast keeps its copies of the weights to the end of the block: a step casts each once.
        with computing_in(self.precision, self.device):
            for micro_batch in cut(batch, split.lengths, self.budget):
                encoded = [split.encoded[index] for index in micro_batch]
                logits = self.network(encoded)
                with computing_in("fp32", self.device):
                    targets = [split.targets[index] for index in micro_batch]
                    loss = kind.loss(spec, logits, targets, self.weights) / max(terms, 1)
                    with insisting(self.strict):
                        loss.backward()  # type: ignore[no-untyped-call]
                    total += loss.detach()
        return total

    def _read_losses(self) -> None:
        """Bring the last losses to the host. Raises NonFiniteLossError at one that is no number."""
        if not self.unread:
            return
        losses = torch.stack(self.unread).tolist()
        self.unread = []
        for step, loss in enumerate(losses, start=self.state.step - len(losses) + 1):
            if not math.isfinite(loss):
                raise NonFiniteLossError(f"step {step}")
        self.state.losses += losses

    def _tell(self) -> None:
        """The last loss, what keeps the run from being resumed, and once what is slow and why."""
        state, encoder = self.state, self.network.encoder
        line = "loss not read yet"
        if state.losses:
            line = f"loss {state.losses[-1]:.3f}"
        if self.keep.problem is not None:
            line += f" (cannot be resumed later: {self.keep.problem})"
        self.progress(state.step, self.total, line)
        for symptom, reason in encoder.slow_parts().items():
            if symptom not in encoder.warned:
                encoder.warned.add(symptom)
                self.progress(state.step, self.total, ProgressNote(f"{symptom}: {reason}"))

    def _validate(self) -> None:
        """Score validation, note the steps since the last one, keep the best weights."""
        began = time.perf_counter()
        prepared = self.prepared
        split = self.prepared.validation
        state = self.state
        self.progress(state.step, self.total, "validation")
        if self.rows is not None:
            self.rows.write_back()
        chances = probabilities(self.network, prepared, split, self.precision, self.budget)
        threshold = threshold_of(prepared, chances)
        predictions = decide(prepared, split, chances, threshold)
        scores = prepared.score(split.documents, predictions).values
        state.curve.append(
            {
                "step": state.step,
                "epoch": round(state.step / self.per_epoch, 4),
                "train_loss": sum(state.losses) / len(state.losses),
                "validation": prepared.kind.curve(scores),
                "learning_rate": self.rate(state.step - 1),
            }
        )
        state.losses = []
        state.waited += 1
        score = scores[prepared.spec.selection]
        if score > state.best_score:
            state.best_score = score
            state.best_step = state.step
            state.threshold = threshold
            state.waited = 0
            state.best_weights = None
            if state.step < self.total:  # the last weights are the network's own
                state.best_weights = copied_weights(self.network)
        state.evaluation_seconds += time.perf_counter() - began

    def finish(self, *, stopped: bool) -> Outcome:
        """Predict the test split with the best weights. stopped: what `fit` gave."""
        state = self.state
        prepared = self.prepared
        encoder = self.network.encoder
        kernels = dict(encoder.paths)
        if encoder.plain is not None:
            kernels[PLAIN] = encoder.plain
        train_seconds = self._seconds() - state.evaluation_seconds
        if state.best_weights is not None:
            self.network.load_state_dict(state.best_weights)
        testing = time.perf_counter()
        self.progress(self.total, self.total, "test")
        chances = probabilities(self.network, prepared, prepared.test, self.precision, self.budget)
        predictions = decide(prepared, prepared.test, chances, state.threshold)
        record = TrainingRecord(
            steps=state.step,
            best_step=state.best_step,
            curve=tuple(CurvePoint.model_validate(point) for point in state.curve),
            precision=self.precision,
            attention=self.network.attention,
            kernels=kernels,
            batch_size=self.recipe.batch_size,
            micro_batch_tokens=self.budget,
            backoffs=tuple(self.backoffs),
            threshold=prepared.kind.recorded_threshold(state.threshold),
            stopped_early=stopped,
            resumed=state.resumed,
            trained_parameters=trained_parameters(self.network, self.recipe),
        )
        return Outcome(
            predictions,
            record,
            train_seconds=train_seconds,
            evaluation_seconds=state.evaluation_seconds + time.perf_counter() - testing,
            train_tokens=state.tokens,
            best_score=state.best_score,
            threshold=state.threshold,
            network=self.network,
            earlier_seconds=state.seconds,
        )

    def _seconds(self) -> float:
        """Of the run so far, by this process and those before it, without writing of savepoints."""
        writing = self.keep.seconds - self.written
        return self.state.seconds + time.perf_counter() - self.began - writing

    def _saved_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Everything that the next step depends on, and what the record tells of those before."""
        return {
            "state": self.state.saved(self._seconds()),
            "network": self.network.state_dict(),
            "rows": None if self.rows is None else self.rows.pending,
            "optimizer": optimizer.state_dict(),
            "random": random_state(self.device),
            "paths": dict(self.network.encoder.paths),
            "precision": self.precision,
            "budget": self.budget,
            "backoffs": list(self.backoffs),
        }

    def _resume(self, saved: dict[str, Any], optimizer: torch.optim.Optimizer) -> None:
        self.state.resume(saved["state"], self.device)
        self.network.load_state_dict(saved["network"])
        if self.rows is not None:
            self.rows.pending = saved["rows"]
        optimizer.load_state_dict(saved["optimizer"])
        set_random_state(saved["random"], self.device)
        encoder = self.network.encoder
        encoder.paths.update(saved["paths"])
        # The kernel of the steps before it, whatever is faster now.
        in_use = sorted(encoder.kernels, key=lambda kernel: kernel.name not in encoder.paths)
        encoder.use_kernels(tuple(in_use))
        self.budget = saved["budget"]
        saved.clear()  # two copies of the weights, and two of the optimiser's moments
        self.progress(self.state.step, self.total, ProgressNote("resumed"))
