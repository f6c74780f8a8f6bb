"""The tokenizer of a run: trained on the corpus for models from scratch, and hashed for the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def train_tokenizer(texts: Iterable[str], vocabulary: int, max_length: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer in ModernBERT's manner; digits stand alone. A pure function of the texts.

    vocabulary: entries, special tokens included. max_length: longest input in tokens, for its users.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    # A mask stands for a word with the space before it, as words do.
    special = [AddedToken(token, lstrip=token == "[MASK]", special=True) for token in SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(t, ids[t]) for t in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
    )


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """sha256 over the tokenizer's whole definition and special tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    definition = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    special = repr(sorted((k, str(v)) for k, v in tokenizer.special_tokens_map.items()))
    return hashlib.sha256(f"{definition}\n{special}".encode()).hexdigest()


def encode(batch: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The ids of each text without special tokens; what is spelled like one ("[SEP]", "</s>") is text as well.

    No id of `control_ids` is among them.
    """
    if not batch:
        return []
    encoded: list[list[int]] = tokenizer(batch, add_special_tokens=False, split_special_tokens=True, verbose=False)[
        "input_ids"
    ]
    control = control_ids(tokenizer)
    return [ids if control.isdisjoint(ids) else _spelled(ids, control, tokenizer) for ids in encoded]


def control_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """Ids that must not come from text: all special tokens but the unknown one, which stands for text."""
    roles = ("pad", "bos", "eos", "cls", "sep", "mask")
    named = {i for i in (getattr(tokenizer, f"{role}_token_id") for role in roles) if i is not None}
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    return named | ({*special, *tokenizer.all_special_ids} - {tokenizer.unk_token_id})


def _spelled(ids: list[int], control: set[int], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """`ids` with every control id written out character by character.

    A Unigram model holds its control tokens among its pieces and finds them in the text whatever it is told.
    """
    result: list[int] = []
    for one in ids:
        if one not in control:
            result.append(one)
            continue
        letters = [tokenizer.convert_tokens_to_ids(letter) for letter in str(tokenizer.convert_ids_to_tokens(one))]
        result += [i for i in letters if isinstance(i, int) and i not in control]
    return result
