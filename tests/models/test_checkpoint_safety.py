"""Checkpoints of unknown origin, damaged ones, and those with heads: what is refused, and by which
error.
"""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModel

from biobench.core.stop import STOP, RunStoppedError
from biobench.errors import ModelError
from biobench.finetune import engine
from biobench.models import weights
from biobench.models.loading import CARD, find_checkpoint, load_tokenizer
from biobench.models.weights import load_base
from tests.helpers.checkpoints import configure, load_folder, make_checkpoint, reweigh


class Writes:
    """A pickle that makes a file where it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("allowed", ["", "another", "some-encoder"])
def test_a_pickle_never_runs_and_sound_weights_load_when_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    monkeypatch.setenv("BIOBENCH_ALLOW_PICKLE", allowed)
    ran, weights = tmp_path / "ran", load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Writes(ran)}))
    with pytest.raises(ModelError, match=r"pickle file|cannot be loaded") as caught:
        load_folder(folder)
    assert ("BIOBENCH_ALLOW_PICKLE=some-encoder" in caught.value.hint) == (
        allowed != "some-encoder"
    )
    assert not ran.exists()
    torch.save(weights, folder / "pytorch_model.bin")
    if allowed == "some-encoder":
        load_folder(folder)


def test_code_of_a_checkpoint_is_not_followed_without_the_flag(
    folder: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(ran)!r}, 'w')\n")
    own = {
        "AutoConfig": "modeling_own.C",
        "AutoModel": "modeling_own.M",
        "AutoTokenizer": "modeling_own.T",
    }
    configure(folder, auto_map=own)
    load_tokenizer(find_checkpoint(str(folder)))
    load_folder(folder)
    configure(folder, model_type="never_heard_of")
    with pytest.raises(ModelError, match="the config cannot be read: ") as caught:
        find_checkpoint(str(folder))
    assert "--trust-remote-code" in caught.value.hint
    assert not ran.exists()


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_link_that_leaves_the_folder_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "private").mkdir()
    (folder / name).rename(tmp_path / "private" / name)
    (folder / name).symlink_to(tmp_path / "private" / name)
    with pytest.raises(ModelError, match="is a link that leaves the model's folder") as caught:
        find_checkpoint(str(folder))
    assert caught.value.file == str(folder / name)


def test_links_within_the_folder_and_to_the_blobs_of_the_hubs_entry_are_followed(
    folder: Path, tmp_path: Path
) -> None:
    entry = tmp_path / "hub" / "models--owner--name"
    (entry / "snapshots").mkdir(parents=True)
    (entry / "blobs").mkdir()
    snapshot = folder.rename(entry / "snapshots" / "abc")
    for path in [*snapshot.iterdir()]:
        path.rename(entry / "blobs" / path.name)
        path.symlink_to(Path("../../blobs") / path.name)
    (snapshot / "same.json").symlink_to("config.json")
    load_folder(snapshot)
    (tmp_path / "hub" / "models--other" / "blobs").mkdir(parents=True)
    (tmp_path / "hub" / "models--other" / "blobs" / "vocab.txt").write_text("")
    (snapshot / "vocab.txt").symlink_to("../../../models--other/blobs/vocab.txt")
    with pytest.raises(ModelError, match="leaves the model's folder"):
        find_checkpoint(str(snapshot))


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        (
            "bert",
            {"num_hidden_layers": 10**6},
            "the config says 1000000 layers, the files hold 39 weights",
        ),
        (
            "bert",
            {"hidden_size": 10**9},
            r"have shape \(\d+, 32\), by the config it is \(\d+, 1000000000\)",
        ),
        (
            "bert",
            {"intermediate_size": 10**9},
            r"have shape \(48, 32\), by the config it is \(1000000000, 32\)",
        ),
        (
            "modernbert",
            {"intermediate_size": 64},
            r"have shape \(96, 32\), by the config it is \(128, 32\)",
        ),
    ],
)
def test_a_config_that_contradicts_the_weights_is_refused_before_it_is_built(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: str,
    changes: dict[str, int],
    words: str,
) -> None:
    folder = make_checkpoint(family, tmp_path / family)
    configure(folder, **changes)
    monkeypatch.setattr(AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("it was built"))
    with pytest.raises(ModelError, match=words) as caught:
        load_folder(folder)
    assert "different checkpoints" in caught.value.hint


def test_an_encoder_beyond_the_memory_is_refused_before_it_is_built(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = find_checkpoint(str(folder))
    monkeypatch.setattr(weights, "free_memory_bytes", lambda _: 4 * checkpoint.parameters)
    load_base(checkpoint, torch.float32)
    monkeypatch.setattr(weights, "free_memory_bytes", lambda _: 3 * checkpoint.parameters)
    monkeypatch.setattr(AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("it was built"))
    with pytest.raises(ModelError, match=r"the encoder needs 0\.0 GiB in fp32, 0\.0 GiB are free"):
        load_base(checkpoint, torch.float32)


def test_a_signal_ends_the_building_of_a_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the code that builds it catches every error."""
    began = time.monotonic()

    def endless(*_: object) -> object:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            while time.monotonic() < began + 30:
                sum(range(1000))
        except RunStoppedError:
            pass
        raise ValueError("no model")

    monkeypatch.setattr(engine, "load_base", endless)
    with pytest.raises(RunStoppedError), STOP.watching():
        engine.load_encoder(find_checkpoint(str(folder)), torch.device("cpu"))
    assert time.monotonic() < began + 5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(folder: Path, value: float) -> None:
    def spoil(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        next(w for name, w in weights.items() if "layer.1" in name).view(-1)[3] = value
        return weights

    reweigh(folder, spoil)
    with pytest.raises(ModelError, match=r"layer\.1.*hold NaN or infinite"):
        load_folder(folder)


@pytest.mark.parametrize("said", [["<script>"], [7], "Bert", ["B\x1b[2J"], ["x" * 500]])
def test_an_architecture_that_is_no_name_does_not_enter_records(folder: Path, said: object) -> None:
    configure(folder, architectures=said)
    try:
        identity = find_checkpoint(str(folder)).identity(1)
    except ModelError:
        return
    assert identity.architecture in ("bert", "unknown")


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ('\ufeff---\r\ntags:\r\n- x\r\nlicense: "mit" # as the code\r\n---\r\n', "mit"),
        ("# A model\n\nlicense: mit\n", None),
        ("---\nlicense: mit\n", None),
        ("---\nlicense: [mit, apache-2.0]\n---\n", None),
        ("---\nmodel:\n  license: mit\n---\n", None),
        ("---\nlicense: <script>alert(1)</script>\n---\n", None),
        (f"---\nlicense: {'x' * 65}\n---\n", None),
        ("---\nlicense: {\n---\n", None),
    ],
)
def test_only_a_plain_identifier_of_the_card_is_a_licence(
    folder: Path, card: str, licence: str | None
) -> None:
    bare = find_checkpoint(str(folder))
    assert bare.identity(10).licence is None
    (folder / CARD).write_bytes(card.encode())
    carded = find_checkpoint(str(folder))
    assert carded.identity(10).licence == licence
    assert carded.hash == bare.hash


