"""Token types of a pair reach the encoders that know several, packed and padded; others do not see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from biobench.models.encoder import Encoder
from biobench.models.loading import find_checkpoint
from biobench.models.weights import load_base
from tests.helpers.checkpoints import FAMILIES, make_checkpoint

LENGTHS = (30, 7, 19)


@pytest.mark.parametrize("attention", ["packed", "padded"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_states_are_the_model_s_own_with_these_types(name: str, attention: str, tmp_path: Path) -> None:
    checkpoint = find_checkpoint(str(make_checkpoint(name, tmp_path)))
    encoder = Encoder(load_base(checkpoint, torch.float32), pad_id=1).eval()
    if attention == "padded" and encoder.attention == "packed":
        encoder.model.set_attn_implementation("sdpa")
        encoder.attention = "padded"
    rng = np.random.default_rng(3)
    sequences = [rng.integers(5, checkpoint.config.vocab_size, size=n) for n in LENGTHS]
    # The second sequence has no types: all its tokens are of type 0.
    types = [np.repeat([0, 1], [10, 20]), np.zeros(0, dtype=np.int64), np.repeat([0, 1], [4, 15])]
    reference = load_base(checkpoint, torch.float32).eval()
    several = (getattr(checkpoint.config, "type_vocab_size", 0) or 0) > 1
    assert several or name not in ("bert", "electra")
    assert not (several and name in ("modernbert", "distilbert", "eurobert"))
    with torch.no_grad():
        ours, without = (s.split(list(LENGTHS)) for s in (encoder(sequences, types), encoder(sequences)))
        for states, plain, sequence, own in zip(ours, without, sequences, types, strict=True):
            if not (several and len(own)):
                torch.testing.assert_close(states, plain, atol=0, rtol=0)
                continue
            alone = reference(
                input_ids=torch.from_numpy(sequence)[None], token_type_ids=torch.from_numpy(own)[None]
            ).last_hidden_state[0]
            torch.testing.assert_close(states, alone, atol=2e-5, rtol=1e-4)
            assert (states - plain).abs().max() > 1e-3
