"""`python -m tests.benchmarks.twins [TASK ...]`: what comparing finds in the shipped runs and in fakes of them.

Honest: the seeds of each model with each other and with those of the other models, a line a task. Fakes: three seeds
of the gold with errors drawn into it, a copy with shaken scores and turned answers, a copy of which half of the errors
were mended; each is checked as `verify-submission --against` does.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from biobench.schema.document import Document, Prediction, Span
from biobench.schema.kind import traits_of
from biobench.schema.record import RunRecord
from biobench.store import Store
from biobench.submission.twins import Print, check_twins, following, print_of, shared_errors

RESULTS = Path(__file__).resolve().parents[2] / "results"
Run = tuple[RunRecord, list[Document], list[Prediction]]


def scores_of(number: int, chance: random.Random) -> tuple[float, ...]:
    """So many scores that look like a model's."""
    return tuple(round(chance.uniform(0.6, 0.99), 6) for _ in range(number))


def other(document: Document, record: RunRecord, chance: random.Random) -> Prediction:
    """A wrong answer: a mention too few or too many, or one label in the place of all."""
    labels = record.task.labels
    if document.spans:
        lost = chance.choice(document.spans)
        return Prediction(document.id, spans=tuple(s for s in document.spans if s != lost))
    if traits_of(record.task.type).spans:
        return Prediction(document.id, spans=(Span(0, 1, labels[0]),))
    return Prediction(document.id, labels=(chance.choice([n for n in labels if n not in document.labels]),))


def right(document: Document) -> Prediction:
    """The gold."""
    return Prediction(document.id, spans=document.spans, labels=document.labels)


def scored(prediction: Prediction, labels: Sequence[str], chance: random.Random) -> Prediction:
    """With scores of its own."""
    if prediction.labels or not prediction.spans:
        return replace(prediction, label_scores=scores_of(len(labels), chance))
    return replace(prediction, span_scores=scores_of(len(prediction.spans), chance))


def noisy(run: Run, share: float, seed: int) -> Print:
    """The gold, wrong in that share of the documents."""
    record, gold, _ = run
    chance = random.Random(seed)
    said = [right(d) if chance.random() >= share else other(d, record, chance) for d in gold]
    made = record.model_copy(update={"seed": seed, "key": f"{seed:032x}"})
    return print_of(made, gold, [scored(p, record.task.labels, chance) for p in said])


def copied(run: Run, turned: float, mended: float = 0.0) -> Print:
    """The run with shaken scores, that share of answers turned, or that share of its errors put right."""
    record, gold, said = run
    by_id, chance = {p.document: p for p in said}, random.Random(7)
    made = []
    for d in gold:
        p = by_id[d.id]
        is_right = set(p.spans) == set(d.spans) and set(p.labels) == set(d.labels)
        if mended:
            made.append(scored(right(d) if is_right or chance.random() < mended else p, record.task.labels, chance))
        elif chance.random() < turned:
            made.append(scored(other(d, record, chance), record.task.labels, chance))
        else:
            shaken = [tuple(min(max(s + chance.uniform(-0.002, 0.002), 0), 1) for s in some)
                      for some in (p.span_scores, p.label_scores)]  # fmt: skip
            made.append(replace(p, span_scores=shaken[0], label_scores=shaken[1]))
    weights = record.model.model_copy(update={"id": "copy", "hash": "c" * 64})
    return print_of(record.model_copy(update={"model": weights}), gold, made)


def line(name: str, runs: Sequence[Run]) -> None:
    """Print what is found in a task's runs."""
    prints = [print_of(*run) for run in runs]
    by_model: dict[str, list[Print]] = defaultdict(list)
    for one in prints:
        by_model[one.model].append(one)
    before = [replace(one, place="results") for one in prints]
    honest = [c for model, own in by_model.items() for c in check_twins(own, [o for o in before if o.model != model])]
    pairs = [(a.model == b.model, shared_errors(a, b).share if a.skilled and b.skilled else None, following(a, b))
             for a, b in itertools.combinations(prints, 2)]  # fmt: skip
    ends = []
    for what, same in (("seeds", True), ("models", False)):
        shares = [share for is_same, share, _ in pairs if is_same == same and share is not None]
        ends.append(f"{what} share {min(shares):.2f} to {max(shares):.2f}" if shares else f"{what} -")
    skilled, most = sum(p.skilled for p in prints), max(c for *_, c in pairs)
    print(f"{name}: {len(prints)} runs, {skilled} with skill; {', '.join(ends)}; correlation up to {most:.3f}")
    print(f"  honest: {codes(honest)}", *sorted({c.what for c in honest}), sep="; ", flush=True)
    for share in (0.02, 0.1, 0.2):
        fakes = [noisy(runs[0], share, seed) for seed in (1, 2, 3)]
        seeds, single = codes(check_twins(fakes)), codes(check_twins(fakes[:1], before))
        print(f"  gold with {share:.0%} noise: {seeds} by its seeds, {single} by other models", flush=True)
    for turned in (0.01, 0.03, 0.1):
        copy = copied(runs[0], turned)
        what = codes(check_twins([copy], before))
        print(f"  copy with {turned:.0%} turned: {what}, correlation {following(copy, prints[0]):.3f}", flush=True)
    mended = codes(check_twins([copied(runs[0], 0.0, 0.5)], before))
    print(f"  copy with half of its errors mended: {mended}", flush=True)


def codes(checks: Sequence[object]) -> str:
    """Codes of findings, or a dash."""
    return " ".join(sorted({getattr(c, "code", "") for c in checks})) or "-"


def main() -> None:
    """A line a task, and its fakes."""
    store = Store(RESULTS)
    runs: dict[str, list[Run]] = defaultdict(list)
    for record in store.records():
        runs[record.task.id].append((record, *store.load_predictions(record)))
    for task, some in runs.items():
        if task in (sys.argv[1:] or runs):
            line(task, some)


if __name__ == "__main__":
    main()
