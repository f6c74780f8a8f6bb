"""The mistakes of one stored run, found by model and task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.data.catalog import load_task, spec_paths
from biobench.errors import BioBenchError, UsageError
from biobench.reporting.details.mistakes import JudgedDocument, judge, only_labels, tally
from biobench.reporting.entrants import ambiguous, find_entrants, line_name
from biobench.reporting.escape import plain
from biobench.reporting.groups import RunGroup
from biobench.reporting.rescore import Location, RunTextReader, run_data
from biobench.reporting.results import Results
from biobench.reporting.slices import slice_part
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import is_numeric, traits_of
from biobench.schema.record import RunRecord
from biobench.schema.strict import suggest
from biobench.schema.task import TaskSpec
from biobench.score.slices import Part
from biobench.store.tables import under_aliases


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
    variant: str = ""
    """What sets the run apart from a full one, in words."""
    no_text: str = ""
    """Why there is no text."""
    identifying: bool = False
    """Whether the mentions identify people (tag `deidentification`), so that one missed is a leak.
    """
    meanings: tuple[str, ...] = ()
    """What the task's spec says of its labels."""
    remarks: tuple[str, ...] = ()
    """Why reports leave the run out where they do, and the model's other runs on the task."""

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
    data_dir: Location | None = None,
    slice: str | None = None,
    label: str | None = None,
    include_agreement: bool = False,
) -> Mistakes:
    """The mistakes of the model's run on a task (id, or the YAML of one's own), of its first seed
    unless one is named.

    Also of a run that reports leave out because its task fails its gate: mistakes may tell why.
    Texts come from the data below `data_dir`, where they are those of the run; data under an
    agreement stays without, unless `include_agreement`. slice: only mentions and labels of this
    part of the gold (`score.slices.SLICES`), which needs the data. label: one that will be asked
    for. Raises UsageError where there is no such run, slice or label, DataUnavailableError where
    the gold itself is under an agreement and not at hand, StoreError for damaged predictions.
    """
    spec = _spec_at_hand(task)
    name = task if spec is None else spec.id
    group, others = _groups(results, model, name)
    record = _run_of_seed(group, seed, others)
    if label is not None:
        _check_label(record, label)
    if is_numeric(record.task.type):
        raise UsageError(
            f"{name} asks for numbers, which are not simply right or wrong",
            hint="`biobench report` has its correlation; the predicted numbers are in the stored "
            "predictions",
        )
    documents, no_text = _documents_of(record, data_dir, task, include_agreement)
    gold, predictions = group.store.load_predictions(record, documents if record.redacted else None)
    if traits_of(record.task.type).ranked:
        gold, predictions = _top_answers(gold, predictions)
    judged = judge(gold, predictions)
    if slice is not None:
        part = slice_part(record, slice, RunTextReader(data_dir, {name: task}))
        judged = judged_on(judged, part)
    texts = {}
    if not no_text:
        named = under_aliases(documents or ()) if record.redacted else documents or ()
        texts = {document.id: document.reading for document in named}
    return Mistakes(
        model=group.model,
        task=name,
        seed=record.seed,
        seeds=group.seeds,
        judged=tuple(judged),
        texts=texts,
        variant=group.variant,
        no_text=no_text,
        identifying=slice is None and spec is not None and "deidentification" in spec.tags,
        meanings=tuple(_meanings(spec)),
        remarks=(*_reasons_for_refusal(results, group), *_named(others)),
    )


def _check_label(record: RunRecord, label: str) -> None:
    labels = list(map(plain, record.task.labels))
    if label not in record.task.labels:
        raise UsageError(
            f"{plain(record.task.id)} has no label '{plain(label)}'", hint=suggest(label, labels)
        )


def _spec_at_hand(task: str) -> TaskSpec | None:
    """The spec of a file or a shipped task; None of a task that only stored runs name."""
    if task.endswith((".yaml", ".yml")) or task in spec_paths():
        return load_task(task).spec
    return None


def _meanings(spec: TaskSpec | None) -> list[str]:
    """The notes of the spec that say what a label means: ``1 means that ...``."""
    if spec is None or not isinstance(spec.labels, list):
        return []
    labels = "|".join(map(re.escape, spec.labels))
    return [note for note in spec.notes if re.search(rf"(?<!\w)({labels}) means ", note)]


