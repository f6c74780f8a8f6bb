"""What a tokenizer's vocabulary holds, beside what the tokenizer makes of text."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

_SAMPLED = 2_000
"""Entries of a vocabulary that are tried."""
_TOGETHER = 50
"""Words in a text that is made of them."""
_ENOUGH = 0.005
"""Share of the sampled entries that must have capitals, or accents, to count as the vocabulary's
own: an uncased one holds a few in its added tokens.
"""
_KINDS = {
    "capital letters": re.compile(r"[A-ZÀ-ÖØ-Þ]"),
    "accents": re.compile(r"[À-ÅÇ-ÏÑ-ÖÙ-Ýà-åç-ïñ-öù-ýÿ]"),
}
_SETTINGS = {"capital letters": '"do_lower_case": false', "accents": '"strip_accents": false'}
"""What keeps them, in tokenizer_config.json."""


def sampled_texts(tokenizer: Any) -> list[str]:
    """Texts made of entries of the vocabulary, evenly spaced by id."""
    return _joined(sampled_words(tokenizer))


def sampled_words(tokenizer: Any) -> list[str]:
    """Entries of the vocabulary as they stand in text, without special tokens and parts of
    characters.
    """
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    ids = sorted(set(tokenizer.get_vocab().values()) - special)
    words = []
    for number in ids[:: max(1, len(ids) // _SAMPLED)]:
        piece = tokenizer.convert_ids_to_tokens(number)
        word = tokenizer.convert_tokens_to_string([piece]).removeprefix("##").strip()
        if word and "\ufffd" not in word:
            words.append(word)
    return words


def unreachable(tokenizer: Any, *, by_file: bool) -> list[str]:
    """A line for each kind of letter that the vocabulary has and the tokenizer never gives.

    by_file: it is read from `tokenizer.json`, not from the vocabulary and tokenizer_config.json.

    So reads a cased vocabulary whose `tokenizer_config.json` is missing: every text is lower-cased,
    and no entry with a capital is ever used.
    """
    words = sampled_words(tokenizer)
    lines = []
    for kind, letters in _KINDS.items():
        with_letters = list(filter(letters.search, words))
        are_some = len(with_letters) > _ENOUGH * len(words)
        if are_some and not letters.search(_read_back(tokenizer, with_letters)):
            share = 100 * len(with_letters) / len(words)
            lines.append(
                f"the tokenizer never gives the entries of its vocabulary with {kind} "
                f"({share:.0f}% of it, such as '{with_letters[0]}'); if the encoder was trained "
                f"with them, {_remedy(tokenizer, kind, by_file=by_file)}"
            )
    return lines


def _read_back(tokenizer: Any, words: list[str]) -> str:
    """The text of the ids that the tokenizer gives for these words, without special tokens."""
    rows = tokenizer(_joined(words), add_special_tokens=False, verbose=False)["input_ids"]
    ids = list(chain.from_iterable(rows))
    pieces = tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True)
    return str(tokenizer.convert_tokens_to_string(pieces))


def _joined(words: list[str]) -> list[str]:
    """The words as texts of `_TOGETHER` words."""
    return [" ".join(words[at : at + _TOGETHER]) for at in range(0, len(words), _TOGETHER)]


def _remedy(tokenizer: Any, kind: str, *, by_file: bool) -> str:
    """What keeps this kind of letter."""
    if by_file:
        return "correct the normalizer in tokenizer.json"
    setting = _SETTINGS[kind]
    if kind == "accents" and hasattr(tokenizer, "keep_accents"):
        setting = '"keep_accents": true'
    return f"write {{{setting}}} into tokenizer_config.json"
