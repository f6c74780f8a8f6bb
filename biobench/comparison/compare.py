"""Compare models on their common tasks, with a correction for the number of pairs."""

from __future__ import annotations

from collections import defaultdict
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
from biobench.reporting.baselines import no_skill
from biobench.reporting.entrants import find_entrants
from biobench.reporting.evidence import Evidence
from biobench.reporting.guessing import Bars
from biobench.reporting.results import Results, load
from biobench.reporting.row import AverageName, check_average
from biobench.reporting.slices import sliced
from biobench.reporting.suite import suite_results
from biobench.score.slices import SLICES

OTHER_CODE = (
    "the printed scores were made with other code and maybe other splits than the runs here"
)
"""The note on a comparison of runs with printed scores."""


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

    >>> print(compare("my-org/my-encoder", "all-MiniLM-L6-v2", tasks="gad").verdict[0])

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
    if isinstance(models, str | Path):
        models = [models]
    if isinstance(tasks, str):
        tasks = [tasks]
    question = Question(
        models=tuple(str(model) for model in (*models, *others)),
        average=average,
        suite=suite,
        tasks=tuple(tasks or ()),
        rope=rope,
        alpha=alpha,
        pooled=pooled,
        slice=slice,
    )
    if plan is not None:
        question = question.declared_by(load_plan(plan))
    question.check()
    if not isinstance(results_dir, Results):
        results_dir = load(results_dir)
    return answered(*question.with_suite(results_dir), data_dir, ledgers or {})


def answered(
    question: Question,
    results: Results,
    data_dir: str | Path | None,
    ledgers: Mapping[str, str | Path],
) -> Comparison:
    """The comparison that the question asks of these results; see `compare`."""
    if question.slice is not None:
        results = sliced(results, question.slice)
    own_specs = question.own_specs()
    entrants = find_entrants(question.models, results)
    common = common_tasks(
        entrants,
        results,
        question.average,
        suite=question.suite,
        tasks=question.task_ids(own_specs),
    )
    evidence = Evidence(
        None if data_dir is None else Path(data_dir),
        {spec.id: spec.path for spec in own_specs.values()},
    )
    bars = no_skill(results.baselines)
    sections = tuple(
        compared_part(on_tasks, question, evidence, bars)
        for on_tasks in language_sections(common, pooled=question.pooled)
    )
    published = tuple(entrant.label for entrant in entrants if entrant.is_published)
    notes = [
        *reading_notes(question, common, sections, evidence),
        *verdict_notes(question, sections, published),
    ]
    return Comparison(
        models=common.labels,
        average=question.average,
        alpha=question.alpha,
        protocol=common.protocol,
        metrics=common.metrics,
        published=published,
        parts=sections,
        matched=matched_pairs(question.models, entrants, ledgers),
        failed=failed_runs(common),
        notes=tuple(dict.fromkeys(notes)),
        findings=results.findings,
        plan="" if question.plan is None else question.plan.hash,
        slice=question.slice or "",
    )


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
    slice: str | None = None
    plan: DeclaredPlan | None = None

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
            plan=plan,
        )

    def check(self) -> None:
        """Raise UsageError where the arguments ask nothing."""
        check_average(self.average)
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
        if self.suite is None or (terms := load_suite(self.suite)) is None:
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


def language_sections(common: CommonTasks, *, pooled: bool) -> list[CommonTasks]:
    """The tasks that share a verdict: those of a language, or all of them."""
    if pooled or common.language:
        return [common]
    languages = dict.fromkeys(info.language for info in common.tasks)
    return [common.of_language(language) for language in languages]


def compared_part(
    common: CommonTasks, question: Question, evidence: Evidence, bars: Bars
) -> ComparedPart:
    """All pairs on these tasks, corrected for each other, and the ranking that they leave."""
    alpha = question.alpha
    rope = question.rope
    plan = question.plan
    guessing = find_guessing(common, bars, evidence)
    pairs = [
        pair_result(common, labels, evidence, guessing, alpha=alpha)
        for labels in combinations(common.labels, 2)
    ]
    among_all = corrected(pairs, alpha=alpha, rope=rope, guessing=guessing)
    ranking = ranked_models(common, among_all, guessing)
    if plan is not None:
        among_all = by_plan(among_all, plan, alpha=alpha, rope=rope, guessing=guessing)
    return ComparedPart(common.language, among_all, ranking)


def failed_runs(common: CommonTasks) -> tuple[FailedRun, ...]:
    """The runs of the compared models that lie far below their siblings."""
    failed = []
    for label in common.labels:
        for cell in common.cells_of(label):
            if cell.group is None:
                continue
            flag_of = dict(zip(cell.group.seeds, cell.group.failed(cell.metric), strict=True))
            for seed, score in zip(cell.seeds, cell.scores, strict=True):
                if flag_of[seed]:
                    failed.append(FailedRun(label, cell.info.id, seed, score))
    return tuple(failed)


def unknown_noise_notes(common: CommonTasks, evidence: Evidence) -> list[str]:
    """Why test-set noise is unknown, a line a reason with its tasks."""
    tasks_of: dict[str, dict[str, None]] = defaultdict(dict)
    for info in common.tasks:
        for cell in common.cells[info.id].values():
            if cell.group is None or cell.group.ratio:
                continue
            left_out = evidence.left_out(cell.group, cell.metric)
            if isinstance(left_out, str):
                tasks_of[left_out][info.id] = None
    notes = []
    for reason, tasks in sorted(tasks_of.items()):
        notes.append(f"test-set noise is unknown on {', '.join(tasks)}: {reason}")
    return notes


def reading_notes(
    question: Question, common: CommonTasks, sections: Sequence[ComparedPart], evidence: Evidence
) -> list[str]:
    """What the scores are of, and what is known of the runs; a plan, and what departs from it."""
    notes = [*common.notes, *unknown_noise_notes(common, evidence)]
    if question.slice:
        asked_slice = SLICES[question.slice]
        notes.insert(0, f"{asked_slice.words}: {asked_slice.meaning}")
    plan = question.plan
    if plan is None:
        return notes
    notes += [f"declared before looking: plan {plan.hash}", *plan.departures(common)]
    exploratory = []
    for pair in sections[0].pairs:
        if pair.exploratory:
            exploratory.append(" – ".join(sorted((pair.first, pair.second))))
    if exploratory:
        names = ", ".join(sorted(exploratory))
        notes.append(f"exploratory, not in the declared plan: {names}")
    return notes


def verdict_notes(
    question: Question, sections: Sequence[ComparedPart], published: Sequence[str]
) -> list[str]:
    """How the verdicts are to be read. published: the models that are known from print alone."""
    notes = []
    if len(sections) > 1:
        notes.append("each language has its own verdict; --pooled asks for one over all of them")
    if 0 < len(published) < len(question.models):
        notes.append(OTHER_CODE)
    if question.rope and any(pair.same is None for section in sections for pair in section.pairs):
        notes.append(
            f"not tested whether models are the same within {100 * question.rope:g} points where "
            f"one has not {SAME_SEEDS} seeds on every task and {SAME_RUNS} runs of each model"
        )
    return notes
