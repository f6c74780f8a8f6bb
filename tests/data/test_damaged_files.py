"""Whatever is wrong in a data file, the reader says so in one line; it never falls over."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from biobench.errors import BioBenchError
from tests.helpers.generators import GENERATORS, cos, deid, phenotype

SMALL: dict[str, Callable[[Path], object]] = GENERATORS | {
    "cos": partial(cos, snippets=60, duplicates=3),
    "deid": partial(deid, records=60),
    "deid_joined": partial(deid, records=60),
    "phenotype": partial(phenotype, notes=20),
}
PIECES = [b"\t", b"\n", b'"', b"\xff", b"\x00", b"", b" ", b"-", b";", b"9" * 30, b"<", b"{", b"]", b"NaN", b"\r"]
PIECES += ["²".encode(), "\u2028".encode(), b"|", b"[**", b"**]", b"B-", b"\xef\xbb\xbf"]
TASKS = [
    "cantemist",
    "fracco_30",
    "meddialog_fr",
    "diamed",
    "phenotype",
    "cos",
    "deid",
    "deid_joined",
    "jnlpba",
    "chemprot",
]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """A copy with one to three small edits, sometimes cut off."""
    made = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(made) + 1)
        made[at : at + rng.choice([0, 1, 1, 5, 40])] = rng.choice(PIECES)
    return bytes(made if rng.random() < 0.9 else made[: rng.randrange(len(made) + 1)])


@pytest.mark.parametrize("name", TASKS)
def test_damage_is_read_or_refused(name: str, tmp_path: Path) -> None:
    SMALL[name](tmp_path)
    task = load_task(name)
    rng = random.Random(name)
    files = sorted(p for p in tmp_path.rglob("*") if p.is_file() and not p.name.startswith("._"))
    files.sort(key=lambda p: -p.stat().st_size)
    refused: list[BioBenchError] = []
    for _ in range(25):
        path = rng.choice(files[:6])
        content = path.read_bytes()
        path.write_bytes(damaged(content, rng))
        try:
            load_data(task, tmp_path)
        except BioBenchError as error:
            refused.append(error)
        path.write_bytes(content)
    load_data(task, tmp_path)
    assert all("\n" not in str(error) and error.hint for error in refused)
    assert refused or name in ("fracco_30", "cantemist")
