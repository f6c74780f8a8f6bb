"""Text to shards: nothing lost, nothing double, the benchmark's documents kept out, damage noticed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biobench.errors import BioBenchError, DataFormatError, DataUnavailableError
from trainer.corpus import builder as corpus_module
from trainer.corpus import tokenised
from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import Corpus, tokenizer_hash, train_tokenizer
from trainer.corpus.sources import ReadMeter, texts
from trainer.corpus.tokenised import EncodedBatch, Encoding
from trainer.recipe.corpus import CorpusSource, CorpusSpec, EmbeddedText, Exclusion

TEXTS = list(documents(60, seed=5))
TOKENIZER = train_tokenizer(TEXTS, 400, 64)


def spec(*sources: CorpusSource, root: Path = Path(), **more: object) -> CorpusSpec:
    fields: dict[str, object] = {"sequence_length": 32, "held_out": 0.1, "root": str(root), **more}
    return CorpusSpec.model_validate({"sources": list(sources), **fields})


def embedded(count: int = 60, **more: object) -> CorpusSource:
    return CorpusSource.model_validate({"id": "e", "embedded": EmbeddedText(documents=count, seed=5), **more})


def all_tokens(corpus: Corpus) -> list[int]:
    return corpus.train.read(np.arange(len(corpus.train))).ravel().tolist()


def split(tokens: list[int], end: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for token in tokens:
        if token == end:
            found.append(())
        else:
            found[-1] = (*found[-1], token)
    return found


def test_a_build_is_a_function_of_its_input_and_taken_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build(spec(embedded()), TOKENIZER, tmp_path / "a")
    second = build(spec(embedded()), TOKENIZER, tmp_path / "b")
    assert first.hash == second.hash
    assert all_tokens(first) == all_tokens(second)
    other = build(spec(embedded(), seed=1), TOKENIZER, tmp_path / "a")
    assert other.hash != first.hash
    assert sorted(all_tokens(other)[:500]) != sorted(all_tokens(first)[:500])
    monkeypatch.setattr(corpus_module, "_build", lambda *_: pytest.fail("built again"))
    assert build(spec(embedded()), TOKENIZER, tmp_path / "a").hash == first.hash


@pytest.mark.parametrize("damage", ["none", "torn", "short", "journal"])
def test_an_interrupted_build_goes_on_where_it_was(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two sources, the second is interrupted: batches that are journaled are not made again."""
    monkeypatch.setattr(tokenised, "DOCUMENTS", 10)
    monkeypatch.setattr(tokenised, "ALONE", 100)
    two = spec(embedded(), CorpusSource(id="b", embedded=EmbeddedText(documents=40, seed=9)))
    made: list[int] = []
    make, limit = Encoding.make, [8]

    def failing(self: Encoding, batch: list[str]) -> EncodedBatch:
        if len(made) == limit[0]:
            raise KeyboardInterrupt
        made.append(len(batch))
        return make(self, batch)

    monkeypatch.setattr(Encoding, "make", failing)
    with pytest.raises(KeyboardInterrupt):
        build(two, TOKENIZER, tmp_path / "a")
    (work,) = (tmp_path / "a").glob("*.parts")
    if damage == "torn":  # a kill in the middle of the writing
        with (work / "documents.tokens").open("ab") as file:
            file.write(b"half a ba")
        with (work / "journal.jsonl").open("ab") as file:
            file.write(b'{"source": "b", "si')
    if damage == "short":
        with (work / "documents.tokens").open("r+b") as file:
            file.truncate(100)
    if damage == "journal":
        (work / "journal.jsonl").write_text("[]\n{}\n")
    limit[0], made[:] = 99, []
    resumed = build(two, TOKENIZER, tmp_path / "a")
    assert len(made) == (2 if damage in ("none", "torn") else 10)
    monkeypatch.setattr(tokenised, "DOCUMENTS", 2000)
    assert resumed.hash == build(two, TOKENIZER, tmp_path / "b").hash


def test_small_shards_hold_the_same_windows(tmp_path: Path) -> None:
    one = build(spec(embedded()), TOKENIZER, tmp_path)
    many = build(spec(embedded(), shard_tokens=320), TOKENIZER, tmp_path)
    assert len(many.manifest["train"]["shards"]) > 5
    assert all_tokens(one) == all_tokens(many)
    order = np.array([len(one.train) - 1, 0, 11, 10, 9])
    assert (one.train.read(order) == many.train.read(order)).all()


def test_all_formats_give_the_same_documents(tmp_path: Path) -> None:
    (tmp_path / "txt").mkdir()
    for number, text in enumerate(TEXTS):
        (tmp_path / "txt" / f"{number:03d}.txt").write_text(text)
    (tmp_path / "all.lines").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "all.jsonl").write_text("".join(json.dumps({"body": t}) + "\n\n" for t in TEXTS))
    pq.write_table(pa.table({"body": TEXTS, "other": [1] * len(TEXTS)}), tmp_path / "all.parquet")
    for path, kind, field in (
        ("txt", "auto", "text"),
        ("txt/*.txt", "auto", "text"),
        ("all.lines", "lines", "text"),
        ("all.jsonl", "auto", "body"),
        ("all.parquet", "auto", "body"),
    ):
        source = CorpusSource.model_validate({"id": "x", "path": path, "format": kind, "field": field})
        meter = ReadMeter()
        assert math.isnan(meter.fraction)
        seen = [(text, meter.fraction) for text in texts(source, tmp_path, meter)]
        assert [text for text, _ in seen] == TEXTS, path
        shares = [share for _, share in seen]
        assert shares == sorted(shares)
        assert 0 < shares[0] <= shares[-1] == 1


