"""Text to shards: nothing lost, nothing double, every token where the seed puts it, damage
noticed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from biobench.errors import BioBenchError, DataFormatError, DataUnavailableError
from tests.helpers import published
from tests.helpers.trainer_make import numbered, refusal
from trainer.corpus import builder, tokenised
from trainer.corpus.builder import build, corpus_folder, excluded_documents
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import Corpus, encode, tokenizer_hash, train_tokenizer
from trainer.corpus.sources import texts as texts_of
from trainer.corpus.tokenised import EncodedBatch, Encoding
from trainer.recipe.corpus import CorpusSource, CorpusSpec, EmbeddedText, Exclusion
from trainer.recipe.library import load_recipe
from trainer.train.start import tokenizer_for

FIRST, SECOND = list(documents(30, seed=5)), list(documents(30, seed=6))
TOKENIZER = train_tokenizer([*FIRST, *SECOND], 400, 64)
END = TOKENIZER.sep_token_id


def source(id: str = "e", seed: int = 5, count: int = 30, **more: object) -> CorpusSource:
    return CorpusSource.model_validate(
        {"id": id, "embedded": EmbeddedText(documents=count, seed=seed), **more}
    )


def spec(*sources: CorpusSource, **more: object) -> CorpusSpec:
    listed = list(sources) or [source("a"), source("b", 6)]
    return CorpusSpec.model_validate(
        {"sources": listed, "sequence_length": 64, "held_out": 0.1, **more}
    )


def permutation(count: int, key: str) -> list[int]:
    words = np.frombuffer(hashlib.blake2b(key.encode(), digest_size=16).digest(), dtype="<u4")
    order: list[int] = np.random.RandomState(words.astype(np.uint32)).permutation(count).tolist()
    return order


def tokens(texts: list[str]) -> list[int]:
    return [i for t in texts for i in [*TOKENIZER(t, add_special_tokens=False).input_ids, END]]


def read(corpus: Corpus, part: str = "train") -> list[int]:
    shards = corpus.train if part == "train" else corpus.held_out
    ids: list[int] = shards.read(np.arange(len(shards))).ravel().tolist()
    return ids


@pytest.mark.parametrize(("seed", "shard_tokens"), [(42, 500_000), (43, 640)])
def test_every_token_stands_where_the_seed_puts_it(
    seed: int, shard_tokens: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = spec(seed=seed, shard_tokens=shard_tokens)
    corpus = build(made, TOKENIZER, tmp_path, exclude=["a text", "another one"])
    held: list[str] = []
    stay: list[str] = []
    for name, texts in (("a", FIRST), ("b", SECOND)):
        out = set(permutation(30, f"held out|{seed}|{name}")[:3])
        held += [t for n, t in enumerate(texts) if n in out]
        stay += [t for n, t in enumerate(texts) if n not in out]
    arranged = [stay[n] for n in permutation(54, f"documents|{seed}")]
    for part, expected in (("train", tokens(arranged)), ("held_out", tokens(held))):
        whole = len(expected) // 64 * 64
        assert read(corpus, part) == expected[:whole]
        about = corpus.manifest[part]
        assert (about["windows"], about["tokens"], about["dropped_tokens"]) == (
            whole // 64,
            whole,
            len(expected) % 64,
        )
    backwards = corpus.train.read(np.arange(len(corpus.train))[::-1])
    assert backwards[::-1].ravel().tolist() == read(corpus)
    listed = corpus.manifest["sources"]
    assert [(s["documents"], s["drawn_documents"]) for s in listed] == [(30, 27)] * 2
    assert sum(s["share"] for s in listed) == pytest.approx(1)
    assert sum(s["tokens"] for s in listed) == len(tokens([*FIRST, *SECOND]))
    monkeypatch.setattr(builder, "_build", lambda *_: pytest.fail("built again"))
    assert build(made, TOKENIZER, tmp_path, exclude=["a text", "another one"]).hash == corpus.hash


def test_damage_to_a_manifest_or_a_shard_is_named(tmp_path: Path) -> None:
    corpus = build(spec(), TOKENIZER, tmp_path)
    manifest = corpus.folder / "manifest.json"
    manifest.write_text(json.dumps({**corpus.manifest, "seed": "other"}))
    assert Corpus(corpus.folder).hash != corpus.hash
    manifest.write_text(json.dumps(dict(reversed(corpus.manifest.items()))))
    assert Corpus(corpus.folder).hash == corpus.hash
    for name in ("train-00000.bin", "held-out-00000.bin"):
        file = corpus.folder / name
        good = file.read_bytes()
        file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        assert refusal("content has changed", Corpus(corpus.folder).verify).file == str(file)
        # a window more than the manifest says would move all that come after it
        file.write_bytes(good + good[:128])
        refusal(f"{len(good) + 128} bytes instead of {len(good)}", Corpus, corpus.folder)
        file.write_bytes(good)
    for content in ("[]", "", "[" * 9_999, '{"sequence_length": 16, "dtype": "uint16"}'):
        manifest.write_text(content)
        refusal("the corpus manifest is damaged", Corpus, corpus.folder)
    for wrong, message in (
        ({"tokens": -64}, "bytes instead of -128"),
        ({"file": "../manifest.json"}, "leaves its folder"),
    ):
        held = json.loads(json.dumps(corpus.manifest))
        held["train"]["shards"][0] |= wrong
        manifest.write_text(json.dumps(held))
        assert refusal(message, Corpus, corpus.folder).file
    (corpus.folder / "details.json").write_text('{"removed_by_task": {"a": {"ner": -1}}}')
    refusal("counts of removed documents are damaged", corpus.removed_by_task)
    found = refusal("is no corpus that was built here", Corpus, corpus.folder / "elsewhere")
    assert "delete" not in found.hint


@pytest.mark.parametrize(
    "damage", ["none", "torn", "short", "[]\n{}\n", "[" * 10_000 + "\n", "negative"]
)
def test_an_interrupted_build_resumes_where_it_was(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two sources, the second is interrupted: batches that are journaled are not made again."""
    monkeypatch.setattr(tokenised, "DOCUMENTS", 10)
    monkeypatch.setattr(tokenised, "ALONE", 100)
    two = spec(source("a", 5, 60), source("b", 9, 40), clean={"exact_duplicates": True})
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
    journal = work / "journal.jsonl"
    if damage.endswith("\n"):
        journal.write_text(damage)
    if damage == "negative":
        journal.write_text(journal.read_text().replace('"sizes":[', '"sizes":[-'))
    limit[0], made[:] = 99, []
    resumed = build(two, TOKENIZER, tmp_path / "a")
    assert len(made) == (2 if damage in ("none", "torn") else 10)
    monkeypatch.setattr(tokenised, "DOCUMENTS", 2000)
    assert resumed.hash == build(two, TOKENIZER, tmp_path / "b").hash


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("missing", None, DataUnavailableError, "has no files"),
        ("a.jsonl", '{"text": "bad \\ud800 half"}', DataFormatError, "a.jsonl:1: "),
        ("a.txt", "short", DataFormatError, "less than one window"),
        ("a.txt", "  ", DataFormatError, "no documents left"),
    ],
)
def test_bad_input_is_one_line(
    name: str, content: str | None, kind: type[BioBenchError], message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    made = spec(CorpusSource(id="s", path=name), root=str(tmp_path))
    assert isinstance(refusal(message, build, made, TOKENIZER, tmp_path / "cache"), kind)


def test_half_a_pair_in_another_field_is_nobodys_concern(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a note", "by": "bad \\ud800 half"}\n')
    assert list(texts_of(CorpusSource(id="s", path="a.jsonl"), tmp_path)) == ["a note"]


def test_every_part_of_a_corpus_names_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(made: CorpusSpec, *exclude: str, words: object = TOKENIZER) -> Path:
        return corpus_folder(made, words, tmp_path, excluded_documents(made, exclude))  # type: ignore[arg-type]

    (tmp_path / "list.txt").write_text("a short text")
    root, plain = str(tmp_path), folder(spec())
    fields = ({"seed": 1}, {"sequence_length": 33}, {"held_out": 0.2}, {"shard_tokens": 64})
    folders = [plain, *(folder(spec(**field)) for field in fields)]
    folders += [folder(spec(source(count=31))), folder(spec(source(repeat=2)))]
    folders += [folder(spec(), "a short text"), folder(spec(), "another text")]
    folders += [folder(spec(exclude=Exclusion(ngram=12)), "a short text")]
    folders += [folder(spec(), words=train_tokenizer(FIRST, 401, 64))]
    assert len(set(folders)) == len(folders)
    assert folder(spec(root=root, cache="elsewhere")) == plain
    listed = spec(root=root, exclude=Exclusion(files=["list.txt"]))
    assert folder(listed) == folder(spec(), "a short text")
    monkeypatch.setattr(builder, "ENCODING", 1)
    assert folder(spec()) != plain


@pytest.mark.parametrize(
    ("largest", "dtype"), [(65_535, "uint16"), (65_536, "uint32"), (262_143, "uint32")]
)
def test_every_id_fits_its_shard(largest: int, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("low high " * 64)
    made = spec(CorpusSource(id="a", path="a.txt"), root=str(tmp_path))
    corpus = build(made, numbered(largest), tmp_path / "cache")
    assert corpus.manifest["dtype"] == dtype
    # a source of a single document has none to hold out
    assert (len(corpus.train), len(corpus.held_out)) == (2, 0)
    assert corpus.train.read(np.arange(2)).tolist() == [[3, largest] * 32] * 2


def test_less_than_a_window_held_out_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = ['{"text": "' + "low high " * 8 + '"}\n'] * 10
    (tmp_path / "a.jsonl").write_text("".join(documents))
    for held_out, said in ((0.1, True), (0.0, False)):
        caplog.clear()
        made = spec(CorpusSource(id="a", path="a.jsonl"), root=str(tmp_path), held_out=held_out)
        corpus = build(made, numbered(300), tmp_path / "cache")
        assert len(corpus.held_out) == 0
        assert ("(documents: 1) is less than one window" in caplog.text) is said


def test_held_out_documents_are_the_stated_part(tmp_path: Path) -> None:
    for part, count in ((0.0, 0), (0.001, 1), (0.1, 6), (0.26, 16), (0.49, 29)):
        manifest = build(spec(source(count=60), held_out=part), TOKENIZER, tmp_path).manifest
        assert (manifest["held_out"]["documents"], manifest["train"]["documents"]) == (
            count,
            60 - count,
        )


def test_shares_are_of_tokens_and_the_most_plentiful_source_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text("".join(f'{{"text": "{t}"}}\n' for t in FIRST))
    (tmp_path / "short.jsonl").write_text("".join(f'{{"text": "{t[:40]}"}}\n' for t in SECOND))
    sources = [
        CorpusSource(id=name, path=f"{name}.jsonl", share=share)
        for name, share in (("long", 0.6), ("short", 0.4))
    ]
    mixed = build(spec(*sources, root=str(tmp_path), held_out=0.0), TOKENIZER, tmp_path / "c")
    long, short = mixed.manifest["sources"]
    assert long["drawn_documents"] == long["documents"] == 30
    assert short["drawn_documents"] > 90
    drawn = short["drawn_tokens"] / (short["drawn_tokens"] + long["drawn_tokens"])
    assert short["share"] == pytest.approx(drawn, abs=1e-6) == pytest.approx(0.4, abs=0.01)
    repeated = build(spec(source(count=60, repeat=2.5)), TOKENIZER, tmp_path)
    assert repeated.manifest["train"]["documents"] == 54 * 2 + 27


def test_the_embedded_text_and_its_tokenizer_are_functions_of_their_seed() -> None:
    assert list(documents(6, seed=1)) == list(documents(6, seed=1)) != list(documents(6, seed=2))
    assert len(set(FIRST)) == 30
    assert all("{" not in t for t in documents(300, seed=3))
    assert tokenizer_hash(TOKENIZER) == tokenizer_hash(train_tokenizer([*FIRST, *SECOND], 400, 64))
    text = "Température 38.5 °C, œdèmes : metformin 500 mg."
    ids = TOKENIZER(text).input_ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == text
    assert TOKENIZER.unk_token_id not in ids
    masked, first, second = (
        TOKENIZER(t, add_special_tokens=False).input_ids
        for t in ("Joint [MASK] showed", "Joint", " showed")
    )
    assert masked == [*first, TOKENIZER.mask_token_id, *second]


LONG_TEXTS = list(documents(120, seed=3))


def test_many_processes_build_what_one_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = spec(source("e", 3, 120), sequence_length=32)
    excluded = [LONG_TEXTS[7], LONG_TEXTS[50][: len(LONG_TEXTS[50]) // 2], LONG_TEXTS[119]]
    alone = build(long, TOKENIZER, tmp_path / "one", exclude=excluded)
    assert sum(alone.manifest["sources"][0]["excluded"].values()) >= 3
    monkeypatch.setattr(tokenised, "DOCUMENTS", 9)
    monkeypatch.setattr(tokenised, "ALONE", 2)
    here: list[int] = []
    make = Encoding.make
    monkeypatch.setattr(Encoding, "make", lambda *a: (here.append(1), make(*a))[1])
    many = build(long, TOKENIZER, tmp_path / "many", exclude=excluded)
    assert len(here) == 2, "the other twelve were made elsewhere"
    assert many.hash == alone.hash


class Deadly(Excluded):
    """The system takes the process away while it compares a document."""

    def why(self, text: str) -> str | None:
        os.kill(os.getpid(), signal.SIGKILL)
        return None


def test_a_killed_process_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenised, "DOCUMENTS", 30)
    monkeypatch.setattr(tokenised, "ALONE", 0)
    monkeypatch.setattr("loky.cpu_count", lambda: 1)
    monkeypatch.setattr(builder, "excluded_documents", lambda *_: Deadly([]))
    held = refusal("was killed", build, spec(), TOKENIZER, tmp_path)
    assert "LOKY_MAX_CPU_COUNT" in held.hint


def test_a_corpus_has_the_tokens_of_tokenizer_json_whatever_class_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pieces = published.word_pieces()
    folder = published.write_tokenizer(tmp_path, pieces, "roberta", named="RobertaTokenizer")
    read = tokenizer_for(load_recipe("toy_detour", [f"base.tokenizer={folder}"]))
    assert read.maker == "tokenizer.json"
    wanted = [pieces.encode(text, add_special_tokens=False).ids for text in published.TEXTS]
    assert encode(published.TEXTS, read.tokenizer) == wanted
    assert f"{folder}: the tokenizer is read from tokenizer.json itself" in caplog.text
