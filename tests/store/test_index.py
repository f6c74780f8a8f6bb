"""The index is a cache: it changes no answer, forgets what is gone, and survives damage."""

from __future__ import annotations

import os
from unittest.mock import Mock

from biobench.store import Brief, Store
from biobench.store.index import FILE
from tests.helpers.store_make import file_of, saved


def count_reads(monkeypatch):
    reads, real = [], Store.get
    monkeypatch.setattr(Store, "get", lambda *given: reads.append(given[2]) or real(*given))
    return reads


def test_briefs_equal_the_records_and_are_read_once(store, tmp_path, monkeypatch):
    for seed in (42, 43):
        saved(store, seed=seed, overrides=("training.epochs=1",), limit=None if seed == 42 else 5)
    saved(
        store,
        seed=44,
        unexpressed_gold={"test": {"Drug": 2, "Disease": 1}},
        count_problems=("one", "two"),
    )
    expected = [Brief.of(r) for r in store.scan()[0]]
    reads = count_reads(monkeypatch)
    assert store.briefs() == (expected, [])
    assert len(reads) == 3
    assert store.briefs() == (expected, [])
    assert Store(tmp_path).briefs() == (expected, [])
    assert len(reads) == 3


def test_changes_are_seen(store, monkeypatch):
    first, second = saved(store), saved(store, seed=43)
    store.briefs()
    before = store.fingerprint()
    reads = count_reads(monkeypatch)
    store.update(first.model_copy(update={"scores": {"macro_f1": 0.25}}))
    assert store.fingerprint() != before
    assert {b.key: b.scores for b in store.briefs()[0]}[first.key] == {"macro_f1": 0.25}
    assert reads == [first.key]
    file_of(store, second).unlink()
    assert [b.key for b in store.briefs()[0]] == [first.key]


def test_a_record_that_is_replaced_within_one_tick_of_the_clock_is_seen(store, tmp_path):
    first = saved(store)
    store.briefs()
    file = file_of(store, first)
    before = file.stat()
    score = str(first.scores["macro_f1"])
    changed = score[:-1] + ("1" if score[-1] != "1" else "2")
    other = tmp_path / "other.json"
    other.write_text(file.read_text().replace(f'"macro_f1": {score}', f'"macro_f1": {changed}'))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, file)
    after = file.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size), (
        "only the inode tells"
    )
    (brief,) = store.briefs()[0]
    assert brief.scores["macro_f1"] == float(changed)


def test_damage_after_indexing_is_found(store, tmp_path):
    good, bad = saved(store), saved(store, seed=43)
    expected = store.briefs()
    for content in (b"", b"{}"):
        (tmp_path / "runs" / FILE).write_bytes(content)
        assert store.briefs() == expected, "a damaged index is made anew"
        assert (tmp_path / "runs" / FILE).read_bytes() != content
    file_of(store, bad).write_text("{")
    (brief,), (_,) = store.briefs()
    assert brief.key == good.key
    store.path_of(good).unlink()
    briefs, findings = store.briefs()
    assert (briefs, len(findings)) == ([], 2)


def test_a_folder_that_cannot_be_written_is_read_all_the_same(store, tmp_path, monkeypatch):
    saved(store)

    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(30, "Read-only file system")))
    assert len(store.briefs()[0]) == 1
    assert not (tmp_path / "runs" / FILE).exists()