@pytest.mark.parametrize("size", [0, -1, None])
def test_weights_cut_short_or_missing_are_named(folder: Path, size: int | None) -> None:
    path, checkpoint = folder / "model.safetensors", find_checkpoint(str(folder))
    path.unlink() if size is None else path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match="the weights cannot be loaded: ") as caught:
        load_base(checkpoint, torch.float32)
    assert caught.value.file == str(folder if size is None else path)
    assert size is None or "download it again" in caught.value.hint


@pytest.mark.parametrize("content", ['{"version": "1.0", "model": {"type": "Nothing"}}', ""])
def test_a_damaged_tokenizer_is_named(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match="the tokenizer cannot be loaded: ") as caught:
        load_tokenizer(find_checkpoint(str(folder)))
    assert caught.value.file == str(folder / "tokenizer.json")


@pytest.mark.parametrize("renamed", ["", "layer.1.output.dense.bias"])
def test_weights_that_the_model_does_not_find_are_refused(folder: Path, renamed: str) -> None:
    reweigh(
        folder, lambda weights: {f"lost.{k}" if renamed in k else k: v for k, v in weights.items()}
    )
    with pytest.raises(
        ModelError, match=r"the files lack \d+ of the encoder's weights, such as '.*'; they hold"
    ):
        load_folder(folder)


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("electra", "TokenClassification"),
        ("deberta", "SequenceClassification"),
        ("modernbert", "MaskedLM"),
    ],
)
def test_checkpoints_with_heads_hold_the_encoder(tmp_path: Path, family: str, task: str) -> None:
    bare = load_folder(make_checkpoint(family, tmp_path / "bare"))
    full = getattr(transformers, f"AutoModelFor{task}").from_config(bare.config)
    full.base_model.load_state_dict(bare.state_dict(), strict=False)
    full.save_pretrained(tmp_path / "full")
    loaded = load_folder(tmp_path / "full")
    for name, values in bare.state_dict().items():
        if not name.startswith("pooler."):
            torch.testing.assert_close(loaded.state_dict()[name], values, atol=0, rtol=0)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path, family: str) -> None:
    folder = make_checkpoint(family, tmp_path / "m")
    for file in folder.glob("*token*"):
        file.unlink()
    with pytest.raises(
        ModelError, match=r"the tokenizer (knows no word|cannot be loaded)"
    ) as caught:
        load_tokenizer(find_checkpoint(str(folder)))
    assert "the tokenizer's files" in caught.value.hint


def test_the_encoder_half_of_t5_is_an_encoder(tmp_path: Path) -> None:
    sizes = {
        "vocab_size": 60,
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 48,
        "num_layers": 2,
        "num_heads": 4,
    }
    for name, make in (("half", transformers.T5EncoderModel), ("whole", transformers.T5Model)):
        make(transformers.T5Config(**sizes)).save_pretrained(tmp_path / name)
    assert type(load_folder(tmp_path / "half")).__name__ == "T5EncoderModel"
    with pytest.raises(ModelError, match="encoder-decoder"):
        load_folder(tmp_path / "whole")
