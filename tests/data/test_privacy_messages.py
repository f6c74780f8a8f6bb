"""Whatever is wrong in a file under an agreement, no word of it stands in the message or in the hint."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import BioBenchError
from tests.helpers.layouts import LAYOUTS, rows
from tests.helpers.spec_make import AGREEMENT

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
    "fields renamed": lambda content, rng: content.replace(b"id", WORD.encode()).replace(b"text", WORD.encode()),
    "label unknown": lambda content, rng: content.replace(b"Sign", WORD.encode()),
    "shifted": lambda content, rng: content.replace(WORD.encode(), WORD.encode() + b"xx", 1),
    "twice": lambda content, rng: content + content,
}


@pytest.mark.parametrize("format", LAYOUTS)
def test_no_message_quotes_data_under_an_agreement(format: str, tmp_path: Path) -> None:
    layout = LAYOUTS[format]
    (tmp_path / "corpus").mkdir()
    layout.write(tmp_path / "corpus", rows(WORD, ids=WORD if layout.named else ""))
    path = layout.task(format, tmp_path).path
    path.write_text(path.read_text().replace("access: open\n", f"access: {AGREEMENT}\n"), encoding="utf-8")
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
