"""Fine-tuned checkpoints: written by `--keep-model DIR`, and asked as they are by `biobench run MODEL --no-training`.

Two forms. Where the model library has a classification model that computes what the run's head computes, the folder
holds that model and loads in its pipelines; whether it does is not looked up but measured, on windows of the task. Its
labels are matched with a task's by name or by a declared map. Otherwise the folder holds the encoder, which loads as
any other, and the head beside it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from biobench.core.files import writing
from biobench.core.machine import Precision
from biobench.encode.tokens import Encoded
from biobench.errors import ModelError
from biobench.finetune.engine import load_encoder
from biobench.finetune.loop import Outcome, Progress
from biobench.finetune.network import Network, decide, micro_batch_tokens, probabilities
from biobench.finetune.prepare import Prepared
from biobench.models.encoder import Attention, padded_inputs
from biobench.models.heads import SequenceHead, TokenHead
from biobench.models.loading import Checkpoint, load_tokenizer
from biobench.models.stock import StockHead, parts_of
from biobench.models.weights import weights_error
from biobench.schema.record import TrainingRecord
from biobench.schema.strict import suggest

KEEPING = "--keep-model"
HEAD_FILE, HEAD_ABOUT = "head.safetensors", "biobench_head.json"
"""What `--keep-model` writes beside an encoder whose head the model library has no place for."""
_ALIKE = 1e-3
"""Largest difference between logits that are the same, relative to their standard deviation."""
_PROBES = 8
"""Windows on which both are computed."""
_PREFIX = re.compile(r"([BI])-(.+)")
_UNNAMED = re.compile(r"LABEL_\d+")


class Ready(Network):
    """The library's own model with its head in the place of our encoder and head."""

    def __init__(self, model: Any, pad_id: int, columns: Sequence[Sequence[int]], *, tokens: bool) -> None:
        """columns: as `columns_of` gives. tokens: whether words are answered, else the whole sequence."""
        nn.Module.__init__(self)
        self.model, self.pad_id, self.columns, self.tokens = model, pad_id, columns, tokens

    @property
    def attention(self) -> Attention:
        """One padded batch."""
        return "padded"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return torch.device(next(self.model.parameters()).device)

    def forward(self, encoded: Sequence[Encoded]) -> Tensor:
        """Logits in fp32: a row a visible word or a window, a column an output of the task.

        Several labels of the checkpoint for one output: the logarithm of their sum, which softmax adds up.
        """
        inputs = padded_inputs([e.ids for e in encoded], [e.types for e in encoded], self.pad_id)
        logits = self.model(**{k: torch.from_numpy(v).to(self.device) for k, v in inputs.items()}).logits.float()
        if self.tokens:
            rows = np.repeat(np.arange(len(encoded)), [len(e.first) for e in encoded])
            places = np.concatenate([e.first for e in encoded])
            logits = logits[torch.from_numpy(rows), torch.from_numpy(places)]
        return torch.stack([torch.logsumexp(logits[:, list(members)], dim=1) for members in self.columns], dim=1)


def save_finetuned(network: Network, prepared: Prepared, checkpoint: Checkpoint, folder: Path) -> bool:
    """Write the model to `folder`; True where it is a classification model of the library. Raises StoreError."""
    network.eval()
    with writing(folder, KEEPING):
        folder.mkdir(parents=True, exist_ok=True)
        full = _library_model(network, prepared, checkpoint)
        if full is not None:
            full.save_pretrained(folder)
        else:
            network.encoder.model.save_pretrained(folder)
            save_file({k: v.contiguous().cpu() for k, v in network.head.state_dict().items()}, folder / HEAD_FILE)
            about = {"task": prepared.spec.id, **_about(prepared)}
            (folder / HEAD_ABOUT).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        load_tokenizer(checkpoint).save_pretrained(folder)
    return full is not None


def _about(prepared: Prepared) -> dict[str, Any]:
    """What a head must have been trained for to serve the task."""
    head = prepared.spec.head.model_dump(mode="json")
    return {"kind": prepared.kind.name, "outputs": list(prepared.outputs), "head": head}


