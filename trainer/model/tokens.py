"""What a tokenizer's ids mean, and whether they fit a model."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.tokenizer import load_tokenizer
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
            hint="set mask_token in tokenizer_config.json (Gemma's vocabulary holds <mask>)",
        )
    if end_token(tokenizer) is None:
        raise ModelError(
            "the tokenizer has neither an end-of-sequence nor a separator token to end "
            "documents with",
            hint="set eos_token or sep_token in tokenizer_config.json",
        )


def check_own_ids(
    source: str | Path, tokenizer: PreTrainedTokenizerBase, *, revision: str | None = None
) -> None:
    """Raise ModelError unless `tokenizer` means by its ids what the checkpoint `source` was trained
    to mean.

    Compared with the tokenizer of the checkpoint; where there is none, with the special ids that
    its config names. Tokens may be added on ids that the checkpoint's tokenizer leaves free.
    """
    original: PreTrainedTokenizerBase | None = None
    with suppress(ModelError):
        original = load_tokenizer(source, revision=revision)
    if original is None:
        raw, _ = PreTrainedConfig.get_config_dict(str(source), revision=revision)
        # The ids of the two ends are left at the class's defaults by many published configs.
        named = {
            name: value
            for name, value in raw.items()
            if name not in ("bos_token_id", "eos_token_id")
        }
        check_ids(named, tokenizer, "the checkpoint's config")
        return
    named = {f"{role}_token_id": getattr(original, f"{role}_token_id") for role in ROLES}
    check_ids(named, tokenizer, "the checkpoint's tokenizer")
    theirs, vocabulary = original.get_vocab(), tokenizer.get_vocab()
    moved = min((i for token, i in theirs.items() if vocabulary.get(token) != i), default=None)
    if moved is not None:
        token, here = (t.convert_ids_to_tokens(moved) for t in (original, tokenizer))
        raise ModelError(
            f"base.tokenizer is not the checkpoint's: id {moved} is '{token}' there and "
            f"'{here}' here",
            hint="leave base.tokenizer out, or give a tokenizer with the same vocabulary",
        )


def check_ids(named: dict[str, Any], tokenizer: PreTrainedTokenizerBase, by: str) -> None:
    """Raise ModelError where both `named` and the tokenizer name a special token's id, and not the
    same.
    """
    for role in ROLES:
        wanted, actual = named.get(f"{role}_token_id"), getattr(tokenizer, f"{role}_token_id")
        if isinstance(wanted, int) and actual is not None and wanted != actual:
            raise ModelError(
                f"{role}_token_id is {wanted} by {by} and {actual} by the tokenizer",
                hint="use the tokenizer that the checkpoint was made with, or take the id out of "
                "the config",
            )


def end_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id that ends a document: end of sequence, else the separator."""
    end: int | None = tokenizer.eos_token_id
    return end if end is not None else tokenizer.sep_token_id
