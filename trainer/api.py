"""What others call: pretrain, plan, compare ledgers. Plain functions; torch is imported when they
run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trainer.recipe.library import arms_of as arms_of
from trainer.recipe.library import load_recipe as load_recipe
from trainer.recipe.library import recipe_schema as recipe_schema

if TYPE_CHECKING:
    from trainer.corpus.builder import Texts
    from trainer.cost.bench import MachineSpeed
    from trainer.cost.plan import TrainingPlan
    from trainer.ledger import LedgerDiff
    from trainer.pretrain import PretrainingResult
    from trainer.recipe.spec import Recipe
    from trainer.train.progress import Listener, Tick


Progress = Literal["auto", "none"] | Callable[["Tick"], None]


def pretrain(
    recipe: str | Path | Recipe,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overrides: Sequence[str] = (),
    progress: Progress = "auto",
    exclude: Texts = (),
    unguarded: Sequence[str] | None = None,
    built_corpus: bool = False,
) -> PretrainingResult:
    """Train a recipe (path, shipped name, or what `load_recipe` gives) into `out` (default
    ``runs/NAME``).

    resume: continue the run that is there; the result equals that of an uninterrupted one.
    overrides: ``KEY=VALUE`` texts. progress: what reports go to, on the first process.
    exclude: texts of benchmark documents that must not be trained on, besides the recipe's list; by
    task, where the ledger counts how many were removed for each.
    unguarded: names of benchmark tasks whose documents are not among them, for the ledger and the
    card.
    built_corpus: refuse to begin where `build_corpus` has not been before.
    Under torchrun or accelerate launch all processes call this. The result's status is
    ``preempted`` when a signal stopped the run after saving. Raises BioBenchError with one line on
    bad input.
    """
    read = load_recipe(recipe, overrides)
    from trainer.pretrain import State
    from trainer.pretrain import pretrain as run
    from trainer.train.distributed import StopFlag, world
    from trainer.train.run_folder import folder_of

    folder = folder_of(read, out)
    with (
        world(read.engine.device) as here,
        StopFlag().watching("trainer") as stop,
        _listening(progress if here.first else "none") as listener,
    ):
        state = State(read, folder, here, listener, stop, exclude, unguarded, built_corpus)
        return run(state, resume=resume)


@contextmanager
def _listening(progress: Progress) -> Iterator[Listener]:
    """What reports go to; a terminal's display is closed at the end."""
    from trainer.train.progress import TrainingDisplay, silent

    if progress != "auto":
        yield silent if progress == "none" else progress
        return
    with closing(TrainingDisplay()) as display:
        yield display


def build_corpus(
    recipe: str | Path | Recipe,
    *,
    cache: str | Path = "runs/corpora",
    overrides: Sequence[str] = (),
    progress: Progress = "auto",
    exclude: Texts = (),
) -> list[Path] | None:
    """Build a recipe's corpora below `cache` (where the recipe names no folder) and prove them;
    returns their folders.

    The recipe's own corpus comes first, then those of phases that have one of their own. A build
    that was killed continues where it was; None when a signal stopped it. Arguments as for
    `pretrain`, which finds the corpora when its runs are in the folder of `cache`.
    """
    read = load_recipe(recipe, overrides)
    from trainer.corpus.builder import build
    from trainer.train.distributed import StopFlag, StoppedError
    from trainer.train.start import cache_of, reporting, tokenizer_for

    folder = cache_of(read.corpus, Path(cache))
    with StopFlag().watching("trainer") as stop, _listening(progress) as listener:
        say = reporting(listener, stop, 0)
        try:
            tokenizer = tokenizer_for(read, exclude).tokenizer
            return [
                build(s, tokenizer, folder, exclude=exclude, report=say).folder
                for s in read.corpora
            ]
        except StoppedError:
            return None


def plan(
    recipe: str | Path | Recipe, *, overrides: Sequence[str] = (), gpu: str = "H200", gpus: int = 1
) -> TrainingPlan:
    """Steps, tokens, FLOPs, memory and time of a recipe on named GPUs, without training or
    weights."""
    from trainer.cost.plan import make_plan

    return make_plan(checked(load_recipe(recipe, overrides)), gpu=gpu, gpus=gpus)


def checked(recipe: Recipe) -> Recipe:
    """The recipe itself. Raises ModelError where its base is on this machine and cannot be
    pretrained.
    """
    if recipe.base.model is not None:
        from trainer.model.network import check_base

        check_base(recipe.base.model, recipe.base.revision)
    return recipe


def bench(
    recipe: str | Path | Recipe, *, overrides: Sequence[str] = (), steps: int = 20
) -> MachineSpeed:
    """Tokens a second of a recipe on this machine, measured through the real loop, and what a step
    is spent on.

    steps: of each phase, after a few that warm up.
    """
    os.environ.setdefault(
        "KINETO_LOG_LEVEL", "99"
    )  # read when torch is loaded: no remarks of its profiler on stderr
    from trainer.cost import bench as benchmarks

    read = load_recipe(recipe, overrides)
    return benchmarks.bench(
        read, lambda short, out: pretrain(short, out=out, progress="none"), steps=steps
    )


def ledger_diff(a: str | Path, b: str | Path) -> LedgerDiff:
    """Two runs' ledgers side by side (files, run folders or exported models); `.lines()` renders
    it.

    Raises StoreError when one is missing or damaged.
    """
    from trainer.ledger import compare, read_ledger

    return compare(read_ledger(a), read_ledger(b))
