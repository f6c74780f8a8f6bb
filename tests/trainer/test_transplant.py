"""Hybrids: the ends of the scale are the two checkpoints bit for bit, and nothing else is touched between them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from test_analysis_cka import write
from transformers import AutoModelForMaskedLM

from biobench.errors import ModelError, StoreError, UsageError
from trainer.transplant import Part, block_of, transplant


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recipient and donor, all of whose weights differ."""
    root = tmp_path_factory.mktemp("two")
    return write(root / "a", seed=1, moved=0.5), write(root / "b", seed=2, moved=0.5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def source_of(hybrid: Path, two: tuple[Path, Path]) -> dict[str, str]:
    """For every parameter whose it is."""
    mine, a, b = weights(hybrid), weights(two[0]), weights(two[1])
    assert mine.keys() == a.keys()
    found = {}
    for name, value in mine.items():
        same = [who for who, other in (("a", a[name]), ("b", b[name])) if torch.equal(value, other)]
        assert same, name
        found[name] = "both" if len(same) == 2 else same[0]
    return found


def test_all_layers_give_the_donor_and_none_the_recipient(two: tuple[Path, Path], tmp_path: Path) -> None:
    every = transplant(*two, tmp_path / "all")
    assert set(source_of(every.folder, two).values()) <= {"b", "both"}
    assert every.copied == every.total
    named = transplant(*two, tmp_path / "named", layers=range(4))
    assert set(source_of(named.folder, two).values()) <= {"b", "both"}
    none = transplant(*two, tmp_path / "none", layers=())
    assert set(source_of(none.folder, two).values()) <= {"a", "both"}
    assert none.copied == 0
    ids = torch.arange(5, 45)[None]
    with torch.no_grad():
        logits = {
            folder: AutoModelForMaskedLM.from_pretrained(folder).eval()(input_ids=ids).logits
            for folder in (*two, every.folder, none.folder)
        }
    assert torch.equal(logits[every.folder], logits[two[1]])
    assert torch.equal(logits[none.folder], logits[two[0]])
    assert not torch.equal(logits[two[0]], logits[two[1]])


def test_a_range_copies_those_blocks_alone(two: tuple[Path, Path], tmp_path: Path) -> None:
    made = transplant(*two, tmp_path / "low", layers=(0, 1))
    for name, who in source_of(made.folder, two).items():
        place = block_of(name)
        assert who in (("b", "both") if place and place[0] < 2 else ("a", "both")), name


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_a_module_is_copied_in_every_block(two: tuple[Path, Path], tmp_path: Path, part: Part) -> None:
    made = transplant(*two, tmp_path / part, parts=(part,))
    sources = source_of(made.folder, two)
    marks = {"attention": ("attn.Wqkv", "attn.Wo"), "mlp": ("mlp.Wi", "mlp.Wo")}[part]
    copied = [n for n, who in sources.items() if who == "b"]
    assert {n.split(".")[2] for n in copied} == {"0", "1", "2", "3"}
    assert sum(any(m in n for m in marks) for n in copied) == 8
    assert all(("attn" in n) == (part == "attention") for n in copied)


def test_the_rest_can_stay_with_the_recipient(two: tuple[Path, Path], tmp_path: Path) -> None:
    sources = source_of(transplant(*two, tmp_path / "kept", keep_rest=True).folder, two)
    assert {who for name, who in sources.items() if block_of(name) is None} <= {"a", "both"}
    assert {who for name, who in sources.items() if block_of(name)} <= {"b", "both"}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model.layers.3.attn_norm.weight", (3, "attention")),
        ("model.layers.11.mlp_norm.weight", (11, "mlp")),
        ("bert.encoder.layer.2.attention.output.dense.weight", (2, "attention")),
        ("bert.encoder.layer.2.output.dense.weight", (2, "mlp")),
        ("model.layers.0.post_attention_layernorm.weight", (0, "mlp")),
        ("model.layers.0.input_layernorm.weight", (0, "attention")),
        ("model.embeddings.tok_embeddings.weight", None),
        ("head.dense.weight", None),
    ],
)
def test_parts_of_every_family(name: str, place: tuple[int, Part] | None) -> None:
    assert block_of(name) == place


def test_what_does_not_fit_is_one_clear_line(two: tuple[Path, Path], tmp_path: Path) -> None:
    shallow = write(tmp_path / "shallow", seed=1, num_hidden_layers=3)
    narrow = write(tmp_path / "narrow", seed=1, hidden_size=16)
    spoken = write(tmp_path / "spoken", seed=1, vocabulary=410)
    for other, said in (
        (shallow, "num_hidden_layers is 4 in .* and 3 in"),
        (narrow, "hidden_size is 32 in .* and 16 in"),
        (spoken, "do not fit"),
    ):
        with pytest.raises(ModelError, match=said):
            transplant(two[0], other, tmp_path / "out")
    with pytest.raises(UsageError, match="the model has layers 0-3"):
        transplant(*two, tmp_path / "out", layers=(4,))
    with pytest.raises(StoreError, match="exists already"):
        transplant(*two, shallow)
    assert not (tmp_path / "out").exists()
