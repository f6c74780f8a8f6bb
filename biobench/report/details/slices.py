"""Scores of stored runs by slice of the test split, and how well their probabilities are calibrated.

Slices need the texts and the training split, so the task's data; calibration comes from the stored scores alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biobench.data.catalog import load_task
from biobench.data.load import subset, without_test
from biobench.errors import DataUnavailableError
from biobench.kinds import Kind, get_kind
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.groups import RunGroup
from biobench.report.printers import grid
from biobench.report.rescore import run_data
from biobench.report.results import Results
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.record import RunRecord
from biobench.score.probabilistic import MEASURES, probabilistic

FEW = 50
"""Labels in at most this many training documents are few-shot labels (Chalkidis et al. 2019, arXiv:1906.02192)."""

Item = tuple[str, int, int]
"""(label, start, end); labels of a whole document at 0, 0."""
Slicer = Callable[[Document, Item], str]
"""The slice that an item of a document is in."""

COLUMNS = ("model", "variant", "source", "task", "dimension", "slice", "metric", "mean", "n_seeds", "gold")
"""Of a row, one measure of one slice: dimension: what the items are told apart by, "all" for calibration; mean: over
seeds, a fraction; gold: gold items of the slice, None for calibration."""
NOTHING = "No runs with predictions to slice.\n"


def slices(
    results: Results,
    data_dir: str | Path | None = None,
    *,
    tasks: Collection[str] | None = None,
    models: Collection[str] | None = None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows with `COLUMNS` of every group of runs, and notes on what could not be computed."""
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for group in results.groups:
        if (tasks is not None and group.task not in tasks) or (models is not None and group.model not in models):
            continue
        try:
            data: TaskData | None = _data_of(group.records[0], data_dir)
        except DataUnavailableError as error:
            data = None
            notes.append(f"{group.task}: calibration alone, slices need its data: {error.what}; {error.hint}")
        rows += _of_group(group, data)
    return rows, list(dict.fromkeys(notes))


def _data_of(record: RunRecord, data_dir: str | Path | None) -> TaskData:
    """The run's own data, as it saw it. Raises DataUnavailableError."""
    data = run_data(record, data_dir)
    data = without_test(data) if record.split == "validation" else data
    share = load_task(record.task.id, record.overrides).spec.training.train_fraction
    data.documents["train"] = subset(data.train, share)
    return data


def _of_group(group: RunGroup, data: TaskData | None) -> Iterator[dict[str, Any]]:
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    gold_items: dict[tuple[str, str], int] = {}
    slicers: Mapping[str, Slicer] = {}
    for record in group.records:
        if record.redacted and data is None:
            continue
        gold, predictions = group.store.load_predictions(record, None if data is None else data.test)
        kind = get_kind(record.task.type)
        if not kind.counted:
            continue  # neither counted items nor one probability a label
        for name, value in probabilistic(kind, record.task.labels, gold, predictions).items():
            values["all", "all", name].append(value)
        if data is None:
            continue
        texts = gold if record.redacted else data.test
        slicers = slicers or slicers_of(kind, data.train, texts)
        for (dimension, name), (tp, fp, fn) in counted(kind, slicers, texts, predictions).items():
            if tp + fn == 0:
                continue  # without gold there is no recall; what is predicted there counts in the whole
            gold_items[dimension, name] = tp + fn
            parts = {"precision": tp / (tp + fp) if tp + fp else 0.0, "recall": tp / (tp + fn)}
            parts["f1"] = 2 * tp / (2 * tp + fp + fn)
            for metric, value in parts.items():
                values[dimension, name, metric].append(value)
    for (dimension, name, metric), numbers in values.items():
        line = (group.model, group.variant, group.source, group.task, dimension, name, metric)
        measured = (sum(numbers) / len(numbers), len(numbers), gold_items.get((dimension, name)))
        yield dict(zip(COLUMNS, (*line, *measured), strict=True))


def counted(
    kind: Kind, slicers: Mapping[str, Slicer], documents: Sequence[Document], predictions: Sequence[Prediction]
) -> dict[tuple[str, str], tuple[int, int, int]]:
    """(dimension, slice) -> true positives, false positives, false negatives of its items, pooled over documents."""
    answers = {p.document: p for p in predictions}
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for document in documents:
        true = kind.items(document)
        predicted = kind.items(answers[document.id]) if document.id in answers else set()
        for place, items in enumerate((true & predicted, predicted - true, true - predicted)):
            for item in items:
                for dimension, slicer in slicers.items():
                    sums[dimension, slicer(document, item)][place] += 1
    return {key: (tp, fp, fn) for key, (tp, fp, fn) in sorted(sums.items())}


def slicers_of(kind: Kind, train: Sequence[Document], test: Sequence[Document]) -> dict[str, Slicer]:
    """The dimensions of a kind: by length, by how often the label is in training, by what training has shown."""
    support = Counter(label for d in train for label in {item[0] for item in kind.items(d)})
    bounds = [int(np.quantile([len(d.reading.split()) for d in test], share)) for share in (1 / 3, 2 / 3)]

    def by_label(document: Document, item: Item) -> str:
        count = support[item[0]]
        return "0" if count == 0 else f"1-{FEW}" if count <= FEW else f"over {FEW}"

    common: dict[str, Slicer] = {
        "words of the document": lambda document, _: _range(len(document.reading.split()), bounds),
        "training documents of the label": by_label,
    }
    if not kind.spans:
        texts = {_surface(d.reading) for d in train}
        return {
            **common,
            "text in training": lambda document, _: "seen" if _surface(document.reading) in texts else "unseen",
        }
    mentions = {_surface(d.text[s.start : s.end]) for d in train for s in d.spans}
    return {
        **common,
        "mention in training": lambda document, item: (
            "seen" if _surface(document.text[item[1] : item[2]]) in mentions else "unseen"
        ),
        "words of the mention": lambda document, item: _range(len(document.text[item[1] : item[2]].split()), [1, 2, 4]),
    }


def _surface(text: str) -> str:
    """The text without difference of case and blanks."""
    return " ".join(text.casefold().split())


def _range(value: int, bounds: Sequence[int]) -> str:
    """The range between neighbouring bounds (each the last of its own) that the value is in."""
    low = 1
    for bound in dict.fromkeys(bounds):
        if value <= bound:
            return f"{low}-{bound}" if low < bound else str(bound)
        low = bound + 1
    return f"{low} and more"


def as_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Calibration, then the slices: a line a slice, in percent (ECE and Brier as fractions)."""
    tables = []
    for measures, title, keys in (
        (MEASURES, "Probabilities", ("task", "model")),
        (("precision", "recall", "f1"), "Slices, over the items of each", ("task", "model", *COLUMNS[4:6], "gold")),
    ):
        lines: dict[tuple[str, ...], dict[str, str]] = {}
        for row in rows:
            if row["metric"] in measures and (row["dimension"] == "all") == (len(keys) == 2):
                model = plain(line_name(row["model"], row["variant"]))
                key = tuple(model if name == "model" else str(row[name]) for name in keys)
                fraction = row["metric"] in ("ece", "brier")
                shown = f"{row['mean']:.3f}" if fraction else f"{100 * row['mean']:.1f}"
                lines.setdefault((*key, row["source"]), {})[row["metric"]] = shown
        if lines:
            cells = [[*key[:-1], *(values.get(name, "–") for name in measures)] for key, values in lines.items()]
            tables.append(f"{title}\n{grid([*keys, *measures], cells)}\n")
    return "\n".join(tables) or NOTHING
