"""How fast the trainer is: against the HF Trainer on a CPU, and for the paper's shapes on a GPU.

``python -m trainer.bench`` prints tokens per second of both on the same module, attention function, precision,
batches, optimiser and clipping; the HF Trainer computes the stock loss over all logits, under the memory settings
that each side has by itself, and writes its log lines. Every measurement has a process of its own. The step
without projection and loss is measured too: it bounds what any loss path can gain on that shape. On a GPU it
also prints tokens per second and MFU of the base and large shapes at 8,192 tokens with random weights.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedModel

from trainer import attention, objectives
from trainer.families import family_of, layers_of
from trainer.flops import peak_of, token_cost
from trainer.loss import IGNORE
from trainer.memory import clear_gradients, keep_freed_memory
from trainer.model import Trainee
from trainer.objectives import Targets, Vocabulary
from trainer.optim import make_optimizer, set_rate
from trainer.phase import autocast
from trainer.recipe import Masking, Optimizer
from trainer.shapes import SHAPES

TOY: dict[str, Any] = {
    "model_type": "modernbert",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "local_attention": 64,
    "max_position_embeddings": 1024,
}
"""A toy width; its vocabulary is one of `VOCABULARIES`."""
VOCABULARIES = (32768, 1600)
"""The real French vocabulary, so that the loss path meets what it meets in practice; the toy recipes' own."""
OBJECTIVES = ("clm", "mlm")
SIDES = ("ours", "theirs", "bare")
WARM, WINDOWS, LENGTH = 2, 8, 256
"""Steps before the clock starts; windows a step and their tokens."""
_OPTIMIZER = Optimizer(learning_rate=1e-4)
_CLIP, _LOG = 1.0, 20
"""As in the toy recipes: the norm both sides clip to (the HF Trainer's default too); its steps between log lines."""
_SPECIAL = 5


@dataclass(frozen=True)
class Once:
    """One measurement: tokens per second, and the loss of the first step (both sides must agree on it)."""

    tokens_per_second: float
    first_loss: float