def test_a_hub_dataset_is_streamed_and_its_absence_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import datasets

    asked: list[tuple[object, ...]] = []

    def load(repo: str, *, revision: str | None, split: str, streaming: bool) -> list[dict[str, str]]:
        asked.append((repo, revision, split, streaming))
        return [{"text": t} for t in TEXTS]

    source = CorpusSource(id="h", hub="someone/texts", revision="abc")
    monkeypatch.setattr(datasets, "load_dataset", load)
    assert list(texts(source, tmp_path)) == TEXTS
    assert asked == [("someone/texts", "abc", "train", True)]
    with pytest.raises(DataFormatError, match="no text under 'body'"):
        list(texts(source.model_copy(update={"field": "body"}), tmp_path))

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(DataUnavailableError, match="'someone/texts' is not at hand: no network"):
        list(texts(source, tmp_path))


def test_excluded_documents_stay_out_whole_or_in_part(tmp_path: Path) -> None:
    near = "A new beginning. " + " ".join(TEXTS[4].split()[:20])
    unlike = TEXTS[9].upper().replace(" ", "  ").replace(".", " .")
    corpus = build(spec(embedded()), TOKENIZER, tmp_path, exclude=[near, unlike])
    m = corpus.manifest
    assert m["exclusion"]["documents"] == 2
    assert m["sources"][0]["excluded"]["same"] == 1
    assert m["sources"][0]["excluded"]["overlap"] >= 1
    kept = set(split(all_tokens(corpus), m["end_token"]))
    held = corpus.held_out.read(np.arange(len(corpus.held_out))).ravel().tolist()
    for number in (4, 9):
        ids = tuple(TOKENIZER(TEXTS[number], add_special_tokens=False).input_ids)
        assert ids not in kept
        assert ids not in set(split(held, m["end_token"]))
    assert corpus.hash != build(spec(embedded()), TOKENIZER, tmp_path).hash
    (tmp_path / "bench.jsonl").write_text(json.dumps({"text": near}) + "\n" + json.dumps({"text": unlike}) + "\n")
    listed = spec(embedded(), root=tmp_path, exclude=Exclusion(files=["bench.jsonl"]))
    assert build(listed, TOKENIZER, tmp_path).hash == corpus.hash


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(5, 13), st.integers(0, 50))
def test_overlap_is_a_shared_run_of_n_words(tokens: list[str], n: int, start: int) -> None:
    excluded = Excluded([" ".join(tokens)], n=n)
    piece = tokens[start : start + n]
    found = excluded.why("zz yy " + " ".join(piece) + " xx")
    assert (found == "overlap") == (len(piece) == n)
    shared = {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}
    other = list(reversed(tokens))
    runs = {tuple(other[i : i + n]) for i in range(len(other) - n + 1)}
    expected = "same" if other == tokens else "overlap" if runs & shared else None
    assert excluded.why(" ".join(other)) == expected


@pytest.mark.parametrize(
    ("name", "content", "more", "kind", "message"),
    [
        ("missing", None, {}, DataUnavailableError, "has no files"),
        ("a.jsonl", '{"text": "x"}\n{"txt": "y"}\n', {}, DataFormatError, "a.jsonl:2: no text under 'text'"),
        ("a.jsonl", '{"text": "x"}\n{oops\n', {}, DataFormatError, "a.jsonl:2: not JSON"),
        ("a.txt", b"caf\xe9", {}, DataFormatError, "not UTF-8"),
        ("a.parquet", b"nothing", {}, DataFormatError, "not a readable parquet"),
        ("a.txt", "short", {}, DataFormatError, "less than one window"),
        ("a.txt", "  ", {}, DataFormatError, "no documents left"),
    ],
)
def test_bad_input_is_one_line(
    name: str,
    content: str | bytes | None,
    more: dict[str, str],
    kind: type[BioBenchError],
    message: str,
    tmp_path: Path,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    source = CorpusSource.model_validate({"id": "s", "path": name, **more})
    with pytest.raises(kind) as caught:
        build(spec(source, root=tmp_path), TOKENIZER, tmp_path / "cache")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_the_embedded_text_and_its_tokenizer_are_functions_of_their_seed() -> None:
    assert list(documents(6, seed=1)) == list(documents(6, seed=1)) != list(documents(6, seed=2))
    assert len(set(TEXTS)) == 60
    assert all("{" not in t for t in documents(300, seed=3))
    assert tokenizer_hash(TOKENIZER) == tokenizer_hash(train_tokenizer(TEXTS, 400, 64))
    text = "Température 38.5 °C, œdèmes : metformin 500 mg."
    encoded = TOKENIZER(text, return_offsets_mapping=True)
    assert TOKENIZER.decode(encoded.input_ids, skip_special_tokens=True) == text
    assert TOKENIZER.unk_token_id not in encoded.input_ids
    spaced = TOKENIZER("Joint [MASK] showed", add_special_tokens=False).input_ids
    assert spaced == [
        *TOKENIZER("Joint", add_special_tokens=False).input_ids,
        TOKENIZER.mask_token_id,
        *TOKENIZER(" showed", add_special_tokens=False).input_ids,
    ]
