"""Zip files whose parts contradict each other, made byte by byte."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator

CONTENT = b"id\ttext\n" + b"1\tfever\n" * 20


def whole(*names: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A sound archive."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as archive:
        for name in names or ("train.tsv", "test.tsv"):
            archive.writestr(name, CONTENT)
    return held.getvalue()


def _set(
    content: bytes, signature: bytes, offset: int, form: str, *values: int, which: int = 0
) -> bytes:
    at = -1
    for _ in range(which + 1):
        at = content.index(signature, at + 1)
    return (
        content[: at + offset]
        + struct.pack(form, *values)
        + content[at + offset + struct.calcsize(form) :]
    )


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


BIG = 2**32 - 1
CHANGES: tuple[tuple[str, bytes, int, str, int], ...] = (
    ("local name of another length", LOCAL, 26, "<H", 60_000),
    ("local flag encrypted", LOCAL, 6, "<H", 1),
    ("central flag encrypted", CENTRAL, 8, "<H", 1),
    ("strong encryption", CENTRAL, 8, "<H", 65),
    ("patched data", CENTRAL, 8, "<H", 32),
    ("checksum", CENTRAL, 16, "<I", 7),
    ("member begins within another", CENTRAL, 42, "<I", 20),
    ("member begins beyond the end", CENTRAL, 42, "<I", 2**31),
    ("directory elsewhere", END, 16, "<I", 5),
    ("directory beyond the end", END, 16, "<I", BIG - 1),
    ("directory size", END, 12, "<I", 2**31),
    ("comment length", END, 20, "<H", 500),
    ("extra field cut short", CENTRAL, 30, "<H", 3),
    ("zip64 without its field", CENTRAL, 24, "<I", BIG),
    ("mode of a device", CENTRAL, 38, "<I", 0o060644 << 16),
)
"""What is wrong, in which part, at which byte of it, and the value that stands there."""


def crafted() -> Iterator[tuple[str, bytes]]:
    """(what is wrong, archive)."""
    good = whole()
    for what, *change in CHANGES:
        yield what, _set(good, *change)
    yield "number of members", _set(good, END, 8, "<HH", 9, 9)
    yield "date of month 15", _set(good, CENTRAL, 12, "<HH", 0xFFFF, 0xFFFF)
    yield "members overlap", _set(good, CENTRAL, 42, "<I", 0, which=1)
    yield "local signature damaged", good.replace(LOCAL, b"PK\x03\x05", 1)
    yield "local name differs", good.replace(b"train.tsv", b"other.tsv", 1)
    not_utf8 = _set(good, CENTRAL, 8, "<H", 2048).replace(b"train", b"tr\xffin")
    yield "text that is not utf-8 and says so", not_utf8
    for method in (1, 6, 9, 12, 14, 93, 95, 98, 99, 65_535):
        in_directory = _set(good, CENTRAL, 10, "<H", method)
        yield f"method {method} in the directory", in_directory
        yield f"method {method} in both", _set(in_directory, LOCAL, 8, "<H", method)
    for size in (0, 1, 2**31, BIG):
        yield f"packed size {size}", _set(good, CENTRAL, 20, "<I", size)
        yield f"unpacked size {size}", _set(good, CENTRAL, 24, "<I", size)
    extra = struct.pack("<HHQQ", 1, 16, 2**63, 2**63)
    name = good.index(CENTRAL) + 46 + len("train.tsv")
    long = _set(good[:name] + extra + good[name:], CENTRAL, 30, "<H", len(extra))
    yield "zip64 sizes of 2^63", _set(long, CENTRAL, 20, "<II", BIG, BIG)
    end = good.index(END)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 2**62, 1)
    yield "zip64 locator to nowhere", good[:end] + locator + good[end:]
    yield "deflate stream damaged", good[:60] + b"\xff" * 8 + good[68:]
    yield "cut short", good[: len(good) // 2]
    yield "nothing but an end", good[end:]
    yield "name with nul", good.replace(b"train.tsv", b"tr\0in.tsv")
    yield "name is a folder's too", whole("a", "a/b")
    yield "name of 300 letters", whole("x" * 300)
    yield "name is empty", good.replace(b"train.tsv", b"/////////")
    yield "name is a dot", whole(".", "./.")
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = whole(method=method)
        yield f"stream of method {method} damaged", packed[:45] + b"\0\xff\0\xff" + packed[49:]
        yield f"stream of method {method} without header", packed[:39] + b"\xff" * 12 + packed[51:]
