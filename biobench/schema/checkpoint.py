"""What a checkpoint is, whatever its folder is called: the identity that records, ledgers and
exports share.
"""

from __future__ import annotations

import hashlib
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
    files = {p for pattern in patterns for p in folder.glob(pattern)}
    if any(p.suffix == ".safetensors" for p in files):
        files = {p for p in files if p.suffix != ".bin"}
    if not any(p.suffix in (".safetensors", ".bin") for p in files):
        raise ModelError(
            "no weights in the model's folder",
            hint="it must hold *.safetensors or pytorch_model.bin",
            file=folder,
        )
    return sorted(files, key=lambda p: p.name)


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
        if (wrong := damage(path, content.hexdigest())) is not None:
            raise ModelError(
                wrong, hint=f"delete {path.resolve()} and run the same again", file=path
            )
        digest.update(path.name.encode() + b"\0" + content.digest())
    return digest.hexdigest()


Stamp = tuple[tuple[str, int, int], ...]


def stamp(folder: Path, *, code: bool = False) -> Stamp:
    """Name, bytes and time of change (ns) of the checkpoint's files: where it is the same, nobody
    wrote to them.
    """
    stats = [(path.name, path.stat()) for path in content_files(folder, code=code)]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def model_folder(folder: Path) -> Path:
    """The folder itself, or `model` below it where that alone holds a config, as in a run folder of
    the trainer.
    """
    inside = folder / "model"
    is_run = not (folder / "config.json").is_file() and (inside / "config.json").is_file()
    return inside if is_run else folder
