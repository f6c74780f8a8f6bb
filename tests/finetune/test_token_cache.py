"""The token cache gives what tokenising gives, to whoever needs the same and to nobody else."""

from __future__ import annotations

import errno
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from biobench.encode.tokens import Encoded
from biobench.errors import StoreError
from biobench.finetune import token_cache
from biobench.finetune.prepare import prepare
from biobench.finetune.token_cache import TokenCache
from biobench.kinds import Kind, get_kind
from biobench.models.loading import load_tokenizer
from biobench.schema.document import Document


@pytest.fixture(autouse=True)
def _always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "WORTH_CHARACTERS", 0)


def same(a: Encoded, b: Encoded) -> bool:
    """Whether two windows are equal in every field."""
    arrays = all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("ids", "first", "words", "stop", "types"))
    flags = ("truncated", "cut_left", "cut_right")
    return arrays and all(getattr(a, n) == getattr(b, n) for n in flags)


def replace_content(file: Path, content: bytes) -> None:
    """A new file in its place: what was mapped stays what it was."""
    file.unlink()
    file.write_bytes(content)


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
    first = prepare(made.spec, made.data, tokenizer, size, TokenCache(tmp_path))
    assert list(tmp_path.glob("*.npy"))
    calls: list[int] = []
    real = token_cache._packed
    monkeypatch.setattr(token_cache, "_packed", lambda *a: calls.append(1) or real(*a))
    second = prepare(made.spec, made.data, tokenizer, size, TokenCache(tmp_path))
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
    prepare(made.spec, made.data, tokenizer, 32, TokenCache(tmp_path))
    count = len(list(tmp_path.glob("*.npy")))
    prepare(made.spec, made.data, tokenizer, 32, TokenCache(tmp_path))
    assert len(list(tmp_path.glob("*.npy"))) == count
    prepare(made.spec, made.data, tokenizer, 33, TokenCache(tmp_path))
    assert len(list(tmp_path.glob("*.npy"))) == 2 * count
    changed = {s: [replace(d, text=d.text + " x") for d in ds] for s, ds in made.data.documents.items()}
    prepare(made.spec, replace(made.data, documents=changed), tokenizer, 32, TokenCache(tmp_path))
    assert len(list(tmp_path.glob("*.npy"))) == 3 * count
    other, _ = setup("roberta", "demo_topic")
    prepare(made.spec, made.data, load_tokenizer(other.checkpoint), 32, TokenCache(tmp_path))
    assert len(list(tmp_path.glob("*.npy"))) == 4 * count


def test_a_damaged_entry_is_made_again(setup: Any, tmp_path: Path) -> None:
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)
    first = prepare(made.spec, made.data, tokenizer, 32, TokenCache(tmp_path))
    for file in tmp_path.glob("*.npy"):
        replace_content(file, file.read_bytes()[:100])
    again = prepare(made.spec, made.data, tokenizer, 32, TokenCache(tmp_path))
    assert all(same(x, y) for x, y in zip(first.train.encoded, again.train.encoded, strict=True))
    assert all(file.stat().st_size > 100 for file in tmp_path.glob("*.npy"))


@pytest.mark.parametrize("cut", [0, 100, 2000])
def test_a_changed_byte_is_noticed(setup: Any, tmp_path: Path, cut: int) -> None:
    """What is mapped is checked first: nothing else would notice a disk's mistake."""
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)
    cache = TokenCache(tmp_path)
    prepare(made.spec, made.data, tokenizer, 32, cache)
    for file in tmp_path.glob("*.npy"):
        content = bytearray(file.read_bytes())
        content[min(cut, len(content) - 1)] ^= 1
        replace_content(file, content)
    again = prepare(made.spec, made.data, tokenizer, 32, cache)
    assert (cache.read, cache.written) == (0, 6)
    assert all(same(x, y) for x, y in zip(prepare(made.spec, made.data, tokenizer, 32).train.encoded,
                                          again.train.encoded, strict=True))  # fmt: skip


