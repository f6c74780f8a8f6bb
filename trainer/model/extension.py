"""Tokens added to a checkpoint's vocabulary, whose rows begin as what the old vocabulary made of them."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import AddedToken
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from biobench.core.tokenizer import load_tokenizer
from biobench.errors import DataFormatError, DataUnavailableError, ModelError
from trainer.model.families import decoder_of
from trainer.recipe.spec import AddedTokens, Base


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
