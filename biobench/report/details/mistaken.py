"""The mistakes of one stored run, found by model and task, as text, as one HTML page and as plain
data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task, spec_paths
from biobench.errors import BioBenchError, UsageError
from biobench.report.baselines import Refusal
from biobench.report.details.marked import to_html
from biobench.report.details.mistakes import (
    KINDS,
    NAMES,
    JudgedDocument,
    Kind,
    Leaks,
    Mark,
    by_label,
    judge,
    leaks,
    only_labels,
    tally,
)
from biobench.report.entrants import find_entrants, line_name
from biobench.report.escape import for_html, plain, words
from biobench.report.groups import RunGroup
from biobench.report.printers import grid, html_page, html_table
from biobench.report.rescore import RunTextReader, run_data
from biobench.report.results import Results
from biobench.report.slices import slice_part
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.kind import is_numeric, traits_of
from biobench.schema.record import RunRecord
from biobench.score.counting import Item
from biobench.score.slices import Part

AROUND = 40
"""Characters of context on each side of a mention."""


@dataclass(frozen=True, slots=True)
class Mistakes:
    """judged: all test documents, those with most mistakes first. texts: document id to text, empty
    without it.
    """

    model: str
    task: str
    seed: int
    seeds: tuple[int, ...]
    judged: tuple[JudgedDocument, ...]
    texts: Mapping[str, str]
    no_text: str = ""
    """Why there is no text."""
    identifying: bool = False
    """Whether the mentions identify people (tag `deidentification`), so that one missed is a leak.
    """
    failed_gate: str = ""
    """Why reports leave the run out; empty where they do not."""

    @property
    def confusion(self) -> dict[str, Counter[str]] | None:
        """Gold label to predicted label to documents; None unless every document has exactly one of
        each.
        """
        pairs = [labels for one in self.judged if (labels := only_labels(one)) is not None]
        return tally(pairs) if pairs and len(pairs) == len(self.judged) else None


def read_mistakes(
    results: Results,
    model: str,
    task: str,
    *,
    seed: int | None = None,
    data_dir: str | Path | None = None,
    slice: str | None = None,
) -> Mistakes:
    """The mistakes of the model's run on a task (id, or the YAML of one's own), of its first seed
    unless one is named.

    Also of a run that reports leave out because its task fails its gate: mistakes may tell why.
    Texts come from the data below `data_dir`, where they are those of the run; data under an
    agreement stays without. slice: only mentions and labels of this part of the gold
    (`score.slices.SLICES`), which needs the data. Raises UsageError where there is no such run or
    slice, DataUnavailableError where the gold itself is under an agreement and not at hand,
    StoreError for damaged predictions.
    """
    is_file = task.endswith((".yaml", ".yml"))
    name = load_task(task).spec.id if is_file else task
    group = _group(results, model, name)
    record = _run_of_seed(group, seed)
    if is_numeric(record.task.type):
        hint = (
            "`biobench report` has its correlation; the predicted numbers are in the stored "
            "predictions"
        )
        raise UsageError(f"{name} asks for numbers, which are not simply right or wrong", hint=hint)
    documents, no_text = _documents_of(record, data_dir, task)
    gold, predictions = group.store.load_predictions(record, documents if record.redacted else None)
    if traits_of(record.task.type).ranked:
        gold, predictions = _top_answers(gold, predictions)
    judged = judge(gold, predictions)
    if slice is not None:
        part = slice_part(record, slice, RunTextReader(data_dir, {name: task}))
        judged = judged_on(judged, part)
    texts = {} if record.redacted else {d.id: d.reading for d in documents or ()}
    identifying = slice is None and _identifies(task)
    return Mistakes(
        model=group.model,
        task=name,
        seed=record.seed,
        seeds=group.seeds,
        judged=tuple(judged),
        texts=texts,
        no_text=no_text,
        identifying=identifying,
        failed_gate=_failed_gate(group, results.refusals),
    )


def _identifies(task: str) -> bool:
    """Whether the task's mentions identify people; a task that is not at hand says nothing."""
    if not task.endswith((".yaml", ".yml")) and task not in spec_paths():
        return False
    return "deidentification" in load_task(task).spec.tags


def _run_of_seed(group: RunGroup, seed: int | None) -> RunRecord:
    """The run of this seed (None: the first stored). Raises UsageError where there is none."""
    if seed is None:
        return group.records[0]
    for record in group.records:
        if record.seed == seed:
            return record
    stored = ", ".join(map(str, group.seeds))
    raise UsageError(f"no run with seed {seed}", hint=f"stored: {stored}")


