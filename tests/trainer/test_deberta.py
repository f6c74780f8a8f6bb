"""DeBERTa-v2 (CamemBERTa): a family whose own attention takes a mask, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM

from biobench.errors import BioBenchError
from tests.helpers.pretrain_models import CONFIGS, tiny
from trainer import api
from trainer.model import guard
from trainer.model.network import Trainee

FIELDS = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "max_position_embeddings": 64,
    "relative_attention": True,
    "position_buckets": 16,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "position_biased_input": False,
    "type_vocab_size": 0,
}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Trainee:
    monkeypatch.setitem(CONFIGS, "deberta-v2", FIELDS)
    return Trainee(tiny("deberta-v2"))


def test_causal_leaks_nothing_and_bidirectional_is_the_stock_model(module: Trainee) -> None:
    ids = guard.probe_tokens(module.model, torch.device("cpu"))
    with torch.no_grad():
        both = module.logits(ids, causal=False)
        stock = module.model(input_ids=ids).logits
        assert torch.equal(both, stock)
        report = guard.check(module.model, lambda i: module.logits(i, causal=True), causal=True)
        assert report.leak == 0.0
        assert report.reaches == {"full_attention": (-1, 0)}
        assert not torch.equal(module.logits(ids, causal=True), both)


def test_documents_are_isolated(module: Trainee) -> None:
    ids = guard.probe_tokens(module.model, torch.device("cpu"))
    half = ids.shape[1] // 2
    documents = (torch.arange(ids.shape[1]) >= half).long()[None]
    changed = ids.clone()
    changed[:, half:] = (changed[:, half:] + 5) % 97
    with torch.no_grad():
        before, after = (module.hidden(i, causal=False, documents=documents) for i in (ids, changed))
    assert torch.equal(before[:, :half], after[:, :half])


def overrides(small: list[str], **more: object) -> list[str]:
    left = ("local_attention", "base.config", "phases.0.schedule")
    fields = {**FIELDS, "model_type": "deberta-v2", **more}
    fields.pop("vocab_size")
    cleared = ("local_attention", "global_attn_every_n_layers")
    return [
        *(s for s in small if not s.startswith(left)),
        *(f"base.config.{name}=null" for name in cleared),
        *(
            f"base.config.{name}={str(value).lower() if isinstance(value, bool) else value}"
            for name, value in fields.items()
        ),
        "phases.0.schedule.warmup=1000",
    ]


def test_a_detour_of_it_trains_and_loads(small: list[str], tmp_path: Path) -> None:
    result = api.pretrain("toy_detour", out=tmp_path / "run", overrides=overrides(small), progress="none")
    assert result.model is not None
    assert result.ledger is not None
    first, second = result.ledger.phases
    assert (first.leak, first.kernels) == (0.0, {"full_attention": "dense"})
    assert second.leak > 0
    model = AutoModelForMaskedLM.from_pretrained(result.model)
    assert type(model).__name__ == "DebertaV2ForMaskedLM"


def test_a_convolution_beside_the_attention_is_refused_in_causal_phases(small: list[str], tmp_path: Path) -> None:
    """The larger DeBERTa-v2 checkpoints have one after their first layer; it reads the next token."""
    wide = overrides(small, conv_kernel_size=3, conv_act="gelu")
    with pytest.raises(BioBenchError, match="convolution"):
        api.pretrain("toy_detour", out=tmp_path / "run", overrides=wide, progress="none")


def test_a_head_without_a_projection_is_refused(small: list[str], tmp_path: Path) -> None:
    with pytest.raises(BioBenchError, match="legacy: false"):
        api.pretrain("toy_detour", out=tmp_path / "run", overrides=overrides(small, legacy=False), progress="none")
