"""The gate: makes the baselines, scores them by the one path, asks its questions and gives the
verdict.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np

from biobench.baselines.blind import Baseline, label_baselines, mention_baselines
from biobench.baselines.other_kinds import choice_baselines, name_baselines, number_baselines
from biobench.baselines.permutation import (
    ALPHA,
    PERMUTATIONS,
    UNITS,
    Tested,
    beats,
    beats_permuted,
    beats_permuted_score,
    types_beat_permuted,
)
from biobench.baselines.reading import bag_of_words, dictionary, length_only
from biobench.baselines.surface import dropped_gold, surface
from biobench.data.catalog import LoadedTask
from biobench.data.checks.similar import same
from biobench.data.hashing import task_hash
from biobench.schema.baseline import LENGTH, BaselineRecord, GateCheck, PolicyScores
from biobench.schema.document import TaskData
from biobench.schema.kind import KINDS
from biobench.schema.task import TaskSpec
from biobench.score import GroupCounts, Scores, counts, oracle, score_task
from biobench.store.baselines import find_baseline, save_baseline
from biobench.version import __version__

SEED = 20250101
"""Of random baselines, permutations and the linear model."""
FLAGGED = 0.2
"""Share of the test documents that training knows (copies, groups) from which it is flagged. On the
corpora measured it is 0.11 at most.
"""


def ensure(
    task: LoadedTask,
    data: TaskData,
    results_dir: str | Path,
    *,
    full: Callable[[], TaskData] | None = None,
) -> BaselineRecord:
    """The stored verdict that holds for this task on this data; else the gate is run and stored.

    full: reads the data whole, where `data` is limited; the gate always looks at all of it. Raises
    StoreError.
    """
    stored = find_baseline(results_dir, task.id, task_hash(task, data.source), data.hash)
    if stored is not None and stored.expect == task.spec.gate.expect:
        return stored
    verdict = gate(task, data if full is None else full())
    save_baseline(results_dir, verdict)
    return verdict


def baselines(spec: TaskSpec, data: TaskData) -> list[Baseline]:
    """Those of this type of task; the last one is the reader, to which the text must say
    something."""
    kind = KINDS[spec.type]
    if kind.numeric:
        return number_baselines(spec, data)
    if not kind.counted:
        return name_baselines(data) if kind.ranked else choice_baselines(data, SEED)
    if spec.is_ner:
        return [*mention_baselines(data, SEED), dictionary(data)]
    single = spec.type != "multi_label"
    return [
        *label_baselines(data, SEED, single=single),
        length_only(data, SEED, single=single),
        bag_of_words(data, SEED, single=single),
    ]


def gate(task: LoadedTask, data: TaskData) -> BaselineRecord:
    """Baselines, oracle and verdict of a task on its full data (`load_data` without a limit).

    Raises ScoreError where gold and labels do not fit together.
    """
    began = time.perf_counter()
    spec = task.spec
    scored = baselines(spec, data)
    perfect = Baseline("oracle", "returns the gold", [oracle(data.test)])
    policies = tuple(
        PolicyScores(
            name=b.name,
            words=b.words,
            kind="ceiling" if b is perfect else "floor",
            draws=len(b.draws),
            scores=_means(
                [score_task(spec, data, data.test, predictions) for predictions in b.draws]
            ),
        )
        for b in (*scored, perfect)
    )
    checks = [_check_oracle(spec, data, policies[-1].scores)]
    if spec.is_ner:
        seen = [*data.train, *data.test]
        checks += [surface(seen), *dropped_gold(seen)]
    fresh, overlap = (data, []) if spec.gate.expect == "chance" else _without_known(data)
    tested, note = _units(fresh)
    ids = {d.id for d in tested.test}
    asked = [
        b._replace(draws=[[p for p in draw if p.document in ids] for draw in b.draws])
        for b in scored
    ]
    checks += overlap
    checks += [
        check.model_copy(update={"words": check.words + note})
        for check in _check_text(spec, tested, asked)
    ]
    return BaselineRecord(
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
        policies=policies,
        checks=tuple(checks),
        test_documents=len(data.test),
        test_groups=len({d.group for d in data.test}),
        seed=SEED,
        permutations=PERMUTATIONS,
        seconds=round(time.perf_counter() - began, 3),
        biobench=__version__,
        packages={"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("numpy", "scikit-learn")},
        made=datetime.now(UTC).isoformat(timespec="microseconds"),
    )


def _means(scores: Sequence[Scores]) -> dict[str, float]:
    return {
        name: math.fsum(s.values[name] for s in scores) / len(scores) for name in scores[0].values
    }


def _units(data: TaskData) -> tuple[TaskData, str]:
    """The data as the tests take it, and what to say of it: a few groups are taken apart into their
    documents.
    """
    groups, documents = len({d.group for d in data.test}), len(data.test)
    if groups >= UNITS:
        return data, ""
    apart = replace(
        data, documents=data.documents | {"test": [replace(d, group=d.id) for d in data.test]}
    )
    if documents < UNITS:
        return apart, f"; {documents} test documents cannot show it, the gate needs {UNITS}"
    return (
        apart,
        f"; by documents, as {groups} test group{'s are' if groups > 1 else ' is'} too few",
    )


def _without_known(data: TaskData) -> tuple[TaskData, list[GateCheck]]:
    """The data without the test documents that training knows already, and what the gate says of
    these.

    What was learned by heart shows nothing of what a text says. Too few other documents are all of
    the data and fail.
    """
    total, patients = len(data.test), {d.group for d in data.train}
    copies = set(same([d.reading for d in data.test], [d.reading for d in data.train]))
    groups = {place for place, d in enumerate(data.test) if d.group in patients}
    parts = [f"{len(copies)} occur verbatim in training"] if copies else []
    parts += (
        [f"{len(groups)} are of groups (patients, articles) that training has too"]
        if groups
        else []
    )
    if not parts:
        return data, []
    words = f"of {total} test documents {', '.join(parts)}"
    rest = [d for place, d in enumerate(data.test) if place not in copies | groups]
    if len(rest) < UNITS:
        words += f"; of the others at least {UNITS} are needed"
        return data, [GateCheck(name="overlap", passed=False, words=words)]
    words += f"; the text is tested on the other {len(rest)}"
    flagged = bool(groups) or total - len(rest) > FLAGGED * total
    # labels with gold stay those of the whole split
    fresh = replace(data, documents=data.documents | {"test": rest})
    return fresh, [GateCheck(name="overlap", passed=True, words=words, flagged=flagged)]


def _check_oracle(spec: TaskSpec, data: TaskData, scores: dict[str, float]) -> GateCheck:
    """The gold itself scores the maximum; over all labels, those without gold count as 0."""
    best = dict(KINDS[spec.type].perfect)
    if KINDS[spec.type].counted:
        best = dict.fromkeys(("macro_f1", "micro_f1", "weighted_f1"), 1.0)
        best["macro_f1_all"] = len(data.gold_labels) / len(data.labels)
    wrong = [
        f"{name} {scores[name]:.3f}, must be {value:.3f}"
        for name, value in best.items()
        if abs(scores[name] - value) > 1e-9
    ]
    return GateCheck(
        name="oracle",
        passed=not wrong,
        words=f"the oracle scores {'; '.join(wrong) or 'the maximum'}",
    )


def _check_text(spec: TaskSpec, data: TaskData, scored: Sequence[Baseline]) -> list[GateCheck]:
    """Whether the text says something of the labels, as far as `gate.expect` says it should."""
    kind, reader = KINDS[spec.type], scored[-1]
    evaluated = np.array([label in set(data.gold_labels) for label in data.labels])
    metric = "macro F1" if kind.counted else spec.metric.primary
    rows: list[tuple[str, str, Tested]] = []

    def counted(b: Baseline) -> GroupCounts:
        return counts(type=spec.type, labels=data.labels, gold=data.test, predictions=b.draws[0])

    def ask(name: str, b: Baseline, other: Baseline | None = None) -> None:
        """Whether `b` beats another baseline, or, without one, itself permuted."""
        if other is not None:
            t = beats(counted(b), counted(other), evaluated, SEED)
        elif kind.counted:
            t = beats_permuted(
                data.test, b.draws[0], data.labels, evaluated, SEED, places=spec.is_ner
            )
        else:
            t = beats_permuted_score(
                b.draws[0],
                lambda moved: score_task(spec, data, data.test, moved).values[metric],
                SEED,
            )
        opponent = (
            "itself with its predictions permuted among the documents"
            if other is None
            else other.name
        )
        rows.append(
            (
                name,
                f"{b.name} and {opponent}: {metric} {100 * t.observed:.1f} against "
                f"{100 * t.other:.1f}",
                t,
            )
        )

    for b in scored[:-1]:
        if spec.gate.expect != "chance" and kind.counted and len(b.draws) == 1:
            ask(f"beats {b.name}", reader, b)
        elif spec.gate.expect == "chance" and b.name == LENGTH:
            # Only the permuted test asks for the text alone; a constant loses in macro F1 even to
            # guessing.
            ask(f"chance: {b.name}", b)
    ask("chance" if spec.gate.expect == "chance" else "beats permuted", reader)
    types = (
        types_beat_permuted(data.test, reader.draws[0], SEED)
        if spec.is_ner and len(data.gold_labels) > 1
        else None
    )
    if types is not None:
        words = (
            f"{100 * types.observed:.1f} % of the types are right where {reader.name} finds a "
            f"mention, "
            f"{100 * types.other:.1f} % with types permuted among them"
        )
        rows.append(("beats permuted types", words, types))
    checks = []
    for name, words, t in rows:
        passed, note = t.significant, "" if t.significant else f", must be below {ALPHA}"
        if spec.gate.expect == "chance":
            bound = ALPHA / len(rows)
            passed, note = t.p >= bound, f", must not be below {bound:.2g}"
        elif spec.gate.expect == "beyond_words":
            passed, note = True, "; not asked, as the answers lie beyond counted words"
        checks.append(
            GateCheck(name=name, passed=passed, words=f"{words} (p = {t.p:.3f}){note}", p=t.p)
        )
    return checks
