"""The token cache gives what tokenising gives, to whoever needs the same and to nobody else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biobench.encode.tokens import Encoded
from biobench.finetune import token_cache
from biobench.finetune.prepare import prepare
from biobench.models.loading import load_tokenizer


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "WORTH_SECONDS", 0.0)


def same(a: Encoded, b: Encoded) -> bool:
    """Whether two windows are equal in every field."""
    arrays = all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("ids", "first", "words", "stop", "types"))
    flags = ("truncated", "cut_left", "cut_right")
    return arrays and all(getattr(a, n) == getattr(b, n) for n in flags)


@pytest.mark.parametrize(
    ("task", "overrides"),
    [
        ("demo_ner", ()),
        ("demo_topic", ()),
        ("demo_ner", ("protocol.max_length=16", "protocol.long_documents=stride", "protocol.stride=4")),
    ],
)
def test_what_is_read_is_what_was_made(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, overrides: tuple[str, ...]
) -> None:
    loaded, made = setup("bert", task, *overrides)
    tokenizer = load_tokenizer(loaded.checkpoint)
    size = made.windows.max_length
    first = prepare(made.spec, made.data, tokenizer, size, tmp_path)
    assert list(tmp_path.glob("*.npz"))
    calls: list[int] = []
    real = token_cache._packed
    monkeypatch.setattr(token_cache, "_packed", lambda *a: calls.append(1) or real(*a))
    second = prepare(made.spec, made.data, tokenizer, size, tmp_path)
    assert not calls, "nothing was tokenised again"
    for mine, theirs in ((made, first), (made, second)):
        for split in ("train", "validation", "test"):
            a, b = getattr(mine, split), getattr(theirs, split)
            assert len(a.encoded) == len(b.encoded)
            assert all(same(x, y) for x, y in zip(a.encoded, b.encoded, strict=True))
            assert a.windows == b.windows
            assert all(np.array_equal(x, y) for x, y in zip(a.targets, b.targets, strict=True))
    assert second.windows == made.windows


def test_another_window_text_or_tokenizer_is_another_entry(setup: Any, tmp_path: Path) -> None:
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)
    prepare(made.spec, made.data, tokenizer, 32, tmp_path)
    count = len(list(tmp_path.glob("*.npz")))
    prepare(made.spec, made.data, tokenizer, 32, tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == count
    prepare(made.spec, made.data, tokenizer, 33, tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 2 * count
    changed = {s: [replace(d, text=d.text + " x") for d in ds] for s, ds in made.data.documents.items()}
    prepare(made.spec, replace(made.data, documents=changed), tokenizer, 32, tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 3 * count
    other, _ = setup("roberta", "demo_topic")
    prepare(made.spec, made.data, load_tokenizer(other.checkpoint), 32, tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 4 * count


def test_a_damaged_entry_is_made_again(setup: Any, tmp_path: Path) -> None:
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)
    first = prepare(made.spec, made.data, tokenizer, 32, tmp_path)
    for file in tmp_path.glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    again = prepare(made.spec, made.data, tokenizer, 32, tmp_path)
    assert all(same(x, y) for x, y in zip(first.train.encoded, again.train.encoded, strict=True))
    assert all(file.stat().st_size > 100 for file in tmp_path.glob("*.npz"))
