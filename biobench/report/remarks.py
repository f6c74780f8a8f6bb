"""What stands beside a line's scores on page one of the app: remarks, hub link, columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from biobench.report.footnotes import MARK, marked
from biobench.report.tasks import TaskInfo
from biobench.report.wide import Block, ModelLine
from biobench.schema.record import RunRecord
from biobench.store import Brief

HUB = "https://huggingface.co/{}/tree/{}"
"""Where a model of a known revision is shown."""


def hub_link(brief: Brief | None) -> str | None:
    """The hub's page of the revision that was run; None where it is not known or the model is a folder."""
    if brief is None or not brief.revision or "/" not in brief.model:
        return None
    return HUB.format(brief.model, brief.revision)


def licence_named(records: Iterable[RunRecord]) -> str | None:
    """The licence that the first of a model's runs to know one has; None where no run recorded it."""
    return next((r.model.licence for r in records if r.model.licence), None)


def licence_link(licence: str) -> str | None:
    """The page of the SPDX list for a licence that stands on it, whatever its case; None for any other text."""
    try:
        name = canonicalize_license_expression(licence)
    except InvalidLicenseExpression:
        return None
    # a reference is to a text of one's own, and what has parts is no licence of the list
    listed = not name.startswith("LicenseRef-") and " " not in name
    return f"https://spdx.org/licenses/{name}.html" if listed else None


def by_kind(block: Block) -> list[TaskInfo]:
    """The tasks, those of one kind together, the kinds in order of their first task."""
    kinds = list(dict.fromkeys(column.type for column in block.columns))
    return sorted(block.columns, key=lambda column: kinds.index(column.type))


def best_of(lines: Sequence[ModelLine], source: str) -> dict[str, float]:
    """Task -> the highest score in percent among the lines of this source."""
    best: dict[str, float] = {}
    for line in lines:
        if line.source == source:
            for task, row in line.cells.items():
                best[task] = max(best.get(task, 0.0), 100 * row.mean)
    return best


def remarks_of(line: ModelLine, baseline: Mapping[str, float], words: Mapping[str, str]) -> dict[str, str]:
    """What a reader must know of the line: sign -> words.

    baseline: task -> the best policy's score in percent. words: those of the app.
    """
    remarks: dict[str, str] = {}
    below = [task for task, row in line.cells.items() if task in baseline and 100 * row.mean < baseline[task]]
    if below:
        remarks["▽"] = words["below_baseline"].format(", ".join(below))
    cut = [task for task, row in line.cells.items() if row.truncated_documents]
    if cut:
        remarks["✂"] = words["cut_on"].format(", ".join(cut))
    failed = [f"{task} ({row.failed}/{row.n_seeds})" for task, row in line.cells.items() if row.failed]
    if failed:
        remarks["✗"] = words["failed_on"].format(", ".join(failed))
    if any(marked(row.contamination) for row in line.cells.values()):
        remarks[MARK] = words["in_training"]
    if any(row.only_likely for row in line.cells.values()):
        remarks["‡"] = words["only_likely"]
    if line.average is not None and line.average.printed:
        remarks["§"] = words["printed_mean"]
    return remarks
