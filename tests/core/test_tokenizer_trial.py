"""A tokenizer.json that makes much of little is refused before the process that asks reads it."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest

from biobench.core.checkpoint_safety import MOST_ADDED, check_tokenizer
from biobench.core.tokenizer import read_tokenizer
from biobench.core.tokenizer_trial import try_tokenizer
from biobench.errors import ModelError

TOKENS = ["[PAD]", "[UNK]", "a", "the", "patient", "e", "d", "of", "with", "had", "z"]
ROLES = {"pad_token": "[PAD]", "unk_token": "[UNK]"}


def replacing(found: str, put: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": found}, "content": put}


def added(number: int) -> list[dict[str, Any]]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return [{"id": n, "content": f"<{n}>", "special": True, **flags} for n in range(20, number)]


def write(folder: Path, **parts: Any) -> Path:
    """A folder with a small tokenizer.json that has these parts."""
    vocabulary = {token: number for number, token in enumerate(TOKENS)}
    model = {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": vocabulary,
    }
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": model,
    }
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content | parts))
    (folder / "tokenizer_config.json").write_text(json.dumps(ROLES))
    (folder / "config.json").write_text('{"model_type": "bert"}')
    return folder


def chain(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"normalizer": {"type": "Sequence", "normalizers": steps}}


def frame(number: int) -> dict[str, Any]:
    """A frame of this many special tokens."""
    token = {"SpecialToken": {"id": "[PAD]", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    known = {"[PAD]": {"id": "[PAD]", "ids": [0], "tokens": ["[PAD]"]}}
    frames = {"single": [token] * number + [text], "pair": [text, text]}
    return {"post_processor": {"type": "TemplateProcessing", "special_tokens": known, **frames}}


PATTERN = {"Regex": "(a|a|[a-z ])*(([a-z ]+)+)+X"}
BOMBS: dict[str, tuple[dict[str, Any], str]] = {
    "a replacement": (chain([replacing(" ", " a" * 200)]), "makes 5,404 tokens of 136 characters"),
    "a chain": (chain([replacing("a", "a" * 10)] * 9), "or break it"),
    "a letter that waits": (chain([replacing("z", "z" * 10)] * 9), "or break it"),
    "an empty pattern": (
        chain([{"type": "Replace", "pattern": {"Regex": ""}, "content": "aa "}] * 12),
        "or break it",
    ),
    "prepended words": (
        chain([{"type": "Prepend", "prepend": "a " * 1000}]),
        "makes 1,031 tokens of 90 characters",
    ),
    "a pattern that tries again and again": (
        {"pre_tokenizer": {"type": "Split", "pattern": PATTERN, "behavior": "Isolated"}
        | {"invert": False}},
        "or break it",
    ),
    "a long frame": (frame(2_000), "makes 2,000 tokens of 0 characters"),
    "many added tokens": (
        {"added_tokens": added(MOST_ADDED + 100)},
        f"at most {MOST_ADDED:,} are taken",
    ),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_tokenizer_that_makes_much_of_little_is_refused_in_one_line(
    bomb: str, tmp_path: Path
) -> None:
    parts, words = BOMBS[bomb]
    folder = write(tmp_path / "m", **parts)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match="not safe to use") as caught:
        read_tokenizer(folder)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{folder / 'tokenizer.json'}: ")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 2**10  # KiB, of this process


def test_a_plain_tokenizer_passes_also_where_it_saved_padding_and_truncation(
    tmp_path: Path,
) -> None:
    """As sentence encoders are published; the engine pads and cuts by itself."""
    padding = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    padding |= {"strategy": {"Fixed": 10**9}, "pad_to_multiple_of": None}
    cut = {"max_length": 8, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    folder = write(tmp_path / "m", padding=padding, truncation=cut)
    assert read_tokenizer(folder).tokenizer("the patient")["input_ids"] == [3, 4]


def test_a_replaced_file_is_tried_again(tmp_path: Path) -> None:
    folder = write(tmp_path / "m")
    try_tokenizer(folder / "tokenizer.json")
    write(folder, **chain([replacing(" ", " a" * 200)]))
    with pytest.raises(ModelError, match="makes 5,404 tokens"):
        try_tokenizer(folder / "tokenizer.json")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"additional_special_tokens": ["<a>"] * (MOST_ADDED + 1)}),
        ("special_tokens_map.json", {"additional_special_tokens": ["<a>"] * (MOST_ADDED + 1)}),
        ("added_tokens.json", {str(n): n for n in range(MOST_ADDED + 1)}),
    ],
)
def test_files_that_name_more_tokens_than_any_tokenizer_are_refused(
    name: str, content: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=f"{name}: names 20,001 tokens beside the vocabulary"):
        check_tokenizer(tmp_path)
