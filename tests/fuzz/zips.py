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


def crafted() -> Iterator[tuple[str, bytes]]:
    """(what is wrong, archive)."""
    good = whole()
    yield "local signature damaged", good.replace(LOCAL, b"PK\x03\x05", 1)
    yield "local name of another length", _set(good, LOCAL, 26, "<H", 60_000)
    yield "local name differs", good.replace(b"train.tsv", b"other.tsv", 1)
    yield "local flag encrypted", _set(good, LOCAL, 6, "<H", 1)
    yield "central flag encrypted", _set(good, CENTRAL, 8, "<H", 1)
    yield "strong encryption", _set(good, CENTRAL, 8, "<H", 65)
    yield "patched data", _set(good, CENTRAL, 8, "<H", 32)
    yield (
        "text that is not utf-8 and says so",
        _set(good, CENTRAL, 8, "<H", 2048).replace(b"train", b"tr\xffin"),
    )
    for method in (1, 6, 9, 12, 14, 93, 95, 98, 99, 65_535):
        yield (
            f"method {method} in both",
            _set(_set(good, CENTRAL, 10, "<H", method), LOCAL, 8, "<H", method),
        )
        yield f"method {method} in the directory", _set(good, CENTRAL, 10, "<H", method)
    for size in (0, 1, 2**31, 2**32 - 1):
        yield f"packed size {size}", _set(good, CENTRAL, 20, "<I", size)
        yield f"unpacked size {size}", _set(good, CENTRAL, 24, "<I", size)
    yield "checksum", _set(good, CENTRAL, 16, "<I", 7)
    yield "members overlap", _set(good, CENTRAL, 42, "<I", 0, which=1)
    yield "member begins within another", _set(good, CENTRAL, 42, "<I", 20)
    yield "member begins beyond the end", _set(good, CENTRAL, 42, "<I", 2**31)
    yield "directory elsewhere", _set(good, END, 16, "<I", 5)
    yield "directory beyond the end", _set(good, END, 16, "<I", 2**32 - 2)
    yield "directory size", _set(good, END, 12, "<I", 2**31)
    yield "number of members", _set(good, END, 8, "<HH", 9, 9)
    yield "comment length", _set(good, END, 20, "<H", 500)
    yield "extra field cut short", _set(good, CENTRAL, 30, "<H", 3)
    yield "zip64 without its field", _set(good, CENTRAL, 24, "<I", 2**32 - 1)
    extra = struct.pack("<HHQQ", 1, 16, 2**63, 2**63)
    name = good.index(CENTRAL) + 46 + len("train.tsv")
    long = _set(good[:name] + extra + good[name:], CENTRAL, 30, "<H", len(extra))
    yield "zip64 sizes of 2^63", _set(long, CENTRAL, 20, "<II", 2**32 - 1, 2**32 - 1)
    end = good.index(END)
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 2**62, 1)
    yield "zip64 locator to nowhere", good[:end] + locator + good[end:]
    yield "deflate stream damaged", good[:60] + b"\xff" * 8 + good[68:]
    yield "cut short", good[: len(good) // 2]
    yield "nothing but an end", good[good.index(END) :]
    yield "date of month 15", _set(good, CENTRAL, 12, "<HH", 0xFFFF, 0xFFFF)
    yield "name with nul", good.replace(b"train.tsv", b"tr\0in.tsv")
    yield "name is a folder's too", whole("a", "a/b")
    yield "name of 300 letters", whole("x" * 300)
    yield "name is empty", good.replace(b"train.tsv", b"/////////")
    yield "name is a dot", whole(".", "./.")
    yield "mode of a device", _set(good, CENTRAL, 38, "<I", 0o060644 << 16)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        packed = whole(method=method)
        yield f"stream of method {method} damaged", packed[:45] + b"\0\xff\0\xff" + packed[49:]
        yield f"stream of method {method} without header", packed[:39] + b"\xff" * 12 + packed[51:]
