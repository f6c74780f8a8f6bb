"""Checkpoints whose files are damaged: one error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from biobench.errors import ModelError
from biobench.models.loading import find_checkpoint, load_tokenizer
from biobench.models.weights import load_base
from tests.helpers.checkpoints import make_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint("bert", tmp_path / "some-encoder")


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, -1])
def test_weights_cut_short_are_named(folder: Path, size: int) -> None:
    cut(folder / "model.safetensors", size)
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(find_checkpoint(str(folder)), torch.float32)
    assert caught.value.file == str(folder / "model.safetensors")
    assert "download it again" in caught.value.hint


def test_without_weights_the_folder_is_named(folder: Path) -> None:
    checkpoint = find_checkpoint(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(checkpoint, torch.float32)
    assert caught.value.file == str(folder)


@pytest.mark.parametrize("content", ['{"version": "1.0", "model": {"type": "Nothing"}}', ""])
def test_a_damaged_tokenizer_is_named(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="the tokenizer cannot be loaded: ") as caught:
        load_tokenizer(find_checkpoint(str(folder)))
    assert caught.value.file == str(folder / "tokenizer.json")


@pytest.mark.parametrize(
    "named",
    [
        lambda name: f"module.{name}",
        lambda name: f"lost.{name}" if "layer.1.output.dense.bias" in name else name,
    ],
)
def test_weights_that_the_model_does_not_find_are_refused(folder: Path, named: Callable[[str], str]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    save_file({named(k): v for k, v in weights.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"the files lack \d+ of the encoder's weights, such as '.*'; they hold"):
        load_base(find_checkpoint(str(folder)), torch.float32)


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("bert", "MaskedLM"),
        ("electra", "TokenClassification"),
        ("deberta", "SequenceClassification"),
        ("modernbert", "MaskedLM"),
    ],
)
def test_checkpoints_with_heads_hold_the_encoder(tmp_path: Path, family: str, task: str) -> None:
    import transformers

    bare = load_base(find_checkpoint(str(make_checkpoint(family, tmp_path / "bare"))), torch.float32)
    full = getattr(transformers, f"AutoModelFor{task}").from_config(bare.config)
    full.base_model.load_state_dict(bare.state_dict(), strict=False)
    full.save_pretrained(tmp_path / "full")
    loaded = load_base(find_checkpoint(str(tmp_path / "full")), torch.float32)
    for name, weights in bare.state_dict().items():
        if not name.startswith("pooler."):
            torch.testing.assert_close(loaded.state_dict()[name], weights, atol=0, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path, family: str) -> None:
    folder = make_checkpoint(family, tmp_path / "m")
    for file in folder.glob("*token*"):
        file.unlink()
    with pytest.raises(ModelError, match=r"the tokenizer (knows no word|cannot be loaded)") as caught:
        load_tokenizer(find_checkpoint(str(folder)))
    assert "the tokenizer's files" in caught.value.hint


def test_the_encoder_half_of_t5_is_an_encoder(tmp_path: Path) -> None:
    import transformers

    sizes = {"vocab_size": 60, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
    for name, make in (("half", transformers.T5EncoderModel), ("whole", transformers.T5Model)):
        make(transformers.T5Config(**sizes)).save_pretrained(tmp_path / name)
    assert type(load_base(find_checkpoint(str(tmp_path / "half")), torch.float32)).__name__ == "T5EncoderModel"
    with pytest.raises(ModelError, match="encoder-decoder"):
        load_base(find_checkpoint(str(tmp_path / "whole")), torch.float32)
