"""The training loop of one phase; it knows objectives and schedules only through the recipe's fields."""

from __future__ import annotations

import contextlib
import logging
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

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
from trainer.recipe.phases import Direction, Phase
from trainer.recipe.spec import Recipe
from trainer.train.batches import Batches, Micro, StepBatch
from trainer.train.checkpoint import Progress
from trainer.train.distributed import World
from trainer.train.memory import clear_gradients
from trainer.train.metrics import Metrics
from trainer.train.optimizer import set_rate
from trainer.train.phase import PreparedPhase, autocast
from trainer.train.progress import Listener, Tick
from trainer.train.schedule import factor

PARTS = ("data", "forward", "loss", "backward", "update")
"""Parts of a step, as a profiler's trace names them; the loss is part of the forward pass."""
REMEMBERED = 100
"""Gradient norms that a spike is compared with."""
HELD_OUT_WINDOWS = 512
"""Most windows that a validation loss is taken over."""
SOURCE_WINDOWS = 128
"""Most windows of one source that its own validation loss is taken over."""


@dataclass
class Loop:
    """What the steps of a phase share. save: writes a checkpoint of the progress it is given."""

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
    probe: Callable[[Progress], None] | None = None
    last_loss: float = math.nan
    losses: dict[str, float] = field(default_factory=dict, init=False)
    """Parts of the last validation loss: by ``source``, ``language`` and ``objective``, as ``source NAME``."""
    _since: tuple[float, int] = field(default=(0.0, 0), init=False)

    @property
    def phase(self) -> Phase:
        """The phase under way."""
        return self.recipe.phases[self.index]

    def run(self, progress: Progress) -> tuple[Progress, bool]:
        """Train from `progress` to the phase's end: (progress, whether the end was reached).

        Stops early, saved, when asked to (SIGTERM). Raises TrainingError when the loss is not finite.
        """
        recipe, steps = self.recipe, self.recipe.steps(self.phase)
        step_tokens = recipe.step_tokens_of(self.phase)
        sequences = recipe.batch_of(self.phase).sequences
        save_every = recipe.every(recipe.checkpoints.every, self.phase)
        evaluate_every = recipe.every(recipe.logging.evaluate, self.phase)
        probe_every = None if recipe.logging.probe is None else recipe.every(recipe.logging.probe.every, self.phase)
        began, before = time.perf_counter(), progress.seconds
        self._since = (began, progress.step)
        while progress.step < steps:
            step = progress.step
            rate = (
                recipe.optimizer.learning_rate
                * self.phase.schedule.peak
                * factor(self.phase, step, steps=steps, step_tokens=step_tokens)
            )
            with record_function(f"{LABEL}data"):
                batch = self.batches.at(progress.drawn, more=step + 1 < steps)
            last = step + 1 == steps
            log = (step + 1) % recipe.logging.every == 0 or last
            # other processes' wish to stop travels with the targets and is met a step later
            targets, stops = self.world.sums(batch.targets, int(self.world.size > 1 and self.stop()))
            loss, norm = self._step(batch, targets, rate, progress)
            with record_function(f"{LABEL}update"):
                skipped = self._update(norm, progress)
            progress = progress.model_copy(
                update={
                    "step": step + 1,
                    "drawn": progress.drawn + sequences,
                    "order_hash": roll(progress.order_hash, batch.indices),
                    "targets": progress.targets + targets,
                    "skipped": progress.skipped + skipped,
                    "norms": self._norms(progress, norm, skipped),
                    "total_steps": progress.total_steps + 1,
                    "total_tokens": progress.total_tokens + step_tokens,
                    "seconds": before + time.perf_counter() - began,
                }
            )
            due = save_every is not None and progress.step % save_every == 0 and not last
            stopping = stops > 0 or (self.world.size == 1 and self.stop())
            if skipped:
                self._tell_spike(progress, norm)
            if log or due or stopping:
                self._report(progress, loss, targets, norm, rate)
            if evaluate_every is not None and progress.step % evaluate_every == 0 and not last:
                self.evaluate(progress)
            if self.probe is not None and probe_every is not None and progress.step % probe_every == 0 and not last:
                self.probe(progress)
            if (due or stopping) and not last:
                self.save(progress)
            if stopping and not last:
                return progress, False
        return progress, True

    def _step(self, batch: StepBatch, targets: int, rate: float, progress: Progress) -> tuple[Tensor, Tensor]:
        """The gradients of one step: (own summed loss, gradient norm). targets: of all processes."""
        world, training = self.world, self.training
        device, total_step = world.device, progress.total_steps
        # Wrappers average gradients over processes; times their number this is the mean over all targets.
        scale = world.size / max(targets, 1)
        set_rate(training.optimizer, rate)
        if self.recipe.engine.dropout > 0:
            torch.manual_seed(int(seed_words("dropout", self.recipe.seeds.training, total_step, world.rank)[0]))
        total = torch.zeros((), device=device)
        for number, micro in enumerate(batch.micros):
            more = number < len(batch.micros) - 1
            with _accumulating(training.wrapped, more), autocast(training.precision, device):
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
        )
        return loss

    def _update(self, norm: Tensor, progress: Progress) -> bool:
        """Take the optimiser's step, unless the gradients are a spike and the recipe skips such; whether it was."""
        limit = self.recipe.optimizer.skip_spikes
        spike = limit is not None and is_spike(float(norm), progress.norms, limit)
        if not spike:
            self.training.optimizer.step()
        clear_gradients(self.training.optimizer, self.world.device, processes=self.world.size)
        return spike

    def _norms(self, progress: Progress, norm: Tensor, skipped: bool) -> tuple[float, ...]:
        """The latest gradient norms that were no spikes; none are kept where nobody asks for them."""
        if self.recipe.optimizer.skip_spikes is None or skipped:
            return progress.norms
        return (*progress.norms, float(norm))[-REMEMBERED:]

    def _tell_spike(self, progress: Progress, norm: Tensor) -> None:
        """One line on stderr and in the metrics."""
        if self.world.first:
            logging.getLogger("trainer").warning(
                "step %d of phase '%s' skipped: gradient norm %.3g, usually %.3g",
                progress.step,
                self.phase.name,
                float(norm),
                statistics.median(progress.norms) if progress.norms else math.nan,
            )
        if self.metrics is not None:
            where = {"phase": self.phase.name, "step": progress.step, "tokens": progress.total_tokens}
            finite = float(norm) if math.isfinite(float(norm)) else None
            self.metrics.write({"event": "spike", "total_step": progress.total_steps, **where, "gradient_norm": finite})

    def _report(self, progress: Progress, total: Tensor, targets: int, norm: Tensor, rate: float) -> None:
        """Log a step. Raises TrainingError when its loss is not finite, before anything could be saved."""
        loss = float(self.world.total(total.clone()).item()) / max(targets, 1)
        self.last_loss = loss
        skips = self.recipe.optimizer.skip_spikes is not None and not self._stuck(progress)
        if not (math.isfinite(loss) and math.isfinite(float(norm))) and not skips:
            raise TrainingError(
                f"the loss of phase '{self.phase.name}' is not finite at step {progress.step}",
                hint="continue from the last checkpoint with a smaller rate or engine.precision=fp32",
            )
        if not math.isfinite(loss):
            return  # told as a spike
        now = time.perf_counter()
        then, step = self._since
        speed = (progress.step - step) * self.recipe.step_tokens_of(self.phase) / max(now - then, 1e-9)
        self._since = (now, progress.step)
        left = (self.recipe.total_tokens - progress.total_tokens) / speed if speed else None
        self.listener(
            Tick(
                f"phase {self.index + 1}/{len(self.recipe.phases)} {self.phase.name}",
                progress.total_steps,
                self.recipe.total_steps,
                loss,
                speed,
                left,
            )
        )
        if self.metrics is not None:
            self.metrics.write(
                {
                    "event": "train",
                    "total_step": progress.total_steps,
                    "phase": self.phase.name,
                    "objective": self.phase.direction(progress.step - 1),
                    "step": progress.step,
                    "tokens": progress.total_tokens,
                    "loss": loss,
                    "learning_rate": rate,
                    "gradient_norm": float(norm),
                    "targets": targets,
                    "tokens_per_second": round(speed, 1),
                    "mfu": self._mfu(speed),
                    "memory_bytes": _memory(self.world),
                    "seconds": round(progress.seconds, 3),
                }
            )

    def _stuck(self, progress: Progress) -> bool:
        """Whether more steps were skipped than a spike explains."""
        return progress.skipped > max(10, progress.step // 2)

    def _mfu(self, speed: float) -> float | None:
        if self.world.device.type != "cuda":
            return None
        peak = peak_of(torch.cuda.get_device_name(self.world.device))
        return None if peak is None else round(speed * self.token_flops / peak / self.world.size, 4)

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
        if self.metrics is not None:
            self.metrics.write(
                {
                    "event": "evaluation",
                    "total_step": progress.total_steps,
                    "phase": self.phase.name,
                    "objective": direction,
                    "step": progress.step,
                    "tokens": progress.total_tokens,
                    "loss": value,
                    "targets": targets,
                    **({"losses": self.losses} if self.losses else {}),
                }
            )
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
        share = max(1, self.recipe.batch_of(self.phase).sequences // self.world.size)
        size = min(self.recipe.batch_of(self.phase).micro or share, share, 64)
        chunks = [range(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
        sums = torch.zeros(2, device=self.world.device, dtype=torch.float64)
        module = self.training.wrapped
        module.eval()
        # Every process makes the same number of forward passes, as sharded weights need.
        for turn in range(math.ceil(len(chunks) / self.world.size)):
            number = turn * self.world.size + self.world.rank
            micro, targets = self.batches.held_out(shards, chunks[number % len(chunks)], direction)
            with torch.no_grad(), autocast(self.training.precision, self.world.device):
                loss = self._loss(micro, causal=direction == "clm")
            if number < len(chunks):
                sums += torch.tensor([float(loss), targets], device=sums.device, dtype=sums.dtype)
        module.train()
        if isinstance(module, FSDPModule):
            module.reshard()  # a forward pass without a backward one leaves the outer weights gathered
        self.world.total(sums)
        return float(sums[0] / sums[1].clamp_min(1)), int(sums[1])


def is_spike(norm: float, before: Sequence[float], limit: float) -> bool:
    """Whether a gradient norm is not finite, or `limit` times the median of those `before`, once there are ten."""
    if not math.isfinite(norm):
        return True
    return len(before) >= 10 and norm > limit * statistics.median(before)


@contextlib.contextmanager
def _accumulating(module: nn.Module, more: bool) -> Iterator[None]:
    """Leave gradients where they are until the step's last forward pass."""
    if isinstance(module, DistributedDataParallel):
        with module.no_sync() if more else contextlib.nullcontext():
            yield
        return
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(not more)
    yield


def _clip(module: nn.Module, limit: float | None) -> Tensor:
    """The global gradient norm, clipped to `limit` where there is one."""
    if limit is not None:
        norm = nn.utils.clip_grad_norm_(module.parameters(), limit)
    else:
        norm = nn.utils.get_total_norm([p.grad for p in module.parameters() if p.grad is not None])
    full: Tensor = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
    return full


def _memory(world: World) -> int:
    if world.device.type == "cuda":
        return torch.cuda.max_memory_allocated(world.device)
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
