"""`biobench study`: arms of a recipe x pretraining seeds x token budgets, each trained, checked and
benchmarked alike.

A study is a folder with `study.yaml`, or another declaration that is named by its file, which names
a recipe (its base) and arms of it. The same command finds every run again and resumes it; the table
is computed from ledgers and records alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from biobench.data.catalog import load_task
from biobench.errors import SpecError, UsageError
from biobench.reporting.evidence import Evidence
from biobench.reporting.groups import RunGroup, group_runs
from biobench.reporting.slices import sliced_groups
from biobench.reporting.tasks import task_infos
from biobench.schema.protocols import protocol_named_by
from biobench.schema.source import Below
from biobench.schema.strict import Strict, suggest, validate
from biobench.schema.task import Seeds, parse_seeds
from biobench.schema.yaml12 import parse_file
from biobench.stats import LeftOut
from biobench.store import Brief, Store
from biobench.workflows.decontamination import pretrain

if TYPE_CHECKING:
    from trainer.pretrain import PretrainingResult
    from trainer.recipe.spec import Recipe

SPEC = "study.yaml"


class Benchmark(Strict):
    """How every encoder of the study is scored."""

    RENAMED = {"beside": "secondary"}
    tasks: tuple[Below, ...] = Field(min_length=1)
    """Ids, or YAML files in the declaration's folder. Their mean is what arms are compared by."""
    secondary: tuple[Below, ...] = ()
    """Tasks that are scored and shown, but not in the mean."""
    seeds: Seeds = "42"
    protocol: Literal["small"] | None = None
    overrides: tuple[str, ...] = ()
    """``KEY=VALUE`` texts; a protocol takes none."""

    @property
    def all_ids(self) -> tuple[str, ...]:
        """Of the tasks, secondary ones last. Raises SpecError for a file that is no task."""
        ids = []
        for task in (*self.tasks, *self.secondary):
            ids.append(load_task(task).id if task.endswith(".yaml") else task)
        return tuple(ids)


class Study(Strict):
    """A study's declaration, made before its runs."""

    name: str
    question: str
    replicates: str = ""
    """The study that this one repeats with new seeds: its file's name without `.yaml`."""
    base: Below
    """The recipe that declares the arms: a file in the declaration's folder, or the name of a
    shipped one.
    """
    arms: tuple[str, ...] = Field(min_length=1)
    """Names of arms of the base."""
    reference: str
    """The arm that every other one is compared with."""
    overrides: tuple[str, ...] = ()
    """``KEY=VALUE`` texts laid over every arm."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """Pretraining seeds: weights, masks and dropout; the order of the data is shared by the arms of
    one seed.
    """
    budgets: tuple[int, ...] = Field(min_length=1)
    """Tokens of a whole run; the phases share them as the recipe does."""
    benchmark: Benchmark


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One encoder to be made. base: the recipe whose arm it is. budget: tokens of the whole run."""

    arm: str
    budget: int
    seed: int
    base: Below
    overrides: tuple[str, ...]

    def recipe(self) -> Recipe:
        """What is trained. Raises SpecError, UsageError."""
        from trainer.api import load_recipe

        return load_recipe(self.base, self.overrides, (self.arm,))

    @property
    def name(self) -> str:
        """The run's folder, and the model's name in tables."""
        return f"{self.arm}-{_short(self.budget)}-s{self.seed}"


def load_study(folder: Path) -> Study:
    """The declaration below `folder`, or in the file of that name, with the paths of the files that
    it names.

    Raises UsageError where there is none, SpecError where it is wrong.
    """
    from trainer.api import arms_of

    path = folder
    if path.suffix != ".yaml":
        path /= SPEC
    if not path.is_file():
        raise UsageError(
            f"{folder} holds no {SPEC}", hint="name the folder of a study, such as results/study"
        )
    study = validate(parse_file(path), Study)

    def named(name: str) -> str:
        inside = path.parent / name
        return str(inside) if inside.is_file() else name

    base = named(study.base)
    arms = arms_of(base)
    for arm in study.arms:
        if arm not in arms:
            hint = suggest(arm, arms) if arms else "declare `arms` in the base"
            raise SpecError(f"the base {study.base} has no arm '{arm}'", hint=hint, file=path)
    if study.reference not in study.arms:
        raise SpecError(
            f"reference '{study.reference}' is no arm", hint="name one of the arms", file=path
        )
    benchmark = study.benchmark
    benchmark = benchmark.model_copy(
        update={
            "tasks": tuple(map(named, benchmark.tasks)),
            "secondary": tuple(map(named, benchmark.secondary)),
        }
    )
    return study.model_copy(update={"base": base, "benchmark": benchmark})