@dataclass(frozen=True)
class Speed:
    """Rounds of one objective and vocabulary, each (ours, the HF Trainer's, ours without projection and loss)."""

    objective: str
    vocabulary: int
    rounds: tuple[tuple[Once, Once, Once], ...]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs within each round, ascending: what slows the machine for minutes hurts both alike."""
        return sorted(mine.tokens_per_second / hf.tokens_per_second for mine, hf, _ in self.rounds)

    @property
    def bound(self) -> float:
        """Median ratio if projection and loss cost nothing."""
        return statistics.median(bare.tokens_per_second / hf.tokens_per_second for _, hf, bare in self.rounds)

    def line(self) -> str:
        """What is printed: median speeds, median ratio and its range, the first losses."""
        mine, hf = (statistics.median(r[i].tokens_per_second for r in self.rounds) for i in (0, 1))
        ratios, (first, other, _) = self.ratios, self.rounds[0]
        return (
            f"{self.objective}, vocabulary {self.vocabulary:,}: {mine:,.0f} tokens/s, HF Trainer {hf:,.0f}, "
            f"ratio {statistics.median(ratios):.2f} (median of {len(ratios)}, {ratios[0]:.2f} to {ratios[-1]:.2f}; "
            f"{self.bound:.2f} if projection and loss cost nothing; "
            f"first losses {first.first_loss:.4f}, {other.first_loss:.4f})"
        )


def _model(shape: dict[str, Any], device: torch.device) -> PreTrainedModel:
    fields = dict(shape)
    kind = fields.pop("model_type")
    ids = ("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **fields, **dict.fromkeys(ids, 0))
    model: PreTrainedModel = getattr(transformers, family_of(kind).auto).from_config(
        config, attn_implementation=attention.NAME, dtype=torch.float32
    )
    model.to(device)  # type: ignore[arg-type]
    return model


def _batches(objective: str, count: int, windows: int, length: int, vocabulary: int) -> list[Targets]:
    special = np.zeros(vocabulary, dtype=bool)
    special[:_SPECIAL] = True
    words = Vocabulary(end=3, mask=4, special=special, ordinary=np.arange(_SPECIAL, vocabulary))
    state = np.random.RandomState(0)
    made: list[Targets] = []
    for number in range(count):
        tokens = state.randint(_SPECIAL, vocabulary, (windows, length)).astype(np.int64)
        if objective == "clm":
            made.append(objectives.next_token(tokens, words, isolate=False))
        else:
            keys = [("bench", number, row) for row in range(windows)]
            made.append(objectives.masked(tokens, words, Masking(rate=0.3), keys))
    return made


class _Bare(Trainee):
    """The same step without projection and loss."""

    def forward(
        self, input_ids: Tensor, positions: Tensor, targets: Tensor, *, causal: bool, **unused: Tensor | None
    ) -> Tensor:
        return self.hidden(input_ids, causal=causal).sum()


def ours(
    model: PreTrainedModel, batches: list[Targets], *, causal: bool, precision: str, warm: int, kind: type[Trainee]
) -> tuple[float, float]:
    """Our step over `batches`: (tokens per second after `warm` steps, loss of the first step)."""
    module, optimizer = kind(model).train(), make_optimizer(model, _OPTIMIZER)
    device = next(model.parameters()).device
    began, first = 0.0, 0.0
    for number, batch in enumerate(batches):
        if number == warm:
            began = _now(device)
        set_rate(optimizer, _OPTIMIZER.learning_rate)
        arguments = [torch.from_numpy(x).to(device) for x in (batch.inputs, batch.positions, batch.targets)]
        with autocast(precision, device):
            loss = module(*arguments, causal=causal) / max(int((batch.targets != IGNORE).sum()), 1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), _CLIP)
        optimizer.step()
        clear_gradients(optimizer, device)
        if number == 0:
            first = float(loss.detach())
    tokens = sum(b.inputs.size for b in batches[warm:])
    return tokens / (_now(device) - began), first


class _Stock(nn.Module):
    """The same module with the stock loss: logits of all positions, cross-entropy in float32."""

    def __init__(self, model: PreTrainedModel, *, causal: bool) -> None:
        super().__init__()
        self.module = Trainee(model)
        self.causal = causal
        self.first: float | None = None

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.module.logits(input_ids, causal=self.causal).float()
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORE)
        if self.first is None:
            self.first = float(loss.detach())
        return {"loss": loss}


def theirs(
    model: PreTrainedModel, batches: list[Targets], *, causal: bool, precision: str, warm: int
) -> tuple[float, float]:
    """The HF Trainer over the same batches: (tokens per second after `warm` steps, loss of the first step)."""
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    device = next(model.parameters()).device
    rows: list[dict[str, Tensor]] = []
    for batch in batches:
        labels = np.full(batch.inputs.size, IGNORE, dtype=np.int64)
        labels[batch.positions] = batch.targets
        rows += [
            {"input_ids": torch.from_numpy(i), "labels": torch.from_numpy(x)}
            for i, x in zip(batch.inputs, labels.reshape(batch.inputs.shape), strict=True)
        ]
    times: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            times.append(_now(device))

    with tempfile.TemporaryDirectory() as folder:
        stock = _Stock(model, causal=causal)
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=len(batches[0].inputs),
            max_steps=len(batches),
            learning_rate=_OPTIMIZER.learning_rate,
            lr_scheduler_type="constant",
            adam_beta2=_OPTIMIZER.beta2,
            adam_epsilon=_OPTIMIZER.epsilon,
            max_grad_norm=_CLIP,
            logging_steps=_LOG,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            log_level="error",
            use_cpu=device.type == "cpu",
            bf16=precision == "bf16",
            remove_unused_columns=False,
            dataloader_pin_memory=device.type == "cuda",
        )
        trainer = Trainer(model=stock, args=arguments, train_dataset=_Rows(rows), callbacks=[Clock()])
        trainer.remove_callback(PrinterCallback)
        trainer.get_train_dataloader = lambda: torch.utils.data.DataLoader(  # type: ignore[method-assign]
            _Rows(rows), batch_size=len(batches[0].inputs), shuffle=False
        )
        trainer.train()
    tokens = sum(b.inputs.size for b in batches[warm:])
    assert stock.first is not None
    return tokens / (times[-1] - times[warm - 1]), stock.first


class _Rows(torch.utils.data.Dataset[dict[str, Tensor]]):
    def __init__(self, rows: list[dict[str, Tensor]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return self.rows[index]


def _contender(side: str, objective: str, vocabulary: int, steps: int) -> Once:
    """One side measured in this process."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = _batches(objective, steps + WARM, WINDOWS, LENGTH, vocabulary)
    model = _model({**TOY, "vocab_size": vocabulary}, device)
    causal, precision = objective == "clm", "bf16" if device.type == "cuda" else "fp32"
    if side == "theirs":
        return Once(*theirs(model, batches, causal=causal, precision=precision, warm=WARM))
    if device.type == "cpu":
        keep_freed_memory()  # as a run of the trainer does
    kind = _Bare if side == "bare" else Trainee
    return Once(*ours(model, batches, causal=causal, precision=precision, warm=WARM, kind=kind))


