"""Where the encoder of a folder lies."""

from __future__ import annotations

from pathlib import Path


def model_folder(folder: Path) -> Path:
    """The folder itself, or `model` below it where that alone holds a config, as in a run folder of the trainer."""
    inside = folder / "model"
    return inside if not (folder / "config.json").is_file() and (inside / "config.json").is_file() else folder
