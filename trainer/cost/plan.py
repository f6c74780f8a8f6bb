"""What a recipe will cost, before it costs anything: steps, tokens, arithmetic, memory, time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from biobench.core.progress import about
from biobench.errors import UsageError
from trainer.cost.flops import PEAK, phase_cost
from trainer.model.families import layers_of
from trainer.model.guard import check_phases, freeze
from trainer.model.loss import CHUNK_LOGITS
from trainer.model.network import build_model, make_config, read_config
from trainer.model.tokens import ROLES
from trainer.recipe.fields import human
from trainer.recipe.phases import Phase
from trainer.recipe.spec import Recipe, TokenizerTraining


def _shape(
    kind: str, width: int, inner: int, layers: int, heads: int, words: int
) -> dict[str, Any]:
    """The config fields of a model type's size. words: entries of the vocabulary."""
    return _OF_KIND[kind] | {
        "model_type": kind,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": words,
    }


_OF_KIND = {
    "modernbert": {
        "local_attention": 128,
        "global_attn_every_n_layers": 3,
        "max_position_embeddings": 8192,
    },
    "gemma3_text": {
        "num_key_value_heads": 1,
        "head_dim": 256,
        "sliding_window": 512,
        "query_pre_attn_scalar": 256,
        "max_position_embeddings": 32768,
    },
}
SHAPES = {
    "answerdotai/ModernBERT-base": _shape("modernbert", 768, 1152, 22, 12, 50368),
    "answerdotai/ModernBERT-large": _shape("modernbert", 1024, 2624, 28, 16, 50368),
    "almanach/moderncamembert-base": _shape("modernbert", 768, 1152, 22, 12, 32768),
    "almanach/moderncamembert-large": _shape("modernbert", 1024, 2624, 28, 16, 32768),
    "google/gemma-3-270m": _shape("gemma3_text", 640, 2048, 18, 4, 262144),
}
"""Hub id to config fields. The first four are the paper's table; Gemma-3's are from its released
config.
"""


UTILISATION = 0.35
"""Part of a GPU's data-sheet peak that training is expected to reach with windowed flash kernels:
the facts sheet's estimate for base and large at 8,192 tokens spans 0.28-0.43. An assumption, not a
measurement.
"""


@dataclass(frozen=True)
class PhasePlan:
    """One phase that is trained. flops: operations of the phase; seconds: an estimate on the named
    GPUs.
    """

    name: str
    objective: str
    tokens: int
    steps: int
    flops: float
    flops_per_token: float
    seconds: float


@dataclass(frozen=True)
class TrainingPlan:
    """A recipe's plan. Memory is bytes on one GPU; tokens, steps, flops and seconds are sums over
    the phases.
    """

    recipe: str
    architecture: str
    parameters: int
    step_tokens: int
    micro_windows: int
    gpu: str
    gpus: int
    memory_bytes: int
    """An estimate: `state_bytes`, what one micro-batch keeps for its backward pass, and one chunk
    of logits.
    """
    state_bytes: int
    """Weights, gradients and both moments in float32, and the weights' copies in bf16."""
    steps: int
    tokens: int
    flops: float
    seconds: float
    phases: tuple[PhasePlan, ...]
    reused: tuple[str, ...]
    """Names of the phases that are taken over from another run; nothing above counts them."""
    most_words: int | None = None
    """Size of the vocabulary that is asked of a tokenizer which is trained first; it may get
    fewer.
    """

    def lines(self) -> list[str]:
        """The plan as text."""
        model = f"{self.architecture}, {human(self.parameters)} parameters"
        lines = [f"{self.recipe}: {model}, {human(self.step_tokens)} tokens a step"]
        for name in self.reused:
            lines.append(f"  {name}: taken over, not trained again")
        for phase in self.phases:
            size = f"{human(phase.tokens)} tokens, {phase.steps} steps, {phase.flops:.3g} FLOP"
            lines.append(f"  {phase.name} ({phase.objective}): {size}, {about(phase.seconds)}")
        if self.most_words is not None:
            lines.append(
                f"  counted with a vocabulary of {self.most_words:,}: a small text gives fewer "
                f"tokens, and the ledger then less FLOP"
            )
        windows = "1 window" if self.micro_windows == 1 else f"{self.micro_windows} windows"
        memory = f"about {self.memory_bytes / 2**30:.1f} GiB"
        lines.append(f"  memory a GPU, micro-batch of {windows}: {memory}")
        lines.append(
            f"  time on {self.gpus} x {self.gpu}: {about(self.seconds)}, at "
            f"{UTILISATION:.0%} of peak (--gpu, --gpus: on others)"
        )
        return lines


