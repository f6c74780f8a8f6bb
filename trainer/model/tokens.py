"""What a tokenizer's ids mean: whether they fit a model, which make up a word, which are added to a checkpoint's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import AddedToken
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.tokenizer import load_tokenizer
from biobench.errors import DataFormatError, DataUnavailableError, ModelError
from trainer.model.families import decoder_of
from trainer.recipe.spec import AddedTokens, Base

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
    original = _own_tokenizer(source, revision)
    if original is None:
        raw, _ = PreTrainedConfig.get_config_dict(str(source), revision=revision)
        # The ids of the two ends are left at the class's defaults by many published configs.
        named = {name: value for name, value in raw.items() if name not in ("bos_token_id", "eos_token_id")}
        check_ids(named, tokenizer, "the checkpoint's config")
        return
    check_ids(
        {f"{r}_token_id": getattr(original, f"{r}_token_id") for r in ROLES}, tokenizer, "the checkpoint's tokenizer"
    )
    theirs, vocabulary = original.get_vocab(), tokenizer.get_vocab()
    moved = min((i for token, i in theirs.items() if vocabulary.get(token) != i), default=None)
    if moved is not None:
        token = original.convert_ids_to_tokens(moved)
        raise ModelError(
            f"base.tokenizer is not the checkpoint's: id {moved} is '{token}' there and "
            f"'{tokenizer.convert_ids_to_tokens(moved)}' here",
            hint="leave base.tokenizer out, or give a tokenizer with the same vocabulary",
        )


def _own_tokenizer(source: str | Path, revision: str | None) -> PreTrainedTokenizerBase | None:
    """The tokenizer beside a checkpoint; None where there is none."""
    if Path(source).is_dir() and not any((Path(source) / name).is_file() for name in _TOKENIZER_FILES):
        return None
    try:
        return load_tokenizer(source, revision=revision)
    except ModelError:
        return None


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


def added_tokens(spec: AddedTokens, root: Path) -> list[str]:
    """The tokens of a recipe, in order, each once. Raises DataUnavailableError, DataFormatError (file, line)."""
    if spec.file is None:
        return list(dict.fromkeys(spec.tokens or []))
    file = root / spec.file
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataUnavailableError(
            f"the list of added tokens {file} cannot be read: {error.strerror}", hint="correct added_tokens.file"
        ) from error
    except UnicodeDecodeError as error:
        raise DataFormatError("the list of added tokens is not UTF-8", hint="write it again", file=file) from error
    tokens = [line.strip() for line in lines]
    for number, token in enumerate(tokens, 1):
        if any(character.isspace() for character in token):
            raise DataFormatError(f"'{token}' is several words", hint="write one word a line", file=file, line=number)
    return list(dict.fromkeys(token for token in tokens if token))


def extend_tokenizer(tokenizer: PreTrainedTokenizerBase, tokens: list[str]) -> None:
    """Add whole words to a tokenizer; those that are single tokens already stay what they are."""
    known = tokenizer.get_vocab()
    fresh = [AddedToken(token, single_word=True, normalized=False) for token in tokens if token not in known]
    tokenizer.add_tokens(fresh)


def extend_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, base: Base, *, revision: str | None = None
) -> None:
    """Give every added token rows in the embedding and in the projection, drawn from the rows of the old vocabulary.

    `pieces`: the mean over the tokens that the checkpoint's tokenizer splits it into; `mean`: over all its tokens.
    revision: of the checkpoint, where it lies on the hub. Raises ModelError where it has no tokenizer to split with.
    """
    assert base.added_tokens is not None
    named = isinstance(base.tokenizer, str)
    original = load_tokenizer(str(base.tokenizer if named else base.model), revision=None if named else revision)
    old = original.get_vocab()
    fresh = {token: number for token, number in tokenizer.get_vocab().items() if token not in old}
    if not fresh:
        return
    rows = decoder_of(model).weight.shape[0]
    if max(fresh.values()) >= rows:
        model.resize_token_embeddings(max(fresh.values()) + 1, mean_resizing=False)
    special = set(original.all_special_ids)
    everything = torch.tensor([number for number in old.values() if number not in special and number < rows])
    tables = _tables(model)
    with torch.no_grad():
        before = [table.clone() for table in tables]
        for token, number in fresh.items():
            pieces = everything
            if base.added_tokens.initial == "pieces":
                # as in running text, where a space stands before the word
                ids = original(f" {token}", add_special_tokens=False)["input_ids"]
                pieces = torch.tensor([i for i in ids if i not in special])
                if not len(pieces):
                    raise ModelError(
                        f"the checkpoint's tokenizer makes nothing of the added token '{token}'",
                        hint="leave it out, or set added_tokens.initial=mean",
                    )
            for table, values in zip(tables, before, strict=True):
                table[number] = values[pieces].mean(dim=0)


def _tables(model: PreTrainedModel) -> list[Tensor]:
    """What has an entry for each token: the embedding, the projection where it is not the same, and its bias."""
    embedding, decoder = model.get_input_embeddings().weight, decoder_of(model)
    assert isinstance(embedding, Tensor)
    tables: list[Tensor] = [embedding]
    if decoder.weight is not embedding:
        tables.append(decoder.weight)
    if decoder.bias is not None:
        tables.append(decoder.bias)
    return tables
