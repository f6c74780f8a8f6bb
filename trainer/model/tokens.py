"""What a tokenizer's ids mean, and whether they fit a model."""

from __future__ import annotations

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.errors import ModelError
from trainer.model.families import decoder_of

ROLES = ("pad", "bos", "eos", "cls", "sep", "mask")
"""Special tokens that configs and tokenizers name by id."""


def check_fit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, masked: bool) -> None:
    """Raise ModelError unless every id of `tokenizer` has a row in the model and special tokens
    exist.

    masked: some phase masks tokens, so a mask token is needed.
    """
    rows = decoder_of(model).weight.shape[0]
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise ModelError(
            f"the tokenizer does not fit the model: it has ids up to {largest}, the model "
            f"{rows} rows",
            hint="use the tokenizer that the checkpoint was made with",
        )
    if masked and tokenizer.mask_token_id is None:
        raise ModelError(
            "the tokenizer has no mask token, which the masked phases need",
            hint="set mask_token in the tokenizer_config.json of a copy of the checkpoint (Gemma's "
            "vocabulary holds <mask>)",
        )
    end_token(tokenizer)


def end_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id that ends a document: end of sequence, else the separator. Raises ModelError where the
    tokenizer has neither.
    """
    for end in (tokenizer.eos_token_id, tokenizer.sep_token_id):
        if end is not None:
            return int(end)
    raise ModelError(
        "the tokenizer has neither an end-of-sequence nor a separator token to end documents with",
        hint="set eos_token or sep_token in tokenizer_config.json",
    )
