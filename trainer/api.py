"""What others call: pretrain, plan, compare ledgers. Plain functions; torch is imported when they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from biobench.core.stop import STOPPED_EXIT
from trainer.recipe.library import arms_of, load_recipe, recipe_schema, shipped

if TYPE_CHECKING:
    from trainer.corpus.builder import Texts
    from trainer.cost.plan import TrainingPlan
    from trainer.cost.speed import MachineSpeed
    from trainer.ledger.twins import LedgerDiff
    from trainer.recipe.spec import Recipe
    from trainer.run.run import PretrainingResult
    from trainer.train.progress import Tick

PREEMPTED_EXIT = STOPPED_EXIT
"""Exit status of a run that was told to stop and saved its state (sysexits' "try again later")."""

__all__ = [
    "PREEMPTED_EXIT",
    "arms_of",
    "bench",
    "build_corpus",
    "ledger_diff",
    "load_recipe",
    "plan",
    "pretrain",
    "recipe_schema",
    "shipped",
]


def pretrain(
    recipe: str | Path | Recipe,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overrides: Sequence[str] = (),
    progress: Literal["auto", "none"] | Callable[[Tick], None] = "auto",
    exclude: Texts = (),
    unguarded: Sequence[str] | None = None,
    probe: Callable[[Path], dict[str, float]] | None = None,
    built_corpus: bool = False,
) -> PretrainingResult:
    """Train a recipe (path or shipped name) into `out` (default ``runs/NAME``).

    resume: continue the run that is there; the result equals that of an uninterrupted one.
    overrides: ``KEY=VALUE`` texts. progress: what reports go to, on the first process.
    exclude: texts of benchmark documents that must not be trained on, besides the recipe's own list; by task, where
    the ledger is to tell how many were removed for each.
    unguarded: names of benchmark tasks whose documents are not among them, for the ledger and the card.
    probe: from an exported model to scores, called as `logging.probe` of the recipe says.
    built_corpus: refuse to begin where `build_corpus` has not been before.
    Under torchrun or accelerate launch all processes call this. The result's status is ``preempted`` when a
    signal stopped the run after saving. Raises BioBenchError with one line on bad input.
    """
    read = load_recipe(recipe, overrides)
    from trainer.run.run import PretrainingRun
    from trainer.train import progress as listeners
    from trainer.train.distributed import world
    from trainer.train.stop import StopFlag

    folder = Path(out) if out is not None else Path("runs") / read.name
    with world(read.engine.device) as here, StopFlag().watching() as stop:
        terminal = listeners.TrainingDisplay() if progress == "auto" and here.first else None
        listener = progress if callable(progress) and here.first else terminal or listeners.silent
        try:
            run = PretrainingRun(read, folder, here, listener, exclude, stop, unguarded, probe, built=built_corpus)
            return run.go(resume=resume)
        finally:
            if terminal is not None:
                terminal.close()


def build_corpus(
    recipe: str | Path | Recipe,
    *,
    cache: str | Path = "runs/corpora",
    overrides: Sequence[str] = (),
    progress: Literal["auto", "none"] | Callable[[Tick], None] = "auto",
    exclude: Texts = (),
) -> list[Path] | None:
    """Build a recipe's corpora below `cache` (where the recipe names no folder) and prove them; returns their folders.

    The recipe's own corpus comes first, then those of phases that have one of their own. A build that was killed
    continues where it was; None when a signal stopped it. Arguments as for `pretrain`, which finds the corpora when
    its runs stand beside `cache`.
    """
    read = load_recipe(recipe, overrides)
    from trainer.corpus.builder import build
    from trainer.run.beginning import tokenizer_for
    from trainer.train import progress as listeners
    from trainer.train.stop import StopFlag, StoppedError

    terminal = listeners.TrainingDisplay() if progress == "auto" else None
    stages = listeners.Stages(progress if callable(progress) else terminal or listeners.silent, 0)
    spec = read.corpus
    folder = Path(cache) if spec.cache is None else Path(spec.root) / spec.cache
    with StopFlag().watching() as stop:

        def say(what: str, fraction: float) -> None:
            stages(what, fraction)
            if stop():
                raise StoppedError

        try:
            tokenizer = tokenizer_for(read, exclude)
            return [build(s, tokenizer, folder, exclude=exclude, report=say).folder for s in read.corpora]
        except StoppedError:
            return None
        finally:
            if terminal is not None:
                terminal.close()


def plan(
    recipe: str | Path | Recipe,
    *,
    overrides: Sequence[str] = (),
    gpu: str = "H200",
    gpus: int = 1,
    speed: str | Path | None = None,
) -> TrainingPlan:
    """Steps, tokens, FLOPs, memory and time of a recipe on named GPUs, without training or weights.

    speed: a measurement of such a machine by `bench`, whose matrix rate and utilisation the time is reckoned with.
    """
    from trainer.cost.plan import make_plan

    measured = None
    if speed is not None:
        from trainer.cost.speed import read_speed

        measured = read_speed(Path(speed))
    return make_plan(load_recipe(recipe, overrides), gpu=gpu, gpus=gpus, measured=measured)


def bench(
    recipe: str | Path | Recipe, *, overrides: Sequence[str] = (), steps: int = 20, trace: str | Path | None = None
) -> MachineSpeed:
    """Tokens a second of a recipe on this machine, measured through the real loop, and what a step is spent on.

    steps: of each phase, after a few that warm up. trace: file for the profiler's traces, one a phase.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # read when torch is loaded: no remarks of its profiler on stderr
    from trainer.cost import bench as benchmarks
    from trainer.run.run import PretrainingRun
    from trainer.train import progress as listeners
    from trainer.train.distributed import world
    from trainer.train.stop import StopFlag

    read = load_recipe(recipe, overrides)

    def train(short: Recipe, folder: Path) -> None:
        with world(short.engine.device) as here:
            PretrainingRun(short, folder, here, listeners.silent, (), StopFlag()).go(resume=False)

    return benchmarks.bench(read, train, steps=steps, trace=None if trace is None else Path(trace))


def ledger_diff(a: str | Path, b: str | Path) -> LedgerDiff:
    """Two runs' ledgers side by side (files, run folders or exported models); `.lines()` renders it.

    Raises StoreError when one is missing or damaged, or describes other weights than those beside it.
    """
    from trainer.ledger.fields import check_weights, read_ledger
    from trainer.ledger.twins import compare

    for path in (a, b):
        check_weights(path)
    return compare(read_ledger(a), read_ledger(b))
