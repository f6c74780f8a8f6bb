"""What a phase trains: model, optimiser and wrapper, made anew for each phase from the state before
it.

Every phase, first or resumed, starts here, so that a resume and an uninterrupted run share one
path, and frozen layers are decided before anything is wrapped.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedModel

from biobench.core.attention import Pair, states_and_gradients
from trainer.model import attention, guard
from trainer.model.families import layers_of
from trainer.model.guard import GuardReport, freeze
from trainer.model.network import Packing, Trainee, has_dropout, set_dropout
from trainer.recipe.spec import Recipe
from trainer.train import checkpoint
from trainer.train.distributed import World
from trainer.train.optimizer import make_optimizer


@dataclass
class PreparedPhase:
    """A phase ready to train. module: the trainee; wrapped: what the loop calls (itself, DDP, or
    FSDP2).
    """

    module: Trainee
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    report: GuardReport
    precision: str
    kernels: dict[str, str]
    """What computes the attention of each kind of layer."""
    zeroed: list[nn.Module]
    """Layers whose gradients are zeroed."""


def precision_of(recipe: Recipe, device: torch.device) -> str:
    """``bf16`` or ``fp32``; auto is bf16 on a GPU."""
    usual = "bf16" if device.type == "cuda" else "fp32"
    return usual if recipe.engine.precision == "auto" else recipe.engine.precision


def prepare(
    recipe: Recipe, phase_index: int, model: PreTrainedModel, state: Path | None, world: World
) -> PreparedPhase:
    """Make phase number `phase_index` ready: read `state`, freeze, check the direction, wrap.

    model: weights of the first phase, or the architecture that `state` (a checkpoint) is read into.
    Raises ModelError, StoreError.
    """
    phase = recipe.phases[phase_index]
    if state is not None:
        checkpoint.load_weights(state, model, world)
    set_dropout(model, recipe.engine.dropout)
    zeroed = freeze(model, phase.freeze)
    model.to(world.device)  # type: ignore[arg-type]
    module = Trainee(model)
    kind = precision_of(recipe, world.device)
    causal = phase.objective == "clm"

    def forward(ids: Tensor) -> Tensor:
        with autocast(kind, world.device):
            return module.logits(ids, causal=causal)

    report = guard.check(model, forward, causal=causal)
    kernels = _kernels(
        module,
        causal,
        kind,
        world.device,
        isolated=phase.isolate_documents,
        length=recipe.length_of(phase),
    )
    if recipe.engine.activation_checkpointing:
        model.gradient_checkpointing_enable(  # type: ignore[no-untyped-call]
            gradient_checkpointing_kwargs={"use_reentrant": False}
        )
    if recipe.engine.compiles(world.device.type):
        # Three kinds of layer share one code object, each in several shapes and with and without
        # gradients.
        torch._dynamo.config.recompile_limit = 64
        # layers are compiled one by one: splitting their graphs at DDP's buckets would only cut
        # them to pieces
        torch._dynamo.config.optimize_ddp = False
        for layer in layers_of(model):
            layer.compile(dynamic=None if phase.isolate_documents else False)
        hint = "use engine.compile=false"
        guard.check_leak(forward, guard.probe_tokens(model), model, causal=causal, hint=hint)
    module.train()
    module.compiled_loss = recipe.engine.compiles(world.device.type)
    wrapped = _wrap(recipe, module, world)
    optimizer = make_optimizer(model, recipe.optimizer)
    if state is not None:
        checkpoint.load_moments(state, model, optimizer, world)
    return PreparedPhase(module, wrapped, optimizer, report, kind, kernels, zeroed)


def autocast(precision: str, device: torch.device) -> torch.autocast:
    """Mixed precision over float32 weights, or none."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def _kernels(
    module: Trainee,
    causal: bool,
    precision: str,
    device: torch.device,
    *,
    isolated: bool,
    length: int,
) -> dict[str, str]:
    """What computes the layers as they will be trained, dropout included; a GPU without a kernel is
    warned of. length: tokens of a window.
    """
    tokens = guard.probe_tokens(module.model)
    window = tokens.repeat(1, 1 + length // tokens.shape[1])[:, :length]

    def hidden(ids: Tensor, *, apart: bool) -> Tensor:
        """Of one document, by the path that isolated documents take or by that of whole windows."""
        ends = torch.tensor([0, ids.shape[1]], dtype=torch.int32, device=device)
        packing = Packing(torch.zeros_like(ids), ends) if apart else None
        return module.hidden(ids, causal=causal, packing=packing)

    def trial(ids: Tensor, kind: str) -> Pair:
        """States and gradients at rest."""
        module.eval()
        with autocast(kind, device):
            return states_and_gradients(module.model, lambda: hidden(ids, apart=True))

    refusals: list[str] = []
    if attention.KERNELS and device.type in attention.DEVICES and precision == "bf16":
        refusals = attention.prove_kernels(
            lambda exact: trial(tokens, "fp32" if exact else "bf16"),
            lambda: trial(window, "bf16"),
            drops=has_dropout(module),
        )
    module.train()
    with (
        attention.noting() as kernels,
        torch.no_grad(),
        autocast(precision, device),
        torch.random.fork_rng([]),
    ):
        hidden(tokens, apart=isolated)
    dense = sorted(kind for kind, path in kernels.items() if path == attention.DENSE)
    if dense and device.type in attention.DEVICES:
        logging.getLogger("trainer").warning(
            "%s runs over a mask of tokens x tokens, slow and large: %s; install flash-attn, use "
            "bf16, or set engine.dropout=0",
            " and ".join(dense),
            "; ".join(refusals) or f"no kernel for windows in {precision} with this dropout",
        )
    return kernels


def _wrap(recipe: Recipe, module: Trainee, world: World) -> nn.Module:
    if world.size == 1:
        return module
    if recipe.engine.distributed == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(world.device.type, (world.size,))
        for layer in layers_of(module.model):
            fully_shard(layer, mesh=mesh)
        fully_shard(module, mesh=mesh)
        return module
    devices = [world.device.index] if world.device.type == "cuda" else None
    return DistributedDataParallel(
        module, device_ids=devices, gradient_as_bucket_view=True, broadcast_buffers=False
    )
