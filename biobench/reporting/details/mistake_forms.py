"""The mistakes of a run as text, as one HTML page and as plain data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from biobench.reporting.details.marked import to_html
from biobench.reporting.details.mistaken import Mistakes
from biobench.reporting.details.mistakes import (
    KINDS,
    NAMES,
    JudgedDocument,
    Kind,
    Leaks,
    Mark,
    T,
    by_label,
    leaks,
    only_labels,
)
from biobench.reporting.entrants import line_name
from biobench.reporting.escape import for_html, plain, without_hidden, words
from biobench.reporting.printers import grid, html_page, html_table
from biobench.reporting.row import in_percent
from biobench.schema.document import Span

AROUND = 80
"""Characters of a mention's sentence that are shown on each side of it."""
MOST_TEXT = 600
"""Characters of a document that has labels of the whole: the sentences that fit are shown."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-ÖØ-Þ])|\n+")
"""White space between a full stop and a capital (``54 . 8 %`` ends none), or the end of a line."""


def selected(
    mistakes: Mistakes, kinds: Sequence[Kind] = KINDS[:-1], label: str | None = None
) -> list[JudgedDocument]:
    """Documents with a mark of these kinds and this label (None: any)."""
    return [judged for judged in mistakes.judged if marks_of(judged, kinds, label)]


def marks_of(judged: JudgedDocument, kinds: Sequence[Kind], label: str | None) -> list[Mark]:
    """The document's marks of these kinds and this label (None: any)."""
    return [mark for mark in judged.marks if mark.kind in kinds and label in (None, mark.label)]


def as_text(mistakes: Mistakes, kinds: Sequence[Kind], label: str | None, limit: int) -> str:
    """Counts, the confusion table of single labels, and the first `limit` documents with their
    mistakes in context.
    """
    lines = [_title(mistakes)]
    lines += [words(remark, plain) for remark in (*mistakes.meanings, *mistakes.remarks)]
    for _, head, rows in _tables(mistakes):
        lines += ["", grid(head, rows)]
    lines.append("")
    if mistakes.no_text:
        lines.append(mistakes.no_text)
    chosen = selected(mistakes, kinds, label)
    if label is not None or kinds != KINDS[:-1]:
        lines.append(_asked(len(chosen), kinds, label))
    for judged in chosen[:limit]:
        text = mistakes.texts.get(judged.document.id, "")
        lines += _document_lines(judged, text, marks_of(judged, kinds, label))
    further = len(chosen) - limit
    if further > 0:
        lines.append(f"{further} more documents: --documents {len(chosen)}, or --html FILE")
    return "\n".join(lines) + "\n"


def _asked(documents: int, kinds: Sequence[Kind], label: str | None) -> str:
    """``Asked for: missed, of Disease: 35 documents.``"""
    asked = ", ".join(NAMES[kind] for kind in kinds)
    if label is not None:
        asked += f", of {plain(label)}"
    return f"Asked for: {asked}: {documents} documents."


def _document_lines(
    judged: JudgedDocument, text: str, chosen_marks: Sequence[Mark]
) -> Iterator[str]:
    """The document's id, its text where labels are of the whole of it, and its mistakes."""
    yield plain(judged.document.id)
    if text and not any(mark.span.end for mark in judged.marks):
        yield f"  {whole_sentences(text)}"
    labels = only_labels(judged)
    if labels is not None and labels[0] != labels[1]:
        yield f"  gold {plain(labels[0])}, predicted {plain(labels[1])}"
        return
    in_sight = range(0)
    for mark in chosen_marks:
        described = _alone(mark.span, text)
        if text and mark.span.end:
            if mark.span.end - 1 in in_sight:
                described += " in the sentence above"
            else:
                described, in_sight = _in_sentence(mark.span, text)
        if len(mark.sides) == 2:
            described = f"gold {described} | predicted {_alone(mark.sides['predicted'], text)}"
        yield f"  {NAMES[mark.kind]}: {described}"


def whole_sentences(text: str) -> str:
    """As many whole sentences of a text as fit; ``[…]`` stands for what is left out.

    Of a first sentence that is longer by itself, the words that fit are shown.
    """
    shown = without_hidden(" ".join(text.split()))
    if len(shown) <= MOST_TEXT:
        return shown
    beginning = shown[:MOST_TEXT]
    *sentences, _ = SENTENCE_END.split(beginning)
    fitting = " ".join(sentences) or beginning.rpartition(" ")[0] or beginning
    return f"{fitting} […]"


