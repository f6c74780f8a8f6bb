"""What a tokenizer's ids mean: whether they fit a model, and which make up a word."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.tokenizer import load_tokenizer
from biobench.errors import ModelError
from trainer.model.families import decoder_of

ROLES = ("pad", "bos", "eos", "cls", "sep", "mask")
"""Special tokens that configs and tokenizers name by id."""


_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json"),
    *("tokenizer.model", "sentencepiece.bpe.model", "spiece.model"),
)


def check_fit(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, masked: bool) -> None:
    """Raise ModelError unless every id of `tokenizer` has a row in the model and special tokens exist.

    masked: some phase masks tokens, so a mask token is needed.
    """
    rows = decoder_of(model).weight.shape[0]
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= rows:
        raise ModelError(
            f"the tokenizer does not fit the model: it has ids up to {largest}, the model {rows} rows",
            hint="use the tokenizer that the checkpoint was made with",
        )
    if masked and tokenizer.mask_token_id is None:
        raise ModelError(
            "the tokenizer has no mask token, which the masked phases need",
            hint="set mask_token in tokenizer_config.json (Gemma's vocabulary holds <mask>)",
        )
    if end_token(tokenizer) is None:
        raise ModelError(
            "the tokenizer has neither an end-of-sequence nor a separator token to end documents with",
            hint="set eos_token or sep_token in tokenizer_config.json",
        )


def check_own_ids(source: str | Path, tokenizer: PreTrainedTokenizerBase, *, revision: str | None = None) -> None:
    """Raise ModelError unless `tokenizer` means by its ids what the checkpoint `source` was trained to mean.

    Compared with the tokenizer beside the checkpoint; where there is none, with the special ids that its config
    names. Tokens may be added on ids that the checkpoint's tokenizer leaves free.
    """
    original: PreTrainedTokenizerBase | None = None
    if not Path(source).is_dir() or any((Path(source) / name).is_file() for name in _TOKENIZER_FILES):
        with suppress(ModelError):
            original = load_tokenizer(source, revision=revision)
    if original is None:
        raw, _ = PreTrainedConfig.get_config_dict(str(source), revision=revision)
        # The ids of the two ends are left at the class's defaults by many published configs.
        named = {name: value for name, value in raw.items() if name not in ("bos_token_id", "eos_token_id")}
        check_ids(named, tokenizer, "the checkpoint's config")
        return
    named = {f"{role}_token_id": getattr(original, f"{role}_token_id") for role in ROLES}
    check_ids(named, tokenizer, "the checkpoint's tokenizer")
    theirs, vocabulary = original.get_vocab(), tokenizer.get_vocab()
    moved = min((i for token, i in theirs.items() if vocabulary.get(token) != i), default=None)
    if moved is not None:
        token, here = (t.convert_ids_to_tokens(moved) for t in (original, tokenizer))
        raise ModelError(
            f"base.tokenizer is not the checkpoint's: id {moved} is '{token}' there and '{here}' here",
            hint="leave base.tokenizer out, or give a tokenizer with the same vocabulary",
        )


def check_ids(named: dict[str, Any], tokenizer: PreTrainedTokenizerBase, by: str) -> None:
    """Raise ModelError where both `named` and the tokenizer name a special token's id, and not the same."""
    for role in ROLES:
        wanted, actual = named.get(f"{role}_token_id"), getattr(tokenizer, f"{role}_token_id")
        if isinstance(wanted, int) and actual is not None and wanted != actual:
            raise ModelError(
                f"{role}_token_id is {wanted} by {by} and {actual} by the tokenizer",
                hint="use the tokenizer that the checkpoint was made with, or take the id out of the config",
            )


def end_token(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id that ends a document: end of sequence, else the separator."""
    end: int | None = tokenizer.eos_token_id
    return end if end is not None else tokenizer.sep_token_id


_CONTINUES = "##"
_STARTS = ("Ġ", "▁")
_BYTES = {"Ċ": "\n", "ĉ": "\t", "č": "\r"}


def word_marks(tokenizer: PreTrainedTokenizerBase, rows: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(glued, closing), each (rows,): tokens that continue the word before them unless that one is closed, and
    tokens after which a word is closed whatever follows."""
    glued, closing = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    vocabulary = {token: number for token, number in tokenizer.get_vocab().items() if number < rows}
    pieces = sum(token.startswith(_CONTINUES) and len(token) > 2 for token in vocabulary)
    marked = sum(token.startswith(_STARTS) and len(token) > 1 for token in vocabulary)
    wordpiece, bytewise = pieces > marked, any(token.startswith("Ġ") for token in vocabulary)
    for token, number in vocabulary.items():
        if wordpiece:
            glued[number] = token.startswith(_CONTINUES) and len(token) > 2
            continue
        first, last = _BYTES.get(token[:1], token[:1]), _BYTES.get(token[-1:], token[-1:])
        glued[number] = not token.startswith(_STARTS) and _is_letter(first, bytewise)
        closing[number] = not _is_letter(last, bytewise) and not token.endswith(_STARTS)
    return glued, closing


def _is_letter(character: str, bytewise: bool) -> bool:
    """Whether a character stands inside a word; bytes of longer characters count as such."""
    return character.isalnum() or (bytewise and 0x80 <= ord(character or " ") < 0x200)


def word_numbers(windows: NDArray[np.int64], glued: NDArray[np.bool_], closing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(batch, tokens) the number of the word that each token of a window belongs to, from 0; a window cuts words."""
    starts = ~glued[windows]
    starts[:, 1:] |= closing[windows[:, :-1]]
    starts[:, 0] = True
    numbers: NDArray[np.int64] = np.cumsum(starts, axis=1) - 1
    return numbers
