"""Checkpoint safety: what is refused before a library reads it."""

from __future__ import annotations

import os
from pathlib import Path

from biobench.errors import ModelError

PICKLE = "BIOBENCH_ALLOW_PICKLE"
"""Environment variable: names of checkpoints, by commas, whose weights may be pickle files."""


def check_links(folder: Path) -> None:
    """Refuses links that leave the folder; those of the hub's cache lead to the blobs of the same
    entry.
    """
    home = folder.resolve()
    allowed = (
        [home, (home.parent.parent / "blobs").resolve()]
        if home.parent.name == "snapshots"
        else [home]
    )
    for path in folder.iterdir():
        if path.is_symlink() and not any(path.resolve().is_relative_to(place) for place in allowed):
            hint = "copy the file itself into the folder"
            raise ModelError("is a link that leaves the model's folder", hint=hint, file=path)


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


def only_safetensors(checkpoint: str | Path) -> bool | None:
    """The value of `use_safetensors` for a hub id or a folder: True but where the user trusts its
    pickle.

    Raises ModelError for a folder with pickled weights alone.
    """
    folder = Path(checkpoint)
    name = folder.resolve().name if folder.is_dir() else str(checkpoint)
    if folder.is_dir():
        check_pickle(folder, name)
    return None if pickle_allowed(name) else True
