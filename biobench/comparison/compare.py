"""Compare models on their common tasks, with a correction for the number of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

from biobench.comparison.correction import SAME_RUNS, SAME_SEEDS, by_plan, corrected
from biobench.comparison.matched import matched_pairs
from biobench.comparison.pairs import pair_result
from biobench.comparison.plan import DeclaredPlan, load_plan
from biobench.comparison.ranks import find_guessing, ranked_models
from biobench.comparison.render import to_json, to_text
from biobench.comparison.result import Compared, ComparedPart, FailedRun
from biobench.comparison.tasks import CommonTasks, common_tasks
from biobench.comparison.verdict import sentences
from biobench.data.catalog import LoadedTask, load_task
from biobench.data.suite import load_suite
from biobench.errors import UsageError
from biobench.report.baselines import no_skill
from biobench.report.entrants import find_entrants
from biobench.report.evidence import Evidence
from biobench.report.guessing import Bars
from biobench.report.results import Results, load
from biobench.report.row import AverageName
from biobench.report.slices import sliced
from biobench.report.suite import suite_results
from biobench.score.slices import SLICES


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

    def __repr__(self) -> str:
        """The verdict alone; `print` shows the tables too."""
        return "\n".join([*self.verdict, "print(...) shows the tables: .text(), .as_json()"])

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
    slice: str | None = None,
) -> Comparison:
    """Compare two models or more on the tasks that all of them have.

    models: names as in the report, folders, or published models.
    results_dir: the folder, or what was read of it.
    data_dir: the corpora, for gold under an agreement.
    suite, tasks: keep only these (ids or YAML paths); a declared suite (blurb, a YAML file) brings
        its own scores.
    average: paper (each task's published one, the only one under which published scores may be
        compared), macro, micro or weighted.
    rope: margin (a fraction) within which two models may be the same.
    alpha: family-wise error rate of everything that the models share.
    ledgers: model -> training ledger, in addition to those in the models' folders.
    pooled: one verdict over several languages; otherwise each has its own.
    plan: YAML file that declares pairs, average, suite, seeds and alpha; what it says replaces the
        options here, and pairs of other models are marked as exploratory.
    slice: compare the scores on this part of the gold (`score.slices.SLICES`); test-set noise then
        needs data_dir.

    Raises UsageError where a name is unknown, where the runs may not be compared or nothing is
    shared, and StoreError for a damaged ledger. Damaged records become findings.
    """
    question = Question(
        models=model_names(models, others),
        average=average,
        suite=suite,
        tasks=(tasks,) if isinstance(tasks, str) else tuple(tasks or ()),
        rope=rope,
        alpha=alpha,
        pooled=pooled,
    )
    declared = None
    if plan is not None:
        declared = load_plan(plan)
        question = question.declared_by(declared)
    question.check()
    results = results_dir if isinstance(results_dir, Results) else load(results_dir)
    question, results = question.with_suite(results)
    if slice is not None:
        results = sliced(results, slice)
    own_specs = question.own_specs()
    entrants = find_entrants(question.models, results)
    labels = tuple(entrant.label for entrant in entrants)
    common = common_tasks(
        entrants,
        results,
        question.average,
        suite=question.suite,
        tasks=question.task_ids(own_specs) or None,
    )
    evidence = Evidence(
        None if data_dir is None else Path(data_dir),
        {spec.id: spec.path for spec in own_specs.values()},
    )
    bars = no_skill(results.baselines)
    parts = tuple(
        compared_part(part, question, evidence, bars, declared)
        for part in language_parts(common, pooled=question.pooled)
    )
    notes = comparison_notes(common, parts, evidence, question, declared, results.slice)
    return Comparison(
        models=labels,
        average=question.average,
        alpha=question.alpha,
        protocol=common.protocol,
        metrics=common.metrics,
        published=tuple(entrant.label for entrant in entrants if entrant.is_published),
        parts=parts,
        matched=matched_pairs(question.models, entrants, ledgers or {}),
        failed=failed_runs(common),
        notes=tuple(dict.fromkeys(notes)),
        findings=results.findings,
        plan="" if declared is None else declared.hash,
        slice=slice or "",
    )


def model_names(
    models: str | Path | Sequence[str | Path], others: Sequence[str | Path]
) -> tuple[str, ...]:
    """The models that were asked for: one and others, or a list of all."""
    if isinstance(models, str | Path):
        models = [models]
    return tuple(str(model) for model in (*models, *others))


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments of `compare` that say which models and scores, and how surely."""

    models: tuple[str, ...]
    average: AverageName
    suite: str | None
    tasks: tuple[str, ...]
    rope: float
    alpha: float
    pooled: bool

    def declared_by(self, plan: DeclaredPlan) -> Question:
        """As the plan says; models that it does not name stay, after its own."""
        added = [model for model in plan.models if model not in self.models]
        return replace(
            self,
            models=(*self.models, *added),
            average=plan.average or self.average,
            suite=plan.suite or self.suite,
            rope=plan.rope / 100,
            alpha=plan.alpha,
            pooled=plan.pooled,
        )

    def check(self) -> None:
        """Raise UsageError where the arguments ask nothing."""
        if len(self.models) < 2:
            raise UsageError(
                "a comparison needs two models or more", hint="for example: biobench compare A B"
            )
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha {self.alpha} is not between 0 and 0.5", hint="0.05 is usual")
        if not 0 <= self.rope < 1:
            raise UsageError(
                f"rope {self.rope} is not a difference of scores",
                hint="zero or more, one point is 0.01",
            )

    def with_suite(self, results: Results) -> tuple[Question, Results]:
        """Where a declared suite is asked for: its own scores, and the question about them."""
        terms = None if self.suite is None else load_suite(self.suite)
        if terms is None or self.suite is None:
            return self, results
        if self.average != "paper":
            raise UsageError(
                f"--suite {self.suite} compares each task by the score that it declares, not by "
                f"{self.average}",
                hint="run it without --average",
            )
        return replace(self, suite="all"), suite_results(results, terms, self.suite)[0]

    def own_specs(self) -> dict[str, LoadedTask]:
        """The tasks that were given as YAML files, by their paths."""
        return {task: load_task(task) for task in self.tasks if task.endswith((".yaml", ".yml"))}

    def task_ids(self, own_specs: Mapping[str, LoadedTask]) -> list[str]:
        """The ids of the tasks that were asked for."""
        return [own_specs[task].id if task in own_specs else task for task in self.tasks]


