"""What a run begins with: its tokenizer, and the model with its first weights."""

from __future__ import annotations

from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from trainer.model import check_fit, load_model, load_tokenizer, new_model
from trainer.recipe import Recipe, TokenizerTraining
from trainer.sources import texts
from trainer.tokenization import train_tokenizer


def tokenizer_for(recipe: Recipe) -> PreTrainedTokenizerBase:
    """The run's tokenizer: the checkpoint's, a named one, or one trained on the corpus."""
    wanted = recipe.base.tokenizer
    if isinstance(wanted, TokenizerTraining):
        root = Path(recipe.corpus.root)
        everything = (text for source in recipe.corpus.sources for text in texts(source, root))
        return train_tokenizer(everything, wanted.vocabulary, recipe.corpus.sequence_length)
    if wanted is not None:
        return load_tokenizer(wanted)
    assert recipe.base.model is not None
    return load_tokenizer(recipe.base.model, recipe.base.revision)


def base_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model with the weights that training starts from, checked against the tokenizer."""
    if recipe.base.config is not None:
        model = new_model(recipe.base.config, tokenizer, recipe.seeds.init)
    else:
        assert recipe.base.model is not None
        model = load_model(recipe.base.model, revision=recipe.base.revision)
    check_fit(model, tokenizer, masked=any(p.objective == "mlm" for p in recipe.phases))
    return model
