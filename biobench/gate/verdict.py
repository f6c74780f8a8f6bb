"""The gate: plays the policies, scores them by the one path, asks its questions and gives the verdict."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata

import numpy as np

import biobench
from biobench.data.catalog import LoadedTask
from biobench.data.hashing import task_hash
from biobench.gate.alignment import alignment
from biobench.gate.bag import bag_of_words
from biobench.gate.blind import gold_oracle, majority, no_mention, prior, random_labels, random_mentions
from biobench.gate.dictionary import dictionary
from biobench.gate.overlap import overlap, without
from biobench.gate.permutation import ALPHA, PERMUTATIONS, UNITS, Tested, beats, beats_dealt, types_beat_dealt
from biobench.gate.policy import Played
from biobench.gate.rows import rows
from biobench.gate.shortcuts import id_order, length_only
from biobench.gate.surface import surface
from biobench.gate.unlabelled import beats_dealt_score, policies_without_f1
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.floor import LENGTH, ORDER, FloorRecord, GateCheck, PolicyScores
from biobench.schema.kind import KINDS, is_error
from biobench.schema.task import TaskSpec
from biobench.score import GroupCounts, Scores, compute, counts
from biobench.stats.types import BoolArray

SEED = 20250101
"""Of random policies, permutations and the linear model."""
FLAGGED = 0.2
"""Share of the test documents that training knows (copies, near-copies, groups) from which it is flagged. On the
corpora measured (docs/floors.md) it is 0.11 at most."""
FOLLOWED = 0.5
"""Share of what the reader gains over dealt predictions from which that of the order is told."""
_UNSEEN = "the ids or the order of the documents, which no encoder sees"
_TOLERANCE = 5.0
"""Standard deviations that the hits of a random policy may lie from their mean."""


def gate(task: LoadedTask, data: TaskData) -> FloorRecord:
    """Floors, ceiling and verdict of a task on its full data (`load_data` without a limit).

    Raises ScoreError where gold and labels do not fit together.
    """
    began = time.perf_counter()
    spec = task.spec
    played = policies(spec, data)
    scores = [_scores(spec, data, p) for p in played]
    checks = [_check_known(p, s) for p, s in zip(played, scores, strict=True) if p.known or p.expected_hits]
    if spec.is_ner:
        checks += [_check_surface(data), _check_alignment(_units(data)[0])]
    elif KINDS[spec.type].counted:
        checks += _check_rows(spec, data, played)
    fresh, overlap_checks = (data, []) if spec.gate.expect == "chance" else _fresh(data)
    tested, note = _units(fresh)
    checks += overlap_checks
    questions = _check_text if KINDS[spec.type].counted else _check_score
    checks += [check.model_copy(update={"words": check.words + note}) for check in questions(spec, tested, played)]
    return FloorRecord(
        task=spec.id,
        task_version=spec.version,
        task_hash=task_hash(task, data.source),
        data_hash=data.hash,
        source=data.source,
        language=spec.language,
        corpus=spec.corpus_id,
        paper=spec.metric.paper,
        type=spec.type,
        labels=data.labels,
        gold_labels=data.gold_labels,
        expect=spec.gate.expect,
        passed=all(c.passed for c in checks),
        policies=tuple(
            PolicyScores(
                name=p.name, words=p.words, kind=p.kind, draws=len(p.draws), scores=_mean(s), known=dict(p.known)
            )
            for p, s in zip(played, scores, strict=True)
        ),
        checks=tuple(checks),
        test_documents=len(data.test),
        test_groups=len({d.group for d in data.test}),
        seed=SEED,
        permutations=PERMUTATIONS,
        seconds=round(time.perf_counter() - began, 3),
        biobench=biobench.__version__,
        packages={"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("numpy", "scikit-learn")},
        made=datetime.now(UTC).isoformat(timespec="microseconds"),
    )


def policies(spec: TaskSpec, data: TaskData) -> list[Played]:
    """What is played on this type of task: blind policies first, then the one that reads, then the oracle."""
    if not KINDS[spec.type].counted:
        return policies_without_f1(spec, data, SEED)
    if spec.is_ner:
        return [no_mention(data), random_mentions(data, SEED), dictionary(data), gold_oracle(data)]
    single = spec.type != "multi_label"
    # With one label a document, the most probable label set is the majority class.
    constant = [majority(data)] if single else [majority(data), prior(data)]
    return [
        *constant,
        random_labels(data, SEED, single=single),
        length_only(data, SEED, single=single),
        id_order(data, SEED, single=single),
        bag_of_words(data, SEED, single=single),
        gold_oracle(data),
    ]


def _units(data: TaskData) -> tuple[TaskData, str]:
    """The data as the tests take it, and what to say of it: a few groups are taken apart into their documents."""
    groups, documents = len({d.group for d in data.test}), len(data.test)
    if groups >= UNITS:
        return data, ""
    apart = replace(data, documents=data.documents | {"test": [replace(d, group=d.id) for d in data.test]})
    if documents < UNITS:
        return apart, f"; {documents} test documents cannot show it, the gate needs {UNITS}"
    return apart, f"; by documents, as {groups} test group{'s are' if groups > 1 else ' is'} too few"


def _fresh(data: TaskData) -> tuple[TaskData, list[GateCheck]]:
    """The data without the test documents that training knows already, and what the gate says of these.

    What was learned by heart shows nothing of what a text says. Near-copies stay where too few documents are left
    without them, as in a corpus made of templates; it is flagged. All of the data where too few are left even so,
    which fails.
    """
    known = overlap(data)
    total, words = len(data.test), f"of {len(data.test)} test documents {known.words}"
    if not known.words:
        return data, []
    flagged = bool(known.groups)
    for places, remark in (
        (known.copies | known.near | known.groups, ""),
        (known.copies | known.groups, ", near-copies among them, as too few documents are none"),
    ):
        rest = total - len(places)
        flagged = flagged or rest < (1 - FLAGGED) * total
        if rest >= UNITS:
            which = f"the other {rest}" if places else f"all {rest}"
            words += f"; what follows is asked of {which}{remark}"
            return without(data, places), [GateCheck(name="overlap", passed=True, words=words, flagged=flagged)]
    words += f"; of the others at least {UNITS} are needed"
    return data, [GateCheck(name="overlap", passed=False, words=words)]


def _scores(spec: TaskSpec, data: TaskData, played: Played) -> list[Scores]:
    return [
        compute(
            type=spec.type,
            labels=data.labels,
            gold_labels=data.gold_labels,
            gold=data.test,
            predictions=predictions,
            negative_label=spec.metric.negative_label,
            scale=spec.scale,
        )
        for predictions in played.draws
    ]


def _mean(scores: Sequence[Scores]) -> dict[str, float]:
    return {name: math.fsum(s.values[name] for s in scores) / len(scores) for name in scores[0].values}


def _check_known(played: Played, scores: Sequence[Scores]) -> GateCheck:
    """The scorer says of a policy what label counts alone already tell."""
    if played.expected_hits is not None:
        mean, spread = played.expected_hits
        hits = math.fsum(row["tp"] for s in scores for row in s.per_label.values()) / len(scores)
        passed = abs(hits - mean) <= _TOLERANCE * spread / math.sqrt(len(scores)) + 1e-9
        words = f"{played.name}: {hits:.1f} hits a draw, {mean:.1f} expected from label counts"
        return GateCheck(name=f"expected: {played.name}", passed=passed, words=words)
    means = _mean(scores)
    wrong = [name for name, value in played.known.items() if abs(means[name] - value) > 1e-9]
    parts = [f"{name} {_shown(name, means[name])}, must be {_shown(name, played.known[name])}" for name in wrong]
    if not parts:
        parts = [f"{name} {_shown(name, means[name])}" for name in played.known]
    words = f"{played.name}: {'; '.join(parts)}{'' if wrong else ', as label counts tell'}"
    return GateCheck(name=f"expected: {played.name}", passed=not wrong, words=words)


def _check_surface(data: TaskData) -> GateCheck:
    result = surface([*data.train, *data.test])
    words = f"{_percent(result.share)} % of the edges of {result.mentions} mentions lie inside words or on punctuation"
    if result.best is not None:
        relation = "only " if result.shifted else ""
        words += f", {relation}{_percent(result.best[0])} % if all were moved {result.best[1]}"
    if result.shifted:
        words += ": offsets are shifted"
    return GateCheck(name="surface", passed=not result.shifted, words=words)


def _check_alignment(data: TaskData) -> GateCheck:
    result = alignment(data, SEED)
    words = (
        f"the training dictionary has micro F1 {_percent(result.observed)}, {_percent(result.best)} if all mentions "
        f"were moved 1 word {result.move} (p = {result.p:.3f})"
    )
    if result.shifted:
        words += ": mentions are shifted"
    return GateCheck(name="alignment", passed=not result.shifted, words=words, p=result.p)


def _check_rows(spec: TaskSpec, data: TaskData, played: Sequence[Played]) -> list[GateCheck]:
    result = None if spec.type == "needle" else rows(spec, data, _reader(played), _evaluated(data), SEED)
    if result is None:
        return []
    t = result.tested
    words = (
        f"the bag of words has macro F1 {_percent(t.other)}, {_percent(t.observed)} if all labels were moved "
        f"{result.move} by a row in their groups (p = {t.p:.3f})"
    )
    if result.slipped:
        words += ": labels stand on the wrong row"
    return [GateCheck(name="rows", passed=not result.slipped, words=words, p=t.p)]


def _reader(played: Sequence[Played]) -> Played:
    """The policy that reads the text."""
    return next(p for p in played if not p.blind and p.kind == "floor")


def _evaluated(data: TaskData) -> BoolArray:
    """(labels,): those with gold in the full test split."""
    return np.array([label in set(data.gold_labels) for label in data.labels])


def _check_text(spec: TaskSpec, data: TaskData, played: Sequence[Played]) -> list[GateCheck]:
    """Whether the text says something of the labels, as far as `gate.expect` says it should."""
    evaluated, reader = _evaluated(data), _reader(played)

    def dealt(policy: Played) -> tuple[str, Tested]:
        test = beats_dealt(data.test, policy.draws[0], data.labels, evaluated, SEED, places=spec.is_ner)
        return _versus(policy, "itself with its predictions dealt to other documents", test), test

    if spec.gate.expect == "chance":
        # Only the dealt test asks for the text alone; a constant policy loses in macro F1 even to guessing.
        controls = [reader, *(p for p in played if p.name in (LENGTH, ORDER))]
        bound = ALPHA / len(controls)
        return [
            GateCheck(
                name="chance" if policy is reader else f"chance: {policy.name}",
                passed=test.p >= bound,
                words=f"{words}, must not be below {bound:.2g}",
                p=test.p,
            )
            for policy in controls
            for words, test in [dealt(policy)]
        ]
    opponents = [p for p in played if p.blind and len(p.draws) == 1 and p.name != ORDER]
    counted = _counted(spec, data, reader)
    tests = [
        (f"beats {p.name}", _versus(reader, p.name, t), t)
        for p in opponents
        for t in [beats(counted, _counted(spec, data, p), evaluated, SEED)]
    ]
    tests.append(("beats dealt", *dealt(reader)))
    if spec.is_ner and len(data.gold_labels) > 1:
        types = types_beat_dealt(data.test, reader.draws[0], SEED)
        if types is not None:
            words = (
                f"{_percent(types.observed)} % of the types are right where {reader.name} finds a mention, "
                f"{_percent(types.other)} % with types dealt among them (p = {types.p:.3f})"
            )
            tests.append(("beats dealt types", words, types))
    checks = [_answered(spec, name, words, t) for name, words, t in tests]
    read = tests[len(opponents)][2]
    return checks + [
        GateCheck(name=policy.name, passed=True, words=f"{words}: labels follow {_UNSEEN}", p=test.p)
        for policy in played
        if policy.name == ORDER
        for words, test in [dealt(policy)]
        if test.significant and test.observed - test.other >= FOLLOWED * (read.observed - read.other)
    ]


def _answered(spec: TaskSpec, name: str, words: str, t: Tested) -> GateCheck:
    """A test that must be passed, unless the spec says that counted words cannot reach the labels."""
    if spec.gate.expect == "beyond_words":
        return GateCheck(
            name=name, passed=True, words=f"{words}; not asked, as the answers lie beyond counted words", p=t.p
        )
    return GateCheck(name=name, passed=t.significant, words=_required(words, t), p=t.p)


def _check_score(spec: TaskSpec, data: TaskData, played: Sequence[Played]) -> list[GateCheck]:
    """Of a kind without F1: whether the policy that reads says something by its leading score, whatever `_check_text`
    asks of F1."""
    reader = [p for p in played if not p.blind and p.kind == "floor"][-1]
    metric = spec.metric.primary
    documents = {d.id for d in data.test}
    mine = [p for p in reader.draws[0] if p.document in documents]

    def score(gold: Sequence[Document], predictions: Sequence[Prediction]) -> float:
        return compute(
            type=spec.type,
            labels=data.labels,
            gold_labels=data.gold_labels,
            gold=gold,
            predictions=predictions,
            scale=spec.scale,
        ).values[metric]

    t = beats_dealt_score(data.test, mine, score, SEED)
    words = (
        f"{reader.name} and itself with its predictions dealt to other documents: {metric} {_percent(t.observed)} "
        f"against {_percent(t.other)} (p = {t.p:.3f})"
    )
    if spec.gate.expect == "chance":
        return [GateCheck(name="chance", passed=not t.significant, words=f"{words}, must not be below {ALPHA}", p=t.p)]
    return [_answered(spec, "beats dealt", words, t)]


def _counted(spec: TaskSpec, data: TaskData, played: Played) -> GroupCounts:
    ids = {d.id for d in data.test}
    predictions = [p for p in played.draws[0] if p.document in ids]
    return counts(type=spec.type, labels=data.labels, gold=data.test, predictions=predictions)


def _versus(reader: Played, other: str, t: Tested) -> str:
    scores = f"macro F1 {_percent(t.observed)} against {_percent(t.other)}"
    return f"{reader.name} and {other}: {scores} (p = {t.p:.3f})"


def _required(words: str, t: Tested) -> str:
    return words if t.significant else f"{words}, must be below {ALPHA}"


def _shown(metric: str, value: float) -> str:
    """A score in percent, an error on its own scale."""
    return f"{value:.3f}" if is_error(metric) else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