def language_parts(common: CommonTasks, *, pooled: bool) -> list[CommonTasks]:
    """The tasks that share a verdict: those of a language, or all of them."""
    languages = list(dict.fromkeys(info.language for info in common.tasks))
    if pooled or len(languages) == 1:
        return [common]
    return [common.of_language(language) for language in languages]


def compared_part(
    common: CommonTasks,
    question: Question,
    evidence: Evidence,
    bars: Bars,
    declared: DeclaredPlan | None,
) -> ComparedPart:
    """All pairs on these tasks, corrected for each other, and the ranking that they leave."""
    labels = [entrant.label for entrant in common.entrants]
    positions = list(combinations(range(len(labels)), 2))
    planned = [
        declared is not None and declared.declares(labels[first], labels[second])
        for first, second in positions
    ]
    alpha, rope = question.alpha, question.rope
    guessing = find_guessing(common, bars, evidence)
    pairs = [
        pair_result(common, first, second, evidence, guessing, alpha=alpha)
        for first, second in positions
    ]
    among_all = corrected(pairs, alpha=alpha, rope=rope, guessing=guessing)
    ranking = ranked_models(common, among_all, guessing)
    decided = by_plan(among_all, planned, alpha=alpha, rope=rope, guessing=guessing)
    return ComparedPart(decided[0].language, decided, ranking)


def failed_runs(common: CommonTasks) -> tuple[FailedRun, ...]:
    """The runs of the compared models that lie far below their siblings."""
    failed = []
    for entrant, cells in zip(common.entrants, common.cells, strict=True):
        for info in common.tasks:
            cell = cells[info.id]
            if cell.group is None:
                continue
            flags = cell.group.failed(common.metrics[info.id])
            has_failed = dict(zip(cell.group.seeds, flags, strict=True))
            for seed, score in zip(cell.seeds, cell.scores, strict=True):
                if has_failed[seed]:
                    failed.append(FailedRun(entrant.label, info.id, seed, score))
    return tuple(failed)


def comparison_notes(
    common: CommonTasks,
    parts: Sequence[ComparedPart],
    evidence: Evidence,
    question: Question,
    declared: DeclaredPlan | None,
    slice_name: str = "",
) -> list[str]:
    """What a reader must know, line by line."""
    notes = [*common.notes, *unknown_noise_notes(common, evidence)]
    if slice_name:
        notes.insert(0, f"{SLICES[slice_name].words}: {SLICES[slice_name].meaning}")
    if declared is not None:
        notes += declared_notes(declared, common, parts)
    if len(parts) > 1:
        notes.append("each language has its own verdict; --pooled asks for one over all of them")
    if 0 < sum(entrant.is_published for entrant in common.entrants) < len(common.entrants):
        notes.append(
            "the printed scores were made with other code and maybe other splits than the runs here"
        )
    pairs = [pair for part in parts for pair in part.pairs]
    if question.rope and any(pair.same is None for pair in pairs):
        notes.append(
            f"not tested whether models are the same within {100 * question.rope:g} points where "
            f"one has not {SAME_SEEDS} seeds on every task and {SAME_RUNS} runs of each model"
        )
    return notes


def unknown_noise_notes(common: CommonTasks, evidence: Evidence) -> list[str]:
    """Why test-set noise is unknown, a line a reason with its tasks."""
    tasks_of: dict[str, set[str]] = {}
    for info in common.tasks:
        for cells in common.cells:
            group = cells[info.id].group
            if group is None or group.ratio:
                continue
            left_out = evidence.left_out(group, common.metrics[info.id])
            if isinstance(left_out, str):
                tasks_of.setdefault(left_out, set()).add(info.id)
    lines = []
    for reason in sorted(tasks_of):
        tasks = [info.id for info in common.tasks if info.id in tasks_of[reason]]
        lines.append(f"test-set noise is unknown on {', '.join(tasks)}: {reason}")
    return lines


def declared_notes(
    declared: DeclaredPlan, common: CommonTasks, parts: Sequence[ComparedPart]
) -> list[str]:
    """The plan, and what departs from it."""
    exploratory = sorted(
        " – ".join(sorted((pair.first, pair.second))) for pair in parts[0].pairs if pair.exploratory
    )
    notes = [f"declared before looking: plan {declared.hash}", *declared.departures(common)]
    if exploratory:
        notes.append(f"exploratory, not in the declared plan: {', '.join(exploratory)}")
    return notes
