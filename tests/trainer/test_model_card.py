"""The card of an exported model names classes that load it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import transformers

from trainer import api

ONE = "phases=[{name: one, objective: %s, tokens: 800%s}]"
CLM, MLM = ONE % ("clm", ""), ONE % ("mlm", ", masking: {rate: 0.3}")


@pytest.mark.parametrize(
    ("recipe", "phases", "auto", "pipeline", "said"),
    [
        ("toy_detour", CLM, "AutoModelForMaskedLM", "feature-extraction", "last phase was causal"),
        ("toy_detour", MLM, "AutoModelForMaskedLM", "fill-mask", ""),
        ("toy_gemma_twin", CLM, "AutoModelForCausalLM", "text-generation", ""),
        ("toy_gemma_twin", MLM, "AutoModelForCausalLM", "feature-extraction", "last phase was masked"),
    ],
)
def test_the_classes_of_the_card_load_the_model(
    recipe: str, phases: str, auto: str, pipeline: str, said: str, corpora: Path, tmp_path: Path
) -> None:
    overrides = [
        phases,
        "base.config.hidden_size=32",
        "base.config.intermediate_size=32",
        "base.tokenizer.vocabulary=500",
        "corpus.sources=[{id: embedded, embedded: {documents: 150}}]",
        "corpus.sequence_length=48",
        f"corpus.cache={corpora}",
        "batch.sequences=8",
    ]
    result = api.pretrain(recipe, out=tmp_path / "run", overrides=overrides, progress="none")
    assert result.model is not None
    card = (result.model / "README.md").read_text()
    assert f"pipeline_tag: {pipeline}\n" in card
    named = re.findall(r"`(Auto\w+)`", card)
    assert named == ["AutoModel", auto]
    assert said in card
    assert said or "while these classes" not in card
    for name in named:
        loaded = getattr(transformers, name).from_pretrained(result.model, output_loading_info=True)
        assert not loaded[1]["missing_keys"]
