"""How much of a task's test split a model's window hides, and what an oracle of the rest scores. Trains nothing.

python -m tests.benchmarks.window_ceilings MODEL --data-dir DIR [--tasks fracco_30,fracco_100]
"""

from __future__ import annotations

import argparse

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window


def main() -> None:
    """Parse, encode, print a row a task."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=["fracco_30", "fracco_100"])
    arguments = parser.parse_args()
    checkpoint = find_checkpoint(arguments.model)
    tokenizer = load_tokenizer(checkpoint)
    print("| task | window | truncated | gold lost | ceiling micro | ceiling macro |")
    for name in arguments.tasks:
        task = load_task(name)
        data = load_data(task, arguments.data_dir)
        # Only test is measured.
        data.documents["train"], data.documents["validation"] = data.train[:1], data.validation[:1]
        size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
        found = prepare(task.spec, data, tokenizer, size).windows
        gold = sum(len(d.spans) if task.spec.is_ner else len(d.labels) for d in data.test)
        reached = [f"{100 * found.ceiling[k]:.1f}" if found.ceiling else "–" for k in ("micro_f1", "macro_f1")]
        cut = f"{found.truncated_documents} of {len(data.test)}"
        print(f"| {name} | {size} | {cut} | {found.lost_gold} of {gold} | {reached[0]} | {reached[1]} |", flush=True)


if __name__ == "__main__":
    main()
