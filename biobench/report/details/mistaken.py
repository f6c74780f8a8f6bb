"""The mistakes of one stored run, found by model and task, as text, as one HTML page and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from biobench.data.catalog import LoadedTask, load_task
from biobench.data.load import data_of
from biobench.errors import BioBenchError, UsageError
from biobench.report.details.marked import to_html
from biobench.report.details.mistakes import KINDS, JudgedDocument, Kind, Mark, judge, tally
from biobench.report.entrants import find_entrants, line_name
from biobench.report.escape import for_html, plain, words
from biobench.report.groups import RunGroup
from biobench.report.printers import html_page, html_table
from biobench.report.results import Results
from biobench.schema.document import Document, Prediction, Span
from biobench.schema.kind import is_numeric, traits_of
from biobench.schema.record import RunRecord

AROUND = 40
"""Characters of context on each side of a mention."""
NAMES: dict[Kind, str] = {
    "spurious": "false",
    "label": "wrong label",
    "boundary": "wrong ends",
    "both": "label and ends",
}
_WORDS = {kind: NAMES.get(kind, kind) for kind in KINDS} | {
    "label_error": "wrong label",
    "gold": "gold",
    "predicted": "predicted",
}


@dataclass(frozen=True, slots=True)
class Mistakes:
    """judged: all test documents, those with most mistakes first. texts: document id to text, empty without it."""

    model: str
    task: str
    seed: int
    seeds: tuple[int, ...]
    judged: tuple[JudgedDocument, ...]
    texts: Mapping[str, str]
    no_text: str = ""
    """Why there is no text."""

    @property
    def confusion(self) -> dict[str, Counter[str]] | None:
        """Gold label to predicted label to documents; None unless every document has exactly one of each."""
        counts: dict[str, Counter[str]] = {}
        for one in self.judged:
            gold = {m.gold.label for m in one.marks if m.gold is not None}
            predicted = {m.predicted.label for m in one.marks if m.predicted is not None}
            if one.document.spans or len(gold) != 1 or len(predicted) != 1:
                return None
            counts.setdefault(gold.pop(), Counter())[predicted.pop()] += 1
        return dict(sorted(counts.items())) or None


def read_mistakes(
    results: Results, model: str, task: str, *, seed: int | None = None, data_dir: str | Path | None = None
) -> Mistakes:
    """The mistakes of the model's run on a task (id, or the YAML of one's own), of its first seed unless one is named.

    Texts come from the data below `data_dir`, where they are those of the run; data under an agreement stays without.
    Raises UsageError where there is no such run, DataUnavailableError where the gold itself is under an agreement and
    not at hand, StoreError for damaged predictions.
    """
    is_file = task.endswith((".yaml", ".yml"))
    name = load_task(task).spec.id if is_file else task
    group = _group(results, model, name)
    record = group.records[0]
    if seed is not None:
        records = [r for r in group.records if r.seed == seed]
        if not records:
            raise UsageError(f"no run with seed {seed}", hint=f"stored: {', '.join(map(str, group.seeds))}")
        record = records[0]
    if is_numeric(record.task.type):
        hint = "`biobench report` has its correlation; the predicted numbers stand in the stored predictions"
        raise UsageError(f"{name} asks for numbers, which are not simply right or wrong", hint=hint)
    documents, why = _documents(task if is_file else name, record, data_dir)
    gold, predictions = group.store.load_predictions(record, documents if record.redacted else None)
    if traits_of(record.task.type).ranked:
        gold, predictions = _first_answers(gold, predictions)
    judged = judge(gold, predictions)
    texts = {} if record.redacted else {d.id: d.reading for d in documents or ()}
    return Mistakes(group.model, name, record.seed, group.seeds, tuple(judged), texts, why)


def _first_answers(
    gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[list[Document], list[Prediction]]:
    """Of rankings the first answer alone, and of several right ones the one that it is, else the first."""
    first = {p.document: p.labels[:1] for p in predictions}
    one = [replace(d, labels=first[d.id] if set(first.get(d.id, ())) & set(d.labels) else d.labels[:1]) for d in gold]
    return one, [Prediction(document, labels=labels) for document, labels in first.items()]


def _group(results: Results, model: str, task: str) -> RunGroup:
    entrant = find_entrants([model], results)[0]
    groups = entrant.groups.get(task, ())
    if not groups:
        hint = f"it has runs on: {', '.join(sorted(entrant.groups))}" if entrant.groups else "run it first"
        raise UsageError(f"'{plain(model)}' has no stored run on '{plain(task)}'", hint=hint)
    whole = [g for g in groups if g.departures.whole] or list(groups)
    if len(whole) > 1:
        names = ", ".join(f"'{plain(line_name(g.model, g.variant))}'" for g in whole)
        raise UsageError(f"'{plain(model)}' has several kinds of runs on '{task}'", hint=f"name one: {names}")
    return whole[0]


def _documents(task: str, record: RunRecord, data_dir: str | Path | None) -> tuple[list[Document] | None, str]:
    """The test split of the run, or why it is not shown."""
    try:
        loaded: LoadedTask = load_task(task, record.overrides)
        data = data_of(record, loaded, data_dir)
    except BioBenchError as error:
        return None, f"no text: {error}; {error.hint}"
    if data.hash != record.task.data_hash:
        return None, "no text: the data at hand are not those of the run"
    if loaded.spec.access == "agreement":
        return data.test, "no text: the data is under an agreement"
    return data.test, ""


def selected(mistakes: Mistakes, kinds: Sequence[Kind] = KINDS[:-1], label: str | None = None) -> list[JudgedDocument]:
    """Documents with a mark of these kinds and this label (None: any)."""
    return [one for one in mistakes.judged if any(m.kind in kinds and label in (None, m.label) for m in one.marks)]


def as_text(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None, limit: int) -> str:
    """Counts, the confusion table of single labels, and the first `limit` documents with their mistakes in context."""
    return "\n".join(_lines(mistakes, kinds, label, limit)) + "\n"


def _lines(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None, limit: int) -> Iterator[str]:
    yield _title(mistakes)
    yield ""
    yield from _aligned(*_counts(mistakes))
    if mistakes.confusion:
        yield ""
        yield from _aligned(*_confusion(mistakes.confusion))
    chosen = selected(mistakes, kinds, label)
    yield ""
    if mistakes.no_text:
        yield mistakes.no_text
    for one in chosen[:limit]:
        text = mistakes.texts.get(one.document.id, "")
        yield plain(one.document.id)
        if text and not any(span.end for span in _sides(one)):
            yield f"  {plain(' '.join(text.split()))}"
        for mark in one.marks:
            if mark.kind in kinds and label in (None, mark.label):
                yield f"  {_WORDS[mark.kind]}: {_described(mark, text)}"
    if len(chosen) > limit:
        yield f"{len(chosen) - limit} more documents: --documents {len(chosen)}, or --html FILE"


def _title(mistakes: Mistakes) -> str:
    wrong = sum(bool(one.wrong) for one in mistakes.judged)
    others = ", ".join(str(s) for s in mistakes.seeds if s != mistakes.seed)
    return (
        f"{plain(mistakes.model)} on {plain(mistakes.task)}, seed {mistakes.seed}"
        + (f" (also: {others})" if others else "")
        + f": mistakes in {wrong} of {len(mistakes.judged)} test documents"
    )


def _sides(one: JudgedDocument) -> list[Span]:
    return [span for mark in one.marks for span in (mark.gold, mark.predicted) if span is not None]


def _described(mark: Mark, text: str) -> str:
    """``Disease … left [asthma] right``; both sides where they differ."""
    if mark.gold is not None and mark.predicted is not None:
        return f"gold {_one(mark.gold, text)} | predicted {_one(mark.predicted, text)}"
    side = mark.gold or mark.predicted
    return "" if side is None else _one(side, text)


def _one(span: Span, text: str) -> str:
    if not span.end:
        return plain(span.label)
    if not text:
        return f"{plain(span.label)} {span.start}-{span.end}"
    left, right = text[max(0, span.start - AROUND) : span.start], text[span.end : span.end + AROUND]
    return f"{plain(span.label)} …{_flat(left)}[{_flat(text[span.start : span.end])}]{_flat(right)}…"


def _flat(text: str) -> str:
    return plain("".join(" " if c.isspace() else c for c in text))


Table = tuple[list[str], list[list[str]]]
"""(headings, rows)"""


def _counts(mistakes: Mistakes) -> Table:
    kinds = [k for k in KINDS if any(counted[k] for counted in tally(mistakes.judged).values())]
    rows = [[name, *(str(counted[k]) for k in kinds)] for name, counted in tally(mistakes.judged).items()]
    return ["label", *(_WORDS[k] for k in kinds)], rows


def _confusion(counts: Mapping[str, Counter[str]]) -> Table:
    predicted = sorted({name for counted in counts.values() for name in counted} | set(counts))
    rows = [[gold, *(str(counted[name]) for name in predicted)] for gold, counted in counts.items()]
    return ["gold \\ predicted", *predicted], rows


def _aligned(headings: list[str], rows: list[list[str]]) -> Iterator[str]:
    cells = [[plain(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]
    for row in cells:
        first, *others = (
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join([first, *others]).rstrip()


def as_data(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> list[dict[str, Any]]:
    """One row a mistake: document, kind, the two sides and, where it may be shown, the text of the mention."""
    rows = []
    for one in selected(mistakes, kinds, label):
        text = mistakes.texts.get(one.document.id, "")
        for mark in one.marks:
            if mark.kind in kinds and label in (None, mark.label):
                row: dict[str, Any] = {
                    "model": mistakes.model,
                    "task": mistakes.task,
                    "seed": mistakes.seed,
                    "document": one.document.id,
                    "kind": mark.kind,
                }
                for side, span in (("gold", mark.gold), ("said", mark.predicted)):
                    mention = span is not None and span.end > 0
                    row[f"{side}_label"] = None if span is None else span.label
                    row[f"{side}_start"] = span.start if span is not None and mention else None
                    row[f"{side}_end"] = span.end if span is not None and mention else None
                    row[f"{side}_text"] = text[span.start : span.end] if span is not None and mention and text else None
                rows.append(row)
    return rows


def as_page(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None) -> str:
    """One HTML file without script: the counts, the confusion table and every chosen document, all escaped."""
    parts = [html_table("Counts", *_counts(mistakes))]
    if mistakes.confusion:
        parts.append(html_table("Confusion: documents", *_confusion(mistakes.confusion)))
    parts.append(f"<p>{words(mistakes.no_text, for_html)}</p>\n" if mistakes.no_text else "")
    chosen = selected(mistakes, kinds, label)
    parts.append(f"<h2>{len(chosen)} documents</h2>\n")
    parts += [f"{to_html(one, mistakes.texts.get(one.document.id, ''), _WORDS)}\n" for one in chosen]
    return html_page(_title(mistakes), "".join(parts))