def planned_runs(study: Study, data_dir: str | None) -> list[StudyRun]:
    """Every run in the order in which it is made: the first seed of all arms first."""
    runs = []
    for budget, seed, arm in product(study.budgets, study.seeds, study.arms):
        run = StudyRun(arm, budget, seed, study.base, study.overrides)
        overrides = [*study.overrides, f"name={run.name}"]
        overrides += [f"seeds.{kind}={seed}" for kind in ("data", "training", "init")]
        overrides += _of_budget(run)
        if data_dir is not None:
            overrides.append(f"corpus.root={data_dir}")
        runs.append(replace(run, overrides=tuple(overrides)))
    return runs


def _of_budget(run: StudyRun) -> list[str]:
    """The overrides by which the phases of a run share its budget as its recipe's share theirs."""
    phases = run.recipe().phases
    share = Fraction(run.budget, sum(phase.tokens for phase in phases))
    overrides = []
    for number, phase in enumerate(phases):
        tokens = round(phase.tokens * share)
        warmup = round(phase.schedule.warmup * share)
        overrides.append(f"phases.{number}.tokens={tokens}")
        if phase.schedule.warmup:
            overrides.append(f"phases.{number}.schedule.warmup={warmup}")
    return overrides


def pretrain_run(
    run: StudyRun, out: Path, data_dir: str | None, say: Callable[[str], None]
) -> PretrainingResult | None:
    """Train one encoder, or continue it; None where it is finished. Raises BioBenchError."""
    from trainer.train.run_folder import differences, read_recipe, training_fields

    folder = out / "runs" / run.name
    recipe = run.recipe()
    if (folder / "model" / "config.json").is_file():
        stored = read_recipe(folder)
        changed = differences(training_fields(stored), training_fields(recipe))
        if changed:
            raise UsageError(
                f"the run in {folder} was made with other settings: {', '.join(changed[:4])}",
                hint="take another folder with --out, or delete the run",
            )
        return None
    return pretrain(recipe, data_dir, say, out=folder, resume=folder.is_dir())


def scores_of(
    study: Study,
    runs: Sequence[StudyRun],
    out: Path,
    data_dir: str | None,
    slice: str | None,
) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, LeftOut]]]:
    """Scores and scores without documents of what `out` holds of the declared benchmark.

    Each task counts by the average that published scores of it are printed in. data_dir: for gold
    under an agreement. slice: the scores on this part of the gold (`score.slices.SLICES`), of runs
    that have them; the noise of test sets then needs data_dir. Raises UsageError for another slice.
    """
    names = _names_by_weights(runs, out)
    store = Store(out / "results")
    tasks = study.benchmark.all_ids
    briefs = []
    stored, _ = store.briefs()
    for brief in stored:
        is_of_model = brief.weights in names
        if is_of_model and brief.task in tasks and _declared(study.benchmark, brief):
            briefs.append(brief)
    groups: Sequence[RunGroup] = group_runs(briefs, task_infos(briefs, ()), store)
    if slice is not None:
        groups = sliced_groups(groups, slice)
    evidence = Evidence(None if data_dir is None else Path(data_dir))
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    documents: dict[str, dict[str, LeftOut]] = defaultdict(dict)
    for group in groups:
        brief = group.briefs[0]
        name = names[brief.weights]
        metric = brief.paper
        values = group.scores(metric)
        if values is None:
            continue
        scores[name][group.task] = fmean(values)
        left_out = evidence.left_out(group, metric)
        if isinstance(left_out, LeftOut):
            documents[name][group.task] = left_out
    return scores, documents


def _names_by_weights(runs: Sequence[StudyRun], out: Path) -> dict[str, str]:
    """Hash of an exported encoder -> its run."""
    from biobench.models.loading import find_checkpoint

    names = {}
    for run in runs:
        folder = out / "runs" / run.name / "model"
        if (folder / "config.json").is_file():
            names[find_checkpoint(str(folder)).hash] = run.name
    return names


def _declared(benchmark: Benchmark, brief: Brief) -> bool:
    """Whether the study asks for this run of a task; the folder may hold others of the same
    encoder.
    """
    is_plain = (brief.limit, brief.track) == (None, "fixed")
    if not is_plain or brief.seed not in parse_seeds(benchmark.seeds):
        return False
    if benchmark.protocol is not None:
        return protocol_named_by(brief.overrides) == benchmark.protocol
    return set(brief.overrides) == set(benchmark.overrides)


def mismatches(study: Study, runs: Sequence[StudyRun], out: Path) -> Iterator[str]:
    """Arms of one seed and budget whose ledgers do not match the reference's (a causal-only arm
    never does).
    """
    from trainer.api import ledger_diff

    for run in runs:
        if run.arm == study.reference:
            continue
        reference = replace(run, arm=study.reference).name
        ledgers = [out / "runs" / name / "ledger.json" for name in (reference, run.name)]
        if all(map(Path.is_file, ledgers)):
            diff = ledger_diff(*ledgers)
            if not diff.matched:
                yield f"{reference} and {run.name} are {diff.verdict}"


def _short(tokens: int) -> str:
    return f"{tokens / 1e6:g}M" if tokens >= 10**6 else f"{tokens / 1e3:g}k"
