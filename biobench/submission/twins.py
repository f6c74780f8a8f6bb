"""Runs that say the same: copied seeds, another model's predictions under a new name, the gold itself.

Two honest runs of different seeds or weights differ where a document is hard and in the last digits of their scores
everywhere. What is compared is therefore the decisions on documents that not both have right, and the scores. They also
share what is hard: among documents alike by their gold, one errs more often where the other does. Errors that were
drawn into the gold share nothing, and those of a run that was mended with the gold lie within its own. The thresholds
stand between what three encoders gave on seven tasks and what such fakes give (docs/reliability.md).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from biobench.report.literature.published import load_published
from biobench.report.tasks import NEEDLE
from biobench.schema.document import Document, Prediction
from biobench.schema.kind import is_numeric, number_of
from biobench.schema.record import RunRecord
from biobench.submission.checks import Check, Grade

NEAR = 0.9
"""Share of equal decisions among documents that not both have right, from which two runs are nearly equal."""
NEAR_FROM = 10
"""Such documents that are needed to say so; all equal is said of any number."""
ONE_ANSWER = 0.98
"""Share of documents with one answer from which runs that learnt nothing decide the same: that is no copy."""
SAME_SCORES = 0.5
"""Share of documents with scores equal to the last stored digit that no two trainings reach."""
SCORES_FROM = 10
FOLLOWING = 0.99
"""Correlation of two runs' scores, where they decide the same, from which one may be the other's with noise."""
NORMAL = 0.6745
"""Half of a normal variable's values are at most so many standard deviations from its mean."""
SURELY = 0.01
"""Below this, and above one less this, scores count as equal: what is rounded or shaken there would count most."""
FOLLOWING_FROM = 30
"""Documents with such scores that are needed to say so."""
WITHIN = 0.95
"""Share of errors beyond chance from which the errors of one run lie within those of the other."""
SEEDS_SHARE, MODELS_SHARE = 0.3, 0.15
"""Share of errors beyond chance below which two seeds, or two models, err as if each were drawn by itself."""
SURE_OF_SEEDS, SURE_OF_MODELS = 3.0, 2.0
"""Standard deviations by which the share lies below that."""
SKILL = 0.75
"""Errors, as a share of those of the commonest answer, below which a run knows enough to share what is hard."""
MANY_SPANS = 6
"""From here on documents count as equally full of mentions."""
LEAP = 0.5
"""Share of the best published encoder's errors below which a score is no progress that anybody has seen."""
ORACLE = 0.995
"""A score from which the predictions may be the gold."""


@dataclass(frozen=True, slots=True)
class Print:
    """What one run says, in a form that compares fast. Arrays have one entry a document, in the order of its id."""

    task: str
    task_type: str
    key: str
    data: str
    model: str
    """Its name."""
    weights: str
    seed: int
    fold: int
    """Which split of a task that has several; 0 elsewhere."""
    place: str
    """Folder of the results in which it lies; empty for the submission itself."""
    documents: bytes
    """Hash of all ids."""
    decided: NDArray[np.uint64]
    scored: NDArray[np.uint64]
    """0 where no score tells two trainings apart (none, or all next to 0 and 1)."""
    right: NDArray[np.bool_]
    """Where the decision is the gold; all false where the gold is not known."""
    leaning: NDArray[np.float64]
    """The scores as one number (of numbers their error), less its median where the answer is the same; NaN without."""
    kind: NDArray[np.int64]
    """Documents with the same number are alike by their gold (its labels, or how many mentions); -1: not known."""
    skilled: bool
    """Whether it errs on clearly fewer documents than the commonest answer would."""


