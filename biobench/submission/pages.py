"""What a parquet file unpacks to, counted over its pages: a footer may say less than they hold.

Readers allocate by what stands before each page (Thrift, compact protocol; format: apache/parquet-format,
`parquet.thrift`), so that is what is counted, and nothing is unpacked.
"""

from __future__ import annotations

import os
from typing import IO, Any, NamedTuple

FOOTER_BYTES = 2**18
"""Readers make some hundred bytes of each byte of a footer; those of stored predictions have under 2**14."""
MOST_PAGES = 100_000
_HEADER = 2**16
"""Bytes read for the header of one page; those of our own files have under a hundred."""
_ENCODINGS = {0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 8: "RLE_DICTIONARY"}
"""Those of stored predictions. In others (DELTA_BYTE_ARRAY) a few bytes stand for texts of any length."""
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
_PARTS = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_2: (8, 4)}
"""Kind of page -> field of its own header, and the encoding's field in it."""


class Held(NamedTuple):
    """rows: in all row groups. values: numbers and texts in all columns. bytes: of all pages, decompressed."""

    rows: int
    values: int
    bytes: int


def check_footer(file: IO[bytes]) -> None:
    """Raises ValueError where the footer is larger than stored predictions need; to be asked before it is read."""
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - 8))
    size = int.from_bytes(file.read(4), "little")
    if size > FOOTER_BYTES:
        raise ValueError(f"a footer of {size} bytes, at most {FOOTER_BYTES} are read")


def held(metadata: Any, file: IO[bytes]) -> Held:
    """The counts over all pages that pyarrow's `metadata` of this file leads to; where chunks overlap, both count.

    Raises ValueError where headers cannot be read, encodings are not ours, or the footer says something else.
    """
    rows = values = unpacked = pages = 0
    for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
        rows += _count(group.num_rows)
        for column in (group.column(i) for i in range(group.num_columns)):
            place, own = _start(column), 0
            end = place + _count(column.total_compressed_size)
            while place < end:
                pages += 1
                if pages > MOST_PAGES:
                    raise ValueError(f"more than {MOST_PAGES} pages")
                file.seek(place)
                page = _page(file.read(_HEADER))
                own += page.values
                unpacked += page.unpacked
                place += page.header + page.packed
            if own != column.num_values or place != end:
                raise ValueError(f"the footer does not say what the pages of {column.path_in_schema} hold")
            values += own
    if rows != metadata.num_rows:
        raise ValueError("the footer does not say what the row groups hold")
    return Held(rows, values, unpacked)


class _Page(NamedTuple):
    """Bytes of its header, of what follows, and of that decompressed; values: none in a dictionary."""

    header: int
    packed: int
    unpacked: int
    values: int


def _start(column: Any) -> int:
    first, dictionary = _count(column.data_page_offset), column.dictionary_page_offset
    return first if dictionary is None or dictionary <= 0 else min(first, int(dictionary))


def _page(content: bytes) -> _Page:
    fields, size = _Thrift(content).struct()
    kind = fields.get(1)
    if kind not in _PARTS:
        raise ValueError(f"a page of kind {kind}")
    part, encoding = _PARTS[kind]
    own = fields.get(part)
    if not isinstance(own, dict) or own.get(encoding) not in _ENCODINGS:
        raise ValueError("a page of an encoding that stored predictions do not have")
    values = _count(own.get(1))
    return _Page(size, _count(fields.get(3)), _count(fields.get(2)), 0 if kind == _DICTIONARY else values)


def _count(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"a count is {value}")
    return value


class _Thrift:
    """Reads one struct of the compact protocol; lists and maps, which no page header has, are refused."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def struct(self, depth: int = 0) -> tuple[dict[int, Any], int]:
        """(fields by number: integers, structs as dicts, None for the others; bytes read so far)."""
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            if kind in (1, 2):  # a boolean is its own value
                found[number] = None
            elif kind == 3:
                found[number] = None
                self._byte()
            elif kind in (4, 5, 6):
                found[number] = self._zigzag()
            elif kind == 8:
                found[number] = None
                length = self._varint()
                self.place += length
            elif kind == 12 and depth < 4:
                found[number] = self.struct(depth + 1)[0]
            else:
                raise ValueError(f"a page header with a field of type {kind}")
        return found, self.place

    def _byte(self) -> int:
        if self.place >= len(self.content):
            raise ValueError("a page header without an end")
        self.place += 1
        return self.content[self.place - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a page header with an endless number")

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
