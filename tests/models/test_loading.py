"""Checkpoints whose files are damaged: one error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import make_checkpoint

from biobench.errors import ModelError
from biobench.models.loading import find_checkpoint, load_base, load_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint("bert", tmp_path / "some-encoder")


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 5, 100, -1])
def test_weights_cut_short_are_named(folder: Path, size: int) -> None:
    cut(folder / "model.safetensors", size)
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(find_checkpoint(str(folder)), torch.float32)
    assert caught.value.file == str(folder / "model.safetensors")
    assert "download it again" in caught.value.hint


def test_pickled_weights_cut_short_are_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04 not whole")
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(find_checkpoint(str(folder)), torch.float32)
    assert caught.value.file == str(folder / "pytorch_model.bin")


def test_without_weights_the_folder_is_named(folder: Path) -> None:
    checkpoint = find_checkpoint(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(checkpoint, torch.float32)
    assert caught.value.file == str(folder)


class OfItsOwnError(Exception):
    """What a model's own code may raise."""


@pytest.mark.parametrize(
    "error", [Exception("data did not match any variant"), OfItsOwnError(), TypeError("\n\nbad\nmore")]
)
@pytest.mark.parametrize(
    ("loader", "load"),
    [
        ("AutoModel", lambda c: load_base(c, torch.float32)),
        ("AutoTokenizer", load_tokenizer),
        ("AutoConfig", lambda c: find_checkpoint(str(c.folder))),
    ],
)
def test_any_error_of_the_libraries_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, loader: str, load: Callable[..., object], error: Exception
) -> None:
    import transformers

    checkpoint = find_checkpoint(str(folder))

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(getattr(transformers, loader), "from_pretrained", fails)
    with pytest.raises(ModelError, match=r"data did not|OfItsOwnError|bad$") as caught:
        load(checkpoint)
    assert caught.value.file is not None
    assert caught.value.file.startswith(str(folder))


@pytest.mark.parametrize("content", ['{"version": "1.0", "model": {"type": "Nothing"}}', '{"version": "1.0"', "", "[]"])
def test_a_damaged_tokenizer_is_named(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="the tokenizer cannot be loaded: ") as caught:
        load_tokenizer(find_checkpoint(str(folder)))
    assert caught.value.file == str(folder / "tokenizer.json")
