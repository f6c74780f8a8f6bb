"""Packed states are the padded states, for every family; identities follow content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from biobench.core.configs import position_limit
from biobench.errors import ModelError
from biobench.models.encoder import Encoder
from biobench.models.loading import find_checkpoint, load_tokenizer, window
from biobench.models.weights import load_base
from biobench.schema.checkpoint import content_hash
from tests.helpers.checkpoints import _SIZES, FAMILIES, fast_tokenizer, make_checkpoint


def _sequences(vocabulary: int, lengths: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.integers(5, vocabulary, size=n) for n in lengths]


@pytest.mark.parametrize(
    ("name", "attention"), [("bert", "padded"), *((n, "packed") for n in sorted(FAMILIES))]
)
def test_states_are_the_model_s_own_with_and_without_token_types(
    name: str, attention: str, tmp_path: Path
) -> None:
    """Packed or padded. Token types of a pair reach the encoders that know several; others do not
    see them.
    """
    checkpoint = find_checkpoint(str(make_checkpoint(name, tmp_path)))
    encoder = Encoder(load_base(checkpoint, torch.float32), pad_id=1).eval()
    assert encoder.attention == ("padded" if name == "deberta" else "packed")
    assert encoder.first_token_reads
    if attention == "padded":
        encoder.model.set_attn_implementation("sdpa")
        encoder.attention = "padded"
    reference = load_base(checkpoint, torch.float32).eval()
    several = (getattr(checkpoint.config, "type_vocab_size", 0) or 0) > 1
    assert several or name not in ("bert", "electra")
    assert not (several and name in ("modernbert", "distilbert", "eurobert"))
    # Beyond the local window of 16 (ModernBERT), with single tokens and repeated lengths among
    # them. The short ones have no types: all their tokens are of type 0.
    lengths = (60, 3, 17, 1, 3, 40)
    sequences = _sequences(checkpoint.config.vocab_size, lengths)
    types = [np.repeat([0, 1], [n // 3, n - n // 3])[: n * (n > 3)] for n in lengths]

    def theirs(sequence: np.ndarray, **inputs: torch.Tensor) -> torch.Tensor:
        return reference(torch.from_numpy(sequence)[None], **inputs).last_hidden_state[0]

    close = {"atol": 2e-5, "rtol": 1e-4}
    with torch.no_grad():
        ours = encoder(sequences).split(lengths)
        typed = encoder(sequences, types).split(lengths)
        for states, other, sequence, own in zip(ours, typed, sequences, types, strict=True):
            torch.testing.assert_close(states, theirs(sequence), **close)
            if several and len(own):
                wanted = theirs(sequence, token_type_ids=torch.from_numpy(own)[None])
                torch.testing.assert_close(other, wanted, **close)
                assert (other - states).abs().max() > 1e-3
            else:
                torch.testing.assert_close(other, states, atol=0, rtol=0)


_OTHERS: dict[str, tuple[str, str, dict[str, object]]] = {
    "bigbird": ("BigBirdConfig", "padded", {"block_size": 2, "num_random_blocks": 1}),
    "convbert": ("ConvBertConfig", "alone", {"embedding_size": 32}),
    "fnet": ("FNetConfig", "alone", {}),
    "longformer": ("LongformerConfig", "padded", {"attention_window": [8, 8]}),
    "luke": ("LukeConfig", "padded", {"entity_vocab_size": 10, "entity_emb_size": 16}),
}


@pytest.mark.parametrize("name", sorted(_OTHERS))
def test_states_of_any_family_do_not_depend_on_company_or_history(name: str) -> None:
    kind, attention, more = _OTHERS[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(
        vocab_size=300, max_position_embeddings=80, pad_token_id=1, **_SIZES, **more
    )
    encoder = Encoder(transformers.AutoModel.from_config(config), pad_id=1).eval()
    assert encoder.attention == attention
    assert encoder.runs_in_bf16
    assert encoder.first_token_reads
    sequences = _sequences(300, (60, 3, 17, 9, 3, 40, 60))
    with torch.no_grad():
        together = encoder(sequences).split([len(s) for s in sequences])
        for states, sequence in zip(together, sequences, strict=True):
            torch.testing.assert_close(states, encoder([sequence]), atol=2e-5, rtol=1e-4)
    assert position_limit(encoder.model.config) == (78 if name in ("longformer", "luke") else 80)


def test_causal_attention_hides_the_text_from_the_first_token() -> None:
    causal = transformers.LlamaConfig(
        vocab_size=300, pad_token_id=1, num_key_value_heads=4, **_SIZES
    )
    assert not Encoder(transformers.AutoModel.from_config(causal), pad_id=1).first_token_reads


def test_window_is_the_smallest_limit(tmp_path: Path) -> None:
    """Without a limit of the tokenizer: `test_a_tokenizer_without_a_limit_leaves_the_models`."""
    roberta = find_checkpoint(str(make_checkpoint("roberta", tmp_path / "roberta", limit=150)))
    assert position_limit(roberta.config) == 198
    assert window(load_tokenizer(roberta), roberta.config, 512) == 150
    assert window(load_tokenizer(roberta), roberta.config, 64) == 64


def test_the_hash_is_that_of_the_named_files(tmp_path: Path) -> None:
    """Written out: weights, config and tokenizer by name; pickled weights only where there are no
    others.
    """
    stems = ("config", "tokenizer", "tokenizer_config", "special_tokens_map", "added_tokens")
    held = ["vocab.txt", "model.safetensors", "model.safetensors.index.json"]
    held += [*(f"{stem}.json" for stem in (*stems, "vocab")), "merges.txt"]
    held += ["sentencepiece.bpe.model", "bpe.codes", "own.bpe"]

    def wanted(names: list[str]) -> str:
        digest = hashlib.sha256()
        for name in sorted(names):
            content = (tmp_path / name).read_bytes()
            digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
        return digest.hexdigest()

    for name in [*held, "README.md", "training_args.bin", "pytorch_model.bin", "modeling_own.py"]:
        (tmp_path / name).write_text(f"of {name}")
    assert content_hash(tmp_path) == wanted(held)
    assert content_hash(tmp_path, code=True) == wanted([*held, "modeling_own.py"])
    (tmp_path / "model.safetensors").unlink()
    held[1] = "pytorch_model.bin"
    assert content_hash(tmp_path) == wanted(held)
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(ModelError, match="no weights"):
        content_hash(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text("{"), "config cannot be read"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
    ],
)
def test_broken_checkpoints_are_named(
    folder: Path, spoil: Callable[[Path], object], words: str
) -> None:
    spoil(folder)
    with pytest.raises(ModelError, match=words) as caught:
        find_checkpoint(str(folder))
    assert str(folder) in str(caught.value)
    assert caught.value.hint


def test_a_tokenizer_that_does_not_fit(folder: Path) -> None:
    fast_tokenizer("byte_level").save_pretrained(folder)
    with pytest.raises(ModelError, match="does not fit the embedding"):
        load_tokenizer(find_checkpoint(str(folder)))
