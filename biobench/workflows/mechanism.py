"""The runs behind `biobench analyze`: how models are scored, which hybrids are made, what stood still in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from biobench.errors import TrainingError, UsageError
from biobench.runs.api import make_runs
from biobench.runs.options import RunRequest
from biobench.runs.plan import make_plan
from biobench.runs.result import Reporter

Scores = dict[str, dict[str, dict[int, float]]]

PROBE = (
    "training.encoder=frozen",
    "probe={kind: linear, pooling: mean, dropout: 0.0, learning_rates: [3e-4, 1e-3, 3e-3, 1e-2], epochs: 20}",
)
"""Settings that put a linear probe on frozen states in the place of fine-tuning; later --set may change them."""


def hybrids(layers: Sequence[str], modules: Sequence[str]) -> list[tuple[str, list[int] | None, tuple[Any, ...]]]:
    """(folder name, layer numbers or None for all, parts) of each hybrid that was asked for."""
    from trainer.recipe.phases import parse_layers

    chosen: list[tuple[str, list[int] | None, tuple[Any, ...]]] = []
    for text in dict.fromkeys(layers):
        if text in ("all", "none"):
            chosen.append((text, None if text == "all" else [], ("attention", "mlp")))
            continue
        try:
            chosen.append((f"layers-{text.replace(',', '_')}", parse_layers(text), ("attention", "mlp")))
        except ValueError:
            raise UsageError(f"layers '{text}' are not understood", hint="write 0-7, 0,2,8-14, all or none") from None
    for text in dict.fromkeys(modules):
        if text not in ("attention", "mlp"):
            raise UsageError(f"unknown modules '{text}'", hint="attention or mlp")
        chosen.append((text, None, (text,)))
    if not chosen:
        raise UsageError("nothing to copy", hint="give --layers 0-7 or --modules attention")
    return chosen


def check_runs(models: Sequence[str], how: RunRequest) -> None:
    """Raise, before anything is made, what `run_scores` would raise: bad arguments, missing models and data."""
    for entry in make_plan(replace(how, model=tuple(models))).tasks:
        if entry.unavailable is not None:
            raise UsageError(f"{entry.id}: {entry.unavailable}", hint=entry.unavailable.hint)


def run_scores(models: Sequence[str], how: RunRequest, reporter: Reporter) -> Scores:
    """Run what is not stored yet; primary scores per model, task and seed, models by the names given.

    how: tasks and options of the runs, without a model. Raises TrainingError when a run failed,
    DataUnavailableError's words as UsageError when data is missing.
    """
    scores: Scores = {}
    for model in models:
        table: dict[str, dict[int, float]] = {}
        results = make_runs(replace(how, model=(model,)), reporter)
        for r in results:
            if r.status == "failed":
                raise TrainingError(f"{r.model} on {r.task}: {r.reason}", hint="see `biobench run` with the same task")
            if r.status == "unavailable" or r.seed is None:
                raise UsageError(
                    f"{r.task}: {r.reason}", hint="`biobench data status --steps` says how to get the data"
                )
            table.setdefault(r.task, {})[r.seed] = r.scores[r.primary]
        scores[model] = table
    return scores


def frozen_layers(folder: str) -> str:
    """What a run's ledger says stood still, as ``0-7 in detour``; empty without a ledger."""
    from trainer.ledger import FILE, read_ledger

    if not any((Path(folder) / part / FILE).is_file() for part in ("", "model")):
        return ""
    phases = read_ledger(folder).phases
    return "; ".join(f"layers {p.frozen_layers} in {p.name}" for p in phases if p.frozen_layers)