def print_of(record: RunRecord, gold: Sequence[Document], predictions: Sequence[Prediction], place: str = "") -> Print:
    """gold: as the file or the data holds it; without spans and labels where it is not known."""
    prediction_of = {p.document: p for p in predictions}
    documents = sorted(gold, key=lambda d: d.id)
    known, numeric = any(d.spans or d.labels for d in documents), is_numeric(record.task.type)
    decided, scored, right, leaning = [], [], [], []
    for document in documents:
        prediction = prediction_of.get(document.id) or Prediction(document=document.id)
        scores = prediction.label_scores or prediction.span_scores
        decided.append(_digest(sorted(set(prediction.spans)), sorted(prediction.labels), scores if numeric else ()))
        tells = numeric or any(1e-3 < s < 1 - 1e-3 for s in scores)
        scored.append(_digest(scores) if tells else 0)
        same = set(prediction.spans) == set(document.spans) and set(prediction.labels) == set(document.labels)
        right.append(known and same)
        leaning.append(_error(prediction, document) if numeric else _leaning(scores))
    are_right, kind = np.array(right, np.bool_), _kinds(documents, known=known)
    return Print(
        task=record.task.id,
        task_type=record.task.type,
        key=record.key,
        data=record.task.data_hash,
        model=record.model.id,
        weights=record.model.hash,
        seed=record.seed,
        fold=0 if record.resampling is None else record.resampling.fold,
        place=place,
        documents=hashlib.sha256("\0".join(d.id for d in documents).encode("utf-8", "replace")).digest(),
        decided=np.array(decided, np.uint64),
        scored=np.array(scored, np.uint64),
        right=are_right,
        leaning=_centred(leaning, [prediction_of[d.id].labels if d.id in prediction_of else () for d in documents]),
        kind=kind,
        skilled=known and _skilled(are_right, kind, np.array([bool(d.spans or d.labels) for d in documents])),
    )


def _error(prediction: Prediction, document: Document) -> float:
    """By how much a number misses the gold; NaN where one of them is not known."""
    known = document.labels and (prediction.label_scores or prediction.labels)
    return number_of(prediction) - float(document.labels[0]) if known else math.nan


def _leaning(scores: Sequence[float]) -> float:
    """Log-odds of all scores; weights tell the labels apart. NaN without scores. Spans: their mean."""
    odds = [math.log(p / (1 - p)) for p in (min(max(s, SURELY), 1 - SURELY) for s in scores)]
    return sum(math.sqrt(2 + i) * o for i, o in enumerate(odds)) / len(odds) if odds else math.nan


def _centred(leaning: Sequence[float], answers: Sequence[tuple[str, ...]]) -> NDArray[np.float64]:
    """Without what follows from the answer alone; NaN where fewer than three documents have the same."""
    values = np.array(leaning, np.float64)
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, answer in enumerate(answers):
        places[answer].append(place)
    for some in places.values():
        values[some] = values[some] - np.nanmedian(values[some]) if np.isfinite(values[some]).sum() > 2 else math.nan
    return values


def _kinds(documents: Sequence[Document], *, known: bool) -> NDArray[np.int64]:
    numbers: dict[object, int] = {}
    kinds = [(min(len(d.spans), MANY_SPANS), *sorted(d.labels)) for d in documents]
    return np.array([numbers.setdefault(kind, len(numbers)) if known else -1 for kind in kinds], np.int64)


def _skilled(right: NDArray[np.bool_], kind: NDArray[np.int64], some: NDArray[np.bool_]) -> bool:
    """some: documents with any gold. Where others have none, none is the commonest answer, and wrong on these."""
    if not some.all():
        return int((~right & some).sum()) < SKILL * int(some.sum())
    return int((~right).sum()) < SKILL * (len(right) - int(np.bincount(kind).max()))


def _digest(*parts: object) -> int:
    return int.from_bytes(hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).digest(), "big") | 1


class Shared(NamedTuple):
    """Documents with gold on which both err, what chance would give, its standard deviation, and the most there can be.

    By chance: among documents alike by their gold, each run's errors are drawn by themselves (Mantel and Haenszel).
    """

    both: int
    chance: float
    spread: float
    most: int

    @property
    def share(self) -> float:
        """Of what there can be beyond chance; 0 where errs of the two have nothing to do with each other."""
        return (self.both - self.chance) / (self.most - self.chance) if self.most > self.chance else 0.0

    def below(self, share: float, sure: float) -> bool:
        """Whether the share is below that by so many standard deviations."""
        room = self.most - self.chance
        return room > 0 and self.share + sure * self.spread / room < share


