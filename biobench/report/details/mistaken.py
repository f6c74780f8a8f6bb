"""The mistakes of one stored run, found by model and task, as text, as one HTML page and as plain
data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biobench.data.catalog import load_task, spec_paths
from biobench.errors import BioBenchError, UsageError
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

    @property
    def confusion(self) -> dict[str, Counter[str]] | None:
        """Gold label to predicted label to documents; None unless every document has exactly one of
        each.
        """
        pairs = [labels for one in self.judged if (labels := only_labels(one)) is not None]
        return tally(pairs) if pairs and len(pairs) == len(self.judged) else None


def only_labels(one: JudgedDocument) -> tuple[str, str] | None:
    """(gold, predicted) of a document that has one label of each and no mentions."""
    gold = [mark.gold.label for mark in one.marks if mark.gold]
    predicted = [mark.predicted.label for mark in one.marks if mark.predicted]
    return (
        (gold[0], predicted[0])
        if not one.document.spans and len(gold) == len(predicted) == 1
        else None
    )


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

    Texts come from the data below `data_dir`, where they are those of the run; data under an
    agreement stays without. slice: only mentions and labels of this part of the gold
    (`score.slices.SLICES`), which needs the data. Raises UsageError where there is no such run or
    slice, DataUnavailableError where the gold itself is under an agreement and not at hand,
    StoreError for damaged predictions.
    """
    is_file = task.endswith((".yaml", ".yml"))
    name = load_task(task).spec.id if is_file else task
    group = _group(results, model, name)
    record = _record_of_seed(group, seed)
    if is_numeric(record.task.type):
        hint = (
            "`biobench report` has its correlation; the predicted numbers are in the stored "
            "predictions"
        )
        raise UsageError(f"{name} asks for numbers, which are not simply right or wrong", hint=hint)
    documents, why = None, ""
    try:
        documents = run_data(record, data_dir, task).test
        if load_task(task, record.overrides).spec.access == "agreement":
            why = "no text: the data is under an agreement"
    except BioBenchError as error:
        why = f"no text: {error}; {error.hint}"
    gold, predictions = group.store.load_predictions(record, documents if record.redacted else None)
    if traits_of(record.task.type).ranked:
        gold, predictions = _first_answers(gold, predictions)
    judged = judge(gold, predictions)
    if slice is not None:
        part = slice_part(record, slice, RunTextReader(data_dir, {name: task}))
        judged = judged_on(judged, part)
    texts = {} if record.redacted else {d.id: d.reading for d in documents or ()}
    identifying = slice is None and (is_file or name in spec_paths())
    if identifying:
        identifying = "deidentification" in load_task(task).spec.tags
    return Mistakes(
        model=group.model,
        task=name,
        seed=record.seed,
        seeds=group.seeds,
        judged=tuple(judged),
        texts=texts,
        no_text=why,
        identifying=identifying,
    )


def _record_of_seed(group: RunGroup, seed: int | None) -> RunRecord:
    """The group's run with this seed, its first without one. Raises UsageError."""
    if seed is None:
        return group.records[0]
    for record in group.records:
        if record.seed == seed:
            return record
    stored = ", ".join(map(str, group.seeds))
    raise UsageError(f"no run with seed {seed}", hint=f"stored: {stored}")


def _first_answers(
    gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[list[Document], list[Prediction]]:
    """Of each ranking its first answer alone, and of several right answers that one, else the
    first.
    """
    answer_of = {p.document: p.labels[:1] for p in predictions}
    single_gold = []
    for document in gold:
        labels = answer_of.get(document.id, ())
        if not set(labels) & set(document.labels):
            labels = document.labels[:1]
        single_gold.append(replace(document, labels=labels))
    answers = [Prediction(document, labels=labels) for document, labels in answer_of.items()]
    return single_gold, answers


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
    entrant = find_entrants([model], results)[0]
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
    for _, head, rows in _tables(mistakes):
        lines += [
            "",
            grid([plain(cell) for cell in head], [[plain(cell) for cell in row] for row in rows]),
        ]
    lines += ["", *([mistakes.no_text] if mistakes.no_text else [])]
    chosen = selected(mistakes, kinds, label)
    for one in chosen[:limit]:
        text, labels = mistakes.texts.get(one.document.id, ""), only_labels(one)
        lines.append(plain(one.document.id))
        if text and not any(
            side.end for mark in one.marks for side in (mark.gold, mark.predicted) if side
        ):
            lines.append(f"  {plain(' '.join(text.split()))}")
        if labels is not None and labels[0] != labels[1]:
            lines.append(f"  gold {plain(labels[0])}, predicted {plain(labels[1])}")
        else:
            lines += [
                f"  {NAMES[mark.kind]}: {_described(mark, text)}"
                for mark in _marks(one, kinds, label)
            ]
    if len(chosen) > limit:
        lines.append(
            f"{len(chosen) - limit} more documents: --documents {len(chosen)}, or --html FILE"
        )
    return "\n".join(lines) + "\n"


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
    parts.append(f"<p>{words(mistakes.no_text, for_html)}</p>\n" if mistakes.no_text else "")
    chosen = selected(mistakes, kinds, label)
    parts.append(f"<h2>{len(chosen)} documents</h2>\n")
    parts += [f"{to_html(one, mistakes.texts.get(one.document.id, ''))}\n" for one in chosen]
    return html_page(_title(mistakes), "".join(parts))