def skeleton(recipe: Recipe) -> PreTrainedModel:
    """The recipe's model without weights. Raises ModelError when its architecture is unknown."""
    base = recipe.base
    shape = base.config or SHAPES.get(str(base.model))
    if shape is None:
        config = read_config(str(base.model), base.revision)
    else:
        # Ids of special tokens do not matter here, but must lie inside the vocabulary.
        fields: dict[str, Any] = dict.fromkeys((f"{role}_token_id" for role in ROLES), 0)
        if isinstance(base.tokenizer, TokenizerTraining):
            fields["vocab_size"] = base.tokenizer.vocabulary
        fields |= {name: value for name, value in shape.items() if value is not None}
        config = make_config(fields)
    with torch.device("meta"):
        return build_model(config)


def make_plan(recipe: Recipe, *, gpu: str, gpus: int) -> TrainingPlan:
    """The plan of `recipe` on `gpus` GPUs of a named kind.

    Raises UsageError for an unknown kind and a number that training would refuse, ModelError as
    `check_phases` does.
    """
    if gpu not in PEAK:
        raise UsageError(f"no figures for GPU '{gpu}'", hint="known: " + ", ".join(sorted(PEAK)))
    recipe.check_shares(gpus, "GPUs")
    model = skeleton(recipe)
    check_phases(model, recipe)
    names = [phase.name for phase in recipe.phases]
    reused = 0
    if recipe.reuse is not None:
        reused = names.index(recipe.reuse.through) + 1
    trained = recipe.phases[reused:]
    speed = PEAK[gpu] * UTILISATION * gpus
    phases = [_phase_plan(recipe, phase, model, speed) for phase in trained]
    micro_tokens, micro_windows = max(_micro_batch(recipe, phase, gpus) for phase in trained)
    predicted = max(phase.predicted for phase in trained)
    most_words = None
    if isinstance(recipe.base.tokenizer, TokenizerTraining):
        most_words = recipe.base.tokenizer.vocabulary
    state = _state_bytes(recipe, model.num_parameters(), gpus)
    activations = micro_tokens * activation_bytes(recipe, model)
    return TrainingPlan(
        recipe=recipe.name,
        architecture=model.config.model_type,
        parameters=model.num_parameters(),
        step_tokens=recipe.step_tokens,
        micro_windows=micro_windows,
        gpu=gpu,
        gpus=gpus,
        memory_bytes=state + activations + _logit_bytes(model, predicted * micro_tokens),
        state_bytes=state,
        steps=sum(phase.steps for phase in phases),
        tokens=sum(phase.tokens for phase in phases),
        flops=sum(phase.flops for phase in phases),
        seconds=sum(phase.seconds for phase in phases),
        phases=tuple(phases),
        reused=tuple(names[:reused]),
        most_words=most_words,
    )


def _micro_batch(recipe: Recipe, phase: Phase, gpus: int) -> tuple[int, int]:
    """(tokens, windows) of one forward pass on a GPU."""
    batch = recipe.batch_of(phase)
    windows = min(batch.micro or batch.sequences, batch.sequences // gpus)
    return windows * recipe.length_of(phase), windows


def _phase_plan(recipe: Recipe, phase: Phase, model: PreTrainedModel, speed: float) -> PhasePlan:
    """What a phase costs. speed: operations per second of all GPUs; freezes what the phase does."""
    freeze(model, phase.freeze)
    cost = phase_cost(model, phase, length=recipe.length_of(phase))
    steps = recipe.steps(phase)
    tokens = steps * recipe.step_tokens_of(phase)
    return PhasePlan(
        name=phase.name,
        objective=phase.objective,
        tokens=tokens,
        steps=steps,
        flops=cost * tokens,
        flops_per_token=cost,
        seconds=cost * tokens / speed,
    )


def _state_bytes(recipe: Recipe, parameters: int, gpus: int) -> int:
    """Weights, gradients and both moments in float32, and the weights' copies in bf16."""
    shards = gpus if recipe.engine.distributed == "fsdp2" else 1
    copies = 0 if recipe.engine.precision == "fp32" else 2
    return 16 * parameters // shards + copies * parameters


def _logit_bytes(model: PreTrainedModel, targets: float) -> int:
    """A chunk of logits and of their gradient, the head's gradient, and the states with a target,
    all in float32.
    """
    vocabulary = model.config.vocab_size
    width = model.config.hidden_size
    chunk = max(CHUNK_LOGITS["cuda"], 64 * vocabulary)
    return int(8 * chunk + 4 * vocabulary * width + 4 * targets * width)


def activation_bytes(recipe: Recipe, model: PreTrainedModel) -> int:
    """Bytes kept per token for the backward pass; under activation checkpointing each layer's input
    and one layer.

    An estimate for compiled layers: each keeps two inputs of norms in float32, and of every linear
    map what goes in and what comes out.
    """
    layers = layers_of(model)
    width = model.config.hidden_size
    size = 4 if recipe.engine.precision == "fp32" else 2
    each = 8 * width
    for module in layers[0].modules():
        if isinstance(module, nn.Linear):
            each += size * (module.in_features + module.out_features)
    if recipe.engine.activation_checkpointing:
        return int(4 * width * len(layers) + each)
    return int(each * len(layers))
