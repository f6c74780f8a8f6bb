"""The steps of one phase; it knows objectives and schedules only through the recipe's fields."""

from __future__ import annotations

import contextlib
import logging
import math
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

from biobench.errors import TrainingError
from trainer.corpus.shards import Corpus, Shards
from trainer.cost.flops import peak_of
from trainer.model.network import LABEL
from trainer.order import roll, seed_words
from trainer.recipe.phases import Direction
from trainer.recipe.spec import Recipe
from trainer.train.batches import Batches, Micro, StepBatch
from trainer.train.checkpoint import Progress
from trainer.train.distributed import World
from trainer.train.optimizer import clear_gradients, factor, set_rate
from trainer.train.phase import PreparedPhase, autocast
from trainer.train.progress import Listener, Metrics, Tick

PARTS = ("data", "forward", "loss", "backward", "update")
"""Parts of a step, as a profiler's trace names them; the loss is part of the forward pass."""
REMEMBERED = 100
"""Gradient norms that a spike is compared with."""
HELD_OUT_WINDOWS = 512
"""Most windows that a validation loss is taken over."""
SOURCE_WINDOWS = 128
"""Most windows of one source that its own validation loss is taken over."""


@dataclass
class PhaseLoop:
    """A phase in training. save, probe: called with the progress when it is due; token_flops: operations a token."""

    recipe: Recipe
    index: int
    training: PreparedPhase
    batches: Batches
    corpus: Corpus
    world: World
    metrics: Metrics | None
    listener: Listener
    save: Callable[[Progress], None]
    stop: Callable[[], bool]
    token_flops: float
    probe: Callable[[Progress], None]
    last_loss: float = math.nan
    losses: dict[str, float] = field(default_factory=dict, init=False)
    """Parts of the last validation loss: by ``source``, ``language`` and ``objective``, as ``source NAME``."""
    _since: tuple[float, int] = field(default=(0.0, 0), init=False)
    """When the last report was, later by what was no training since, and its step."""

    def __post_init__(self) -> None:
        self.phase = self.recipe.phases[self.index]

    def run(self, progress: Progress) -> tuple[Progress, bool]:
        """Train from `progress` to the phase's end: (progress, whether the end was reached).

        Stops early, saved, when asked to (SIGTERM). Raises TrainingError when the loss is not finite.
        """
        recipe, phase, world = self.recipe, self.phase, self.world
        steps, step_tokens = recipe.steps(phase), recipe.step_tokens_of(phase)
        save_every = recipe.every(recipe.checkpoints.every, phase)
        evaluate_every = recipe.every(recipe.logging.evaluate, phase)
        probe_every = None if recipe.logging.probe is None else recipe.every(recipe.logging.probe.every, phase)
        began, before = time.perf_counter(), progress.seconds
        self._since = (began, progress.step)
        while progress.step < steps:
            step = progress.step
            rate = recipe.optimizer.learning_rate * phase.schedule.peak
            rate *= factor(phase, step, steps=steps, step_tokens=step_tokens)
            with record_function(f"{LABEL}data"):
                batch = self.batches.at(progress.drawn, more=step + 1 < steps)
            last = step + 1 == steps
            # other processes' wish to stop travels with the targets and is met a step later
            targets, stops = world.sums(batch.targets, int(world.size > 1 and self.stop()))
            loss, norm = self._step(batch, targets, rate, progress.total_steps)
            with record_function(f"{LABEL}update"):
                skipped = self._update(norm, progress.norms)
            progress = progress.model_copy(
                update={
                    "step": step + 1,
                    "drawn": progress.drawn + recipe.batch_of(phase).sequences,
                    "order_hash": roll(progress.order_hash, batch.indices),
                    "targets": progress.targets + targets,
                    "skipped": progress.skipped + skipped,
                    "norms": self._norms(progress, norm, skipped),
                    "total_steps": progress.total_steps + 1,
                    "total_tokens": progress.total_tokens + step_tokens,
                    "seconds": before + time.perf_counter() - began,
                }
            )
            due = save_every is not None and progress.step % save_every == 0
            stopping = stops > 0 or (world.size == 1 and self.stop())
            if skipped:
                self._tell_spike(progress, norm)
            if (step + 1) % recipe.logging.every == 0 or last or due or stopping:
                self._report(progress, loss, targets, norm, rate)
            if last:
                break
            with self._aside():
                if evaluate_every is not None and progress.step % evaluate_every == 0:
                    self.evaluate(progress)
                if probe_every is not None and progress.step % probe_every == 0:
                    self.probe(progress)
                if due or stopping:
                    self.save(progress)
            if stopping:
                return progress, False
        return progress, True

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Time inside is no training: the logged speed leaves it out."""
        began = time.perf_counter()
        yield
        then, step = self._since
        self._since = (then + time.perf_counter() - began, step)

    def _step(self, batch: StepBatch, targets: int, rate: float, total_step: int) -> tuple[Tensor, Tensor]:
        """The gradients of one step: (own summed loss, gradient norm). targets: of all processes."""
        world, training = self.world, self.training
        # Wrappers average gradients over processes; times their number this is the mean over all targets.
        scale = world.size / max(targets, 1)
        set_rate(training.optimizer, rate)
        if self.recipe.engine.dropout > 0:
            torch.manual_seed(int(seed_words("dropout", self.recipe.seeds.training, total_step, world.rank)[0]))
        total = torch.zeros((), device=world.device)
        for number, micro in enumerate(batch.micros):
            more = number < len(batch.micros) - 1
            with _accumulating(training.wrapped, more), autocast(training.precision, world.device):
                with record_function(f"{LABEL}forward"):
                    loss = self._loss(micro, causal=batch.causal)
                with record_function(f"{LABEL}backward"):
                    (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total, _clip(training.module, self.recipe.optimizer.gradient_clip)

    def _loss(self, micro: Micro, *, causal: bool) -> Tensor:
        """The summed loss of one forward pass."""
        loss: Tensor = self.training.wrapped(
            micro.input_ids,
            micro.positions,
            micro.targets,
            causal=causal,
            documents=micro.documents,
            boundaries=micro.boundaries,
            longest=micro.longest,
        )
        return loss

    def _update(self, norm: Tensor, before: Sequence[float]) -> bool:
        """Take the optimiser's step, unless the gradients are a spike and the recipe skips such; whether it was."""
        limit = self.recipe.optimizer.skip_spikes
        spike = limit is not None and is_spike(float(norm), before, limit)
        if not spike:
            self.training.optimizer.step()
        clear_gradients(self.training.optimizer, self.world.device, processes=self.world.size)
        return spike

    def _norms(self, progress: Progress, norm: Tensor, skipped: bool) -> tuple[float, ...]:
        """The latest gradient norms that were no spikes; none are kept where nobody asks for them."""
        if self.recipe.optimizer.skip_spikes is None or skipped:
            return progress.norms
        return (*progress.norms, float(norm))[-REMEMBERED:]

    def write(self, event: str, progress: Progress, fields: dict[str, Any]) -> None:
        """A line of the metrics, on the first process."""
        if self.metrics is not None:
            where = {"phase": self.phase.name, "step": progress.step, "tokens": progress.total_tokens}
            self.metrics.write({"event": event, "total_step": progress.total_steps, **where, **fields})

    def _tell_spike(self, progress: Progress, norm: Tensor) -> None:
        """One line on stderr and in the metrics."""
        size = float(norm)
        if self.world.first:
            usual = statistics.median(progress.norms) if progress.norms else math.nan
            logging.getLogger("trainer").warning(
                "step %d of phase '%s' skipped: gradient norm %.3g, usually %.3g",
                *(progress.step, self.phase.name, size, usual),
            )
        self.write("spike", progress, {"gradient_norm": size if math.isfinite(size) else None})

    def _report(self, progress: Progress, total: Tensor, targets: int, norm: Tensor, rate: float) -> None:
        """Log a step. Raises TrainingError when its loss is not finite, before anything could be saved."""
        loss = float(self.world.total(total.clone()).item()) / max(targets, 1)
        self.last_loss = loss
        stuck = progress.skipped > max(10, progress.step // 2)  # more than spikes explain
        skips = self.recipe.optimizer.skip_spikes is not None and not stuck
        if not (math.isfinite(loss) and math.isfinite(float(norm))) and not skips:
            raise TrainingError(
                f"the loss of phase '{self.phase.name}' is not finite at step {progress.step}",
                hint="continue from the last checkpoint with a smaller rate or engine.precision=fp32",
            )
        if not math.isfinite(loss):
            return  # told as a spike
        now, (then, step) = time.perf_counter(), self._since
        speed = (progress.step - step) * self.recipe.step_tokens_of(self.phase) / max(now - then, 1e-9)
        self._since = (now, progress.step)
        left = (self.recipe.total_tokens - progress.total_tokens) / speed if speed else None
        what = f"phase {self.index + 1}/{len(self.recipe.phases)} {self.phase.name}"
        self.listener(Tick(what, progress.total_steps, self.recipe.total_steps, loss, speed, left))
        device, peak = self.world.device, None
        if device.type == "cuda":
            peak = peak_of(torch.cuda.get_device_name(device))
            memory = torch.cuda.max_memory_allocated(device)
        else:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self.write(
            "train",
            progress,
            {
                "objective": self.phase.direction(progress.step - 1),
                "loss": loss,
                "learning_rate": rate,
                "gradient_norm": float(norm),
                "targets": targets,
                "tokens_per_second": round(speed, 1),
                "mfu": None if peak is None else round(speed * self.token_flops / peak / self.world.size, 4),
                "memory_bytes": memory,
                "seconds": round(progress.seconds, 3),
            },
        )

    def evaluate(self, progress: Progress) -> float | None:
        """The held-out loss under the phase's own objective, with masks that never change; None without windows.

        A mixed phase's is that of its masked steps. `losses` then has the parts: per objective of a mixed phase, per
        source and language of a corpus that has several; of each source at most `SOURCE_WINDOWS` windows that hold
        nothing else.
        """
        shards = self.corpus.held_out
        count = min(len(shards), HELD_OUT_WINDOWS)
        if count == 0:
            return None
        direction = self.phase.directions[-1]
        value, targets = self._mean(shards, range(count), direction)
        self.losses = {}
        if len(self.phase.directions) > 1:
            self.losses = {"objective mlm": value, "objective clm": self._mean(shards, range(count), "clm")[0]}
        self.losses |= self._losses_of_sources(shards, direction)
        parts = {"losses": self.losses} if self.losses else {}
        self.write("evaluation", progress, {"objective": direction, "loss": value, "targets": targets, **parts})
        return value

    def _losses_of_sources(self, shards: Shards, direction: Direction) -> dict[str, float]:
        """The loss of each source's and each language's held-out windows, where there are several."""
        sources = self.corpus.held_out_sources()
        if len(sources) < 2:
            return {}
        languages = {source.id: source.language for source in self.recipe.corpus_of(self.phase).sources}
        sums: dict[str, list[float]] = {}
        for name, rows in sources.items():
            loss, targets = self._mean(shards, rows[:SOURCE_WINDOWS], direction)
            keys = [f"source {name}", *([f"language {languages[name]}"] if languages.get(name) else [])]
            for key in keys:
                total = sums.setdefault(key, [0.0, 0])
                total[0] += loss * targets
                total[1] += targets
        return {key: loss / targets for key, (loss, targets) in sums.items() if targets}

    def _mean(self, shards: Shards, rows: range, direction: Direction) -> tuple[float, int]:
        """(mean loss, targets) of held-out windows; called by all processes."""
        batch, world = self.recipe.batch_of(self.phase), self.world
        share = max(1, batch.sequences // world.size)
        size = min(batch.micro or share, share, 64)
        chunks = [range(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
        sums = torch.zeros(2, device=world.device, dtype=torch.float64)
        module = self.training.wrapped
        module.eval()
        # Every process makes the same number of forward passes, as sharded weights need.
        for turn in range(math.ceil(len(chunks) / world.size)):
            number = turn * world.size + world.rank
            micro, targets = self.batches.held_out(shards, chunks[number % len(chunks)], direction)
            with torch.no_grad(), autocast(self.training.precision, world.device):
                loss = self._loss(micro, causal=direction == "clm")
            if number < len(chunks):
                sums += torch.tensor([float(loss), targets], device=sums.device, dtype=sums.dtype)
        module.train()
        if isinstance(module, FSDPModule):
            module.reshard()  # a forward pass without a backward one leaves the outer weights gathered
        world.total(sums)
        return float(sums[0] / sums[1].clamp_min(1)), int(sums[1])


def is_spike(norm: float, before: Sequence[float], limit: float) -> bool:
    """Whether a gradient norm is not finite, or `limit` times the median of those `before`, once there are ten."""
    if not math.isfinite(norm):
        return True
    return len(before) >= 10 and norm > limit * statistics.median(before)


@contextlib.contextmanager
def _accumulating(module: nn.Module, more: bool) -> Iterator[None]:
    """Leave gradients where they are until the step's last forward pass."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(not more)
    with module.no_sync() if more and isinstance(module, DistributedDataParallel) else contextlib.nullcontext():
        yield


def _clip(module: nn.Module, limit: float | None) -> Tensor:
    """The global gradient norm, clipped to `limit` where there is one."""
    if limit is not None:
        norm = nn.utils.clip_grad_norm_(module.parameters(), limit)
    else:
        norm = nn.utils.get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
    full: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return full
