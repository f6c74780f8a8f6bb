"""The mistakes of one stored run, found by model and task, as text, as one HTML page and as plain
data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    T,
    by_label,
    judge,
    leaks,
    only_labels,
    tally,
)
from biobench.report.entrants import ambiguous, find_entrants, line_name
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
        pairs = []
        for document in self.judged:
            labels = only_labels(document)
            if labels is None:
                return None
            pairs.append(labels)
        return tally(pairs) or None


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
    name = load_task(task).spec.id if _is_file(task) else task
    group = _group(results, model, name)
    record = _run_of_seed(group, seed)
    if is_numeric(record.task.type):
        raise UsageError(
            f"{name} asks for numbers, which are not simply right or wrong",
            hint="`biobench report` has its correlation; the predicted numbers are in the stored "
            "predictions",
        )
    documents, no_text = _documents_of(record, data_dir, task)
    gold, predictions = group.store.load_predictions(record, documents if record.redacted else None)
    if traits_of(record.task.type).ranked:
        gold, predictions = _top_answers(gold, predictions)
    judged = judge(gold, predictions)
    if slice is not None:
        part = slice_part(record, slice, RunTextReader(data_dir, {name: task}))
        judged = judged_on(judged, part)
    texts = {}
    if not record.redacted:
        for document in documents or ():
            texts[document.id] = document.reading
    failed_gate = ""
    for refusal in results.refusals:
        if refusal.group == group:
            reasons = "; ".join(refusal.reasons)
            failed_gate = f"{name} fails its gate, reports leave this run out: {reasons}"
    return Mistakes(
        model=group.model,
        task=name,
        seed=record.seed,
        seeds=group.seeds,
        judged=tuple(judged),
        texts=texts,
        no_text=no_text,
        identifying=slice is None and _identifies(task),
        failed_gate=failed_gate,
    )


def _is_file(task: str) -> bool:
    return task.endswith((".yaml", ".yml"))


def _identifies(task: str) -> bool:
    """Whether the task's mentions identify people; a task that is not at hand says nothing."""
    is_at_hand = _is_file(task) or task in spec_paths()
    return is_at_hand and "deidentification" in load_task(task).spec.tags


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
    answers = {}
    top = []
    for prediction in predictions:
        answers[prediction.document] = prediction.labels[:1]
        top.append(Prediction(prediction.document, labels=prediction.labels[:1]))
    single_gold = []
    for document in gold:
        right = set(answers.get(document.id, ())) & set(document.labels)
        single_gold.append(replace(document, labels=tuple(right) or document.labels[:1]))
    return single_gold, top


def judged_on(judged: Sequence[JudgedDocument], part: Part) -> list[JudgedDocument]:
    """What was judged of a part of the gold; documents of which nothing is left go."""
    document_of = {document.id: document for document in part.documents}
    of_part = []
    for whole in judged:
        document = document_of.get(whole.document.id)
        if document is not None:
            marks = tuple(mark for mark in whole.marks if part.has(document, _item(mark)))
            if marks:
                of_part.append(replace(whole, marks=marks))
    return sorted(of_part, key=lambda judged: (-judged.wrong, judged.document.id))


def _item(mark: Mark) -> Item:
    """What decides the mark's slice: the gold, or the false prediction."""
    return mark.span.label, mark.span.start, mark.span.end


def _group(results: Results, model: str, task: str) -> RunGroup:
    # mistakes are wanted most where the gate fails, so its refusals of this task count here
    stored = list(results.groups)
    for refusal in results.refusals:
        if refusal.group.task == task:
            stored.append(refusal.group)
    entrant = find_entrants([model], replace(results, groups=tuple(stored), cells={}))[0]
    groups = entrant.groups.get(task, ())
    if not groups:
        tasks = ", ".join(sorted(entrant.groups))
        raise UsageError(
            f"'{plain(model)}' has no stored run on '{plain(task)}'",
            hint=f"it has runs on: {tasks}" if tasks else "run it first",
        )
    if len(groups) > 1:
        groups = tuple(group for group in groups if group.departures.whole) or groups
    if len(groups) > 1:
        raise ambiguous(
            f"'{plain(model)}' has several kinds of runs on '{task}'",
            [line_name(group.model, group.variant) for group in groups],
        )
    return groups[0]


def selected(
    mistakes: Mistakes, kinds: Sequence[Kind] = KINDS[:-1], label: str | None = None
) -> list[JudgedDocument]:
    """Documents with a mark of these kinds and this label (None: any)."""
    return [judged for judged in mistakes.judged if _marks(judged, kinds, label)]


def _marks(judged: JudgedDocument, kinds: Sequence[Kind], label: str | None) -> list[Mark]:
    return [mark for mark in judged.marks if mark.kind in kinds and label in (None, mark.label)]


