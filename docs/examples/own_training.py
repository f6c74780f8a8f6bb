"""A training script of one's own: splits from `biobench data export`, the score from `biobench
score`.

for s in train validation test; do biobench data export demo_topic --split $s --out $s.jsonl; done
python docs/examples/own_training.py MODEL
biobench score --task demo_topic --predictions predictions.jsonl --model "my script"
"""

import json
import sys

from datasets import load_dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
)

name = sys.argv[1]
splits = load_dataset("json", data_files={s: f"{s}.jsonl" for s in ("train", "validation", "test")})
labels = sorted({row["labels"][0] for row in splits["train"]})
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForSequenceClassification.from_pretrained(name, num_labels=len(labels))


def encode(batch):
    encoded = tokenizer(batch["text"], truncation=True, max_length=512)
    return encoded | {"label": [labels.index(each[0]) for each in batch["labels"]]}


encoded = splits.map(encode, batched=True, remove_columns=splits["train"].column_names)
arguments = TrainingArguments(
    "out", num_train_epochs=3, learning_rate=5e-5, report_to="none", save_strategy="no"
)
trainer = Trainer(model, arguments, train_dataset=encoded["train"], processing_class=tokenizer)
trainer.train()
best = trainer.predict(encoded["test"]).predictions.argmax(axis=-1)
with open("predictions.jsonl", "w", encoding="utf-8") as file:
    for row, place in zip(splits["test"], best, strict=True):
        file.write(json.dumps({"document": row["document"], "labels": [labels[place]]}) + "\n")