def test_windows_are_views_of_one_mapped_file_that_nobody_can_change(setup: Any, tmp_path: Path) -> None:
    loaded, made = setup("bert", "demo_ner")
    tokenizer = load_tokenizer(loaded.checkpoint)
    for _ in range(2):  # who writes them maps them too
        prepared = prepare(made.spec, made.data, tokenizer, 32, TokenCache(tmp_path))
        files = set()
        for e in prepared.train.encoded:
            for array in (e.ids, e.first, e.words, e.stop):
                assert not array.flags.writeable
                base: Any = array
                while not isinstance(base, np.memmap):
                    base = base.base
                files.add(base.filename)
        assert len(files) == 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("*.npy")} == {0o444}


def test_who_comes_second_waits_and_reads(setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, made = setup("bert", "demo_ner")
    tokenizer = load_tokenizer(loaded.checkpoint)
    kind, documents = made.kind, made.data.train
    begun, both, cuts = threading.Event(), threading.Event(), []
    whole = Kind.cut

    def slow(self: Kind, *arguments: Any) -> Any:
        cuts.append(1)
        begun.set()
        assert both.wait(30)
        return whole(self, *arguments)

    monkeypatch.setattr(Kind, "cut", slow)
    caches = [TokenCache(tmp_path), TokenCache(tmp_path)]
    lock = FileLock(tmp_path / "any.lock")
    waits = threading.Event()
    acquire = type(lock).acquire

    def noted(self: Any, *arguments: Any, **options: Any) -> Any:
        if begun.is_set():
            waits.set()
        return acquire(self, *arguments, **options)

    monkeypatch.setattr(token_cache.FileLock, "acquire", noted)
    results: list[Any] = [None, None]

    def cut(place: int) -> None:
        results[place] = caches[place].cut(kind, made.spec, documents, tokenizer, 32)

    first = threading.Thread(target=cut, args=(0,))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(target=cut, args=(1,))
    second.start()
    assert waits.wait(30)
    both.set()
    first.join(60)
    second.join(60)
    assert len(cuts) == 1
    assert [(c.read, c.written) for c in caches] == [(0, 1), (1, 0)]
    assert all(same(a, b) for a, b in zip(results[0][2], results[1][2], strict=True))


def test_a_folder_without_locks_or_space_costs_time_alone(
    setup: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(token_cache.FileLock, "acquire", refuse)
    cache = TokenCache(tmp_path)
    first = prepare(made.spec, made.data, tokenizer, 32, cache)
    assert (cache.written, len(list(tmp_path.glob("*.npy")))) == (3, 3)

    def full(*_: Any) -> None:
        raise StoreError("the disk is full", hint="free space")

    monkeypatch.setattr(token_cache, "write_atomic", full)
    other = TokenCache(tmp_path / "other")
    second = prepare(made.spec, made.data, tokenizer, 32, other)
    assert (other.read, other.written) == (0, 3)
    assert all(same(a, b) for a, b in zip(first.train.encoded, second.train.encoded, strict=True))


def test_small_splits_and_other_cuts_go_without(setup: Any, tmp_path: Path) -> None:
    loaded, made = setup("bert", "demo_topic")
    size = sum(len(d.text) for d in made.data.train)
    cache = TokenCache(tmp_path, least=size)
    prepare(made.spec, made.data, load_tokenizer(loaded.checkpoint), 32, cache)
    assert len(list(tmp_path.glob("*.npy"))) == 1, "the training split"
    assert not cache.keeps(get_kind("needle"), made.data.train)


def test_pieces_of_a_text_are_part_of_the_name(setup: Any, tmp_path: Path) -> None:
    """Two texts of equal letters, cut into options at other places."""
    loaded, made = setup("bert", "demo_topic")
    tokenizer = load_tokenizer(loaded.checkpoint)
    kind, cache = get_kind("text_pair"), TokenCache(tmp_path)
    cuts = []
    for middle in (4, 8):
        d = Document("1", "1", "some words here", "train", query="ask", pieces=((0, middle), (middle, 15)))
        cuts.append(cache.cut(kind, made.spec, [d], tokenizer, 64)[2][0])
        assert same(cuts[-1], kind.cut(made.spec, [d], tokenizer, 64)[2][0])
    assert cache.written == 2