def _reasons_for_refusal(results: Results, group: RunGroup) -> Iterator[str]:
    """Why reports leave the runs out, where the gate refuses them."""
    for refusal in results.refusals:
        if refusal.group == group:
            reasons = "; ".join(refusal.reasons)
            yield f"{group.task} fails its gate, reports leave this run out: {reasons}"


def _run_of_seed(group: RunGroup, seed: int | None, others: Sequence[RunGroup]) -> RunRecord:
    """The run of this seed (None: the first stored). Raises UsageError where there is none; its
    hint tells of the others.
    """
    for record in group.records:
        if seed in (None, record.seed):
            return record
    stored = ", ".join(map(str, group.seeds))
    name = plain(line_name(group.model, group.variant))
    hint = "; ".join([f"stored: {stored}", *_named(others)])
    raise UsageError(f"'{name}' has no run with seed {seed}", hint=hint)


def _named(others: Sequence[RunGroup]) -> Iterator[str]:
    """What else of the model is stored on the task, by the name that shows it."""
    for group in others:
        seeds = ", ".join(map(str, group.seeds))
        yield f"other runs: '{plain(line_name(group.model, group.variant))}' (seeds: {seeds})"


UNDER_AGREEMENT = (
    "no text: the data is under an agreement (`biobench errors --include-agreement` shows it)"
)


def _documents_of(
    record: RunRecord, data_dir: Location | None, task: str, include_agreement: bool
) -> tuple[Sequence[Document] | None, str]:
    """The run's test documents (None where they are not at hand), and why no text may be shown."""
    documents: Sequence[Document] | None = None
    try:
        documents = run_data(record, data_dir, task).test
        is_bound = load_task(task, record.overrides).spec.access == "agreement"
        if is_bound and not include_agreement:
            return documents, UNDER_AGREEMENT
    except BioBenchError as error:
        return documents, f"no text: {error}; {error.hint}"
    return documents, ""


def _top_answers(
    gold: Sequence[Document], predictions: Sequence[Prediction]
) -> tuple[list[Document], list[Prediction]]:
    """Of a ranking the top answer alone, and of several right ones that one, else the first."""
    top = {p.document: Prediction(p.document, labels=p.labels[:1]) for p in predictions}
    single_gold = []
    for document in gold:
        answer = top.get(document.id, Prediction(document.id)).labels
        if answer and answer[0] in document.labels:
            single_gold.append(replace(document, labels=answer))
        else:
            single_gold.append(replace(document, labels=document.labels[:1]))
    return single_gold, list(top.values())


def judged_on(judged: Sequence[JudgedDocument], part: Part) -> list[JudgedDocument]:
    """What was judged of a part of the gold; documents of which nothing is left go."""
    document_of = {document.id: document for document in part.documents}
    of_part = []
    for whole in judged:
        document = document_of.get(whole.document.id)
        marks = []
        for mark in whole.marks:
            # the gold decides the mark's slice, or the false prediction
            item = mark.span.label, mark.span.start, mark.span.end
            if document is not None and part.has(document, item):
                marks.append(mark)
        if marks:
            of_part.append(replace(whole, marks=tuple(marks)))
    return sorted(of_part, key=lambda judged: (-judged.wrong, judged.document.id))


def _groups(results: Results, model: str, task: str) -> tuple[RunGroup, Sequence[RunGroup]]:
    """The model's runs on the task, also those that the gate refuses: mistakes are wanted most
    there. Of several kinds the full ones, and then the others.
    """
    stored = list(results.groups)
    for refusal in results.refusals:
        if refusal.group.task == task:
            stored.append(refusal.group)
    entrant = find_entrants([model], replace(results, groups=tuple(stored), cells={}))[0]
    groups = entrant.groups.get(task, ())
    if not groups:
        hint = "run it first"
        if entrant.groups:
            hint = f"it has runs on: {', '.join(sorted(entrant.groups))}"
        elif entrant.published:
            hint = "only published scores are known of it, without predictions"
        raise UsageError(f"'{plain(model)}' has no stored run on '{plain(task)}'", hint=hint)
    chosen = groups
    if len(groups) > 1:
        chosen = tuple(group for group in groups if group.departures.whole) or groups
    if len(chosen) > 1:
        raise ambiguous(
            f"'{plain(model)}' has several kinds of runs on '{task}'",
            [line_name(group.model, group.variant) for group in chosen],
        )
    return chosen[0], [group for group in groups if group is not chosen[0]]
