"""What a run starts from: tokenizer, base model, and the corpora that one process builds while the
others wait.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from itertools import chain, filterfalse
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.hub import model_commit
from biobench.core.tokenizer import ReadTokenizer, read_tokenizer
from biobench.errors import UsageError
from trainer.corpus import builder as corpus
from trainer.corpus.shards import Corpus, tokenizer_hash, train_tokenizer
from trainer.corpus.sources import pinned, texts
from trainer.disk import make_folder, write_json, writing
from trainer.export import BEGINNING
from trainer.model.guard import check_phases
from trainer.model.network import load_model, new_model, weights_hash
from trainer.model.tokens import check_fit
from trainer.recipe.corpus import CorpusSpec
from trainer.recipe.spec import Recipe, TokenizerTraining
from trainer.train.distributed import StoppedError, World
from trainer.train.phase import precision_of
from trainer.train.progress import Listener, Tick
from trainer.train.run_folder import START, Start, read_start


def reporting(
    listener: Listener, stop: Callable[[], bool], total: int
) -> Callable[[str, float], None]:
    """What reports a stage before the training (nan: how far is unknown), and raises StoppedError
    once `stop` says so.

    total: steps of the whole run.
    """

    def say(stage: str, fraction: float) -> None:
        listener(Tick(stage, 0, total, fraction=None if math.isnan(fraction) else fraction))
        if stop():
            raise StoppedError

    return say


def tokenizer_for(recipe: Recipe, exclude: corpus.Texts = ()) -> ReadTokenizer:
    """The run's tokenizer: the checkpoint's; of fresh weights a named one, or one trained on the
    corpus. What a user must know of it is logged.

    exclude: texts of documents that must not be trained on, in addition to the recipe's list; no
    tokenizer is trained on them either.
    """
    base = recipe.base
    if isinstance(base.tokenizer, TokenizerTraining):
        excluded = corpus.excluded_documents(recipe.corpus, exclude)
        sources = pinned(recipe.corpus).sources
        root = Path(recipe.corpus.root)
        documents = chain.from_iterable(texts(source, root) for source in sources)
        allowed = filterfalse(excluded.why, documents)
        length = recipe.corpus.sequence_length
        trained = train_tokenizer(allowed, base.tokenizer.vocabulary, length)
        return ReadTokenizer(trained, "trained on the corpus")
    source = base.tokenizer or str(base.model)
    read = read_tokenizer(source, revision=_commit(recipe))
    for note in read.notes:
        logging.getLogger("trainer").warning("%s: %s", source, note)
    return read


def _commit(recipe: Recipe) -> str | None:
    """The revision of a base checkpoint: its commit on the hub where that is known, the same for
    all of its files.
    """
    base = recipe.base
    if base.model is None or Path(base.model).is_dir():
        return base.revision
    return model_commit(base.model, base.revision) or base.revision


def base_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model with the weights that training starts from, checked against the tokenizer and all
    phases.
    """
    base = recipe.base
    if base.config is not None:
        model = new_model(base.config, tokenizer, recipe.seeds.init)
    else:
        model = load_model(str(base.model), revision=_commit(recipe))
    check_phases(model, recipe)
    check_fit(model, tokenizer, masked=any(p.masking is not None for p in recipe.phases))
    return model


def open_corpora(
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerBase,
    runs: Path,
    world: World,
    *,
    exclude: corpus.Texts,
    built: bool,
    say: Callable[[str, float], None],
) -> list[Corpus]:
    """The corpora of the recipe, built by the first process while the others wait.

    runs: folder of the runs, in whose folder corpora are kept unless the recipe names a place.
    built: they must be there already. say: reports, and raises StoppedError to end the building.
    Called by all processes.
    """
    opened = []
    for spec in recipe.corpora:
        cache = cache_of(spec, runs / "corpora")
        if built and not corpus.is_built(spec, tokenizer, cache, exclude):
            raise UsageError(
                f"a corpus of {recipe.name} is not built below {cache}, and --built-corpus "
                f"builds none",
                hint=f"run `biobench corpus build` before, with the same options and --cache "
                f"{cache}",
            )
        stopped = False
        if world.first:
            try:
                corpus.build(spec, tokenizer, cache, exclude=exclude, report=say)
            except StoppedError:
                stopped = True
        world.barrier()
        if world.any(stopped):
            raise StoppedError
        opened.append(corpus.build(spec, tokenizer, cache, exclude=exclude, verify=False))
        world.same(opened[-1].hash, "the corpus")
    return opened


def cache_of(spec: CorpusSpec, otherwise: Path) -> Path:
    """Folder of built corpora: the recipe's, else `otherwise`."""
    return otherwise if spec.cache is None else Path(spec.root) / spec.cache


def begin(
    recipe: Recipe,
    out: Path,
    world: World,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    corpora: list[Corpus],
    *,
    begun: bool,
    maker: str | None = None,
) -> Start:
    """What the run starts from, written down now or read and compared with what is there. Raises
    UsageError.

    begun: whether an earlier start has saved a state. maker: what made the tokenizer of a run that
    begins.
    """
    phases: tuple[str, ...] = ()
    if len(corpora) > 1:
        numbers = [recipe.corpora.index(recipe.corpus_of(phase)) for phase in recipe.phases]
        phases = tuple(corpora[number].hash for number in numbers)
    precision = precision_of(recipe, world.device)
    if begun:
        start = read_start(out)
        if (start.manifest_hash, start.phase_manifests) != (corpora[0].hash, phases):
            raise UsageError(
                "the corpus has changed since the run began",
                hint="restore its sources and exclusions, or start a new run with --out DIR",
            )
        if start.precision != precision:
            raise UsageError(
                f"the run began in {start.precision} and would go on in {precision} on this device",
                hint=f"continue with --set engine.precision={start.precision}",
            )
        return start
    start = Start(
        init_hash=weights_hash(model),
        manifest_hash=corpora[0].hash,
        tokenizer_hash=tokenizer_hash(tokenizer),
        parameters=sum(p.numel() for p in model.parameters()),
        architecture=type(model).__name__,
        precision=precision,
        phase_manifests=phases,
        base_commit=_commit(recipe),
        tokenizer=maker,
    )
    world.same(start.init_hash, "the initial weights")
    if world.first:
        with writing(make_folder(out / START)):
            model.config.save_pretrained(out / START)
            tokenizer.save_pretrained(out / START)
        write_json(out / START / BEGINNING, start.model_dump(mode="json"))
    world.barrier()
    return start
