"""Writing files so that a full disk, a lost folder or a kill leaves what was there before."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from biobench.errors import StoreError


def store_error(error: OSError, path: Path) -> StoreError:
    """One line for a failed write, with the remedy."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            "the disk is full", hint="free space and continue with --resume; the last checkpoint is whole", file=path
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreError("the folder cannot be written", hint="choose another with --out DIR", file=path)
    return StoreError(
        f"cannot be written: {error.strerror or error}", hint="check the path, then continue with --resume", file=path
    )


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the OSError of a failed write below `path` into a StoreError."""
    try:
        yield
    except OSError as error:
        raise store_error(error, path) from error


def make_folder(path: Path) -> Path:
    """Create a folder with its parents. Raises StoreError when it cannot be made or written."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    return path


def write_text(path: Path, text: str) -> None:
    """Replace a text file in one step: the old content or the new is there, never a part."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def write_json(path: Path, value: Any) -> None:
    """`write_text` of indented JSON."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def canonical(value: Any) -> str:
    """JSON in one spelling, for hashes."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def file_hash(file: Path) -> str:
    """sha256 of a file's bytes."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
