"""What a record says of training, windows and cost, held against the protocol and against itself.

None of it can be recomputed from predictions. A claim that contradicts the recipe, or another claim, is of no run.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from biobench.report.escape import HIDDEN
from biobench.schema.kind import has_f1, traits_of
from biobench.schema.record import RunRecord
from biobench.schema.task import SPLITS, TaskSpec

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
"""Before it there was no BioBench."""
ROUNDED = 1e-3
"""Epochs are stored with four digits, seconds with three."""
SLACK = 1.1
"""A run that was repeated in part counts some tokens twice."""
BYTES_A_WEIGHT = 2
"""Of a model in memory, at least."""


def contradictions(record: RunRecord, spec: TaskSpec) -> Iterator[str]:
    """What no full run on the shipped spec says; `record` names that spec."""
    yield from _resampling(record, spec)
    yield from _windows(record, spec)
    yield from _cost(record)
    if spec.training.encoder == "trained":
        yield from _training(record, spec)


def _resampling(record: RunRecord, spec: TaskSpec) -> Iterator[str]:
    source = next(s for s in spec.all_sources if s.id == record.task.source)
    rule, claimed = spec.resampled(source), record.resampling
    if rule is None or claimed is None:
        if rule is not None or claimed is not None:
            yield "the split and that of the spec"
    elif claimed.folds != rule.count or claimed.fold >= rule.count or record.seed != rule.seed + claimed.fold:
        yield "the split, its seed and the spec's"


def _windows(record: RunRecord, spec: TaskSpec) -> Iterator[str]:
    windows, positions = record.windows, record.model.max_positions
    if windows.max_length > spec.protocol.max_length or (positions is not None and windows.max_length > positions):
        yield "the window, the protocol's and the model's"
    cut = windows.strided_documents if spec.protocol.long_documents == "truncate" else windows.truncated_documents
    if cut:
        yield f"documents cut and protocol.long_documents {spec.protocol.long_documents}"
    if has_f1(spec.type) and windows.lost_gold > sum(row["support"] for row in record.per_label.values()):
        yield "more gold lost than there is"
    if not windows.ceiling.keys() <= record.scores.keys():
        yield "names of scores in the ceiling"


def _cost(record: RunRecord) -> Iterator[str]:
    cost = record.cost
    if not cost.seconds:
        yield "no time, and a run"
    if cost.peak_memory_bytes < BYTES_A_WEIGHT * record.model.parameters:
        yield "peak memory and the number of weights"


def _training(record: RunRecord, spec: TaskSpec) -> Iterator[str]:
    training, recipe, cost = record.training, spec.training, record.cost
    # a frozen encoder's states are computed once for several seeds, so that their seconds stand in each of these runs
    if cost.train_seconds + cost.evaluation_seconds > cost.seconds * SLACK + ROUNDED:
        yield "seconds of training and evaluation, and those of the run"
    most = training.steps * recipe.batch_size * record.windows.max_length
    if not traits_of(spec.type).options and cost.train_tokens_per_second * cost.train_seconds > SLACK * most:
        yield "tokens a second and the steps"
    curve, steps = training.curve, [point.step for point in training.curve]
    if training.batch_size != recipe.batch_size:
        yield "the batch and the recipe's"
    if not steps or steps[-1] != training.steps:
        yield "the curve and the number of steps"
        return
    per_epoch = round(training.steps / curve[-1].epoch) if curve[-1].epoch else 0
    if per_epoch < 1 or any(abs(point.epoch * per_epoch - point.step) > ROUNDED * per_epoch for point in curve):
        yield "epochs and steps of the curve"
    if training.stopped_early and recipe.patience is None:
        yield "stopped early and a recipe without patience"
    if recipe.max_steps is not None:
        over, short = training.steps > recipe.max_steps, training.steps < recipe.max_steps
    else:
        epochs = recipe.epochs or 1
        over, short = curve[-1].epoch > epochs + ROUNDED, curve[-1].epoch < epochs - ROUNDED
    if over or (short and not training.stopped_early):
        yield "the length of training and the recipe's"
    if any(point.learning_rate > max(recipe.learning_rate, recipe.head_learning_rate or 0) * SLACK for point in curve):
        yield "learning rates and the recipe's"
    values = [point.validation.get(spec.selection, -math.inf) for point in curve]
    chosen = steps[values.index(max(values))] if max(values) > -math.inf else training.best_step
    if training.best_step != chosen:
        yield f"the best step and {spec.selection} on validation"
    if training.trained_parameters is not None and recipe.adapter is None and recipe.top_layers is None:
        yield "trained weights and the recipe"
    if training.threshold is not None and spec.head.threshold not in ("tuned", training.threshold):
        yield "the threshold and the spec's"


def impossible_texts(record: RunRecord) -> Iterator[str]:
    """Fields with characters that nobody sees, or that are not written as ours are.

    Labels and the protocol are compared with the spec and the data, and may hold what these hold.
    """
    task = {"labels", "gold_labels", "negative_label"}
    yield from _hidden(record.model_dump(exclude={"task": task, "protocol": True, "per_label": True}), ())
    splits = record.unexpressed_gold
    counts = [number for row in splits.values() for number in row.values()]
    if not splits.keys() <= set(SPLITS) or min(counts, default=0) < 0:
        yield "unexpressed_gold"
    when = datetime.fromisoformat(record.provenance.started)
    if when < FIRST or when.isoformat() != record.provenance.started:
        yield "provenance.started"


def _hidden(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The outermost field, whose name is ours."""
    if isinstance(value, str) and any(unicodedata.category(c) in HIDDEN for c in value):
        yield path[0]
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _hidden(name, path)
            yield from _hidden(inner, (*path, name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _hidden(inner, path)
