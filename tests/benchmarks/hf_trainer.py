"""The HF Trainer on the same task, model and hyperparameters: what the engine's speed is compared
with.

Tokens and texts are labelled by the library's own classification models. It has none for nested
spans: there the Trainer trains our head on the library's padded encoder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import transformers as hf
from torch import Tensor, nn

from biobench.finetune.adapters import make_optimizer
from biobench.finetune.engine import load_encoder, new_network
from biobench.finetune.network import decide
from biobench.finetune.prepare import Prepared
from biobench.kinds import Split
from biobench.models.loading import Checkpoint, load_tokenizer

IGNORED = -100
"""Label of the tokens that begin no word, and of padding."""
EACH_EPOCH = {
    "save_strategy": "epoch",
    "eval_strategy": "epoch",
    "load_best_model_at_end": True,
    "save_total_limit": 1,
}
SILENT = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no"}
TYPES = ("token_ner", "span_ner", "single_label", "multi_label")
"""The kinds of task that the Trainer is given."""


class Windows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """The windows of a split as the Trainer takes them. begin: of nested spans, the number of the
    first one.
    """

    def __init__(self, prepared: Prepared, split: Split, begin: int = 0) -> None:
        self.split, self.rows = split, []
        for number, (encoded, target) in enumerate(
            zip(split.encoded, split.targets, strict=True), start=begin
        ):
            labels: Any = number
            if prepared.spec.type == "token_ner":
                labels = np.full(len(encoded), IGNORED)
                labels[encoded.first] = target
                labels = labels.tolist()
            elif prepared.spec.type == "single_label":
                labels = int(target)
            elif prepared.spec.type == "multi_label":
                labels = np.isin(np.arange(len(prepared.outputs)), target).astype(float).tolist()
            row = {
                "input_ids": encoded.ids.tolist(),
                "attention_mask": [1] * len(encoded),
                "labels": labels,
            }
            self.rows.append(row)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return self.rows[i]


class _SpanModel(nn.Module):
    """The library's padded encoder with our head of nested spans; labels: numbers of windows, of
    all splits together.

    answers: what it last said of each window.
    """

    def __init__(self, checkpoint: Checkpoint, prepared: Prepared, device: torch.device) -> None:
        super().__init__()
        loaded = load_encoder(checkpoint, device)
        loaded.encoder.model.set_attn_implementation("sdpa")
        loaded.encoder.attention, loaded.encoder.compiles = "padded", False
        for module in loaded.encoder.modules():
            if isinstance(module, nn.Dropout):
                module.__class__ = (
                    nn.Dropout
                )  # the library's: inductor compiles ours wrongly on a CPU
        self.network, self.prepared = new_network(loaded, prepared), prepared
        splits = (prepared.train, prepared.validation, prepared.test)
        self.windows = [pair for s in splits for pair in zip(s.encoded, s.targets, strict=True)]
        self.answers: dict[int, Any] = {}

    def forward(
        self, input_ids: Tensor, labels: Tensor, attention_mask: Tensor | None = None
    ) -> dict[str, Tensor]:
        """The mean loss; in place of logits the numbers."""
        numbers, kind, spec = labels.tolist(), self.prepared.kind, self.prepared.spec
        encoded, targets = zip(*(self.windows[i] for i in numbers), strict=True)
        logits = self.network(encoded)
        if not self.training:
            answers = torch.compiler.disable(
                kind.answers
            )  # the host's work, which a compiler would only slow down
            self.answers.update(zip(numbers, answers(self.prepared, logits, encoded), strict=True))
        with torch.autocast(labels.device.type, enabled=False):
            loss = kind.loss(spec, logits, targets, None)
        return {
            "loss": loss / max(kind.terms(spec, targets, [len(e.words) for e in encoded]), 1),
            "logits": labels,
        }


def _model(
    checkpoint: Checkpoint, prepared: Prepared, device: torch.device, attention: dict[str, str]
) -> nn.Module:
    kind = prepared.spec.type
    if kind == "span_ner":
        return _SpanModel(checkpoint, prepared, device)
    loader: Any = (
        hf.AutoModelForTokenClassification
        if kind == "token_ner"
        else hf.AutoModelForSequenceClassification
    )
    if kind != "token_ner":
        attention = {**attention, "problem_type": f"{kind}_classification"}
    model: nn.Module = loader.from_pretrained(
        checkpoint.folder, num_labels=len(prepared.outputs), **attention
    )
    return model


def train_peer(
    checkpoint: Checkpoint,
    prepared: Prepared,
    seed: int,
    device: torch.device,
    flags: Mapping[str, Any],
) -> dict[str, float]:
    """Fine-tune with the HF Trainer; the scores of the test split by our scorer.

    It evaluates each epoch and keeps the best by validation micro F1, as the engine does. flags:
    further arguments of its `TrainingArguments`, and `attn_implementation` of the model.
    """
    spec, recipe, kind = prepared.spec, prepared.spec.training, prepared.kind
    chosen = dict(flags)
    attention = (
        {"attn_implementation": chosen.pop("attn_implementation")}
        if "attn_implementation" in chosen
        else {}
    )
    torch.manual_seed(seed)
    model = _model(checkpoint, prepared, device, attention)
    numbers = np.cumsum([0, len(prepared.train.encoded), len(prepared.validation.encoded)])
    train, validation, test = (
        Windows(prepared, split, int(begin))
        for split, begin in zip(
            (prepared.train, prepared.validation, prepared.test), numbers, strict=True
        )
    )
    optimizer = None
    if isinstance(model, _SpanModel):
        optimizer = make_optimizer(model.network, recipe)
        for group in optimizer.param_groups:
            group["lr"] *= group.get("scale", 1.0)

    def answers(output: Any, windows: Windows) -> list[Any]:
        if isinstance(model, _SpanModel):
            return [model.answers[row["labels"]] for row in windows.rows]
        # Under length groups the Trainer evaluates in an order of its own, and gives what it
        # predicts in that order.
        loader: Any = trainer.get_test_dataloader(windows)
        order = [i for batch in loader.batch_sampler for i in batch]
        logits: list[Any] = [None] * len(order)
        for i, values, labels in zip(order, output.predictions, output.label_ids, strict=True):
            wanted = np.atleast_1d(windows.rows[i]["labels"])
            assert np.array_equal(np.atleast_1d(labels)[: len(wanted)], wanted), (
                "not in the order of its loader"
            )
            logits[i] = values[windows.split.encoded[i].first] if kind.words else values[None]
        return kind.answers(
            prepared, torch.from_numpy(np.concatenate(logits)), windows.split.encoded
        )

    def score(output: Any, windows: Windows) -> dict[str, float]:
        threshold = 0.5 if spec.head.threshold == "tuned" else float(spec.head.threshold)
        predictions = decide(prepared, windows.split, answers(output, windows), threshold)
        return prepared.score(windows.split.documents, predictions).values

    tokenizer = load_tokenizer(checkpoint)
    collator = (
        hf.DataCollatorForTokenClassification
        if spec.type == "token_ner"
        else hf.DataCollatorWithPadding
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = hf.TrainingArguments(
            output_dir=folder,
            num_train_epochs=recipe.epochs or 1,
            learning_rate=recipe.learning_rate,
            per_device_train_batch_size=recipe.batch_size,
            per_device_eval_batch_size=32,
            weight_decay=recipe.weight_decay,
            max_grad_norm=recipe.max_grad_norm,
            seed=seed,
            data_seed=seed,
            use_cpu=device.type == "cpu",
            metric_for_best_model="micro_f1",
            **EACH_EPOCH,
            **SILENT,
            **chosen,
        )
        trainer = hf.Trainer(
            model=model,
            args=arguments,
            train_dataset=train,
            eval_dataset=validation,
            data_collator=collator(tokenizer),
            compute_metrics=lambda output: score(output, validation),
            optimizers=(optimizer, None),
        )
        trainer.remove_callback(hf.PrinterCallback)  # stdout is the command's
        trainer.train()
        trainer.compute_metrics = None  # that of validation, where the documents are others
        return score(trainer.predict(test), test)
