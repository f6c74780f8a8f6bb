"""Every reader before line ends, byte order marks, other encodings, control and bidirectional
characters.

Each file is read with the same labels and mentions, or refused by file and line;
`tests/helpers/layouts.py` writes the same sentences in the layout of each format. No message quotes
data under an agreement.
"""

import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.data.readers import formats
from biobench.data.readers.files import decoded
from biobench.errors import BioBenchError, DataFormatError
from tests.helpers.layouts import LAYOUTS, SPLITS, Row, rows
from tests.helpers.spec_make import AGREEMENT

GENERATED = {"needle", "synthetic"}
TEXT = [
    "brat",
    "chemprot",
    "csv_join",
    "iob",
    "json",
    "mention_table",
    "pubtator",
    "records",
    "tsv",
    "xmi",
]
"""One for each way to read a file; what stands under an agreement is damaged in every format."""
LINE_ENDS_ARE_TEXT = {"brat", "brat_codes", "mention_table", "csv_join"}
"""Texts stand in files of their own, or in quotes: CRLF is two characters of the text, which
offsets count.
"""
REPLACES = {"records", "brat_codes", "mention_table"}
"""`encoding_errors: replace` by default: a byte that is not UTF-8 becomes U+FFFD."""


def document_of(row: Row, format: str, documents: list[Any]) -> Any:
    """The document that was made of the row; by its id, which follows the order where the file has
    none.
    """
    number = int(row.id[:4]) - 1000
    name = {"deft2020": f"{row.split}-{1 + number // 3}", "records": f"{number}-1"}.get(
        format, row.id
    )
    (found,) = [
        d for d in documents if d.id == name or re.split(r"[/_.|-]", d.group, maxsplit=1)[0] == name
    ]
    return found


def read(
    format: str, folder: Path, content: list[Row], change: Callable[[bytes], bytes] | None = None
) -> list[Any]:
    """The documents after every file was changed; the rows' labels and mentions are what is
    read."""
    layout = LAYOUTS[format]
    (folder / "corpus").mkdir()
    layout.write(folder / "corpus", content)
    for path in (folder / "corpus").rglob("*.*"):
        if change is not None and path.is_file():
            path.write_bytes(change(path.read_bytes()))
    data = load_data(layout.task(format, folder, content[0].label), folder)
    return [d for split in SPLITS for d in data.documents[split]]


def whole(format: str, documents: list[Any], content: list[Row]) -> None:
    """Each row is one document, with its text, label and mention."""
    assert len(documents) == len(content)
    for row in content:
        d = document_of(row, format, documents)
        text = d.reading
        words = row.tail if format in ("chemprot", "ddi") else row.text
        assert words in (d.query if format in ("choices", "deft2020") else text)
        spans = [(d.text[s.start : s.end], s.label) for s in d.spans]
        type = LAYOUTS[format].type
        if type in ("span_ner", "token_ner"):
            assert spans == [(row.surface, "name" if format == "records" else row.label)]
        else:
            number = (int(row.id[:4]) - 1000) // 3 % 6
            wanted = {"multiple_choice": "b", "text_pair": "2", "regression": f"{number}.5"}
            assert d.labels == (wanted.get(type, row.label),)


def test_every_reader_of_files_has_a_layout():
    assert set(LAYOUTS) | GENERATED == set(formats())


@pytest.mark.parametrize("change", ["line ends", "byte order mark"])
@pytest.mark.parametrize("format", TEXT)
def test_line_ends_and_a_byte_order_mark_change_no_example(format, change, tmp_path):
    (tmp_path / "plain").mkdir()
    (tmp_path / "changed").mkdir()
    mark = change == "byte order mark"
    before = read(format, tmp_path / "plain", rows())
    after = read(
        format,
        tmp_path / "changed",
        rows(),
        lambda b: b"\xef\xbb\xbf" + b if mark else b.replace(b"\n", b"\r\n"),
    )
    whole(format, after, rows())
    assert [(d.id, d.group, d.labels, d.spans, d.tags, d.query) for d in after] == [
        (d.id, d.group, d.labels, d.spans, d.tags, d.query) for d in before
    ]
    kept = format in LINE_ENDS_ARE_TEXT and not mark
    assert [d.text for d in after] == [
        d.text.replace("\n", "\r\n") if kept else d.text for d in before
    ]