def _in_new_process(side: str, objective: str, vocabulary: int, steps: int) -> Once:
    """The same in a process of its own, so that neither side finds memory or kernels that the other prepared."""
    words = ["-m", "trainer.bench", "--side", side, "--objective", objective]
    words += ["--vocabulary", str(vocabulary), "--steps", str(steps)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the process of '{side}' ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return Once(**json.loads(done.stdout.splitlines()[-1]))


def against_hf(objective: str, vocabulary: int, *, steps: int, rounds: int) -> Speed:
    """All sides on the toy shape, `rounds` times in turn, who begins alternating, each time in a new process."""
    seen: list[tuple[Once, Once, Once]] = []
    for number in range(rounds):
        order = SIDES if number % 2 == 0 else SIDES[::-1]
        once = {side: _in_new_process(side, objective, vocabulary, steps) for side in order}
        seen.append((once["ours"], once["theirs"], once["bare"]))
    return Speed(objective, vocabulary, tuple(seen))


def on_gpu(name: str, objective: str, *, windows: int, steps: int = 12, warm: int = 4) -> tuple[float, float | None]:
    """(tokens per second, MFU or None for an unknown GPU) of a known shape at 8,192 tokens, random weights."""
    device = torch.device("cuda")
    model = _model(SHAPES[name], device)
    for layer in layers_of(model):
        layer.compile()
    batches = _batches(objective, steps + warm, windows, 8192, SHAPES[name]["vocab_size"])
    fixed = [
        objectives.pad(b, objectives.capacity(b.inputs.size, 8192, None if objective == "clm" else Masking(rate=0.3)))
        for b in batches
    ]
    speed, _ = ours(model, fixed, causal=objective == "clm", precision="bf16", warm=warm, kind=Trainee)
    cost = token_cost(model, length=8192, causal=objective == "clm", predicted=1.0 if objective == "clm" else 0.3)
    peak = peak_of(torch.cuda.get_device_name(device))
    return speed, None if peak is None else speed * cost.total / peak


def _now(device: torch.device) -> float:
    """Seconds. On a CPU with one thread, of processor time, which a busy machine does not stretch."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif torch.get_num_threads() == 1:
        return time.process_time()
    return time.perf_counter()


def _steps(vocabulary: int) -> int:
    """Enough for half a second or more at the toy width."""
    return 8 if vocabulary > 8192 else 40


def main(arguments: list[str] | None = None) -> int:
    """Print the comparison, and on a GPU the speeds of the paper's shapes."""
    parser = argparse.ArgumentParser(prog="python -m trainer.bench", description=__doc__)
    parser.add_argument("--steps", type=int, help="measured steps; default: 8, and 40 where the vocabulary is small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, action="append", help="default: 32,768, and 1,600 as the recipes")
    parser.add_argument("--objective", choices=OBJECTIVES, action="append", help="default: both")
    parser.add_argument("--windows", type=int, default=4, help="windows of 8,192 tokens per step on a GPU")
    parser.add_argument("--side", choices=SIDES, help="measure this side alone, here, and print JSON")
    given = parser.parse_args(arguments)
    kinds, sizes = given.objective or OBJECTIVES, given.vocabulary or VOCABULARIES
    if given.side is not None:
        print(json.dumps(asdict(_contender(given.side, kinds[0], sizes[0], given.steps or _steps(sizes[0])))))
        return 0
    for size in sizes:
        for objective in kinds:
            print(
                against_hf(objective, size, steps=given.steps or _steps(size), rounds=given.rounds).line(), flush=True
            )
    if torch.cuda.is_available():
        for name in ("answerdotai/ModernBERT-base", "answerdotai/ModernBERT-large"):
            for objective in kinds:
                speed, mfu = on_gpu(name, objective, windows=given.windows)
                shown = "unknown" if mfu is None else f"{mfu:.1%}"
                print(f"{name} {objective} at 8,192 tokens: {speed:,.0f} tokens/s, MFU {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
