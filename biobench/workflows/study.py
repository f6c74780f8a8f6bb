"""`biobench study`: arms of a recipe x pretraining seeds x token budgets, each trained, checked and
benchmarked alike.

A study is a folder with `study.yaml`, or another declaration that is named by its file, which names
a recipe (its base) and arms of it. The same command finds every run again and resumes it; the table
is computed from ledgers and records alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from biobench.data.catalog import load_task
from biobench.errors import SpecError, UsageError
from biobench.schema.protocols import protocol_named_by
from biobench.schema.record import RunRecord
from biobench.schema.source import Below
from biobench.schema.strict import Strict, suggest, validate
from biobench.schema.task import Seeds, parse_seeds
from biobench.schema.yaml12 import parse_file
from biobench.stats import seed_interval
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
        return tuple(
            load_task(t).id if t.endswith(".yaml") else t for t in (*self.tasks, *self.secondary)
        )


class Study(Strict):
    """A study's declaration, made before its runs."""

    name: str
    question: str
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


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm at one budget. scores: the mean over tasks, by pretraining seed. difference, low,
    high: to the reference arm, paired by seed, with the 95% t interval over seeds; None for the
    reference or one seed.
    """

    arm: str
    budget: int
    scores: dict[int, float]
    difference: float | None
    low: float | None
    high: float | None

    @property
    def mean(self) -> float:
        """Over pretraining seeds."""
        return fmean(self.scores.values())

    @property
    def spread(self) -> float | None:
        """Standard deviation over pretraining seeds; None for one."""
        return stdev(self.scores.values()) if len(self.scores) > 1 else None


def load_study(folder: str | Path) -> Study:
    """The declaration below `folder`, or in the file of that name, with the paths of the files that
    it names.

    Raises UsageError where there is none, SpecError where it is wrong.
    """
    from trainer.api import arms_of

    path = Path(folder) if Path(folder).suffix == ".yaml" else Path(folder) / SPEC
    if not path.is_file():
        raise UsageError(
            f"{folder} holds no {SPEC}", hint="name the folder of a study, such as results/study"
        )
    study = validate(parse_file(path), Study)

    def named(name: str) -> str:
        return str(path.parent / name) if (path.parent / name).is_file() else name

    base = named(study.base)
    known = arms_of(base)
    for arm in study.arms:
        if arm not in known:
            hint = suggest(arm, known) if known else "declare `arms` in the base"
            raise SpecError(f"the base {study.base} has no arm '{arm}'", hint=hint, file=path)
    if study.reference not in study.arms:
        raise SpecError(
            f"reference '{study.reference}' is no arm", hint="name one of the arms", file=path
        )
    lists = {
        field: tuple(map(named, getattr(study.benchmark, field)))
        for field in ("tasks", "secondary")
    }
    return study.model_copy(
        update={"base": base, "benchmark": study.benchmark.model_copy(update=lists)}
    )


def planned_runs(study: Study, data_dir: str | None) -> list[StudyRun]:
    """Every run in the order in which it is made: the first seed of all arms first."""
    from trainer.api import load_recipe

    runs = []
    for budget, seed, arm in product(study.budgets, study.seeds, study.arms):
        phases = load_recipe(study.base, study.overrides, (arm,)).phases
        share = Fraction(budget, sum(phase.tokens for phase in phases))
        overrides = [*study.overrides, f"name={arm}-{_short(budget)}-s{seed}"]
        overrides += [f"seeds.{kind}={seed}" for kind in ("data", "training", "init")]
        for number, phase in enumerate(phases):
            overrides.append(f"phases.{number}.tokens={round(phase.tokens * share)}")
            if phase.schedule.warmup:
                overrides.append(
                    f"phases.{number}.schedule.warmup={round(phase.schedule.warmup * share)}"
                )
        if data_dir is not None:
            overrides.append(f"corpus.root={data_dir}")
        runs.append(StudyRun(arm, budget, seed, study.base, tuple(overrides)))
    return runs


def pretrain_run(
    run: StudyRun, out: Path, data_dir: str | None, say: Callable[[str], None]
) -> PretrainingResult | None:
    """Train one encoder, or continue it; None where it is finished. Raises BioBenchError."""
    from trainer.train.run_folder import differences, read_recipe, training_fields

    folder, recipe = out / "runs" / run.name, run.recipe()
    if (folder / "model" / "config.json").is_file():
        if changed := differences(training_fields(read_recipe(folder)), training_fields(recipe)):
            raise UsageError(
                f"the run in {folder} was made with other settings: {', '.join(changed[:4])}",
                hint="take another folder with --out, or delete the run",
            )
        return None
    return pretrain(recipe, data_dir, say, out=folder, resume=folder.is_dir())


def scores_of(study: Study, runs: Sequence[StudyRun], out: Path) -> dict[str, dict[str, float]]:
    """Run -> task -> primary score, the mean over fine-tuning seeds, of what `out` holds of the
    declared benchmark.
    """
    from biobench.models.loading import find_checkpoint
    from biobench.store import Store

    folders = {run.name: out / "runs" / run.name / "model" for run in runs}
    names = {
        find_checkpoint(str(f)).hash: name
        for name, f in folders.items()
        if (f / "config.json").is_file()
    }
    by_run: dict[str, dict[str, list[float]]] = {}
    for record in Store(out / "results").records():
        name, task = names.get(record.model.hash), record.task.id
        if (
            name is not None
            and task in study.benchmark.all_ids
            and _declared(study.benchmark, record)
        ):
            by_run.setdefault(name, {}).setdefault(task, []).append(
                record.scores[record.task.primary]
            )
    return {
        name: {task: fmean(values) for task, values in tasks.items()}
        for name, tasks in by_run.items()
    }


def _declared(benchmark: Benchmark, record: RunRecord) -> bool:
    """Whether the study asks for this run of a task; the folder may hold others of the same
    encoder.
    """
    if (
        record.seed not in parse_seeds(benchmark.seeds)
        or record.limit is not None
        or record.track != "fixed"
    ):
        return False
    if benchmark.protocol is not None:
        return protocol_named_by(record.overrides) == benchmark.protocol
    return set(record.overrides) == set(benchmark.overrides)


def mismatches(study: Study, runs: Sequence[StudyRun], out: Path) -> Iterator[str]:
    """Arms of one seed and budget whose ledgers do not match the reference's (a causal-only arm
    never does).
    """
    from trainer.api import ledger_diff

    for run in runs:
        reference = f"{study.reference}{run.name.removeprefix(run.arm)}"
        folders = [out / "runs" / name for name in (reference, run.name)]
        if run.arm != study.reference and all((f / "ledger.json").is_file() for f in folders):
            diff = ledger_diff(*folders)
            if not diff.matched:
                yield f"{reference} and {run.name} are {diff.verdict}"


def table(
    study: Study, runs: Sequence[StudyRun], scores: dict[str, dict[str, float]]
) -> list[ArmRow]:
    """One row an arm and budget. scores: run -> task -> primary score (mean over fine-tuning
    seeds).

    A run counts where all tasks of the study have a score.
    """
    tasks = study.benchmark.all_ids[: len(study.benchmark.tasks)]
    whole = {
        (run.budget, run.arm, run.seed): fmean(scores[run.name][task] for task in tasks)
        for run in runs
        if set(tasks) <= set(scores.get(run.name, {}))
    }
    rows = []
    for budget, arm in product(study.budgets, study.arms):
        scored, reference = (
            {seed: value for (b, a, seed), value in whole.items() if (b, a) == (budget, name)}
            for name in (arm, study.reference)
        )
        shared = () if arm == study.reference else scored.keys() & reference.keys()
        paired = [scored[seed] - reference[seed] for seed in sorted(shared)]
        ends = seed_interval(paired).interval if len(paired) > 1 else None
        low, high = (ends.low, ends.high) if ends else (None, None)
        rows += (
            [ArmRow(arm, budget, scored, fmean(paired) if paired else None, low, high)]
            if scored
            else []
        )
    return rows


def _short(tokens: int) -> str:
    return f"{tokens / 1e6:g}M" if tokens >= 10**6 else f"{tokens / 1e3:g}k"
