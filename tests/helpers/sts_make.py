"""A small corpus of sentence pairs with a similarity, and the task over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers.spec_make import spec_text

COMMON = {
    "protocol": "{max_length: 64}",
    "training": "{epochs: 3, learning_rate: 1e-3, batch_size: 8, precision: fp32}",
    "head": "{kind: sequence, pooling: mean}",
}
STS = spec_text(
    "my_sts",
    type="regression",
    source="{folder: sts, files: {train: train.csv, validation: dev.csv, test: test.csv}}",
    reader="{format: tsv, separator: comma, columns: {first: a, text: b, label: score}}",
    labels="[similarity]",
    scale="[0, 5]",
    metric="{primary: pearson, paper: spearman}",
    **COMMON,
)
WORDS = ("fever", "cough", "liver", "heart", "renal", "dose", "tumour", "blood")


def write_sts(folder: Path, sizes: tuple[int, int, int] = (24, 8, 24)) -> None:
    """Pairs that share more words the higher their score; a byte order mark and CRLF line ends."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    for name, size in zip(("train", "dev", "test"), sizes, strict=True):
        rows = []
        for _ in range(size):
            shared = int(rng.integers(0, 6))
            first = [WORDS[i] for i in rng.permutation(8)[:5]]
            second = first[:shared] + [f"other{i}" for i in range(5 - shared)]
            rows.append(f"{' '.join(first)},{' '.join(second)},{shared}\r\n")
        (folder / f"{name}.csv").write_bytes(("\ufeffa,b,score\r\n" + "".join(rows)).encode())
