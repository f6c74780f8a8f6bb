"""Checkpoint safety: what is refused before a library reads it.

`check_folder` is the one gate of a stranger's checkpoint: its files are plain, lie in its folder
and name no file outside of it, and its numbers fit a machine.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from biobench.core.files import kind_of, read_regular
from biobench.errors import ModelError

PICKLE = "BIOBENCH_ALLOW_PICKLE"
"""Environment variable: names of checkpoints, by commas, whose weights may be pickle files."""


MOST_JSON_BYTES = 64 * 2**20
"""Of an index or a config; those of the largest public models have 0.2 MB."""
MOST_LAYERS = 10**6
MOST_LABELS = 10**5
MOST_NUMBER = 2**53
"""Libraries make a list entry a layer and a dictionary entry a label, before any weight is read."""
_LIMITS = {"num_labels|^(id2label|label2id)$": MOST_LABELS, "layer": MOST_LAYERS}
"""Pattern of a field's name to its largest number."""
_HARMLESS: dict[str, list[str]] = {"fast_tokenizer_files": ["tokenizer.json"], "init_inputs": []}
"""Fields of a tokenizer's config that may name files, and what they name where they do not."""
_PLAIN = (".safetensors", ".safetensors.index.json")
_WEIGHTS = {
    ".safetensors": r".*\.safetensors",
    ".safetensors.index.json": r".*\.safetensors\.index\.json",
    ".bin": r"pytorch_model.*\.bin",
}
"""Suffix to the names of weights that a model's identity covers."""
MOST_ADDED = 20_000
"""Tokens beside a tokenizer's vocabulary; each is looked for in every text."""
ADAPTER = "adapter_config.json"
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
"""What may name tokens beside those of the vocabulary."""
INNER_TOKENIZER = "question_encoder_tokenizer"
"""The one folder from which a class of the library (RAG) reads another tokenizer."""
LARGE_FILE = b"version https://git-lfs"
"""How a pointer of git's extension for large files begins."""


def check_folder(folder: Path) -> None:
    """Refuse a checkpoint's folder that leads a library elsewhere, makes it wait or fill memory.

    The identity of a model covers the files in its folder, so nothing else may make the model.
    Raises ModelError.
    """
    check_tokenizer(folder)
    if (folder / ADAPTER).is_file():
        raise ModelError(
            "is an adapter, which changes the model beside the weights",
            hint="merge the adapter first (`merge_and_unload` of peft) and save the whole model",
            file=folder / ADAPTER,
        )
    _check_config(folder / "config.json")
    for index in sorted(folder.glob("*.safetensors.index.json")):
        check_index(index, ".safetensors")
    if not any(folder.glob("*.safetensors")):
        for index in sorted(folder.glob("*.bin.index.json")):
            check_index(index, ".bin")


def check_tokenizer(folder: Path) -> None:
    """The same for a folder that need not hold more than a tokenizer. Raises ModelError."""
    check_links(folder)
    _check_kinds(folder)
    if (folder / INNER_TOKENIZER).exists():
        hint = "copy the tokenizer's files into the model's folder"
        raise ModelError("holds a tokenizer of its own", hint=hint, file=folder / INNER_TOKENIZER)
    for name in TOKENIZER_FILES:
        _check_added(folder / name)
    _check_tokenizer_config(folder / "tokenizer_config.json")


def check_index(path: Path, suffix: str, *, downloaded: bool = True) -> None:
    """Every shard that an index names is a file of its folder that the model's identity covers.

    downloaded: whether the shards lie in the folder already. Raises ModelError.
    """
    hint = "save the model again with save_pretrained"
    shards = read_mapping(path, "index").get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelError("the index names no weights", hint=hint, file=path)
    unique = {repr(name): name for name in shards.values()}
    for shard in unique.values():
        is_there = _names_weights(shard, suffix)
        if is_there and downloaded:
            is_there = (path.parent / shard).is_file()
        if not is_there:
            named = repr(str(shard)[:80])
            message = f"the index names {named}, which is no *{suffix} file of its folder"
            raise ModelError(message, hint=hint, file=path)


def check_links(folder: Path, pattern: str = "*") -> None:
    """Refuses links that leave the folder; those of the hub's cache lead to the blobs of the same
    entry.

    pattern: which files are looked at; those of folders inside too with ``**/*``.
    """
    home = folder.resolve()
    allowed = [home]
    if home.parent.name == "snapshots":
        allowed.append((home.parent.parent / "blobs").resolve())
    for path in folder.glob(pattern):
        if path.is_symlink() and not any(map(path.resolve().is_relative_to, allowed)):
            hint = "copy the file itself into the folder"
            raise ModelError("is a link that leaves the model's folder", hint=hint, file=path)


def _check_kinds(folder: Path) -> None:
    """Whoever opens a pipe waits; whoever reads a device may never end; and git, without its
    extension for large files, leaves a few lines in the place of each.
    """
    for path in sorted(folder.iterdir()):
        kind = "link to nothing"
        if path.exists():
            kind = kind_of(path.stat().st_mode)
        if kind not in ("file", "folder"):
            raise ModelError(f"is a {kind}, not a file", hint="remove it", file=path)
        if kind == "file" and _begin(path) == LARGE_FILE:
            message = "stands for a large file that git has not fetched"
            raise ModelError(message, hint="run `git lfs pull` in its repository", file=path)