def _title(mistakes: Mistakes) -> str:
    model = plain(line_name(mistakes.model, mistakes.variant))
    title = f"{model} on {plain(mistakes.task)}, seed {mistakes.seed}"
    other_seeds = set(mistakes.seeds).difference([mistakes.seed])
    if other_seeds:
        title += f" (also: {', '.join(map(str, sorted(other_seeds)))})"
    documents = f"of {len(mistakes.judged)} test documents"
    if mistakes.identifying:
        found = leaks(mistakes.judged)
        return (
            f"{title}: recall {in_percent(found.recall)} (identifiers hidden whole, of whatever "
            f"type); {found.safe_documents} {documents} leak nothing"
        )
    wrong = sum(judged.wrong > 0 for judged in mistakes.judged)
    return f"{title}: mistakes in {wrong} {documents}"


def _alone(span: Span, text: str) -> str:
    """The label and the mention: ``Disease [asthma]``; its place where there is no text."""
    label = plain(span.label)
    if not span.end:
        return label
    if not text:
        return f"{label} {span.start}-{span.end}"
    return f"{label} [{_on_one_line(text[span.start : span.end])}]"


def _in_sentence(span: Span, text: str) -> tuple[str, range]:
    """``Disease: He has [asthma] today.``, dots where the sentence is cut, and which characters of
    the text this shows.
    """
    # with its first letter, whose capital may tell that a sentence begins there
    left_part = SENTENCE_END.split(text[: span.start + 1])[-1][:-1]
    right_part = SENTENCE_END.split(text[span.end :])[0]
    in_sight = range(
        span.start - min(len(left_part), AROUND), span.end + min(len(right_part), AROUND)
    )
    if len(left_part) > AROUND:
        left_part = f"…{left_part[-AROUND:]}"
    if len(right_part) > AROUND:
        right_part = f"{right_part[:AROUND]}…"
    mention = _on_one_line(text[span.start : span.end])
    sentence = f"{_on_one_line(left_part)}[{mention}]{_on_one_line(right_part)}"
    return f"{plain(span.label)}: {sentence}", in_sight


def _on_one_line(text: str) -> str:
    """With each white space as one blank, so that the mention's neighbours stay in sight."""
    return plain(re.sub(r"\s", " ", text))


Table = tuple[str, list[str], list[list[str]]]
"""Title, headings, rows."""


def _tables(mistakes: Mistakes) -> Iterator[Table]:
    """The leaks of identifiers, the counts and, for single labels, the confusion."""
    if mistakes.identifying:
        yield _leak_table(leaks(mistakes.judged))
    counts = by_label(mistakes.judged)
    total = Counter[Kind]()
    for counted in counts.values():
        total += counted
    kinds = [kind for kind in KINDS if total[kind]]
    yield "Counts", ["label", *map(NAMES.__getitem__, kinds)], _count_rows(counts, kinds)
    confusion = mistakes.confusion
    if confusion:
        predicted = sorted(set(confusion).union(*confusion.values()))
        head = ["gold \\ predicted", *map(plain, predicted)]
        yield "Confusion: documents", head, _count_rows(confusion, predicted)


def _count_rows(counts: Mapping[str, Counter[T]], columns: Iterable[T]) -> list[list[str]]:
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
    run = {
        "model": mistakes.model,
        "variant": mistakes.variant,
        "task": mistakes.task,
        "seed": mistakes.seed,
    }
    rows = []
    for judged in mistakes.judged:
        text = mistakes.texts.get(judged.document.id, "")
        for mark in marks_of(judged, kinds, label):
            row = {**run, "document": judged.document.id, "kind": mark.kind}
            row |= _side("gold", mark.gold, text)
            row |= _side("said", mark.predicted, text)
            rows.append(row)
    return rows


def _side(side: str, span: Span | None, text: str) -> dict[str, Any]:
    label = start = end = mention = None
    if span is not None:
        label = span.label
    if span is not None and span.end:  # a mention, not a label of the document
        start = span.start
        end = span.end
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
    for remark in (*mistakes.meanings, *mistakes.remarks, mistakes.no_text):
        if remark:
            body += f"<p>{words(remark, for_html)}</p>\n"
    chosen = selected(mistakes, kinds, label)
    body += f"<h2>{len(chosen)} documents</h2>\n"
    for judged in chosen:
        body += to_html(judged, mistakes.texts.get(judged.document.id, "")) + "\n"
    return html_page(_title(mistakes), body)