def _documents_of(
    record: RunRecord, data_dir: str | Path | None, task: str
) -> tuple[Sequence[Document] | None, str]:
    """The run's test documents (None where they are not at hand), and why no text may be shown."""
    documents: Sequence[Document] | None = None
    try:
        documents = run_data(record, data_dir, task).test
        if load_task(task, record.overrides).spec.access == "agreement":
            return documents, "no text: the data is under an agreement"
    except BioBenchError as error:
        return documents, f"no text: {error}; {error.hint}"
    return documents, ""


def _top_answers(
    gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[list[Document], list[Prediction]]:
    """Of a ranking the top answer alone, and of several right ones that one, else the first."""
    answers = {prediction.document: prediction.labels[:1] for prediction in predictions}
    single_gold = []
    for document in gold:
        right = [label for label in answers.get(document.id, ()) if label in document.labels]
        single_gold.append(replace(document, labels=tuple(right) or document.labels[:1]))
    top = [Prediction(document, labels=labels) for document, labels in answers.items()]
    return single_gold, top


def _failed_gate(group: RunGroup, refusals: Sequence[Refusal]) -> str:
    """Why reports leave these runs out; empty where they do not."""
    for refusal in refusals:
        if refusal.group == group:
            reasons = "; ".join(refusal.reasons)
            return f"{group.task} fails its gate, reports leave this run out: {reasons}"
    return ""


def judged_on(judged: Sequence[JudgedDocument], part: Part) -> list[JudgedDocument]:
    """What was judged of a part of the gold; documents of which nothing is left go."""
    document_of = {document.id: document for document in part.documents}
    of_part = []
    for one in judged:
        document = document_of.get(one.document.id)
        if document is None:
            continue
        marks = tuple(mark for mark in one.marks if part.has(document, _item(mark)))
        if marks:
            of_part.append(replace(one, marks=marks))
    return sorted(of_part, key=lambda one: (-one.wrong, one.document.id))


def _item(mark: Mark) -> Item:
    """What decides the mark's slice: the gold, or the false prediction."""
    span = mark.gold or mark.predicted
    assert span is not None
    return span.label, span.start, span.end


def _group(results: Results, model: str, task: str) -> RunGroup:
    # mistakes are wanted most where the gate fails, so its refusals of this task count here
    refused = [refusal.group for refusal in results.refusals if refusal.group.task == task]
    stored = replace(results, groups=(*results.groups, *refused), cells={})
    entrant = find_entrants([model], stored)[0]
    groups = entrant.groups.get(task, ())
    if not groups:
        hint = (
            f"it has runs on: {', '.join(sorted(entrant.groups))}"
            if entrant.groups
            else "run it first"
        )
        raise UsageError(f"'{plain(model)}' has no stored run on '{plain(task)}'", hint=hint)
    whole = [g for g in groups if g.departures.whole] or list(groups)
    if len(whole) > 1:
        names = ", ".join(f"'{plain(line_name(g.model, g.variant))}'" for g in whole)
        raise UsageError(
            f"'{plain(model)}' has several kinds of runs on '{task}'", hint=f"name one: {names}"
        )
    return whole[0]


def selected(
    mistakes: Mistakes, kinds: Sequence[Kind] = KINDS[:-1], label: str | None = None
) -> list[JudgedDocument]:
    """Documents with a mark of these kinds and this label (None: any)."""
    return [one for one in mistakes.judged if _marks(one, kinds, label)]


def _marks(one: JudgedDocument, kinds: Sequence[Kind], label: str | None) -> list[Mark]:
    return [mark for mark in one.marks if mark.kind in kinds and label in (None, mark.label)]


def as_text(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None, limit: int) -> str:
    """Counts, the confusion table of single labels, and the first `limit` documents with their
    mistakes in context.
    """
    lines = [_title(mistakes)]
    if mistakes.failed_gate:
        lines.append(plain(mistakes.failed_gate))
    for _, head, rows in _tables(mistakes):
        lines += [
            "",
            grid([plain(cell) for cell in head], [[plain(cell) for cell in row] for row in rows]),
        ]
    lines += ["", *([mistakes.no_text] if mistakes.no_text else [])]
    chosen = selected(mistakes, kinds, label)
    for judged in chosen[:limit]:
        text = mistakes.texts.get(judged.document.id, "")
        lines += _document_lines(judged, text, _marks(judged, kinds, label))
    if len(chosen) > limit:
        lines.append(
            f"{len(chosen) - limit} more documents: --documents {len(chosen)}, or --html FILE"
        )
    return "\n".join(lines) + "\n"


def _document_lines(
    judged: JudgedDocument, text: str, chosen_marks: Sequence[Mark]
) -> Iterator[str]:
    """The document's id, its text where labels are of the whole of it, and its mistakes."""
    yield plain(judged.document.id)
    sides = [side for mark in judged.marks for side in (mark.gold, mark.predicted) if side]
    has_mentions = any(side.end for side in sides)
    if text and not has_mentions:
        yield f"  {plain(' '.join(text.split()))}"
    labels = only_labels(judged)
    if labels is not None and labels[0] != labels[1]:
        yield f"  gold {plain(labels[0])}, predicted {plain(labels[1])}"
        return
    for mark in chosen_marks:
        yield f"  {NAMES[mark.kind]}: {_described(mark, text)}"


def _title(mistakes: Mistakes) -> str:
    wrong = sum(bool(one.wrong) for one in mistakes.judged)
    others = ", ".join(str(s) for s in mistakes.seeds if s != mistakes.seed)
    also = f" (also: {others})" if others else ""
    where = f"{plain(mistakes.model)} on {plain(mistakes.task)}, seed {mistakes.seed}{also}"
    if mistakes.identifying:
        found = leaks(mistakes.judged)
        return (
            f"{where}: recall {100 * found.recall:.1f} (identifiers hidden whole, of whatever "
            f"type); {found.safe_documents} of {len(mistakes.judged)} test documents leak nothing"
        )
    return f"{where}: mistakes in {wrong} of {len(mistakes.judged)} test documents"


def _described(mark: Mark, text: str) -> str:
    """``Disease … left [asthma] right``; both sides where they differ."""

    def one(span: Span) -> str:
        if not span.end or not text:
            return plain(span.label) + (f" {span.start}-{span.end}" if span.end else "")
        ends = (
            (max(0, span.start - AROUND), span.start),
            (span.start, span.end),
            (span.end, span.end + AROUND),
        )
        left, mention, right = (
            plain("".join(" " if c.isspace() else c for c in text[a:b])) for a, b in ends
        )
        return f"{plain(span.label)} …{left}[{mention}]{right}…"

    if mark.gold is not None and mark.predicted is not None:
        return f"gold {one(mark.gold)} | predicted {one(mark.predicted)}"
    return "".join(one(side) for side in (mark.gold, mark.predicted) if side is not None)


Table = tuple[str, list[str], list[list[str]]]
"""Title, headings, rows."""


def _tables(mistakes: Mistakes) -> list[Table]:
    """The leaks of identifiers, the counts and, for single labels, the confusion."""
    tables = [_leak_table(leaks(mistakes.judged))] if mistakes.identifying else []
    counts = by_label(mistakes.judged)
    kinds = [k for k in KINDS if any(counted[k] for counted in counts.values())]
    rows = [[name, *(str(counted[k]) for k in kinds)] for name, counted in counts.items()]
    tables.append(("Counts", ["label", *(NAMES[k] for k in kinds)], rows))
    if confusion := mistakes.confusion:
        predicted = sorted(
            {name for counted in confusion.values() for name in counted} | set(confusion)
        )
        rows = [
            [gold, *(str(counted[name]) for name in predicted)]
            for gold, counted in confusion.items()
        ]
        tables.append(("Confusion: documents", ["gold \\ predicted", *predicted], rows))
    return tables


def _leak_table(found: Leaks) -> Table:
    """Identifiers and leaks by type, those with most leaks first."""
    total = found.identifiers.total(), found.leaked.total()
    labels = sorted(found.identifiers, key=lambda label: (-found.leaked[label], label))
    rows = [[label, str(found.identifiers[label]), str(found.leaked[label])] for label in labels]
    return "Leaks", ["type", "identifiers", "leaked"], [["all", *map(str, total)], *rows]


def as_data(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> list[dict[str, Any]]:
    """One row a mistake: document, kind, the two sides and, where it may be shown, the text of the
    mention.
    """
    run, rows = {"model": mistakes.model, "task": mistakes.task, "seed": mistakes.seed}, []
    for one in selected(mistakes, kinds, label):
        text = mistakes.texts.get(one.document.id, "")
        for mark in _marks(one, kinds, label):
            row: dict[str, Any] = {**run, "document": one.document.id, "kind": mark.kind}
            for side, span in (("gold", mark.gold), ("said", mark.predicted)):
                mention = span if span is not None and span.end else None
                row[f"{side}_label"] = None if span is None else span.label
                row[f"{side}_start"] = None if mention is None else mention.start
                row[f"{side}_end"] = None if mention is None else mention.end
                row[f"{side}_text"] = (
                    text[mention.start : mention.end] if mention and text else None
                )
            rows.append(row)
    return rows


def as_page(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> str:
    """One HTML file without script: the counts, the confusion table and every chosen document, all
    escaped.
    """
    parts = [html_table(*table) for table in _tables(mistakes)]
    for remark in (mistakes.failed_gate, mistakes.no_text):
        if remark:
            parts.append(f"<p>{words(remark, for_html)}</p>\n")
    chosen = selected(mistakes, kinds, label)
    parts.append(f"<h2>{len(chosen)} documents</h2>\n")
    parts += [f"{to_html(one, mistakes.texts.get(one.document.id, ''))}\n" for one in chosen]
    return html_page(_title(mistakes), "".join(parts))
