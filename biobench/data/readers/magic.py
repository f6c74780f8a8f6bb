"""What files that people take for text begin with."""

from __future__ import annotations

import codecs

_UNPACK = "unpack it first"
_UTF16 = ("is UTF-16 or UTF-32", "save the file as UTF-8")
NO_TEXT = {
    b"\x1f\x8b": ("is compressed (gzip), no text", "unpack it first: gunzip FILE"),
    b"PK\x03\x04": (
        "is an Excel workbook or a zip archive, no text",
        "save the sheet as CSV in UTF-8, or unpack the archive",
    ),
    b"\xd0\xcf\x11\xe0": ("is an Office file, no text", "save it as CSV or text in UTF-8"),
    b"BZh91AY": ("is compressed (bzip2), no text", _UNPACK),
    b"\xfd7zXZ": ("is compressed (xz), no text", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("is compressed (zstd), no text", _UNPACK),
    b"7z\xbc\xaf": ("is a 7z archive, no text", _UNPACK),
    b"%PDF-": ("is a PDF, no text", "take the corpus's text files"),
    b"PAR1": ("is a parquet table, no text", "use `reader: {format: parquet, ...}`"),
    b"\xff\xff\xff\xff": ("is an Arrow table, no text", "use `reader: {format: parquet, ...}`"),
    b"SQLite format 3": ("is a database, no text", "export the table as CSV in UTF-8"),
    codecs.BOM_UTF16_LE: _UTF16,
    codecs.BOM_UTF16_BE: _UTF16,
    codecs.BOM_UTF32_BE: _UTF16,
}
"""First bytes of files that people take for text, what they are, and what to do."""
