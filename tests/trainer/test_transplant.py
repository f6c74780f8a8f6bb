"""Hybrids: the ends of the scale are the two checkpoints bit for bit, and nothing else is touched
between them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from biobench.cli.main import app
from biobench.store import Store
from tests.helpers.checkpoints import configure
from tests.helpers.trainer_make import refusal, write
from trainer.analysis.transplant import Part, block_of, transplant


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Recipient and donor, all of whose weights differ."""
    root = tmp_path_factory.mktemp("two")
    return write(root / "a", seed=1, moved=0.5), write(root / "b", seed=2, moved=0.5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def donated(hybrid: Path, two: tuple[Path, Path]) -> set[str]:
    """Parameters that are the donor's and not the recipient's; every other is the recipient's."""
    mine, a, b = weights(hybrid), weights(two[0]), weights(two[1])
    assert mine.keys() == a.keys()
    assert all(
        torch.equal(value, a[name]) or torch.equal(value, b[name]) for name, value in mine.items()
    )
    return {name for name, value in mine.items() if not torch.equal(value, a[name])}


def test_all_layers_give_the_donor_and_none_the_recipient(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    a, b = map(weights, two)
    differing = {name for name in a if not torch.equal(a[name], b[name])}
    every = transplant(*two, tmp_path / "all")
    named = transplant(*two, tmp_path / "named", layers=range(4))
    none = transplant(*two, tmp_path / "none", layers=())
    assert donated(every.folder, two) == donated(named.folder, two) == differing
    assert not donated(none.folder, two)
    assert (every.copied, none.copied) == (every.total, 0)


@pytest.mark.parametrize(
    ("part", "own_norms", "names"),
    [
        ("attention", False, "sa_layer_norm attn_norm attention.output.dense input_layernorm"),
        ("attention", True, "input_layernorm post_attention_layernorm"),
        ("mlp", False, "mlp_norm output.dense post_attention_layernorm"),
        ("mlp", True, "pre_feedforward_layernorm post_feedforward_layernorm"),
    ],
)
def test_parts_of_every_family_and_the_four_norms_of_a_gemma_block(
    part: Part, own_norms: bool, names: str
) -> None:
    for name in names.split():
        for layer, of in (
            (1, "model.layers.1"),
            (11, "bert.encoder.layer.11"),
            (1, "distilbert.transformer.layer.1"),
        ):
            assert block_of(f"{of}.{name}.weight", own_norms=own_norms) == (layer, part), name
    assert (
        block_of("model.embeddings.tok_embeddings.weight") is block_of("head.dense.weight") is None
    )


def test_a_hybrid_that_is_there_is_taken_and_another_is_not_overwritten(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    made = transplant(*two, tmp_path / "low", layers=(0,))
    weights_file = made.folder / "model.safetensors"
    before = weights_file.stat().st_mtime_ns
    assert transplant(*two, tmp_path / "low", layers=(0,)) == made
    assert weights_file.stat().st_mtime_ns == before
    refusal("holds something else", transplant, *two, tmp_path / "low", layers=(1,))


def test_what_does_not_fit_is_one_clear_line(two: tuple[Path, Path], tmp_path: Path) -> None:
    refusal("the model has layers 0-3", transplant, *two, tmp_path / "out", layers=(4,))
    refusal("exists already", transplant, *two, two[0].parent)
    # scored under one name, a hybrid would take the donor's place
    itself = two[0].parent / "." / two[0].name
    refusal("both recipient and donor", transplant, two[0], itself, tmp_path / "out")
    refusal("no such folder", transplant, two[0], tmp_path / "nowhere", tmp_path / "out")
    more = shutil.copytree(two[1], tmp_path / "more")
    held = {**weights(more), "model.layers.0.attn.more.weight": torch.zeros(3)}
    save_file(held, more / "model.safetensors", metadata={"format": "pt"})
    for pair in ((two[0], more), (more, two[0])):
        refusal("'model.layers.0.attn.more.weight' is in one", transplant, *pair, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_probe_scores_the_ends_alike_and_prints_what_is_recovered(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["analyze", "transplant", str(two[0]), str(two[1]), "--out", str(tmp_path / "out")]
    command += ["--probe", "--layers"]
    options = "--task demo_ner --task demo_topic --set probe.epochs=4 --limit 64 --device cpu"
    layers = f"0-1 --layers none --layers all --results-dir {tmp_path / 'results'}"
    scored = f"{layers} {options} --json --seeds".split()
    app([*command, *scored, "42,43"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["by"] == "linear probe"
    a, b, low, none, every = found["scores"]["rows"]
    assert [r["role"] for r in (a, b, low)] == ["recipient", "donor", "hybrid"]
    # a hybrid of the same weights is the same model to the store and is not run again
    assert none["tasks"] == a["tasks"] != b["tasks"] == every["tasks"]
    assert set(a["tasks"]) == {"demo_ner", "demo_topic"}
    assert (none["kept"]["value"], every["kept"]["value"]) == (0, 1)
    records, _ = Store(tmp_path / "results").scan()
    assert len(records) == 3 * 2 * 2
    assert {"training.encoder=frozen" in r.overrides for r in records} == {True}
    command[5] = str(tmp_path / "x")
    refusal("--seeds", app, [*command, *scored, "x"], standalone_mode=False)
    refusal("nothing is scored without a task", app, [*command, "0"], standalone_mode=False)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_attention_heads", 4),
        ("layer_types", ["full_attention"] * 4),
        ("rope_parameters", {"full_attention": {"rope_theta": 5.0}}),
    ],
)
def test_blocks_that_would_compute_otherwise_are_refused(
    two: tuple[Path, Path], tmp_path: Path, field: str, value: object
) -> None:
    """The weights fit, but not what is done with them."""
    other = shutil.copytree(two[1], tmp_path / "other")
    if isinstance(value, dict):
        rotary = json.loads((other / "config.json").read_text())[field]
        value = {kind: fields | value.get(kind, {}) for kind, fields in rotary.items()}
    configure(other, **{field: value})
    for pair in ((two[0], other), (other, two[0])):
        refusal(f"do not fit: {field} is", transplant, *pair, tmp_path / "out", layers=(1,))


def test_parts_of_all_but_one_layer_leave_the_rest(two: tuple[Path, Path], tmp_path: Path) -> None:
    made = transplant(*two, tmp_path / "three", layers=(0, 1, 2))
    assert not made.rest
    assert {(block_of(name) or (None,))[0] for name in donated(made.folder, two)} == {0, 1, 2}
    part = transplant(*two, tmp_path / "part", layers=(1, 3), parts=("mlp",))
    copied_parts = {(1, "mlp"), (3, "mlp")}
    assert {block_of(name) for name in donated(part.folder, two)} == copied_parts
    sizes = {name: weight.numel() for name, weight in weights(two[0]).items()}
    copied = sum(size for name, size in sizes.items() if block_of(name) in copied_parts)
    assert (part.copied, part.total) == (copied, sum(sizes.values()))
    note = json.loads((part.folder / "transplant.json").read_text())
    assert (note["copied"], note["rest"]) == (part.copied, False)
