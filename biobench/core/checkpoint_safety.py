"""Checkpoint safety: what is refused before a library reads it."""

from __future__ import annotations

import os
from pathlib import Path

from biobench.errors import ModelError

PICKLE = "BIOBENCH_ALLOW_PICKLE"
"""Environment variable: names of checkpoints, by commas, whose weights may be pickle files."""
_MOST_BYTES = {"config.json": 2**20, "tokenizer_config.json": 2**25, "special_tokens_map.json": 2**22}
_MOST_BYTES |= {"tokenizer.json": 2**28, "vocab.txt": 2**27, "vocab.json": 2**27, "merges.txt": 2**27}
"""Those of the largest public vocabularies (256,000 entries) take an eighth of it."""


def check_sizes(folder: Path) -> None:
    """Refuses text files that no checkpoint has in this size, before a library reads them."""
    for name, most in _MOST_BYTES.items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else 0
        if size > most:
            raise ModelError(
                f"has {size} bytes, at most {most} are read", hint="this is no file of a checkpoint", file=path
            )


def pickle_allowed(name: str) -> bool:
    """Whether the user trusts the checkpoint of this name."""
    return name in {part.strip() for part in os.environ.get(PICKLE, "").split(",")}


def check_pickle(folder: Path, name: str) -> None:
    """A pickle can run any code where it is loaded; it is taken from those alone whom the user names."""
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    if pickled and not any(folder.glob("*.safetensors")) and not pickle_allowed(name):
        raise ModelError(
            "the weights are a pickle file, which can run code of whoever wrote it",
            hint=f"convert them to safetensors, or trust this checkpoint by name: {PICKLE}={name}",
            file=pickled[0],
        )


def only_safetensors(checkpoint: str | Path) -> bool | None:
    """The value of `use_safetensors` for a hub id or a folder: True but where the user trusts its pickle.

    Raises ModelError for a folder with pickled weights alone, and for files of no checkpoint's size.
    """
    folder = Path(checkpoint)
    name = folder.resolve().name if folder.is_dir() else str(checkpoint)
    if folder.is_dir():
        check_sizes(folder)
        check_pickle(folder, name)
    return None if pickle_allowed(name) else True
