"""What the speed comparison measures: the toy recipe's step, by us and by the HF Trainer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel

from trainer.model import objectives
from trainer.model.loss import IGNORE
from trainer.model.network import Trainee, build_model, make_config
from trainer.model.objectives import Targets, Vocabulary
from trainer.model.tokens import ROLES
from trainer.recipe.library import load_recipe
from trainer.recipe.phases import Masking
from trainer.recipe.spec import Optimizer, Recipe
from trainer.train.optimizer import make_optimizer, set_rate

RECIPE = "toy_detour"
"""The shipped recipe whose model, batch, sequence length, masking and optimiser are measured."""
_LOG = 20
"""Steps between the HF Trainer's log lines, as the toy recipes have it."""
_SPECIAL = 5


@lru_cache(maxsize=1)
def toy() -> tuple[Recipe, Masking]:
    """The toy recipe, and how it masks."""
    recipe = load_recipe(RECIPE)
    return recipe, next(p.masking for p in recipe.phases if p.masking is not None)


def build(shape: dict[str, Any]) -> PreTrainedModel:
    """A model of `shape` (config fields) with the same random weights each time and the windowed
    attention.
    """
    ids = {f"{role}_token_id": 0 for role in ROLES}
    torch.manual_seed(0)
    return build_model(make_config({**shape, **ids}))


def vocabulary_of(rows: int) -> Vocabulary:
    """The ids of a model with so many rows, of which the first are special."""
    special = np.arange(rows) < _SPECIAL
    return Vocabulary(end=3, mask=4, special=special, ordinary=np.flatnonzero(~special))


def make_batches(
    objective: str, count: int, windows: int, length: int, vocabulary: int, masking: Masking
) -> list[Targets]:
    """`count` batches of random tokens, the same each time: `windows` of `length` tokens, with
    their targets.
    """
    words = vocabulary_of(vocabulary)
    state = np.random.RandomState(0)
    made: list[Targets] = []
    for number in range(count):
        tokens = state.randint(_SPECIAL, vocabulary, (windows, length)).astype(np.int64)
        if objective == "clm":
            made.append(objectives.next_token(tokens, words, isolate=False))
        else:
            keys = [("bench", number, row) for row in range(windows)]
            made.append(objectives.masked(tokens, words, masking, keys))
    return made


def ours(
    model: PreTrainedModel,
    batches: list[Targets],
    after: Callable[[float | None], None],
    *,
    causal: bool,
    optimizer: Optimizer,
) -> None:
    """Our step over `batches`; `after` is called after each, with the loss of the first one."""
    module, adam = Trainee(model).train(), make_optimizer(model, optimizer)
    for number, batch in enumerate(batches):
        set_rate(adam, optimizer.learning_rate)
        arguments = map(torch.from_numpy, (batch.inputs, batch.positions, batch.targets))
        loss = module(*arguments, causal=causal) / max(int((batch.targets != IGNORE).sum()), 1)
        loss.backward()
        if optimizer.gradient_clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), optimizer.gradient_clip)
        adam.step()
        adam.zero_grad(set_to_none=False)
        after(float(loss.detach()) if number == 0 else None)


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
    model: PreTrainedModel,
    batches: list[Targets],
    after: Callable[[float | None], None],
    *,
    causal: bool,
    optimizer: Optimizer,
) -> None:
    """The HF Trainer over the same batches; `after` is called after each, with the loss of the
    first one.
    """
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    rows: list[dict[str, Tensor]] = []
    for batch in batches:
        labels = np.full(batch.inputs.size, IGNORE, dtype=np.int64)
        labels[batch.positions] = batch.targets
        rows += [
            {"input_ids": torch.from_numpy(i), "labels": torch.from_numpy(x)}
            for i, x in zip(batch.inputs, labels.reshape(batch.inputs.shape), strict=True)
        ]

    class Clock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            after(stock.first if state.global_step == 1 else None)

    size = len(batches[0].inputs)
    with tempfile.TemporaryDirectory() as folder:
        stock = _Stock(model, causal=causal)
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=size,
            max_steps=len(batches),
            learning_rate=optimizer.learning_rate,
            lr_scheduler_type="constant",
            adam_beta2=optimizer.beta2,
            adam_epsilon=optimizer.epsilon,
            weight_decay=optimizer.weight_decay / optimizer.learning_rate,
            max_grad_norm=optimizer.gradient_clip or 0.0,
            logging_steps=_LOG,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            log_level="error",
            use_cpu=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        loader: Any = torch.utils.data.DataLoader(rows, batch_size=size, shuffle=False)  # type: ignore[arg-type]
        trainer = Trainer(model=stock, args=arguments, train_dataset=rows, callbacks=[Clock()])  # type: ignore[arg-type]
        trainer.remove_callback(PrinterCallback)
        trainer.get_train_dataloader = lambda: loader  # type: ignore[method-assign]
        trainer.train()
