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
from biobench.data.desk.similar import normalised
from biobench.data.hashing import task_hash
from biobench.gate.alignment import alignment
from biobench.gate.bag import bag_of_words
from biobench.gate.blind import gold_oracle, majority, no_mention, prior, random_labels, random_mentions
from biobench.gate.dictionary import dictionary
from biobench.gate.permutation import ALPHA, PERMUTATIONS, UNITS, Tested, beats, beats_dealt, types_beat_dealt
from biobench.gate.policy import Played
from biobench.gate.rows import rows
from biobench.gate.surface import surface
from biobench.gate.unlabelled import beats_dealt_score, policies_without_f1
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.floor import FloorRecord, GateCheck, PolicyScores
from biobench.schema.kind import KINDS, is_error
from biobench.schema.task import TaskSpec
from biobench.score import GroupCounts, Scores, compute, counts
from biobench.stats.types import BoolArray

SEED = 20250101
"""Of random policies, permutations and the linear model."""
COPIES = 0.1
"""Share of the test documents that may stand in training before the tests leave them out. On the corpora measured
(docs/floors.md) it is 0.04 at most."""
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
    fresh, found = _fresh(data) if spec.gate.expect == "text_informative" else (data, [])
    asked, note = _units(fresh)
    checks += found
    questions = _check_text if KINDS[spec.type].counted else _check_score
    tests = questions(spec, asked, played)
    checks += [check.model_copy(update={"words": check.words + note}) for check in tests]
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
    """The data without the test documents that stand verbatim in training, and what the gate says of these.

    What was learned by heart shows nothing of what a text says. All of the data where few are copies, and where too
    few are not, which fails.
    """
    known = {normalised(d.reading) for d in data.train}
    fresh = [d for d in data.test if normalised(d.reading) not in known]
    copies, total = len(data.test) - len(fresh), len(data.test)
    if copies <= COPIES * total:
        return data, []
    words = f"{copies} of {total} test documents stand verbatim in training"
    if len(fresh) < UNITS:
        words += f"; of the others at least {UNITS} are needed"
        return data, [GateCheck(name="copies", passed=False, words=words)]
    words += f"; what follows is asked of the other {len(fresh)}"
    kept = replace(data, documents=data.documents | {"test": fresh})
    return kept, [GateCheck(name="copies", passed=True, words=words)]


