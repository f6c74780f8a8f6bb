"""A corpus put together a second time, by hand: which documents are held out, in which order the rest stand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from biobench.errors import StoreError
from tests.helpers.trainer_make import numbered
from trainer.corpus.builder import build
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import Corpus, encode, tokenizer_hash, train_tokenizer
from trainer.cost.plan import skeleton
from trainer.model.guard import check_phases
from trainer.recipe.corpus import CorpusSource, CorpusSpec, EmbeddedText
from trainer.recipe.library import load_recipe

FIRST, SECOND = list(documents(30, seed=5)), list(documents(30, seed=6))
TOKENIZER = train_tokenizer([*FIRST, *SECOND], 400, 64)
END = TOKENIZER.sep_token_id


def spec(**more: object) -> CorpusSpec:
    sources = [CorpusSource(id=i, embedded=EmbeddedText(documents=30, seed=s)) for i, s in (("a", 5), ("b", 6))]
    return CorpusSpec.model_validate({"sources": sources, "sequence_length": 64, "held_out": 0.1, **more})


def permutation(count: int, key: str) -> list[int]:
    words = np.frombuffer(hashlib.blake2b(key.encode(), digest_size=16).digest(), dtype="<u4")
    found: list[int] = np.random.RandomState(words.astype(np.uint32)).permutation(count).tolist()
    return found


def tokens(texts: list[str]) -> list[int]:
    return [i for t in texts for i in [*TOKENIZER(t, add_special_tokens=False).input_ids, END]]


def read(corpus: Corpus, part: str) -> list[int]:
    shards = corpus.train if part == "train" else corpus.held_out
    found: list[int] = shards.read(np.arange(len(shards))).ravel().tolist()
    return found


@pytest.mark.parametrize("seed", [42, 43])
@pytest.mark.parametrize("shard_tokens", [500_000, 640])
def test_every_token_stands_where_the_seed_puts_it(seed: int, shard_tokens: int, tmp_path: Path) -> None:
    corpus = build(spec(seed=seed, shard_tokens=shard_tokens), TOKENIZER, tmp_path)
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
        assert (about["windows"], about["tokens"], about["dropped_tokens"]) == (whole // 64, whole, len(expected) % 64)


def test_what_a_manifest_says(tmp_path: Path) -> None:
    corpus = build(spec(), TOKENIZER, tmp_path, exclude=["a text", "another one"])
    m = corpus.manifest
    assert (m["sequence_length"], m["seed"], m["dtype"], m["start_token"]) == (64, 42, "uint16", "none")
    assert (m["tokenizer"], m["vocabulary"], m["end_token"]) == (tokenizer_hash(TOKENIZER), 400, END)
    assert m["exclusion"] == {"documents": 2, "ngram": 13, "hash": Excluded(["a text", "another one"]).hash}
    assert [(s["id"], s["documents"], s["drawn_documents"]) for s in m["sources"]] == [("a", 30, 27), ("b", 30, 27)]
    assert sum(s["share"] for s in m["sources"]) == pytest.approx(1)
    assert sum(s["tokens"] for s in m["sources"]) == len(tokens([*FIRST, *SECOND]))


def test_the_corpus_hash_is_of_all_that_the_manifest_says(tmp_path: Path) -> None:
    corpus = build(spec(), TOKENIZER, tmp_path)
    file = corpus.folder / "manifest.json"
    for field in ("seed", "tokenizer", "exclusion", "sources"):
        file.write_text(json.dumps({**corpus.manifest, field: "other"}))
        assert Corpus(corpus.folder).hash != corpus.hash, field
    file.write_text(json.dumps(dict(reversed(corpus.manifest.items()))))
    assert Corpus(corpus.folder).hash == corpus.hash


@pytest.mark.parametrize("name", ["train-00000.bin", "held-out-00000.bin"])
def test_damage_to_any_shard_is_found(name: str, tmp_path: Path) -> None:
    corpus = build(spec(), TOKENIZER, tmp_path)
    file = corpus.folder / name
    good = file.read_bytes()
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(StoreError, match="content has changed") as caught:
        Corpus(corpus.folder).verify()
    assert str(file) in str(caught.value)
    # a window more than the manifest says would move all that come after it
    file.write_bytes(good + good[:128])
    with pytest.raises(StoreError, match=f"{len(good) + 128} bytes instead of {len(good)}"):
        Corpus(corpus.folder)


def test_what_is_spelled_like_a_special_token_is_encoded_as_any_text() -> None:
    text = f"before {TOKENIZER.sep_token} and {TOKENIZER.mask_token}, after"
    (ids,) = encode([text], TOKENIZER)
    assert TOKENIZER.decode(ids) == text
    model = TOKENIZER.backend_tokenizer
    plain = [model.model.token_to_id(t) for t in TOKENIZER.tokenize(text, split_special_tokens=True)]
    assert ids == plain
    letters = [i for one in text for i in encode([one], TOKENIZER)[0]]
    assert len(ids) < len(letters), "in the tokenizer's own pieces"


def test_words_that_a_tokenizer_does_not_know_stay_unknown() -> None:
    assert encode(["low strange high", ""], numbered(9)) == [[3, 1, 9], []]


def test_a_look_at_all_phases_leaves_every_layer_to_train() -> None:
    recipe = load_recipe("toy_detour", ["phases.1.freeze={layers: '0-2'}"])
    model = skeleton(recipe)
    check_phases(model, recipe)
    assert all(p.requires_grad for p in model.parameters())
