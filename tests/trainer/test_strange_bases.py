"""Bases of pretraining and analysed checkpoints come from strangers too: no pickle is loaded that nobody named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import ModernBertConfig, ModernBertForMaskedLM

from biobench.core.checkpoint_safety import PICKLE
from biobench.errors import ModelError
from trainer.model.network import load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny masked language model in safetensors."""
    config = ModernBertConfig(
        vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, pad_token_id=0
    )
    ModernBertForMaskedLM(config).save_pretrained(tmp_path / "strange")
    return tmp_path / "strange"


def test_pickled_weights_load_by_name_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PICKLE, raising=False)
    load_model(folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="the weights are a pickle file") as caught:
        load_model(folder)
    assert f"{PICKLE}=strange" in caught.value.hint
    monkeypatch.setenv(PICKLE, "other, strange")
    load_model(folder)