def _scores(spec: TaskSpec, data: TaskData, played: Played) -> list[Scores]:
    return [
        compute(
            type=spec.type,
            labels=data.labels,
            gold_labels=data.gold_labels,
            gold=data.test,
            predictions=said,
            negative_label=spec.metric.negative_label,
            scale=spec.scale,
        )
        for said in played.draws
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
    found = _mean(scores)
    wrong = [name for name, value in played.known.items() if abs(found[name] - value) > 1e-9]
    parts = [f"{name} {_shown(name, found[name])}, must be {_shown(name, played.known[name])}" for name in wrong]
    if not parts:
        parts = [f"{name} {_shown(name, found[name])}" for name in played.known]
    words = f"{played.name}: {'; '.join(parts)}{'' if wrong else ', as label counts tell'}"
    return GateCheck(name=f"expected: {played.name}", passed=not wrong, words=words)


def _check_surface(data: TaskData) -> GateCheck:
    found = surface([*data.train, *data.test])
    words = f"{_percent(found.share)} % of the edges of {found.mentions} mentions lie inside words or on punctuation"
    if found.best is not None:
        relation = "only " if found.shifted else ""
        words += f", {relation}{_percent(found.best[0])} % if all were moved {found.best[1]}"
    if found.shifted:
        words += ": offsets are shifted"
    return GateCheck(name="surface", passed=not found.shifted, words=words)


def _check_alignment(data: TaskData) -> GateCheck:
    found = alignment(data, SEED)
    words = (
        f"the training dictionary has micro F1 {_percent(found.observed)}, {_percent(found.best)} if all mentions "
        f"were moved 1 word {found.move} (p = {found.p:.3f})"
    )
    if found.shifted:
        words += ": mentions are shifted"
    return GateCheck(name="alignment", passed=not found.shifted, words=words, p=found.p)


def _check_rows(spec: TaskSpec, data: TaskData, played: Sequence[Played]) -> list[GateCheck]:
    found = None if spec.type == "needle" else rows(spec, data, _reader(played), _evaluated(data), SEED)
    if found is None:
        return []
    t = found.tested
    words = (
        f"the bag of words has macro F1 {_percent(t.other)}, {_percent(t.observed)} if all labels were moved "
        f"{found.move} by a row in their groups (p = {t.p:.3f})"
    )
    if found.slipped:
        words += ": labels stand on the wrong row"
    return [GateCheck(name="rows", passed=not found.slipped, words=words, p=t.p)]


def _reader(played: Sequence[Played]) -> Played:
    """The policy that reads the text."""
    return next(p for p in played if not p.blind and p.kind == "floor")


def _evaluated(data: TaskData) -> BoolArray:
    """(labels,): those with gold in the full test split."""
    return np.array([label in set(data.gold_labels) for label in data.labels])


def _check_text(spec: TaskSpec, data: TaskData, played: Sequence[Played]) -> list[GateCheck]:
    """Whether the text says something of the labels, as far as `gate.expect` says it should."""
    evaluated, reader = _evaluated(data), _reader(played)
    opponents = [p for p in played if p.blind and len(p.draws) == 1]
    own = _counted(spec, data, reader)
    blind = [(p.name, beats(own, _counted(spec, data, p), evaluated, SEED)) for p in opponents]
    dealt = beats_dealt(data.test, reader.draws[0], data.labels, evaluated, SEED, places=spec.is_ner)
    tests = [(f"beats {name}", _versus(reader, name, t), t) for name, t in blind]
    tests.append(("beats dealt", _versus(reader, "itself with its predictions dealt to other documents", dealt), dealt))
    if spec.is_ner and len(data.gold_labels) > 1:
        types = types_beat_dealt(data.test, reader.draws[0], SEED)
        if types is not None:
            words = (
                f"{_percent(types.observed)} % of the types are right where {reader.name} finds a mention, "
                f"{_percent(types.other)} % with types dealt among them (p = {types.p:.3f})"
            )
            tests.append(("beats dealt types", words, types))
    if spec.gate.expect == "chance":
        # Only the dealt test asks for the text alone; a constant policy loses in macro F1 even to guessing.
        words = f"{tests[len(blind)][1]}, must not be below {ALPHA}"
        return [GateCheck(name="chance", passed=not dealt.significant, words=words, p=dealt.p)]
    return [_answered(spec, name, words, t) for name, words, t in tests]


def _answered(spec: TaskSpec, name: str, words: str, t: Tested) -> GateCheck:
    """A test that must be passed, unless the spec says that counted words cannot reach the labels."""
    if spec.gate.expect == "beyond_words":
        return GateCheck(
            name=name, passed=True, words=f"{words}; not asked, as the answers lie beyond counted words", p=t.p
        )
    return GateCheck(name=name, passed=t.significant, words=_asked(words, t), p=t.p)


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
    asked = {d.id for d in data.test}
    said = [p for p in played.draws[0] if p.document in asked]
    return counts(type=spec.type, labels=data.labels, gold=data.test, predictions=said)


def _versus(reader: Played, other: str, t: Tested) -> str:
    scores = f"macro F1 {_percent(t.observed)} against {_percent(t.other)}"
    return f"{reader.name} and {other}: {scores} (p = {t.p:.3f})"


def _asked(words: str, t: Tested) -> str:
    return words if t.significant else f"{words}, must be below {ALPHA}"


def _shown(metric: str, value: float) -> str:
    """A score in percent, an error on its own scale."""
    return f"{value:.3f}" if is_error(metric) else _percent(value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
