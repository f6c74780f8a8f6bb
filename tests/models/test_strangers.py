"""Checkpoints of people whom nobody here knows."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import pytest
import torch

from biobench.errors import ModelError
from biobench.models.loading import find_checkpoint, load_base, load_tokenizer
from tests.helpers.checkpoints import make_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_checkpoint("bert", tmp_path / "some-encoder")


class Writes:
    """A pickle that makes a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("allowed", ["", "another", "some-encoder"])
def test_a_pickle_never_runs_and_is_not_loaded_unless_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    monkeypatch.setenv("BIOBENCH_ALLOW_PICKLE", allowed)
    ran = tmp_path / "ran"
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Writes(ran)}))
    with pytest.raises(ModelError, match=r"pickle file|cannot be loaded") as caught:
        load_base(find_checkpoint(str(folder)), torch.float32)
    assert ("BIOBENCH_ALLOW_PICKLE=some-encoder" in caught.value.hint) == (allowed != "some-encoder")
    assert not ran.exists()


def test_sound_pickled_weights_load_when_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="pickle file"):
        find_checkpoint(str(folder))
    monkeypatch.setenv("BIOBENCH_ALLOW_PICKLE", "some-encoder")
    load_base(find_checkpoint(str(folder)), torch.float32)


def test_code_of_a_checkpoint_is_not_followed_without_the_flag(folder: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    config = json.loads((folder / "config.json").read_text())
    for kind in ("bert", "never_heard_of"):
        own = {"AutoConfig": "modeling_own.C", "AutoModel": "modeling_own.M", "AutoTokenizer": "modeling_own.T"}
        (folder / "config.json").write_text(json.dumps(config | {"model_type": kind, "auto_map": own}))
        try:
            checkpoint = find_checkpoint(str(folder))
            load_tokenizer(checkpoint)
            load_base(checkpoint, torch.float32)
        except ModelError as error:
            assert "\n" not in str(error)  # noqa: PT017
        assert not ran.exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_files_of_no_checkpoints_size_are_not_read(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as stream:
        stream.truncate(2**30)
    with pytest.raises(ModelError, match=r"has 1073741824 bytes, at most") as caught:
        find_checkpoint(str(folder))
    assert caught.value.file == str(folder / name)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(folder: Path, value: float) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    name = next(n for n in weights if "layer.1" in n)
    weights[name].view(-1)[3] = value
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"layer\.1.*hold NaN or infinite"):
        load_base(find_checkpoint(str(folder)), torch.float32)


@pytest.mark.parametrize("said", [["<script>"], [7], "Bert", ["B\x1b[2J"], ["x" * 500]])
def test_an_architecture_that_is_no_name_does_not_enter_records(folder: Path, said: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": said}))
    try:
        identity = find_checkpoint(str(folder)).identity(1)
    except ModelError:
        return
    assert identity.architecture in ("bert", "unknown")