def _begin(path: Path) -> bytes:
    """As many first bytes as `LARGE_FILE` has; none of a file that whoever needs it will not get to
    read either.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(len(LARGE_FILE))
    except OSError:
        return b""


def read_mapping(path: Path, called: str) -> dict[str, Any]:
    """The mapping in a JSON file of a checkpoint. called: what the message names it.

    Raises ModelError.
    """
    hint = "copy or download it again"
    content = read_regular(path, MOST_JSON_BYTES, ModelError)
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        message = f"the {called} cannot be read: it is no JSON ({type(error).__name__})"
        raise ModelError(message, hint=hint, file=path) from error
    if not isinstance(fields, dict):
        raise ModelError(f"the {called} cannot be read: it holds no mapping", hint=hint, file=path)
    return fields


def _mapping_if_there(path: Path, called: str) -> dict[str, Any]:
    """As `read_mapping`; empty where there is no such file."""
    if not path.is_file():
        return {}
    return read_mapping(path, called)


def _names_weights(name: object, suffix: str) -> bool:
    """Whether this is a plain file name of weights that a model's identity covers."""
    if not isinstance(name, str) or Path(name).name != name:
        return False
    return re.fullmatch(_WEIGHTS[suffix], name, re.DOTALL) is not None


def _check_config(path: Path) -> None:
    """Values that would break or fill a library before it can refuse them."""
    fields = read_mapping(path, "config")
    hint = "save the model again with save_pretrained, or correct the value"
    classes = fields.get("architectures")
    if classes is not None and not _are_names(classes):
        raise ModelError("architectures is not a list of names", hint=hint, file=path)
    weights = fields.get("transformers_weights")
    are_plain = [_names_weights(weights, suffix) for suffix in _PLAIN]
    if weights is not None and not any(are_plain):
        raise ModelError(
            f"transformers_weights names {str(weights)[:80]!r}, which is no file of the folder",
            hint="leave it out, and call the file model.safetensors",
            file=path,
        )
    for name, number in _numbers(fields):
        limit = _limit_of(name)
        if number > limit:
            message = f"{name[:80]} is {number:.3g}, at most {limit:,} is taken"
            raise ModelError(message, hint=hint, file=path)


def _are_names(classes: object) -> bool:
    """Whether these are a list of texts."""
    return isinstance(classes, list) and all(isinstance(name, str) for name in classes)


def _limit_of(name: str) -> int:
    """The largest number that a field of a config may hold."""
    for pattern, limit in _LIMITS.items():
        if re.search(pattern, name):
            return limit
    return MOST_NUMBER


def _numbers(fields: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Every whole number, and the size of every mapping, with the name of its field; those of
    mappings inside included.
    """
    mappings = [fields]  # a list, because the mappings may be nested deeper than calls can be
    while mappings:
        for name, value in mappings.pop().items():
            if isinstance(value, dict):
                mappings.append(value)
                yield name, len(value)
            elif isinstance(value, int):
                yield name, value


def _check_added(path: Path) -> None:
    """Refuse a file that names more tokens than any tokenizer adds."""
    fields = _mapping_if_there(path, "list of tokens")
    groups = [value for value in fields.values() if isinstance(value, list | dict)]
    added = max(map(len, [fields, *groups]))
    if added > MOST_ADDED:
        message = f"names {added:,} tokens beside the vocabulary, at most {MOST_ADDED:,} are taken"
        raise ModelError(message, hint="keep those that texts hold", file=path)


def _check_tokenizer_config(path: Path) -> None:
    """No file but those that the identity covers, and a limit that is a number."""
    fields = _mapping_if_there(path, "tokenizer's config")
    hint = "save the tokenizer again with save_pretrained"
    for name, harmless in _HARMLESS.items():
        if fields.get(name) not in (None, harmless):
            message = f"{name} names files of its own: {str(fields[name])[:80]!r}"
            raise ModelError(message, hint=hint, file=path)
    limit = fields.get("model_max_length")
    if not isinstance(limit, int | float | None):
        message = f"model_max_length is {str(limit)[:80]!r}, not a number"
        raise ModelError(message, hint=hint, file=path)


def pickle_allowed(name: str) -> bool:
    """Whether the user trusts the checkpoint of this name."""
    return name in {part.strip() for part in os.environ.get(PICKLE, "").split(",")}


def check_pickle(folder: Path, name: str) -> None:
    """A pickle can run any code where it is loaded; it is taken from those alone whom the user
    names.
    """
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    if pickled and not any(folder.glob("*.safetensors")) and not pickle_allowed(name):
        raise ModelError(
            "the weights are a pickle file, which can run code of whoever wrote it",
            hint=f"convert them to safetensors, or trust this checkpoint by name: {PICKLE}={name}",
            file=pickled[0],
        )


def only_safetensors(checkpoint: str | Path, name: str | None = None) -> bool | None:
    """The value of `use_safetensors` for a hub id or a folder: None, either, for a trusted pickle.

    Of a folder with safetensors these alone are the model, whatever else lies there. name: what the
    user calls the checkpoint; None: the folder's name, or the id. Raises ModelError for a folder
    with pickled weights alone.
    """
    folder = Path(checkpoint)
    if folder.is_dir():
        name = name or folder.resolve().name
        check_pickle(folder, name)
    if pickle_allowed(name or str(checkpoint)) and not any(folder.glob("*.safetensors")):
        return None
    return True
