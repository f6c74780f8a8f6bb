"""What a checkpoint is, whatever its folder is called: the identity that records, ledgers and
exports share.
"""

from __future__ import annotations

import hashlib
from itertools import chain
from pathlib import Path

from biobench.core.checkpoint_safety import TOKENIZER_FILES
from biobench.core.hub import damage
from biobench.core.layouts import WEIGHTS
from biobench.errors import ModelError

_TOKENIZER = (
    *TOKENIZER_FILES,
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "*.model",
    "*.bpe",
    "bpe.codes",
    *("byte_maps.json", "dict.txt", "emoji.json", "prophetnet.tokenizer", "source.spm"),
    *("vocab-src.json", "word_pronunciation.json", "word_shape.json"),
)
"""What classes of tokenizers make the ids of a text from."""


def content_files(folder: Path, *, code: bool = False) -> list[Path]:
    """The files that make the checkpoint what it is, by name: weights, config, tokenizer; with
    `code` its Python too.

    Raises ModelError where the folder holds no weights.
    """
    patterns = [*WEIGHTS, "config.json", *_TOKENIZER]
    if code:
        patterns.append("*.py")
    files = set(chain.from_iterable(map(folder.glob, patterns)))
    suffixes = {path.suffix for path in files}
    if ".safetensors" in suffixes:
        files -= set(folder.glob("*.bin"))
    elif ".bin" not in suffixes:
        raise ModelError(
            "no weights in the model's folder",
            hint="it must hold *.safetensors or pytorch_model.bin",
            file=folder,
        )
    return sorted(files, key=lambda path: path.name)


def content_hash(folder: Path, *, code: bool = False) -> str:
    """sha256 over the names and contents of the checkpoint's files (hex, 64 characters); see
    `content_files`.

    Raises ModelError also for a file in the hub's cache that is not the one which the hub
    announced.
    """
    digest = hashlib.sha256()
    for path in content_files(folder, code=code):
        with path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256")
        problem = damage(path, content.hexdigest())
        if problem is not None:
            hint = f"delete {path.resolve()} and run the same again"
            raise ModelError(problem, hint=hint, file=path)
        digest.update(path.name.encode() + b"\0" + content.digest())
    return digest.hexdigest()


Stamp = tuple[tuple[str, int, int], ...]


def stamp(folder: Path, *, code: bool = False) -> Stamp:
    """Name, bytes and time of change (ns) of the checkpoint's files: where it is the same, nobody
    wrote to them.
    """
    stamps: list[tuple[str, int, int]] = []
    for path in content_files(folder, code=code):
        stat = path.stat()
        stamps.append((path.name, stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)


def model_folder(folder: Path) -> Path:
    """The folder itself, or `model` below it where that alone holds a config, as in a run folder of
    the trainer.
    """
    below = folder / "model"
    has_config = (folder / "config.json").is_file()
    if not has_config and (below / "config.json").is_file():
        return below
    return folder