def _library_model(network: Network, prepared: Prepared, checkpoint: Checkpoint) -> Any:
    """The library's classification model with the run's weights, or None where it computes something else."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    head = network.head
    if not prepared.kind.counted or not isinstance(head, TokenHead | SequenceHead | StockHead):
        return None
    names = prepared.outputs
    config = type(checkpoint.config).from_dict(checkpoint.config.to_dict())
    config.id2label, config.label2id = dict(enumerate(names)), {name: i for i, name in enumerate(names)}
    config.problem_type = "multi_label_classification" if prepared.kind.thresholds else "single_label_classification"
    tokens = isinstance(head, TokenHead)
    as_linear = config.model_type == "modernbert" and not isinstance(head, StockHead)
    if as_linear:
        config.classifier_activation, config.classifier_bias, config.classifier_pooling = "linear", False, "cls"
    loader: Any = AutoModelForTokenClassification if tokens else AutoModelForSequenceClassification
    try:
        with torch.random.fork_rng():
            full = loader.from_config(config).float().to(network.device).eval()
    except (ValueError, KeyError):  # a family without such a model
        return None
    if full.base_model.load_state_dict(network.encoder.model.state_dict(), strict=False).unexpected_keys:
        return None
    if isinstance(head, StockHead):
        for part, trained in zip(parts_of(full), head.shipped, strict=True):
            part.load_state_dict(trained.state_dict())
    else:
        classifier = getattr(full, "classifier", None)
        if not isinstance(classifier, nn.Linear) or classifier.weight.shape != head.linear.weight.shape:
            return None
        classifier.load_state_dict(head.linear.state_dict(), strict=True)
        if as_linear:
            _pass_through(full)
    encoded = [e for e in prepared.test.encoded if len(e)][:_PROBES]
    ready = Ready(full, network.encoder.pad_id, [[i] for i in range(len(names))], tokens=tokens)
    with torch.no_grad():
        wanted, logits = network(encoded).float(), ready(encoded)
    return full if (wanted - logits).abs().max() <= _ALIKE * wanted.std().clamp_min(1e-6) else None


@torch.no_grad()
def _pass_through(full: Any) -> None:
    """Let ModernBERT's dense head give back the states it is given, so that its classifier is the run's linear layer.

    The head ends in a norm. A norm changes nothing that it has normed before; so the encoder's last norm hands its
    scale on to the head's.
    """
    last = full.base_model.final_norm
    nn.init.eye_(full.head.dense.weight)
    full.head.norm.load_state_dict(last.state_dict())
    last.weight.fill_(1.0)


def columns_of(labels: Sequence[str], outputs: Sequence[str], names: Mapping[str, str]) -> list[list[int]]:
    """For each of the task's outputs, which of the checkpoint's labels stand for it. Raises ModelError.

    names: the declared map; B- and I- of a tag are kept where only its entity is mapped.
    """
    columns: dict[str, list[int]] = {output: [] for output in outputs}
    unknown = sorted(set(names) - set(labels) - {m[2] for label in labels if (m := _PREFIX.fullmatch(label))})
    if unknown:
        raise ModelError(f"--label-map: the checkpoint has no label '{unknown[0]}'", hint=suggest(unknown[0], labels))
    for place, label in enumerate(labels):
        prefix, entity = ("", label)
        if label not in names and (match := _PREFIX.fullmatch(label)):
            prefix, entity = f"{match[1]}-", match[2]
        target = names.get(entity, entity)
        if not target:
            continue
        if prefix + target not in columns:
            hint = f"--label-map '{entity}=TASK_LABEL' says which it is, '{entity}=' leaves it out; the task's: "
            what = f"the checkpoint's label '{label}' is not one of the task's"
            raise ModelError(what, hint=hint + ", ".join(outputs))
        columns[prefix + target].append(place)
    bare = [output for output, places in columns.items() if not places]
    if bare:
        raise ModelError(
            f"no label of the checkpoint stands for '{bare[0]}'",
            hint="--label-map MODEL_LABEL=TASK_LABEL; the checkpoint's labels: " + ", ".join(labels),
        )
    return list(columns.values())


def load_ready(checkpoint: Checkpoint, prepared: Prepared, names: Mapping[str, str], device: torch.device) -> Network:
    """The fine-tuned checkpoint for this task. Raises ModelError where it has no such head, or other labels."""
    if (checkpoint.folder / HEAD_FILE).is_file():
        return _kept(checkpoint, prepared, device)
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    kind = prepared.kind
    if kind.head not in ("token", "sequence") or not kind.counted:
        raise ModelError(
            f"the head of a {kind.name} task cannot be read from a checkpoint of the model library",
            hint="--no-training evaluates token and sequence classification, or a folder that --keep-model wrote",
        )
    loader: Any = AutoModelForTokenClassification if kind.head == "token" else AutoModelForSequenceClassification
    try:
        model, about = loader.from_pretrained(
            checkpoint.folder,
            dtype=torch.float32,
            trust_remote_code=checkpoint.trust_remote_code,
            output_loading_info=True,
        )
    except Exception as error:  # as where an encoder is loaded
        raise weights_error(checkpoint.folder, error) from error
    missing = sorted(about["missing_keys"])
    if missing:
        raise ModelError(
            f"the checkpoint has no fine-tuned {kind.head} classification head: '{missing[0]}' is missing",
            hint="fine-tune it: leave --no-training out",
            file=checkpoint.folder,
        )
    labels = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
    if all(_UNNAMED.fullmatch(label) for label in labels) and not names:
        raise ModelError(
            f"the checkpoint does not name its {len(labels)} labels",
            hint=f"--label-map {labels[0]}={prepared.outputs[0]} and so on, one for each",
        )
    columns = columns_of(labels, prepared.outputs, names)
    if kind.thresholds and any(len(members) > 1 for members in columns):
        raise ModelError(
            "several labels of the checkpoint stand for one of a task that decides each by itself",
            hint="map one to one with --label-map",
        )
    pad = model.config.pad_token_id
    return Ready(model.to(device), int(pad) if isinstance(pad, int) else 0, columns, tokens=kind.head == "token")


def _kept(checkpoint: Checkpoint, prepared: Prepared, device: torch.device) -> Network:
    """Encoder and head of a folder that `--keep-model` wrote."""
    path = checkpoint.folder / HEAD_ABOUT
    wanted = _about(prepared)
    try:
        about = json.loads(path.read_bytes())
        stored = {name: about[name] for name in wanted}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        hint = "give the whole folder that --keep-model wrote"
        raise ModelError("does not describe the head beside it", hint=hint, file=path) from error
    if stored != wanted:
        raise ModelError(
            f"the head was fine-tuned for another task or protocol ({about.get('task')})",
            hint="name that task with --task, with its --set head.* as then",
            file=path,
        )
    loaded = load_encoder(checkpoint, device)
    head = prepared.kind.build_head(prepared.spec.head, checkpoint, loaded.encoder.width, len(prepared.outputs))
    try:
        head.load_state_dict(load_file(checkpoint.folder / HEAD_FILE))
    except Exception as error:  # safetensors has errors of its own
        raise weights_error(checkpoint.folder, error) from error
    return Network(loaded.encoder, head.to(device))


def evaluate(network: Network, prepared: Prepared, precision: Precision, progress: Progress) -> Outcome:
    """Predictions on the test split without a step of training; a tuned threshold comes from validation."""
    began, kind = time.perf_counter(), prepared.kind
    budget = micro_batch_tokens(network.device)
    progress(0, 1, "test")
    split, answers = prepared.validation, list[Any]()
    if kind.thresholds and prepared.spec.head.threshold == "tuned":
        answers = probabilities(network, prepared, split, precision, budget)
    threshold = kind.threshold(prepared, split, answers)
    chances = probabilities(network, prepared, prepared.test, precision, budget)
    predictions = decide(prepared, prepared.test, chances, threshold)
    record = TrainingRecord(
        steps=0,
        best_step=0,
        curve=(),
        precision=precision,
        attention=network.attention,
        batch_size=prepared.spec.training.batch_size,
        micro_batch_tokens=budget,
        threshold=threshold if kind.thresholds else None,
    )
    progress(1, 1, "test")
    return Outcome(predictions, record, 0.0, time.perf_counter() - began, 0, threshold=threshold)