def as_text(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None, limit: int) -> str:
    """Counts, the confusion table of single labels, and the first `limit` documents with their
    mistakes in context.
    """
    lines = [_title(mistakes)]
    if mistakes.failed_gate:
        lines.append(plain(mistakes.failed_gate))
    for _, head, rows in _tables(mistakes):
        lines += ["", grid(head, rows)]
    lines.append("")
    if mistakes.no_text:
        lines.append(mistakes.no_text)
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
    if text and not any(mark.span.end for mark in judged.marks):
        yield f"  {plain(' '.join(text.split()))}"
    labels = only_labels(judged)
    if labels is not None and labels[0] != labels[1]:
        yield f"  gold {plain(labels[0])}, predicted {plain(labels[1])}"
        return
    for mark in chosen_marks:
        yield f"  {NAMES[mark.kind]}: {_described(mark, text)}"


def _title(mistakes: Mistakes) -> str:
    title = f"{plain(mistakes.model)} on {plain(mistakes.task)}, seed {mistakes.seed}"
    seeds = ", ".join(str(seed) for seed in mistakes.seeds if seed != mistakes.seed)
    if seeds:
        title += f" (also: {seeds})"
    documents = f"of {len(mistakes.judged)} test documents"
    if mistakes.identifying:
        found = leaks(mistakes.judged)
        return (
            f"{title}: recall {100 * found.recall:.1f} (identifiers hidden whole, of whatever "
            f"type); {found.safe_documents} {documents} leak nothing"
        )
    wrong = sum(judged.wrong > 0 for judged in mistakes.judged)
    return f"{title}: mistakes in {wrong} {documents}"


def _described(mark: Mark, text: str) -> str:
    """``Disease … left [asthma] right``; both sides where they differ."""
    if mark.gold is not None and mark.predicted is not None:
        gold, predicted = _in_context(mark.gold, text), _in_context(mark.predicted, text)
        return f"gold {gold} | predicted {predicted}"
    return _in_context(mark.span, text)


def _in_context(span: Span, text: str) -> str:
    label = plain(span.label)
    if not span.end:
        return label
    if not text:
        return f"{label} {span.start}-{span.end}"
    line = re.sub(r"\s", " ", text)
    left = plain(line[max(0, span.start - AROUND) : span.start])
    right = plain(line[span.end : span.end + AROUND])
    return f"{label} …{left}[{plain(line[span.start : span.end])}]{right}…"


Table = tuple[str, list[str], list[list[str]]]
"""Title, headings, rows."""


def _tables(mistakes: Mistakes) -> list[Table]:
    """The leaks of identifiers, the counts and, for single labels, the confusion."""
    tables = []
    if mistakes.identifying:
        tables.append(_leak_table(leaks(mistakes.judged)))
    counts = by_label(mistakes.judged)
    kinds = [kind for kind in KINDS if any(counted[kind] for counted in counts.values())]
    head = ["label", *(NAMES[kind] for kind in kinds)]
    tables.append(("Counts", head, _count_rows(counts, kinds)))
    confusion = mistakes.confusion
    if confusion:
        predicted = sorted(set(confusion).union(*confusion.values()))
        head = ["gold \\ predicted", *map(plain, predicted)]
        tables.append(("Confusion: documents", head, _count_rows(confusion, predicted)))
    return tables


def _count_rows(counts: Mapping[str, Counter[T]], columns: Sequence[T]) -> list[list[str]]:
    rows = []
    for label, counted in counts.items():
        rows.append([plain(label), *(str(counted[column]) for column in columns)])
    return rows


def _leak_table(found: Leaks) -> Table:
    """Identifiers and leaks by type, those with most leaks first."""
    labels = sorted(found.identifiers, key=lambda label: (-found.leaked[label], label))
    rows = [["all", str(found.identifiers.total()), str(found.leaked.total())]]
    for label in labels:
        rows.append([plain(label), str(found.identifiers[label]), str(found.leaked[label])])
    return "Leaks", ["type", "identifiers", "leaked"], rows


def as_data(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> list[dict[str, Any]]:
    """One row a mistake: document, kind, the two sides and, where it may be shown, the text of the
    mention.
    """
    run = {"model": mistakes.model, "task": mistakes.task, "seed": mistakes.seed}
    rows = []
    for judged in selected(mistakes, kinds, label):
        text = mistakes.texts.get(judged.document.id, "")
        for mark in _marks(judged, kinds, label):
            row = {**run, "document": judged.document.id, "kind": mark.kind}
            row |= _side("gold", mark.gold, text)
            row |= _side("said", mark.predicted, text)
            rows.append(row)
    return rows


def _side(side: str, span: Span | None, text: str) -> dict[str, Any]:
    label = start = end = mention = None
    if span is not None:
        label = span.label
        if span.end:  # a mention, not a label of the document
            start, end = span.start, span.end
            mention = text[start:end] or None
    return {
        f"{side}_label": label,
        f"{side}_start": start,
        f"{side}_end": end,
        f"{side}_text": mention,
    }


def as_page(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> str:
    """One HTML file without script: the counts, the confusion table and every chosen document, all
    escaped.
    """
    body = "".join(html_table(*table) for table in _tables(mistakes))
    for remark in (mistakes.failed_gate, mistakes.no_text):
        if remark:
            body += f"<p>{words(remark, for_html)}</p>\n"
    chosen = selected(mistakes, kinds, label)
    body += f"<h2>{len(chosen)} documents</h2>\n"
    for judged in chosen:
        body += to_html(judged, mistakes.texts.get(judged.document.id, "")) + "\n"
    return html_page(_title(mistakes), body)
