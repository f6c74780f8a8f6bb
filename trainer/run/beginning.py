"""What a run begins with: its tokenizer, and the model with its first weights."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.hub import model_commit
from biobench.core.tokenizer import load_tokenizer
from trainer.corpus.builder import Texts, documents, excluded_documents
from trainer.corpus.sources import pinned
from trainer.corpus.tokenization import train_tokenizer
from trainer.model.extension import added_tokens, extend_model, extend_tokenizer
from trainer.model.interventions import check_phases
from trainer.model.network import load_model, new_model
from trainer.model.tokens import check_fit, check_own_ids
from trainer.recipe.spec import Recipe, TokenizerTraining


def tokenizer_for(recipe: Recipe, exclude: Texts = ()) -> PreTrainedTokenizerBase:
    """The run's tokenizer: the checkpoint's, a named one, or one trained on the corpus.

    exclude: texts of documents that must not be trained on, besides the recipe's own list; no tokenizer is
    trained on them either.
    """
    wanted = recipe.base.tokenizer
    if isinstance(wanted, TokenizerTraining):
        root = Path(recipe.corpus.root)
        excluded = excluded_documents(recipe.corpus, exclude)
        everything = (text for source in pinned(recipe.corpus).sources for text in documents(source, root))
        allowed = (text for text in everything if excluded.why(text) is None)
        return train_tokenizer(allowed, wanted.vocabulary, recipe.corpus.sequence_length)
    assert wanted is not None or recipe.base.model is not None
    tokenizer = load_tokenizer(wanted) if wanted else load_tokenizer(str(recipe.base.model), revision=_commit(recipe))
    if recipe.base.added_tokens is not None:
        extend_tokenizer(tokenizer, added_tokens(recipe.base.added_tokens, Path(recipe.corpus.root)))
    return tokenizer


def base_commit(recipe: Recipe) -> str | None:
    """The commit of a base checkpoint on the hub, the same for its tokenizer, its config and its weights; else None."""
    base = recipe.base
    if base.model is None or Path(base.model).is_dir():
        return None
    return model_commit(base.model, base.revision)


def _commit(recipe: Recipe) -> str | None:
    """The revision under which the base's files are loaded: its commit where that is known."""
    return base_commit(recipe) or recipe.base.revision


def base_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model with the weights that training starts from, checked against the tokenizer and all phases."""
    if recipe.base.config is not None:
        model = new_model(recipe.base.config, tokenizer, recipe.seeds.init)
    else:
        assert recipe.base.model is not None
        model = load_model(recipe.base.model, revision=_commit(recipe))
        if recipe.base.added_tokens is not None:
            extend_model(model, tokenizer, recipe.base, revision=_commit(recipe))
    check_phases(model, recipe)
    check_fit(model, tokenizer, masked=any("mlm" in p.directions for p in recipe.phases))
    if recipe.base.model is not None and recipe.base.tokenizer is not None:
        check_own_ids(recipe.base.model, tokenizer, revision=_commit(recipe))
    return model
