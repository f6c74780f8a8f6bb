"""The heads against each other on nested mentions: scores on the nested gold, recall of inner mentions, seconds.

    python -m tests.benchmarks.heads MODEL --data-dir DIR --task quaero_emea --heads crf_biaffine,token
        [--steps 400] [--seed 1] [--threads 1]

Every head gets the same encoder, steps, batch, rates, seed and fp32. The token head is trained on outermost
mentions (`tokens: words, overlap: longest`), as flat tags cannot carry others, and scored on all of the gold.
Weights are those of the last step. An inner mention lies inside another one of its document, or shares its
span with one of another type. Seconds are those of the training steps.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import load_data
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, quiet_libraries, window
from biobench.schema.document import Document, Prediction

_TOKEN = {
    "type: span_ner": "type: token_ner",
    "discontinuous: hull}": "discontinuous: hull, tokens: words, overlap: longest}",
    "head: {kind: span}": "head: {kind: token}",
}


def head_task(task: str, head: str, steps: int, folder: Path) -> LoadedTask:
    """The task with that head: a variant of the span head, or `token`, for which its spec is rewritten in `folder`."""
    overrides = [f"training.max_steps={steps}", f"training.evaluate_every={steps}", "training.precision=fp32"]
    if head != "token":
        return load_task(task, [*overrides, f"head.span.variant={head}"])
    text = (Path(__file__).parents[2] / "tasks" / "fr" / f"{task}.yaml").read_text(encoding="utf-8")
    for old, new in _TOKEN.items():
        assert old in text, f"{task}: no '{old}' in its spec"
        text = text.replace(old, new)
    path = folder / f"{task}.yaml"
    path.write_text(text, encoding="utf-8")
    return load_task(str(path), overrides)


def nested_recall(gold: Sequence[Document], predictions: Sequence[Prediction]) -> tuple[int, int]:
    """(inner mentions found, inner mentions)."""
    said = {(p.document, span) for p in predictions for span in p.spans}
    inner = [
        (d.id, s)
        for d in gold
        for s in d.spans
        if any(o != s and o.start <= s.start and s.end <= o.end for o in d.spans)
    ]
    return sum(mention in said for mention in inner), len(inner)


def main() -> None:
    """Parse, train each head, print a row each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--task", default="quaero_medline")
    parser.add_argument("--heads", type=lambda text: text.split(","), default=["crf_biaffine", "biaffine", "token"])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    quiet_libraries()
    checkpoint = find_checkpoint(arguments.model)
    loaded, tokenizer = load_encoder(checkpoint, torch.device("cpu")), load_tokenizer(checkpoint)
    nested = load_task(arguments.task)
    whole = prepare(nested.spec, load_data(nested, arguments.data_dir), tokenizer, 512)
    print("| task | head | exact micro | exact macro | partial micro | nested recall | training seconds |", flush=True)
    for head in arguments.heads:
        with tempfile.TemporaryDirectory() as folder:
            task = head_task(arguments.task, head, arguments.steps, Path(folder))
            data = load_data(task, arguments.data_dir)
        size = window(tokenizer, checkpoint.config, task.spec.protocol.max_length)
        outcome = finetune(loaded, prepare(task.spec, data, tokenizer, size), arguments.seed, "fp32", lambda *_: None)
        gold = whole.test.documents
        values = whole.score(gold, outcome.predictions).values
        found, inner = nested_recall(gold, outcome.predictions)
        figures = [values[name] for name in ("micro_f1", "macro_f1", "partial_micro_f1")] + [found / inner]
        cells = " | ".join(f"{100 * x:.1f}" for x in figures)
        print(f"| {arguments.task} | {head} | {cells} ({found} of {inner}) | {outcome.train_seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