def shared_errors(a: Print, b: Print) -> Shared:
    """Of two runs on the same documents."""
    with_gold = a.kind >= 0
    kind, wrong, also = a.kind[with_gold], ~a.right[with_gold], ~b.right[with_gold]
    if not len(kind):
        return Shared(0, 0.0, 0.0, 0)
    number, one, other = (np.bincount(kind, some) for some in (None, wrong, also))
    number = np.maximum(number, 1)
    chance = one * other / number
    variance = chance * (number - one) * (number - other) / (number * np.maximum(number - 1, 1))
    most = min(int(wrong.sum()), int(also.sum()))
    return Shared(int((wrong & also).sum()), float(chance.sum()), math.sqrt(variance.sum()), most)


def following(a: Print, b: Print) -> float:
    """Correlation of the scores of two runs where they decide the same, of numbers of what they miss the gold by.

    0 where there are too few or hardly any vary.

    By medians, so that scores which were drawn anew on a few documents do not hide the rest: of two normal variables
    with correlation r, half of the differences are below 0.6745 sqrt(2 - 2 r).
    """
    same = np.isfinite(a.leaning) & np.isfinite(b.leaning)
    if not is_numeric(a.task_type):
        same &= a.decided == b.decided
    if same.sum() < FOLLOWING_FROM:
        return 0.0
    standard = []
    for values in (a.leaning[same], b.leaning[same]):
        away = values - np.median(values)
        spread = float(np.median(np.abs(away)))
        if spread < 1e-6:
            return 0.0
        standard.append(NORMAL * away / spread)
    difference = float(np.median(np.abs(standard[0] - standard[1])))
    return 1 - (difference / NORMAL) ** 2 / 2


class Alike(NamedTuple):
    """How much two runs say the same. open: documents that not both have right. same: of these, equally decided."""

    open: int
    same: int
    scored: int
    """Documents on which both have scores that tell trainings apart."""
    same_scores: int


def alike(a: Print, b: Print) -> Alike:
    """Of two runs on the same documents."""
    open_ = ~(a.right & b.right)
    scored = (a.scored > 0) & (b.scored > 0)
    return Alike(
        int(open_.sum()),
        int((open_ & (a.decided == b.decided)).sum()),
        int(scored.sum()),
        int((scored & (a.scored == b.scored)).sum()),
    )


def _commonest(run: Print) -> float:
    """Share of documents that its commonest answer is given to; 1 without documents."""
    return float(np.unique(run.decided, return_counts=True)[1].max() / len(run.decided)) if len(run.decided) else 1.0


def check_twins(prints: Sequence[Print], others: Iterable[Print] = ()) -> list[Check]:
    """P02 codes: seeds of the submission that say the same, and runs of other weights that say the same.

    others: runs that were there before; one of the same name, weights and seed is the same run and may say the same.
    P05: runs that know a lot and share no more errors than chance gives. P07: one seed alone that leads the others.
    """
    checks: list[Check] = []
    by_task: dict[tuple[str, str], list[Print]] = defaultdict(list)
    for run in prints:
        # one finding a run: copies of one file would give as many as there are pairs
        checks += next(filter(None, (_pair(run, earlier) for earlier in by_task[run.task, run.data])), [])
        by_task[run.task, run.data].append(run)
    reported: set[str] = set()
    before: dict[tuple[str, str], float] = {}
    for other in others:
        before[other.task, other.data] = max(_share_right(other), before.get((other.task, other.data), 0.0))
        for run in by_task.get((other.task, other.data), ()):
            # the same run may say the same, under its name
            same = (run.weights, run.seed, run.model) == (other.weights, other.seed, other.model)
            if run.key not in reported and not same:
                pair = _pair(run, other)
                reported |= {run.key} if pair else set()
                checks += pair
    for place, (run, *more) in by_task.items():
        if not more and run.key not in reported and 0 < before.get(place, math.inf) < _share_right(run):
            what = "one seed alone is right on more documents than every run before"
            checks.append(Check("P07", "person", f"runs/{run.task}/{run.key}.parquet", what))
    return checks


def _share_right(run: Print) -> float:
    """Share of documents decided as the gold has them; 0 where the gold is not known."""
    return float(run.right.mean()) if len(run.right) else 0.0


