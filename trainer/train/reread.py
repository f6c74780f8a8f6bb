"""The documents that a finished run was trained on, read again from the sources that its recipe
names.

Documents that the run excluded are excluded again. What was held out for validation loss, or not
drawn to meet a source's share, is read too, so counts over these texts are upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path

from biobench.core.tokenizer import load_tokenizer
from biobench.errors import StoreError, UsageError
from trainer.corpus.builder import corpus_folder, excluded_documents
from trainer.corpus.cleaning import Excluded
from trainer.corpus.shards import MANIFEST, Corpus
from trainer.corpus.sources import texts
from trainer.ledger import FILE, Ledger, read_ledger
from trainer.recipe.corpus import CorpusSpec
from trainer.train.run_folder import RECIPE, START, read_recipe
from trainer.train.start import cache_of


@dataclass(frozen=True, slots=True)
class TrainingText:
    """ledger: of the run. model: its exported encoder. excluded: by the run."""

    ledger: Ledger
    model: Path
    excluded: Excluded
    specs: tuple[CorpusSpec, ...]

    def documents(self) -> Iterator[str]:
        """The texts, source after source, each source once, without excluded ones."""
        sources = {}
        for spec in self.specs:
            for source in spec.sources:
                key = source.model_dump_json(exclude={"share", "repeat"})
                sources[key] = (source, Path(spec.root))
        for source, root in sources.values():
            yield from filterfalse(self.excluded.why, texts(source, root))


def run_folder(path: str | Path) -> Path | None:
    """The run that this ledger file, run folder or exported model belongs to; None for anything
    else.
    """
    folder = Path(path)
    if folder.name == FILE:
        folder = folder.parent
    for candidate in (folder, folder.absolute().parent):
        if (candidate / RECIPE).is_file() and (candidate / FILE).is_file():
            return candidate
    return None


def _hash_of_built(folder: Path) -> str | None:
    """The hash of a corpus; None where it is not built."""
    return Corpus(folder).hash if (folder / MANIFEST).is_file() else None


def reread(path: str | Path, listed: Callable[[], list[str]]) -> TrainingText:
    """The training text of a finished run, proved to be the one that its ledger names.

    listed: gives the documents that were excluded in addition to the recipe's list; asked for only
    where the ledger says that there were some. Raises UsageError for a path that is no run,
    StoreError where the text, the built corpus or the list of exclusions is not what it was.
    """
    folder = run_folder(path)
    if folder is None:
        raise UsageError(
            f"'{path}' is not the folder of a finished pretraining run",
            hint=f"it holds {RECIPE} and {FILE}; for other text give a folder or file with "
            f"--model MODEL",
        )
    ledger = read_ledger(folder)
    recipe = read_recipe(folder)
    excluded = excluded_documents(recipe.corpus, [])
    if excluded.hash != ledger.corpus.exclusion_hash:
        excluded = excluded_documents(recipe.corpus, listed())
    if excluded.hash != ledger.corpus.exclusion_hash:
        raise StoreError(
            "the available documents are not those that the run excluded",
            hint="give the --data-dir that `biobench pretrain` was given",
            file=folder / FILE,
        )
    cache = cache_of(recipe.corpus, folder.absolute().parent / "corpora")
    tokenizer = load_tokenizer(folder / START)
    corpora = [ledger.corpus, *(phase.corpus for phase in ledger.phases)]
    hashes = {corpus.manifest_hash for corpus in corpora if corpus is not None}
    built = [corpus_folder(spec, tokenizer, cache, excluded) for spec in recipe.corpora]
    found = set(map(_hash_of_built, built))
    if None in found or not hashes <= found:
        raise StoreError(
            f"the text below '{recipe.corpus.root}' cannot be shown to be the text of this run",
            hint=f"restore its sources and the built corpus in {cache}, or give the text itself "
            f"with --model MODEL",
            file=folder / RECIPE,
        )
    return TrainingText(ledger, folder / "model", excluded, tuple(recipe.corpora))
