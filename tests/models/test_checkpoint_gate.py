"""What a stranger's checkpoint folder may not do: lead elsewhere, hide a pickle, wait, or grow
without end.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.models.auto.tokenization_auto import (
    TOKENIZER_MAPPING_NAMES,
    tokenizer_class_from_name,
)

from biobench.core.checkpoint_safety import INNER_TOKENIZER
from biobench.errors import ModelError
from biobench.models.loading import CARD, find_checkpoint, licence_of, load_tokenizer, window
from biobench.models.weights import load_base
from biobench.schema.checkpoint import content_files
from tests.helpers.checkpoints import configure
from tests.models.test_checkpoint_safety import Writes
from trainer.model.network import load_weights

INDEX = "model.safetensors.index.json"


def shard(folder: Path, name: str) -> None:
    """Turn the weights into a sharded checkpoint whose only shard is called `name`."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    if name.endswith(".safetensors"):
        save_file(weights, folder / name, metadata={"format": "pt"})
    write_index(folder, dict.fromkeys(weights, name))


def write_index(folder: Path, weight_map: Any) -> None:
    """An index with this map."""
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def open_all(folder: Path) -> None:
    """What a run does before it trains."""
    checkpoint = find_checkpoint(str(folder))
    load_tokenizer(checkpoint)
    load_base(checkpoint, torch.float32)


def test_shards_with_plain_names_load(folder: Path) -> None:
    shard(folder, "part-1.safetensors")
    open_all(folder)


@pytest.mark.parametrize(
    "name",
    [
        "w.bin",
        "../shared.safetensors",
        "/dev/zero",
        "sub/part.safetensors",
        "missing.safetensors",
        "..",
        "",
        7,
    ],
)
@pytest.mark.parametrize("loads", [open_all, lambda folder: load_weights(None, folder)])
def test_an_index_names_safetensors_of_its_folder_alone(
    folder: Path, tmp_path: Path, name: Any, loads: Any
) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(weights, tmp_path / "shared.safetensors")
    (folder / "model.safetensors").unlink()
    save_file({"nothing": torch.zeros(1)}, folder / "decoy.safetensors")
    (folder / "sub").mkdir()
    save_file(weights, folder / "sub" / "part.safetensors")
    ran = tmp_path / "ran"
    (folder / "w.bin").write_bytes(pickle.dumps({"weight": Writes(ran)}))
    write_index(folder, dict.fromkeys(weights, name))
    with pytest.raises(ModelError, match="the index names") as caught:
        loads(folder)
    assert caught.value.file == str(folder / INDEX)
    assert not ran.exists()


@pytest.mark.parametrize("content", ["[]", "{", '{"weight_map": []}', "{}", "[" * 100_000])
def test_an_index_that_is_none_is_named(folder: Path, content: str) -> None:
    (folder / INDEX).write_text(content)
    with pytest.raises(ModelError) as caught:
        find_checkpoint(str(folder))
    assert caught.value.file == str(folder / INDEX)