def _pair(run: Print, other: Print) -> list[Check]:
    whose = f"seed {other.seed}" if not other.place else f"{other.model[:80]}, seed {other.seed}, in {other.place}"

    def finding(grade: Grade, what: str) -> list[Check]:
        return [Check("P02", grade, f"runs/{run.task}/{run.key}.parquet", f"{what} {whose}")]

    if run.fold != other.fold or (run.task_type == NEEDLE and run.documents != other.documents):
        return []  # a window holds some lengths and not others
    if (run.weights, run.seed) == (other.weights, other.seed):
        return finding("person", "bears the weights and seed, under another name, of")
    if run.documents != other.documents:
        return finding("person", "has other documents on the same data than")
    seen = alike(run, other)
    if seen.scored >= SCORES_FROM and seen.same_scores >= SAME_SCORES * seen.scored:
        return finding("error", f"has the scores of {seen.same_scores} of {seen.scored} documents to the last digit of")
    varied = min(_commonest(run), _commonest(other)) < ONE_ANSWER
    if varied and seen.open and seen.same == seen.open:
        return finding("person", f"decides all {seen.open} documents that not both have right as")
    known = bool(run.right.any() or other.right.any())  # where no gold is known, easy documents count as open
    if varied and known and seen.open >= NEAR_FROM and seen.same >= NEAR * seen.open:
        return finding("person", f"decides {seen.same} of {seen.open} documents that not both have right as")
    if (follows := following(run, other)) >= FOLLOWING:
        return finding("person", f"has scores that follow (correlation {follows:.3f}) those of")
    shared = shared_errors(run, other)
    if run.skilled and shared.most >= NEAR_FROM and shared.share >= WITHIN:
        return finding("person", f"errs on {shared.both} documents, nearly all of its errors or of the other's, as")
    apart = (MODELS_SHARE, SURE_OF_MODELS) if other.place else (SEEDS_SHARE, SURE_OF_SEEDS)
    if run.skilled and other.skilled and shared.below(*apart):
        what = f"shares {shared.both} of {shared.most} errors, as by chance alone ({shared.chance:.0f}), with {whose}"
        return [Check("P05", "person", f"runs/{run.task}/{run.key}.parquet", what)]
    return []


def _leap(record: RunRecord, *, alone: bool) -> str | None:
    """What to say where the run errs less than half as much as the best published encoder, by a published average.

    alone: no other seed can be compared with it; then any score above the published ones says as much.
    """
    for (task, average), best in _best_published().items():
        score = record.scores.get(average, 0.0)
        if task == record.task.id and 1 - score < (1 if alone else LEAP) * (1 - best):
            seeds = "one seed alone has " if alone else ""
            return f"{seeds}{average} {score:.4f}, where the best published encoder has {best:.4f}"
    return None


def _best_published() -> dict[tuple[str, str], float]:
    """(task, average) to the best value of the shipped papers."""
    best: dict[tuple[str, str], float] = {}
    for value in load_published().values:
        if value.comparable is not None:
            place = (value.task, value.comparable)
            best[place] = max(value.value, best.get(place, 0.0))
    return best


def check_scores(records: Sequence[RunRecord]) -> list[Check]:
    """P03, P04 and P06: scores of the oracle, seeds without any spread, and scores far above all published ones."""
    checks = []
    by_task: dict[str, list[RunRecord]] = defaultdict(list)
    alone = Counter(record.task.id for record in records)
    for record in records:
        by_task[record.task.id].append(record)
        names = sorted({record.task.primary, record.task.paper, "micro_f1"} & record.scores.keys())
        best = max((record.scores[n] for n in names), default=0.0)
        if best >= ORACLE:
            what = f"scores {best:.4f}, as the gold itself does"
            checks.append(Check("P03", "person", f"runs/{record.task.id}/{record.key}.json", what))
        elif (leap := _leap(record, alone=alone[record.task.id] == 1)) is not None:
            checks.append(Check("P06", "person", f"runs/{record.task.id}/{record.key}.json", leap))
    for task, task_records in by_task.items():
        several = len(task_records) > 1 and all(r.scores == task_records[0].scores for r in task_records)
        most = len(task_records) > 2 and len({r.scores.get(r.task.primary) for r in task_records}) == 1
        if several or most:
            what = f"the spread of its {len(task_records)} seeds is exactly zero"
            checks.append(Check("P04", "person", f"runs/{task}", what))
    return checks
