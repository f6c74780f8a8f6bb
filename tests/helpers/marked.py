"""Looks for a planted word in everything below a folder: bytes, members of archives, columns of
tables.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq


def places(content: bytes, word: str, name: str, depth: int = 0) -> Iterator[str]:
    """Where the word stands in the content, in any case, in UTF-8 or UTF-16; `name!member` inside
    archives.
    """
    small = content.lower()
    if any(
        word.lower().encode(encoding) in small for encoding in ("utf-8", "utf-16-le", "utf-16-be")
    ):
        yield name
    if depth > 3:
        return
    for kind, inner in _inside(content):
        yield from places(inner, word, f"{name}!{kind}", depth + 1)


def _inside(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield "names", "\n".join(archive.namelist()).encode()
            yield from ((name, archive.read(name)) for name in archive.namelist())
    elif content.startswith(b"\x1f\x8b"):
        yield "unpacked", gzip.decompress(content)
    elif content.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(content))
        yield "schema", f"{table.schema} {table.schema.metadata}".encode()
        yield "columns", repr(table.to_pylist()).encode()


def marked(folder: Path, word: str, but: tuple[Path, ...] = ()) -> list[str]:
    """The files (relative names), in whose content or name the word stands, of all below `folder`
    but those below
    `but`; a damaged archive is looked at as bytes.
    """
    hits: list[str] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(root, name) not in but]
        for name in names:
            path = Path(root, name)
            if path in but or not path.is_file():
                continue
            label = str(path.relative_to(folder))
            content = path.read_bytes()
            try:
                hits += [f"{label} (name)"] if word.lower() in label.lower() else []
                hits += places(content, word, label)
            except (zipfile.BadZipFile, OSError, EOFError, ValueError):
                hits += [label] if word.lower().encode() in content.lower() else []
    return sorted(set(hits))