BYTES = {"NUL": b"\0", "no UTF-8": b"\xff", "half of a surrogate pair": b"\xed\xa0\x80"}


def spoiled(format: str, piece: bytes) -> Callable[[bytes], bytes]:
    """Puts the bytes into the word `brings` of the second sentence of a file, where it has it."""
    word = b"fever" if format == "pubtator" else b"brings"

    def change(content: bytes) -> bytes:
        at = content.rfind(word)
        return content if at < 0 else content[: at + 2] + piece + content[at + 2 :]

    return change


@pytest.mark.parametrize("piece", BYTES)
@pytest.mark.parametrize("format", TEXT)
def test_bytes_that_are_no_text_are_refused_by_line(format, piece, tmp_path):
    change = spoiled(format, BYTES[piece])
    if format in REPLACES and piece != "NUL" and format in ("records", "mention_table"):
        documents = read(format, tmp_path, rows(), change)
        assert any("br\ufffd" in d.text for d in documents)
        assert all(len(d.labels) + len(d.spans) == 1 for d in documents)
        return
    with pytest.raises(DataFormatError) as caught:
        read(format, tmp_path, rows(), change)
    place = Path(caught.value.file)
    lines = place.read_bytes().split(b"\n")
    if format not in REPLACES:
        assert BYTES[piece] in lines[caught.value.line - 1]


@pytest.mark.parametrize(
    ("mark", "label"),
    [
        (unicodedata.normalize("NFD", "é"), unicodedata.normalize("NFD", "Café")),
        ("\u202eאב\u202c\u2066", "S\u202eאב"),
        ("😀\u200d\u200b", "S😀"),
        ("\u200f\ufeff", "\u200fS"),
    ],
    ids=["combining", "bidirectional", "beyond the BMP", "no width"],
)
@pytest.mark.parametrize("format", LAYOUTS)
def test_other_signs_in_texts_labels_and_ids_stay_as_they_are(format, mark, label, tmp_path):
    content = rows(mark, label, ids=mark if LAYOUTS[format].named else "")
    documents = read(format, tmp_path, content)
    whole(format, documents, content)
    if LAYOUTS[format].named:
        assert all(mark in d.id for d in documents)


ESCAPED = ["choices", "json", "json_spans", "json_tokens", "scored_pairs"]


@pytest.mark.parametrize(
    ("escape", "what"), [(b"\\ud83d", "half of a surrogate"), (b"\\u0000", "a NUL character")]
)
@pytest.mark.parametrize("format", ESCAPED)
def test_an_escape_that_is_no_text_is_refused(format, escape, what, tmp_path):
    with pytest.raises(DataFormatError, match=what) as caught:
        read(
            format,
            tmp_path,
            rows(),
            lambda content: content.replace(b"brings", b"br" + escape + b"ings"),
        )
    assert (caught.value.file or "").startswith(str(tmp_path / "corpus"))
    assert caught.value.line is not None


@pytest.mark.parametrize("format", ESCAPED)
@pytest.mark.parametrize(
    "content", [b"[" * 200_000, b'{"a":' * 200_000, b'[{"a": %s}]' % (b"9" * 5000)]
)
def test_json_beyond_the_decoder_is_refused(format, content, tmp_path):
    refused = r"maximum recursion depth|4300 digits|not a list|is not an object"
    with pytest.raises(DataFormatError, match=refused):
        read(format, tmp_path, rows(), lambda _: content)


PLACES = [
    "brat",
    "brat_codes",
    "chemprot",
    "ddi",
    "json_spans",
    "mantra",
    "projected",
    "pubtator",
    "xmi",
]


