"""What keeps a document out of the corpus, word by word; and that a cache is never taken for another list's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from tests.helpers.trainer_make import numbered
from trainer.corpus.builder import build, corpus_folder, excluded_documents
from trainer.corpus.cleaning import Excluded
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer
from trainer.recipe.corpus import CorpusSource, CorpusSpec, EmbeddedText, Exclusion

WORDS = [f"w{n}" for n in range(40)]
TEST = " ".join(WORDS)
TEXTS = list(documents(60, seed=5))


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return train_tokenizer(TEXTS, 400, 64)


@pytest.mark.parametrize("n", [5, 13, 39])
@pytest.mark.parametrize("place", ["start", "middle", "end", "alone"])
def test_a_run_of_n_words_is_one_too_many_wherever_it_stands(n: int, place: str) -> None:
    excluded = Excluded([TEST], n=n)
    for first in {0, 1, 40 - n}:
        run = WORDS[first : first + n]
        for shared in (run, run[1:]):
            before = [] if place in ("start", "alone") else ["x", "y"]
            after = [] if place in ("end", "alone") else ["z"]
            found = excluded.why(" ".join([*before, *shared, *after]))
            assert found == ("overlap" if len(shared) == n else None), (first, len(shared))
    swapped = [*WORDS[:n][:-2], WORDS[n - 1], WORDS[n - 2]]
    assert excluded.why(" ".join(["x", *swapped, "y"])) is None
    assert excluded.why(" ".join(reversed(WORDS))) is None


def test_a_short_text_is_kept_out_as_a_whole_alone() -> None:
    excluded = Excluded(["Fever and cough.", TEST])
    assert excluded.why("fever, and COUGH") == "same"
    assert excluded.why("Fever and cough. Then rest.") is None
    assert Excluded([" ".join(WORDS[:13])]).why(f"a {' '.join(WORDS[:13])} b") == "overlap", "exactly n words"


@pytest.mark.parametrize(
    ("spelled", "otherwise"),
    [
        ("une fièvre élevée", "UNE FIE\u0300VRE E\u0301LEVE\u0301E"),
        ("the first finding", "the \ufb01rst \ufb01nding"),
        ("500 mg daily", "５００ mg daily"),
        ("die Straße dort", "DIE STRASSE DORT"),
        ("l'hôpital de jour", "l’hôpital - de  jour !"),
        ("non-small cell (NSCLC)", "Non small-cell: nsclc"),
    ],
)
def test_spelling_that_does_not_matter(spelled: str, otherwise: str) -> None:
    assert Excluded([spelled]).why(otherwise) == "same"
    assert Excluded([f"{spelled} {TEST}"], n=5).why(f"x {otherwise} {' '.join(WORDS[:4])} y") == "overlap"
    assert Excluded([spelled]).why(f"{otherwise} indeed") is None


def test_the_hash_is_that_of_the_set() -> None:
    plain = Excluded(["a b", TEST])
    assert (plain.count, plain.hash) == (2, Excluded([TEST, "A, b!"]).hash)
    others = [Excluded(t).hash for t in (["a c", TEST], ["a b"], [TEST], ["a b", TEST, "c"], ["a b", f"{TEST} x"])]
    assert len({plain.hash, *others}) == 6
    nothing = Excluded(["", " ... "])
    assert (nothing.count, nothing.hash, nothing.why("")) == (0, "", None)


def spec(**more: object) -> CorpusSpec:
    source = CorpusSource(id="e", embedded=EmbeddedText(documents=60, seed=5))
    return CorpusSpec.model_validate({"sources": [source], "sequence_length": 32, "held_out": 0.1, **more})


def test_every_part_of_a_corpus_names_its_folder(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    def folder(made: CorpusSpec, *exclude: str, words: PreTrainedTokenizerBase = tokenizer) -> Path:
        return corpus_folder(made, words, tmp_path, excluded_documents(made, exclude))

    (tmp_path / "list.txt").write_text("a short text")
    root = str(tmp_path)
    (tmp_path / "a.txt").write_text("one")
    written = CorpusSource(id="e", path="a.txt")
    folders = [
        folder(spec()),
        folder(spec(seed=1)),
        folder(spec(sequence_length=33)),
        folder(spec(held_out=0.2)),
        folder(spec(start_token="cls")),
        folder(spec(shard_tokens=64)),
        folder(spec(sources=[CorpusSource(id="e", embedded=EmbeddedText(documents=61, seed=5))])),
        folder(spec(sources=[CorpusSource(id="e", embedded=EmbeddedText(documents=60, seed=5), repeat=2)])),
        folder(spec(root=root, sources=[written])),
        folder(spec(), "a short text"),
        folder(spec(), "another text"),
        folder(spec(), TEST),
        folder(spec(exclude=Exclusion(ngram=12)), TEST),
        folder(spec(exclude=Exclusion(ngram=12)), "a short text"),
        folder(spec(), words=train_tokenizer(TEXTS, 401, 64)),
    ]
    assert len(set(folders)) == len(folders)
    assert folder(spec(root=root, cache="elsewhere")) == folders[0]
    listed = spec(root=root, exclude=Exclusion(files=["list.txt"]))
    assert folder(listed) == folder(spec(), "a short text")
    assert folder(listed, "another text") == folder(spec(), "another text", "a short text")
    (tmp_path / "a.txt").write_text("two")
    assert folder(spec(root=root, sources=[written])) != folders[8]


def test_a_start_token_stands_before_every_document(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    corpus = build(spec(start_token="cls"), tokenizer, tmp_path)
    tokens = corpus.train.read(np.arange(len(corpus.train))).ravel().tolist()
    starts = [n for n, t in enumerate(tokens) if t == tokenizer.cls_token_id]
    ends = [n for n, t in enumerate(tokens) if t == tokenizer.sep_token_id]
    assert starts[0] == 0
    assert len(ends) > 40
    assert starts[1 : len(ends) + 1] == [n + 1 for n in ends][: len(starts) - 1]


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, "uint16"), (65_536, "uint32"), (262_143, "uint32")])
def test_every_id_fits_its_shard(largest: int, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("low high " * 32)
    source = CorpusSource(id="a", path="a.txt")
    corpus = build(spec(sources=[source], root=str(tmp_path)), numbered(largest), tmp_path / "cache")
    assert corpus.manifest["dtype"] == dtype
    # a source of a single document has none to hold out
    assert (len(corpus.train), len(corpus.held_out)) == (2, 0)
    assert corpus.train.read(np.arange(2)).tolist() == [[3, largest] * 16] * 2


def test_held_out_documents_are_the_stated_part(tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    for part, count in ((0.0, 0), (0.001, 1), (0.1, 6), (0.26, 16), (0.49, 29)):
        manifest = build(spec(held_out=part), tokenizer, tmp_path).manifest
        assert (manifest["held_out"]["documents"], manifest["train"]["documents"]) == (count, 60 - count)


def test_shares_are_of_tokens_and_the_most_plentiful_source_is_read_once(
    tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    (tmp_path / "long.jsonl").write_text("".join(f'{{"text": "{t}"}}\n' for t in TEXTS[:30]))
    (tmp_path / "short.jsonl").write_text("".join(f'{{"text": "{t[:40]}"}}\n' for t in TEXTS[30:]))
    sources = [
        CorpusSource(id="long", path="long.jsonl", share=0.6),
        CorpusSource(id="short", path="short.jsonl", share=0.4),
    ]
    manifest = build(spec(sources=sources, root=str(tmp_path), held_out=0.0), tokenizer, tmp_path / "c").manifest
    by_id = {s["id"]: s for s in manifest["sources"]}
    assert by_id["long"]["drawn_documents"] == by_id["long"]["documents"] == 30
    assert by_id["short"]["drawn_documents"] > 90
    drawn = {name: by_id[name]["drawn_tokens"] for name in ("long", "short")}
    assert by_id["short"]["share"] == pytest.approx(drawn["short"] / sum(drawn.values()), abs=1e-6)
    assert by_id["short"]["share"] == pytest.approx(0.4, abs=0.01)
    repeated = build(spec(sources=[spec().sources[0].model_copy(update={"repeat": 2.5})]), tokenizer, tmp_path)
    assert repeated.manifest["train"]["documents"] == 54 * 2 + 27
