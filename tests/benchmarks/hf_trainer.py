"""The HF Trainer on the same token task, model and hyperparameters: what the engine's speed is compared with."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from biobench.errors import TrainingError
from biobench.kinds.token_ner import spans_of_tags, tag_set
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.task import TaskSpec
from biobench.score import compute

IGNORED = -100
"""Label of the tokens that begin no word, and of padding."""


@dataclass(frozen=True)
class PeerRun:
    """train_seconds: Trainer.train alone. seconds: with the test prediction. scores: by our scorer."""

    train_seconds: float
    seconds: float
    scores: dict[str, float]


class _Sentences(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, documents: Sequence[Document], tokenizer: Any, tags: list[str], max_length: int) -> None:
        index = {tag: i for i, tag in enumerate(tags)}
        words = [[d.text[a:b] for a, b in d.tokens] for d in documents]
        encoding = tokenizer(words, is_split_into_words=True, truncation=True, max_length=max_length)
        self.rows, self.first = [], []
        for i, document in enumerate(documents):
            labels, first, seen = [], [], set()
            for at, word in enumerate(encoding.word_ids(i)):
                new = word is not None and word not in seen
                labels.append(index[document.tags[word]] if new else IGNORED)
                if new:
                    seen.add(word)
                    first.append((at, word))
            self.rows.append(
                {
                    "input_ids": encoding["input_ids"][i],
                    "attention_mask": encoding["attention_mask"][i],
                    "labels": labels,
                }
            )
            self.first.append(first)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return self.rows[i]

    def in_order(self, output: Any, order: Sequence[int]) -> dict[int, Any]:
        """The logits of each document. output: what the Trainer predicted. order: of the documents in it.

        Raises TrainingError where the labels that came with the logits are not those of these documents.
        """
        logits: dict[int, Any] = {}
        for i, values, labels in zip(order, np.asarray(output.predictions), np.asarray(output.label_ids), strict=True):
            wanted = self.rows[i]["labels"]
            if labels[: len(wanted)].tolist() != wanted or (labels[len(wanted) :] != IGNORED).any():
                raise TrainingError(
                    "the HF Trainer gave its predictions in an order that is not that of its loader",
                    hint="compare with the version of transformers that pyproject.toml names",
                )
            logits[i] = values
        return logits


def train_peer(
    model: str | Path,
    spec: TaskSpec,
    data: TaskData,
    seed: int,
    *,
    epochs: int,
    select: bool = False,
    device: str = "cpu",
    flags: Mapping[str, Any] | None = None,
) -> PeerRun:
    """Fine-tune with the HF Trainer and score the test split.

    select: evaluate each epoch and keep the best by validation micro F1, as the engine does; without it the
    last weights are scored and no validation is run. flags: further arguments of its `TrainingArguments`,
    and `attn_implementation` of the model.
    """
    began = time.perf_counter()
    tags = tag_set(data.labels)
    tokenizer = AutoTokenizer.from_pretrained(model)
    sets = {
        name: _Sentences(data.documents[name], tokenizer, tags, spec.protocol.max_length)
        for name in ("train", "validation", "test")
    }
    chosen = dict(flags or {})
    attention = {"attn_implementation": chosen.pop("attn_implementation")} if "attn_implementation" in chosen else {}
    network = AutoModelForTokenClassification.from_pretrained(model, num_labels=len(tags), **attention)

    def predictions(output: Any, name: str) -> list[Prediction]:
        # Under length groups the Trainer evaluates in an order of its own, and gives what it predicts in that order.
        loader: Any = trainer.get_test_dataloader(sets[name])
        order = [i for batch in loader.batch_sampler for i in batch]
        logits, spans = sets[name].in_order(output, order), []
        for row, (document, first) in enumerate(zip(data.documents[name], sets[name].first, strict=True)):
            decided = ["O"] * len(document.tokens)
            for at, word in first:
                decided[word] = tags[int(logits[row][at].argmax())]
            tagged = spans_of_tags(document, decided, "strict")
            spans.append(Prediction(document.id, tuple(s for s, _, _ in tagged)))
        return spans

    def score(output: Any, name: str) -> dict[str, float]:
        return compute(
            type=spec.type,
            labels=data.labels,
            gold_labels=data.gold_labels,
            gold=data.documents[name],
            predictions=predictions(output, name),
        ).values

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=epochs,
            learning_rate=spec.training.learning_rate,
            per_device_train_batch_size=spec.training.batch_size,
            per_device_eval_batch_size=32,
            weight_decay=spec.training.weight_decay,
            seed=seed,
            data_seed=seed,
            report_to=[],
            use_cpu=device == "cpu",
            save_strategy="epoch" if select else "no",
            eval_strategy="epoch" if select else "no",
            load_best_model_at_end=select,
            metric_for_best_model="micro_f1" if select else None,
            save_total_limit=1,
            disable_tqdm=True,
            logging_strategy="no",
            **chosen,
        )
        trainer = Trainer(
            model=network,
            args=arguments,
            train_dataset=sets["train"],
            eval_dataset=sets["validation"],
            data_collator=DataCollatorForTokenClassification(tokenizer),
            compute_metrics=(lambda output: score(output, "validation")) if select else None,
        )
        trainer.remove_callback(PrinterCallback)  # stdout is the command's
        training = time.perf_counter()
        trainer.train()
        trained = time.perf_counter()
        trainer.compute_metrics = None  # that of validation, where the documents are others
        scores = score(trainer.predict(sets["test"]), "test")
    return PeerRun(trained - training, time.perf_counter() - began, scores)