def test_a_pickle_beside_safetensors_is_never_loaded(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even of a trusted name: the identity covers the safetensors."""
    monkeypatch.setenv("BIOBENCH_ALLOW_PICKLE", folder.name)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").rename(folder / "decoy.safetensors")
    with pytest.raises(ModelError, match="the weights cannot be loaded"):
        open_all(folder)


@pytest.mark.parametrize("name", ["../other.safetensors", "w.bin", 3])
def test_a_config_names_weights_of_its_folder_alone(folder: Path, name: Any) -> None:
    configure(folder, transformers_weights=name)
    with pytest.raises(ModelError, match="transformers_weights"):
        find_checkpoint(str(folder))


def test_an_adapter_beside_weights_is_refused(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/other"}')
    with pytest.raises(ModelError, match="is an adapter") as caught:
        find_checkpoint(str(folder))
    assert "merge" in caught.value.hint


@pytest.mark.parametrize(
    "fields",
    [
        {"fast_tokenizer_files": ["../tokenizer.4.0.0.json"]},
        {"fast_tokenizer_files": "tokenizer.1.0.json"},
        {"init_inputs": ["/etc/passwd"]},
    ],
)
def test_a_tokenizer_names_no_other_files(folder: Path, fields: dict[str, Any]) -> None:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    with pytest.raises(ModelError, match=next(iter(fields))) as caught:
        find_checkpoint(str(folder))
    assert caught.value.file == str(path)


def test_a_file_that_git_has_not_fetched_is_called_so(folder: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (folder / "model.safetensors").write_text(pointer)
    with pytest.raises(ModelError, match="a large file that git has not fetched") as caught:
        find_checkpoint(str(folder))
    assert "git lfs pull" in caught.value.hint


@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "config.json",
        CARD,
        INDEX,
        "generation_config.json",
        "ledger.json",
    ],
)
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(ModelError, match=r"is a pipe, not a file|no config\.json"):
        find_checkpoint(str(folder))


@pytest.mark.parametrize(
    "changes",
    [
        {"architectures": [{"a": 1}]},
        {"architectures": "Bert"},
        {"max_position_embeddings": 2**62},
        {"num_labels": 10**9},
        {"text_config": {"num_labels": 10**9}},
        {"num_hidden_layers": 10**9},
        {"vocab_size": 2**70},
    ],
)
def test_a_config_with_impossible_values_is_refused_before_a_library_reads_it(
    folder: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(folder, **changes)
    monkeypatch.setattr(
        "transformers.AutoConfig.from_pretrained", lambda *_, **__: pytest.fail("it was read")
    )
    with pytest.raises(ModelError, match=f"{next(iter(changes))}|num_labels") as caught:
        find_checkpoint(str(folder))
    assert caught.value.file == str(folder / "config.json")


@pytest.mark.parametrize("limit", ["many", [3]])
def test_a_tokenizers_limit_that_is_no_number_is_refused(folder: Path, limit: Any) -> None:
    limit_tokens(folder, limit)
    with pytest.raises(ModelError, match="model_max_length"):
        find_checkpoint(str(folder))


@pytest.mark.parametrize("limit", [-1, None, 1e30])
def test_a_tokenizer_without_a_limit_leaves_the_models(folder: Path, limit: Any) -> None:
    limit_tokens(folder, limit)
    checkpoint = find_checkpoint(str(folder))
    assert window(load_tokenizer(checkpoint), checkpoint.config, 512) == 200


def limit_tokens(folder: Path, limit: Any) -> None:
    """Another limit in the tokenizer's config."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": limit}))


@pytest.mark.parametrize(
    "card",
    ["---\n" * 20_000, "---" + "\n" * 60_000, "---\n" + "\n" * 10**6, "---\n" + "- " * 30_000],
)
def test_a_card_is_read_at_once(folder: Path, card: str) -> None:
    (folder / CARD).write_text(card)
    began = time.process_time()
    assert licence_of(folder) is None
    assert time.process_time() - began < 2


def test_a_tokenizer_in_a_folder_inside_is_refused(folder: Path) -> None:
    """A class of the library would read it past every check of the folder itself."""
    (folder / INNER_TOKENIZER).mkdir()
    with pytest.raises(ModelError, match="holds a tokenizer of its own"):
        open_all(folder)


@pytest.mark.slow
def test_the_identity_covers_what_any_class_reads_ids_from(folder: Path) -> None:
    beside_ids = {"entity_vocab.json", "normalizer.json"}  # entities, and what Whisper wrote
    targets = {"target.spm", "target_vocab.json", "vocab-tgt.json"}  # of another language
    for names in TOKENIZER_MAPPING_NAMES.values():
        made_by = tokenizer_class_from_name(names) if names else None
        for name in getattr(made_by, "vocab_files_names", {}).values():
            (folder / name).touch()
    covered = {path.name for path in content_files(folder)}
    read = {path.name for path in folder.iterdir() if path.is_file()}
    assert read - covered <= beside_ids | targets
