"""Models compared: paired task by task, tested on their common tasks, corrected for the number of
pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from biobench.comparison.evidence import Evidence
from biobench.comparison.matched import matched_pairs
from biobench.comparison.pairs import SAME_RUNS, SAME_SEEDS, pair_results
from biobench.comparison.plan import load_plan
from biobench.comparison.render import to_json, to_text
from biobench.comparison.result import Compared, ComparedPart, FailedRun, PairResult, RankedModel
from biobench.comparison.tasks import CommonTasks, common_tasks
from biobench.comparison.verdict import sentences
from biobench.data.catalog import load_task
from biobench.data.suite import load_suite
from biobench.errors import UsageError
from biobench.report.baselines import no_skill
from biobench.report.entrants import find_entrants
from biobench.report.results import Results, load
from biobench.report.row import AverageName
from biobench.report.suite import suite_results
from biobench.stats import possible_ranks, task_ranks, task_weights


class Comparison(Compared):
    """What `compare` gives: the numbers, and how they read."""

    __slots__ = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """Plain sentences, the most important first."""
        return sentences(self)

    def text(self, width: int | None = None) -> str:
        """The verdict, then the tables; differences in points (percent). width: in columns; None:
        as wide as it is.
        """
        return to_text(self, width)

    def as_json(self) -> dict[str, Any]:
        """Plain data, numbers as fractions, nothing that is not JSON."""
        return to_json(self)

    __str__ = text

    def _repr_html_(self) -> str:
        """The same text, for notebooks."""
        return f"<pre>{escape(self.text())}</pre>"


def compare(
    models: str | Path | Sequence[str | Path],
    *others: str | Path,
    results_dir: str | Path | Results = "results",
    data_dir: str | Path | None = None,
    suite: str | None = None,
    tasks: str | Sequence[str] | None = None,
    average: AverageName = "paper",
    rope: float = 0.0,
    alpha: float = 0.05,
    ledgers: Mapping[str, str | Path] | None = None,
    pooled: bool = False,
    plan: str | Path | None = None,
) -> Comparison:
    """Compare two models or more on the tasks that all of them have.

    models: names as in the report, folders, or published models. results_dir: the folder, or what
    was read of it. suite, tasks (ids or YAML paths): keep only these; a declared suite (blurb, a
    YAML file) brings its own scores; the path of a spec of one's own also finds gold under an
    agreement in `data_dir`. average: paper (each task's published one, the only one under which
    published scores may be compared), macro, micro or weighted. rope: margin (a fraction) within
    which two models may be the same. alpha: of the corrected tests; intervals have level 1 - alpha.
    ledgers: model -> training ledger, in addition to those in the models' folders. pooled: one
    verdict over several languages; otherwise each has its own. plan: YAML file that declares pairs,
    average, suite, seeds and alpha; what it says replaces the options here, and pairs of other
    models are marked as exploratory. Raises UsageError where a name is unknown, where the runs may
    not be compared or nothing is shared, and StoreError for a damaged ledger. Damaged records
    become findings.
    """
    requested = [
        str(m) for m in (*([models] if isinstance(models, str | Path) else models), *others)
    ]
    declared = None if plan is None else load_plan(plan)
    if declared is not None:
        requested = [*requested, *(m for m in declared.models if m not in requested)]
        average, suite, alpha = declared.average or average, declared.suite or suite, declared.alpha
        rope, pooled = declared.rope / 100, declared.pooled
    if len(requested) < 2:
        raise UsageError(
            "a comparison needs two models or more", hint="for example: biobench compare A B"
        )
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha {alpha} is not between 0 and 0.5", hint="0.05 is usual")
    if not 0 <= rope < 1:
        raise UsageError(
            f"rope {rope} is not a difference of scores", hint="zero or more, one point is 0.01"
        )
    results = results_dir if isinstance(results_dir, Results) else load(results_dir)
    terms = None if suite is None else load_suite(suite)
    if terms is not None and suite is not None:
        if average != "paper":
            raise UsageError(
                f"--suite {suite} compares each task by the score that it declares, not by "
                f"{average}",
                hint="run it without --average",
            )
        results, _ = suite_results(results, terms, suite)
        average, suite = "paper", "all"
    named = [tasks] if isinstance(tasks, str) else list(tasks or ())
    specs = {t: load_task(t) for t in named if t.endswith((".yaml", ".yml"))}
    entrants = find_entrants(requested, results)
    ids = [specs[t].id if t in specs else t for t in named]
    common = common_tasks(entrants, results, average, suite=suite, tasks=ids or None)
    labels = [e.label for e in entrants]
    pairs = list(combinations(range(len(labels)), 2))
    planned = [declared is not None and declared.declares(labels[a], labels[b]) for a, b in pairs]
    folder = None if data_dir is None else Path(data_dir)
    drawn = Evidence(folder, {spec.id: spec.path for spec in specs.values()}).drawn(common)
    bars = no_skill(results.baselines)
    languages = dict.fromkeys(info.language for info in common.tasks)
    parts = []
    for part in (
        [common]
        if pooled or len(languages) == 1
        else [common.of_language(language) for language in languages]
    ):
        guessing = frozenset(label for i, label in enumerate(labels) if is_guessing(part, i, bars))
        tested = pair_results(
            part, pairs, drawn, rope=rope, alpha=alpha, guessing=guessing, planned=planned
        )
        parts.append(ComparedPart(tested[0].language, tested, _ranking(part, tested, guessing)))
    notes = [*common.notes, *_seed_notes(common, pairs)]
    unread: dict[str, dict[str, None]] = {}
    for (_, task), reason in drawn.items():
        if isinstance(reason, str):
            unread.setdefault(reason, {})[task] = None
    notes += [
        f"test-set noise is unknown on {', '.join(of)}: {reason}" for reason, of in unread.items()
    ]
    if declared is not None:
        notes += [f"declared before looking: plan {declared.hash}", *declared.departures(common)]
        apart = [f"{r.first} – {r.second}" for r in parts[0].pairs if r.exploratory]
        notes += [f"exploratory, not in the declared plan: {', '.join(apart)}"] if apart else []
    if len(parts) > 1:
        notes.append("each language has its own verdict; --pooled asks for one over all of them")
    if 0 < sum(e.is_published for e in entrants) < len(entrants):
        notes.append(
            "the printed scores were made with other code and maybe other splits than the runs here"
        )
    if rope and any(pair.same_p[0] is None for part in parts for pair in part.pairs):
        needs = f"{SAME_SEEDS} seeds on every task and {SAME_RUNS} runs of each model"
        notes.append(
            f"not tested whether models are the same within {100 * rope:g} points where one has "
            f"not {needs}"
        )
    failed = [
        FailedRun(entrant.label, info.id, seed, score)
        for entrant, cells in zip(entrants, common.cells, strict=True)
        for info in common.tasks
        if (group := (cell := cells[info.id]).group) is not None
        for seed, score, gone in zip(
            cell.seeds, cell.scores, group.failed(common.metrics[info.id], bars), strict=True
        )
        if gone
    ]
    return Comparison(
        models=tuple(labels),
        average=average,
        alpha=alpha,
        protocol=common.protocol,
        metrics=common.metrics,
        published=tuple(e.label for e in entrants if e.is_published),
        parts=tuple(parts),
        matched=matched_pairs(requested, entrants, ledgers or {}),
        failed=tuple(failed),
        notes=tuple(dict.fromkeys(notes)),
        findings=results.findings,
        plan="" if declared is None else declared.hash,
    )


def is_guessing(common: CommonTasks, who: int, bars: Mapping[tuple[str, str], float]) -> bool:
    """Whether a model's mean is at or below that of the best baselines without skill, or not
    different over seeds.

    bars: (task, metric) -> score of the best policy that does not look at the text; tasks without
    one are skipped. Where no task has one, the bar is 0: a model that gets nothing right leads
    nobody.
    """
    known = [i for i in common.tasks if (i.id, common.metrics[i.id]) in bars]
    tasks = known or common.tasks
    weights = task_weights([info.corpus for info in tasks])
    gaps = [
        np.array(common.cells[who][i.id].scores) - bars.get((i.id, common.metrics[i.id]), 0.0)
        for i in tasks
    ]
    # seeds of different tasks are independent, those of one task are what the mean varies with
    noise = [gap.var(ddof=1) / gap.size if gap.size > 1 else 0.0 for gap in gaps]
    mean, variance = float(weights @ [gap.mean() for gap in gaps]), float(weights**2 @ noise)
    return mean <= (2 * math.sqrt(variance) if known else 0.0)


def _ranking(
    common: CommonTasks, pairs: Sequence[PairResult], guessing: frozenset[str]
) -> tuple[RankedModel, ...]:
    labels = [e.label for e in common.entrants]
    means = np.array([[mine[info.id].mean for info in common.tasks] for mine in common.cells])
    weights = task_weights([info.corpus for info in common.tasks])
    scores, mean_ranks = means @ weights, task_ranks(means) @ weights
    rounded = np.round(scores, 9)
    ahead = [
        (labels.index(r.better), labels.index(r.worse)) for r in pairs if r.verdict.here == "shown"
    ]
    ranks = possible_ranks(len(labels), ahead)
    places = [1 + int((rounded > score).sum()) for score in rounded]
    by_task, guess = means.mean(axis=1).tolist(), [label in guessing for label in labels]
    rows = zip(
        labels, scores.tolist(), by_task, places, mean_ranks.tolist(), ranks, guess, strict=True
    )
    return tuple(
        sorted((RankedModel(*row) for row in rows), key=lambda model: (model.rank, model.model))
    )


def _seed_notes(common: CommonTasks, pairs: Sequence[tuple[int, int]]) -> list[str]:
    """What became of seeds that not both models of a pair have: a line for the tasks and pairs of
    which it is true.
    """
    where: dict[str, list[str]] = {}
    for a, b in pairs:
        remarks = {row.info.id: row.note for row in common.pair(a, b) if row.note}
        for text in dict.fromkeys(remarks.values()):
            line = f"{', '.join(task for task, other in remarks.items() if other == text)}: {text}"
            where.setdefault(line, []).append(
                f"{common.entrants[a].label} and {common.entrants[b].label}"
            )
    return [
        line
        if len(whose) == len(pairs)
        else f"{line} ({'; '.join(whose[:4])}{'; …' if len(whose) > 4 else ''})"
        for line, whose in where.items()
    ]
