"""The gate: makes the baselines, scores them by the one path, asks its questions and gives the
verdict.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from biobench.baselines.blind import Baseline, label_baselines, mention_baselines
from biobench.baselines.other_kinds import choice_baselines, name_baselines, number_baselines
from biobench.baselines.permutation import (
    ALPHA,
    PERMUTATIONS,
    Tested,
    beats,
    beats_permuted_score,
    labels_beat_permuted,
    mentions_beat_permuted,
    types_beat_permuted,
)
from biobench.baselines.reading import bag_of_words, dictionary, length_only
from biobench.baselines.surface import dropped_gold, surface
from biobench.data.catalog import LoadedTask
from biobench.data.checks.similar import same
from biobench.data.hashing import task_hash
from biobench.schema.baseline import LENGTH, UNITS, BaselineRecord, GateCheck, PolicyScores
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.kind import KINDS
from biobench.schema.metric import F1_AVERAGES
from biobench.schema.record import SliceScores
from biobench.schema.task import TaskSpec
from biobench.score import Part, counts, oracle, parts_of, score_task
from biobench.score.slices import slice_scores
from biobench.stats.types import BoolArray
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
    """Those of this type of task; the last one is the reader, to which the text must say something.

    A new one goes before it, changes the gate's questions (`schema.baseline.BASELINE_VERSION`) and,
    where it reads test texts, stands in `schema.baseline.READERS`.
    """
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
    parts = parts_of(spec.type, data.train, data.test)
    best = _policy(spec, data, parts, perfect, "ceiling")
    policies = (*(_policy(spec, data, parts, b, "floor") for b in scored), best)
    checks = [_check_oracle(spec, data, best.scores)]
    if spec.is_ner:
        documents = [*data.train, *data.test]
        checks += [surface(documents), *dropped_gold(documents)]
    fresh = data
    if spec.gate.expect != "chance":
        fresh, overlap = _without_known(data)
        checks += overlap
    tested, note = _units(fresh)
    restricted = [_restricted(baseline, tested.test) for baseline in scored]
    for check in _check_text(spec, tested, restricted):
        checks.append(check.model_copy(update={"words": check.words + note}))
    packages = {name: metadata.version(name) for name in ("numpy", "scikit-learn")}
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
        packages={"python": platform.python_version()} | packages,
        made=datetime.now(UTC).isoformat(timespec="microseconds"),
    )


class _ScoredTask(NamedTuple):
    type: str
    labels: tuple[str, ...]
    negative_label: str | None


def _policy(
    spec: TaskSpec,
    data: TaskData,
    parts: Mapping[str, Part],
    baseline: Baseline,
    kind: Literal["floor", "ceiling"],
) -> PolicyScores:
    """The baseline's scores on the test split and on its parts, means over its draws."""
    scored_task = _ScoredTask(spec.type, data.labels, spec.metric.negative_label)
    scores = []
    on_parts = []
    for draw in baseline.draws:
        scores.append(score_task(spec, data, data.test, draw).values)
        on_parts.append(slice_scores(scored_task, parts, draw))
    slices = {}
    for name, on_part in on_parts[0].items():
        means = _means([draw[name].scores for draw in on_parts])
        slices[name] = SliceScores(gold=on_part.gold, scores=means)
    return PolicyScores(
        name=baseline.name,
        words=baseline.words,
        kind=kind,
        draws=len(scores),
        scores=_means(scores),
        slices=slices,
    )


