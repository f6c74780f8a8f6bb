"""Controls of a needle task that go through the encoder: the needle removed, and swapped with another document's.

The whole way of a run is taken (fitting to the model's tokens, states, probe or fine-tuning, scoring) on examples
whose documents no longer answer their query, in training, validation and test alike. What is still found there the
examples give away by themselves, so both controls must be at chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from biobench.core.machine import resolve_device, resolve_precision
from biobench.data.catalog import LoadedTask
from biobench.errors import UsageError
from biobench.finetune.engine import finetune, load_encoder
from biobench.finetune.loop import Progress
from biobench.finetune.prepare import prepare
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from biobench.runs.controls import LEVEL, SEED, Control
from biobench.schema.document import Document, TaskData
from biobench.schema.needle import cell_of, rendered
from biobench.schema.task import SPLITS, parse_seeds
from biobench.score.needle import grid


def encoder_controls(
    model: str,
    task: LoadedTask,
    data: TaskData,
    *,
    seeds: str | None = None,
    device: str = "auto",
    offline: bool = False,
    trust_remote_code: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> list[Control]:
    """Both controls of `model` on a needle task, over the lengths that it reads; accuracy is the mean over seeds.

    Nothing is stored. Raises UsageError where the task is none of needles or a split has fewer than two pairs, and
    ModelError and TrainingError as a run does.
    """
    spec = task.spec
    if spec.type != "needle":
        raise UsageError(f"task {task.id} hides no needles", hint="controls through an encoder are for needle tasks")
    place = resolve_device(device)
    checkpoint = find_checkpoint(model, offline=offline, trust_remote_code=trust_remote_code)
    loaded, tokenizer = load_encoder(checkpoint, place), load_tokenizer(checkpoint)
    size = window(tokenizer, checkpoint.config, spec.protocol.max_length)
    precision = resolve_precision(spec.training.precision, place)
    results = []
    altered: list[tuple[str, str, Callable[[Sequence[Document]], list[Document]]]] = [
        ("needle removed", "the haystack alone, to its full length", without_needle),
        ("needle swapped", "the needle of another document with the same answer", with_another_needle),
    ]
    for name, words, alter in altered:
        changed = replace(data, documents={split: alter(data.documents[split]) for split in SPLITS})
        prepared = prepare(spec, changed, tokenizer, size)
        runs = [
            finetune(loaded, prepared, seed, precision, progress).predictions
            for seed in parse_seeds(spec.seeds if seeds is None else seeds)
        ]
        share = grid(prepared.test.documents, runs, LEVEL)[0][None, None, None]
        results.append(Control(name, f"{checkpoint.id}: {words}", share, at_chance=True))
    return results


def without_needle(documents: Sequence[Document]) -> list[Document]:
    """The examples without their needles: the two of a pair become the same but for their answer."""
    return [_with_needle(document, "") for document in documents]


def with_another_needle(documents: Sequence[Document]) -> list[Document]:
    """Each example with the needle of one of another pair, of the same answer and, but for the last, the same template.

    The answer stays that of the donor, so a needle that tells its answer without the query is found too. Raises
    UsageError where there is no other pair.
    """
    groups = sorted({document.group for document in documents})
    random.Random(SEED).shuffle(groups)
    order = {group: place for place, group in enumerate(groups)}
    needles: dict[str, str] = {}
    for label in sorted({document.labels for document in documents}):
        same_label = [document for document in documents if document.labels == label]
        if len(same_label) < 2:
            raise UsageError("there are fewer than two pairs, so no needle can be swapped", hint="raise the limit")
        same_label.sort(key=lambda document: (_template(document), order[document.group]))
        for document, donor in zip(same_label, [*same_label[1:], same_label[0]], strict=True):
            assert donor.plan is not None
            needles[document.id] = donor.plan.needle
    return [_with_needle(document, needles[document.id]) for document in documents]


def _template(document: Document) -> str:
    cell = cell_of(document.id)
    return "" if cell is None else cell.template


def _with_needle(document: Document, needle: str) -> Document:
    plan = document.plan
    assert plan is not None
    words = len(document.text.split()) - len(plan.needle.split())
    if plan.fit == "words":
        words += len(plan.needle.split()) - len(needle.split())
    changed = plan._replace(needle=needle)
    return replace(document, text=rendered(changed, words), plan=changed)
