"""Which texts and tokens an analysis takes, and how exactly it pools them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, RobertaConfig

from biobench.errors import UsageError
from tests.helpers.trainer_make import TEXTS, write
from trainer.analysis.states import draw, layer_states, token_ids
from trainer.corpus.embedded import documents
from trainer.corpus.shards import train_tokenizer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("model") / "a", seed=5)


def test_pooling_is_in_float64(model: Path) -> None:
    """The mean of float32 states in float32 is about 1e-7 off; sums of deep layers lose far more."""
    ids, _ = token_ids([model], TEXTS[:5], 64)
    found = layer_states(model, ids, device="cpu")
    library = AutoModel.from_pretrained(model).eval()
    for number, text in enumerate(ids):
        with torch.no_grad():
            hidden = library(input_ids=torch.tensor([text]), output_hidden_states=True).hidden_states
        for layer in range(3):
            exact = hidden[layer + 1][0].double().mean(0).numpy()
            np.testing.assert_allclose(found[layer, number], exact, rtol=0, atol=1e-13)


def test_every_text_is_as_likely_as_any_other() -> None:
    texts = [str(n) for n in range(40)]
    sample = draw(texts, 10, range(800))
    counts = np.zeros(40)
    for rows in sample.drawn.values():
        assert len(set(rows)) == 10
        assert (np.diff(rows) > 0).all()
        counts[[int(sample.texts[r]) for r in rows]] += 1
    assert sample.available == 40
    # a quarter of 800, five standard deviations of 12 either way
    assert (abs(counts - 200) < 61).all()
    with pytest.raises(UsageError, match="3 texts are too few"):
        draw(texts[:3], 100, [1])
    for count, seeds in ((40, 1), (45, 1), (39, 2)):
        few = draw(texts, count, [42, 43])
        assert len(few.drawn) == seeds
        assert all(len(rows) == min(count, 40) for rows in few.drawn.values())


def test_texts_are_cut_at_the_model_s_positions_and_counted(model: Path, tmp_path: Path) -> None:
    texts = [TEXTS[n][: 40 * (n + 1)] for n in range(9)]
    lengths = [len(x) for x in token_ids([model], texts, 10_000)[0]]
    assert max(lengths) == 128 > min(lengths), "max_position_embeddings"
    limit = sorted(lengths)[2]
    ids, cut = token_ids([model], texts, limit)
    assert max(map(len, ids)) == limit
    assert cut == sum(n > limit for n in lengths) < sum(n >= limit for n in lengths)
    roberta = tmp_path / "roberta"
    RobertaConfig(max_position_embeddings=34, vocab_size=400).save_pretrained(roberta)
    train_tokenizer(documents(100, seed=1), 400, 128).save_pretrained(roberta)
    assert {len(x) for x in token_ids([roberta], TEXTS[:9], 512)[0]} == {32}, "two rows are for padding"