def _means(draws: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each score over the draws."""
    return {name: math.fsum(draw[name] for draw in draws) / len(draws) for name in draws[0]}


def _restricted(baseline: Baseline, documents: Sequence[Document]) -> Baseline:
    """The baseline on these test documents alone."""
    ids = {d.id for d in documents}
    draws = [[p for p in draw if p.document in ids] for draw in baseline.draws]
    return baseline._replace(draws=draws)


def _with_test(data: TaskData, documents: list[Document]) -> TaskData:
    """The data with these test documents; labels with gold stay those of the whole split."""
    return replace(data, documents=data.documents | {"test": documents})


def _units(data: TaskData) -> tuple[TaskData, str]:
    """The data as the tests take it, and what to say of it: a few groups are taken apart into their
    documents.
    """
    groups = len({d.group for d in data.test})
    documents = len(data.test)
    if groups >= UNITS:
        return data, ""
    by_document = _with_test(data, [replace(d, group=d.id) for d in data.test])
    if documents < UNITS:
        return by_document, f"; {documents} test documents cannot show it, the gate needs {UNITS}"
    noun = "group is" if groups == 1 else "groups are"
    return by_document, f"; by documents, as {groups} test {noun} too few"


def _without_known(data: TaskData) -> tuple[TaskData, list[GateCheck]]:
    """The data without the test documents that training knows already, and what the gate says of
    these.

    What was learned by heart shows nothing of what a text says. Too few other documents are all of
    the data and fail.
    """
    total = len(data.test)
    train_groups = {document.group for document in data.train}
    test_texts = [document.reading for document in data.test]
    train_texts = [document.reading for document in data.train]
    copies = set(same(test_texts, train_texts))
    shared = 0
    fresh = []
    for number, document in enumerate(data.test):
        if document.group in train_groups:
            shared += 1
        elif number not in copies:
            fresh.append(document)
    findings = []
    if copies:
        findings.append(f"{len(copies)} occur verbatim in training")
    if shared:
        findings.append(f"{shared} are of groups (patients, articles) that training has too")
    if not findings:
        return data, []
    words = f"of {total} test documents {', '.join(findings)}"
    if len(fresh) < UNITS:
        words += f"; of the others at least {UNITS} are needed"
        return data, [GateCheck(name="overlap", passed=False, words=words)]
    check = GateCheck(
        name="overlap",
        passed=True,
        words=f"{words}; the text is tested on the other {len(fresh)}",
        flagged=bool(shared) or total - len(fresh) > FLAGGED * total,
    )
    return _with_test(data, fresh), [check]


def _check_oracle(spec: TaskSpec, data: TaskData, scores: dict[str, float]) -> GateCheck:
    """The gold itself scores the maximum; over all labels, those without gold count as 0."""
    kind = KINDS[spec.type]
    metrics = F1_AVERAGES if kind.counted else kind.metrics
    best = {metric.name: metric.perfect for metric in metrics}
    if kind.counted:
        best["macro_f1_all"] = len(data.gold_labels) / len(data.labels)
    wrong = []
    for name, value in best.items():
        if abs(scores[name] - value) > 1e-9:
            wrong.append(f"{name} {scores[name]:.3f}, must be {value:.3f}")
    words = f"the oracle scores {'; '.join(wrong) or 'the maximum'}"
    return GateCheck(name="oracle", passed=not wrong, words=words)


def _check_text(spec: TaskSpec, data: TaskData, scored: Sequence[Baseline]) -> list[GateCheck]:
    """Whether the text says something of the labels, as far as `gate.expect` says it should."""
    metric = "macro F1" if KINDS[spec.type].counted else spec.metric.primary
    answers: list[tuple[str, str, Tested]] = []
    for name, baseline, opponent in _questions(spec, scored):
        if opponent is None:
            tested = _beats_itself(spec, data, baseline)
            rival = "itself with its predictions permuted among the documents"
        else:
            tested = _beats_other(spec, data, baseline, opponent)
            rival = opponent.name
        figures = f"{100 * tested.observed:.1f} against {100 * tested.opponent:.1f}"
        answers.append((name, f"{baseline.name} and {rival}: {metric} {figures}", tested))
    if spec.is_ner and len(data.gold_labels) > 1:
        reader = scored[-1]
        types = types_beat_permuted(data.test, reader.draws[0], SEED)
        if types is not None:
            right = f"{100 * types.observed:.1f} % of the types are right"
            permuted = f"{100 * types.opponent:.1f} % with types permuted among them"
            words = f"{right} where {reader.name} finds a mention, {permuted}"
            answers.append(("beats permuted types", words, types))
    bound = ALPHA / len(answers)
    return [_judged(spec, name, words, tested, bound) for name, words, tested in answers]


def _questions(
    spec: TaskSpec, scored: Sequence[Baseline]
) -> list[tuple[str, Baseline, Baseline | None]]:
    """(name of the check, a baseline, the one that it is to beat; None: itself permuted)."""
    *rivals, reader = scored
    questions: list[tuple[str, Baseline, Baseline | None]] = []
    if spec.gate.expect == "chance":
        # Only the permuted test asks for the text alone; a constant loses in macro F1 even to
        # guessing.
        for rival in rivals:
            if rival.name == LENGTH:
                questions.append((f"chance: {LENGTH}", rival, None))
        return [*questions, ("chance", reader, None)]
    for rival in rivals:
        if KINDS[spec.type].counted and len(rival.draws) == 1:
            questions.append((f"beats {rival.name}", reader, rival))
    return [*questions, ("beats permuted", reader, None)]


def _evaluated(data: TaskData) -> BoolArray:
    """(labels,), those with gold in the full test split."""
    return np.isin(data.labels, data.gold_labels)


def _beats_other(spec: TaskSpec, data: TaskData, baseline: Baseline, opponent: Baseline) -> Tested:
    """Whether a baseline beats another one in macro F1."""
    count = partial(counts, type=spec.type, labels=data.labels, gold=data.test)
    counted = count(predictions=baseline.draws[0])
    opposed = count(predictions=opponent.draws[0])
    return beats(counted, opposed, _evaluated(data), SEED)


def _beats_itself(spec: TaskSpec, data: TaskData, baseline: Baseline) -> Tested:
    """Whether a baseline beats itself with its predictions permuted among the documents."""
    predictions = baseline.draws[0]

    def score(moved: Sequence[Prediction]) -> float:
        return score_task(spec, data, data.test, moved).values[spec.metric.primary]

    if not KINDS[spec.type].counted:
        return beats_permuted_score(predictions, score, SEED)
    beats_permuted = mentions_beat_permuted if spec.is_ner else labels_beat_permuted
    return beats_permuted(data.test, predictions, data.labels, _evaluated(data), SEED)


def _judged(spec: TaskSpec, name: str, words: str, tested: Tested, bound: float) -> GateCheck:
    """The answer to a question. bound: of p, where the text must say nothing."""
    passed = tested.significant
    note = ""
    if spec.gate.expect == "chance":
        passed = tested.p >= bound
        note = f", must not be below {bound:.2g}"
    elif spec.gate.expect == "beyond_words":
        passed = True
        note = "; not asked, as the answers lie beyond counted words"
    elif not passed:
        note = f", must be below {ALPHA}"
    answer = f"{words} (p = {tested.p:.3f}){note}"
    return GateCheck(name=name, passed=passed, words=answer, p=tested.p)