@pytest.mark.parametrize("digits", [b"99999999999999", b"9" * 5000])
@pytest.mark.parametrize("format", PLACES)
def test_an_offset_beyond_any_text_is_refused(format, digits, tmp_path):
    number = re.compile(rb"(?<![\w.])\d{1,3}(?![\w.])")
    with pytest.raises(DataFormatError) as caught:
        read(format, tmp_path, rows(), lambda content: number.sub(digits, content))
    assert caught.value.file is not None
    assert len(str(caught.value)) < 400


WORD = "ZQXMARKER"
PIECES = b'\t \n " \xff \0  ] { < 999999999999999999999999999999 \r , | B- \xed\xa0\x80'.split(b" ")


def _edited(content: bytes, rng: random.Random) -> bytes:
    made = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(made) + 1)
        made[at : at + rng.choice([0, 1, 5, 40])] = rng.choice(PIECES)
    return bytes(made)


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "edited": _edited,
    "without first line": lambda content, rng: content.partition(b"\n")[2],
    "other separator": lambda content, rng: content.replace(b"\t", b" ").replace(b",", b";"),
    "cut": lambda content, rng: content[: rng.randrange(len(content))],
    "fields renamed": lambda content, rng: content.replace(b"id", WORD.encode()).replace(
        b"text", WORD.encode()
    ),
    "label unknown": lambda content, rng: content.replace(b"Sign", WORD.encode()),
    "shifted": lambda content, rng: content.replace(WORD.encode(), WORD.encode() + b"xx", 1),
    "twice": lambda content, rng: content + content,
}


@pytest.mark.parametrize("format", LAYOUTS)
def test_no_message_quotes_data_under_an_agreement(format, tmp_path):
    layout = LAYOUTS[format]
    (tmp_path / "corpus").mkdir()
    layout.write(tmp_path / "corpus", rows(WORD, ids=WORD if layout.named else ""))
    path = layout.task(format, tmp_path).path
    path.write_text(
        path.read_text().replace("access: open\n", f"access: {AGREEMENT}\n"), encoding="utf-8"
    )
    task = load_task(path)
    load_data(task, tmp_path)
    files = sorted(p for p in (tmp_path / "corpus").rglob("*") if p.is_file())
    rng = random.Random(format)
    messages: list[str] = []
    for damage in DAMAGE.values():
        for _ in range(6):
            place = rng.choice(files)
            content = place.read_bytes()
            place.write_bytes(damage(content, rng))
            try:
                load_data(task, tmp_path)
            except BioBenchError as error:
                messages.append(f"{error.what} | {error.hint}")
            place.write_bytes(content)
    assert len(messages) >= 5
    assert not [m for m in messages if WORD.lower() in m.lower()]


BAD = Path(__file__).resolve().parent.parent / "fixtures" / "bad"
CASES: list[dict[str, Any]] = yaml.safe_load((BAD / "cases.yaml").read_text(encoding="utf-8"))


def test_every_bad_spec_is_in_the_table():
    assert {case["spec"] for case in CASES} == {p.name for p in BAD.glob("*.yaml")} - {"cases.yaml"}
    assert len(CASES) >= 20


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_another_encoding_is_refused(encoding):
    with pytest.raises(BioBenchError, match=r"UTF-16 or UTF-32|NUL byte"):
        decoded(Path("f"), "one\ntwo".encode(encoding))


@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c["spec"]))
def test_one_line_that_names_the_place(case):
    with pytest.raises(BioBenchError) as caught:
        load_data(load_task(BAD / case["spec"]), BAD / "data")
    error = caught.value
    text = str(error)
    assert "\n" not in text
    assert error.file.endswith(case["at"])
    if case["line"] is not None:
        assert error.line == case["line"], text
        assert text.startswith(f"{error.file}:{error.line}: ")
    for word in case["words"]:
        assert word in text
    assert error.hint
    assert "\n" not in error.hint
