"""One checkpoint fine-tuned on one task for any number of seeds.

The encoder is loaded and proved once; each seed starts from a copy of its weights saved in memory,
and from the same encoded documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor

from biobench.core.machine import Precision, is_out_of_memory
from biobench.core.packages import from_package
from biobench.core.progress import ProgressNote
from biobench.core.stop import STOP
from biobench.core.tokenizer import probe_ids
from biobench.errors import ModelError, TrainingError
from biobench.finetune.adapters import adapted
from biobench.finetune.features import Features, extract
from biobench.finetune.loop import NonFiniteLossError, Outcome, Progress, Run
from biobench.finetune.network import (
    Network,
    chosen_seed,
    copied_weights,
    micro_batch_tokens,
    settled_precision,
)
from biobench.finetune.prepare import Prepared
from biobench.finetune.probe import compare_texts, rank_concepts, train_probe
from biobench.finetune.savepoint import NOT_KEPT, Savepoint, resumed_state
from biobench.models.attention import KERNEL_DEVICES
from biobench.models.encoder import Encoder
from biobench.models.loading import Checkpoint, load_tokenizer
from biobench.models.weights import load_base
from biobench.schema.task import TaskSpec


@dataclass(slots=True)
class LoadedEncoder:
    """An encoder on its device with the weights that every run starts from."""

    checkpoint: Checkpoint
    encoder: Encoder
    initial: dict[str, Tensor]
    parameters: int
    features: Features | None = None
    """States of the frozen encoder on the task in hand, shared by the seeds."""


@STOP.at_once()
def load_encoder(checkpoint: Checkpoint, device: torch.device) -> LoadedEncoder:
    """Load once, keep the initial weights in memory.

    Raises ModelError, and RunStoppedError as soon as a signal asks to stop.
    """
    if device.index is not None:
        # Kernels and libraries that are given no device use the current one.
        torch.cuda.set_device(device)
    tokenizer = load_tokenizer(checkpoint)
    model = load_base(checkpoint, torch.float32)
    try:
        with deterministic(device):
            pad_id = int(tokenizer.pad_token_id or 0)
            encoder = Encoder(model, pad_id, probe_ids(tokenizer)).to(device)
            if device.type in KERNEL_DEVICES:
                encoder.prove_kernels()
                encoder.compile_layers()
            else:
                encoder.use_kernels(())
    except Exception as error:  # the model's code may ask for more than token ids
        if is_out_of_memory(error):
            raise
        raise _does_not_run(error, checkpoint) from error
    parameters = sum(p.numel() for p in encoder.parameters())
    return LoadedEncoder(checkpoint, encoder, copied_weights(encoder), parameters)


def _does_not_run(error: Exception, checkpoint: Checkpoint) -> ModelError:
    """The refusal of a model that gives no states, with whose error it is."""
    cause = " ".join(str(error).split()) or type(error).__name__
    message = f"the model does not run on token ids alone: {cause}"
    hint = "give an encoder of text that AutoModel loads and that needs no other input"
    if from_package(error, transformers):
        version = transformers.__version__
        message = f"transformers {version} itself cannot run this model on token ids: {cause}"
        hint = "try another version of transformers, or another encoder"
    return ModelError(message, hint=hint, file=checkpoint.folder)


def new_network(loaded: LoadedEncoder, prepared: Prepared) -> Network:
    """The encoder with a fresh head of the task's kind."""
    width = loaded.encoder.width
    outputs = len(prepared.outputs)
    head = prepared.kind.build_head(prepared.spec.head, loaded.checkpoint, width, outputs)
    return Network(loaded.encoder, head.to(loaded.encoder.device))


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Meanwhile CUDA's kernels sum in one order wherever they have such a way; afterwards what was
    set before is set.

    The kernels of a CPU always do, for a given number of threads. An operation without such a way
    runs as it is (`warn_only`). The backward passes of attention have one: torch's takes it where a
    step insists (`Run.strict`), flash-attn's where it is asked (`core.attention`).
    """
    if device.type != "cuda":
        yield
        return
    # cuBLAS reads it when it is first used.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    filling = torch.utils.deterministic
    enabled = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = filling.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    # The switch also fills every fresh tensor, which no run here needs and every step pays.
    filling.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(enabled, warn_only=warns)
        filling.fill_uninitialized_memory = filled  # type: ignore[attr-defined]


def finetune(
    loaded: LoadedEncoder,
    prepared: Prepared,
    seed: int,
    precision: Precision,
    progress: Progress,
    keep: Savepoint = NOT_KEPT,
) -> Outcome:
    """Fine-tune from the initial weights with this seed, or continue from what `keep` holds.

    A loss that is not finite in bf16 repeats the run in fp32. Of a probe the frozen encoder's
    states are kept, which take nearly all of its time. Raises TrainingError, and ModelError where
    the first token is to stand for a text that it does not see.
    """
    loaded.encoder.read_first_token(prepared.spec.reads_first_token)
    _check_pooling(loaded.encoder, prepared.spec)
    with deterministic(loaded.encoder.device):
        if prepared.spec.training.encoder == "frozen":
            loaded.encoder.load_state_dict(loaded.initial)
            return _probe(loaded, prepared, seed, precision, progress, keep)
        saved = resumed_state(keep, progress)
        precision, backoffs = settled_precision(loaded.encoder, precision)
        if saved is None:
            for note in backoffs:
                progress(0, 1, ProgressNote(note))
        else:
            precision = saved["precision"]
            backoffs = saved["backoffs"]

        def trained(precision: Precision, saved: dict[str, Any] | None) -> Outcome:
            network = _fresh_network(loaded, prepared, seed)
            budget = micro_batch_tokens(network.device)
            run = Run(network, prepared, seed, precision, budget, backoffs, progress, keep)
            with adapted(network, prepared.spec.training):
                return run.train(saved)

        if precision == "bf16":
            try:
                return trained(precision, saved)
            except NonFiniteLossError as error:
                saved = None
                keep.remove()
                backoffs.append(f"non-finite loss at {error}: run repeated in fp32")
        try:
            return trained("fp32", saved)
        except NonFiniteLossError as error:
            keep.remove()
            raise TrainingError(
                f"the loss is not finite in fp32 ({error})",
                hint="lower --set training.learning_rate, or check the checkpoint's weights",
            ) from error


def _fresh_network(loaded: LoadedEncoder, prepared: Prepared, seed: int) -> Network:
    """The encoder as it was loaded with a head drawn by the seed, and dropout about to be."""
    encoder = loaded.encoder
    encoder.load_state_dict(loaded.initial)
    encoder.zero_grad(set_to_none=True)  # a run that was abandoned leaves its gradients behind
    encoder.paths.clear()
    head_seed = chosen_seed(prepared.spec.training.head_seed, seed)
    torch.manual_seed(head_seed)
    network = new_network(loaded, prepared)
    if head_seed != seed:
        torch.manual_seed(seed)  # dropout stays that of the run's seed
    return network


def _check_pooling(encoder: Encoder, spec: TaskSpec) -> None:
    """Raise ModelError where the first token is to stand for a text that it does not see."""
    key, pooling = spec.pooling or ("", "none")
    if pooling != "cls" or encoder.first_token_reads_far:
        return
    seen = "its local window only"
    if not encoder.first_token_reads:
        seen = "nothing of the text, as under causal attention"
    raise ModelError(
        f"{key} is cls, but this encoder's first token sees {seen}",
        hint=f"use --set {key}=mean",
    )


def _probe(
    loaded: LoadedEncoder,
    prepared: Prepared,
    seed: int,
    precision: Precision,
    progress: Progress,
    keep: Savepoint,
) -> Outcome:
    """What the frozen encoder's states give; they are computed by the first seed and shared by the
    others.
    """
    spec = prepared.spec.probe
    ranked = prepared.kind.ranked
    if spec is not None and spec.kind == "similarity" and not ranked:
        tokenizer = load_tokenizer(loaded.checkpoint)
        return compare_texts(loaded.encoder, tokenizer, prepared, precision, progress, keep)
    features = loaded.features
    is_new = features is None or not features.of(prepared, precision)
    if features is None or is_new:
        loaded.features = features = None  # before the others take memory
        features = extract(loaded.encoder, prepared, precision, progress, keep=keep)
        loaded.features = features
    torch.manual_seed(seed)
    if ranked:
        outcome = rank_concepts(features, prepared, loaded.encoder)
    else:
        outcome = train_probe(features, prepared, seed, loaded.encoder, progress)
    if is_new:
        features.mark(outcome)
    return outcome
