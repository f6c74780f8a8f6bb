"""Two tasks under an agreement whose texts, mentions, ids and groups all bear one word."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.helpers.spec_make import AGREEMENT, local, write_spec

WORD = "ZQXMARKER"
_FILLERS = (
    "rest",
    "walk",
    "sleep",
    "sits",
    "eats",
    "drinks",
    "reads",
    "talks",
    "waits",
    "turns",
    "looks",
    "stays",
)


def private_tasks(folder: Path, documents: int = 300, access: str = AGREEMENT) -> list[Path]:
    """`data/own` below the folder, and the specs of `own_notes` (labels) and `own_spans` (mentions)
    beside it.
    """
    rng = random.Random(1)
    rows, objects = ["id\twho\ttext\tlabel\n"], []
    for i in range(documents):
        label = rng.choice("AB")
        some, more = (" ".join(rng.choices(_FILLERS, k=k)) for k in (rng.randint(4, 9), 4))
        sign = "fever" if label == "A" else "cough"
        text = f"Patient {WORD}word{i} {some} has {sign} and {more} {WORD}tail{i}"
        rows.append(f"{WORD}id{i}\t{WORD}who{i}\t{text}\t{label}\n")
        head, name = f"Patient {WORD}name{i} {some} has ", f"{WORD}mention"
        sign = rng.choice(["fever", "cough", "pain"])
        first, second = len(head), len(f"{head}{sign} and ")
        spans = [[first, first + len(sign), "Sign"], [second, second + len(name), "Name"]]
        objects.append(
            {
                "id": f"{WORD}id{i}",
                "who": f"{WORD}who{i}",
                "text": f"{head}{sign} and {name} {more}",
                "spans": spans,
            }
        )
    own = folder / "data" / "own"
    own.mkdir(parents=True)
    (own / "all.tsv").write_text("".join(rows), encoding="utf-8")
    (own / "all.jsonl").write_text("".join(json.dumps(o) + "\n" for o in objects), encoding="utf-8")
    columns = "{id: id, group: who, text: text, label: label}"
    spans_reader = "{format: json_spans, id: id, group: who, tokens: words}"
    kinds = {
        "own_notes": ("single_label", "all.tsv", f"{{format: tsv, columns: {columns}}}", "[A, B]"),
        "own_spans": ("token_ner", "all.jsonl", spans_reader, "[Sign, Name]"),
    }
    splits = "{ratios: [0.6, 0.2, 0.2], seed: 1, method: datasets}"
    shared = {
        "splits": splits,
        "unit": "document",
        "seeds": "1-2",
        "protocol": "{max_length: 128}",
        "access": access,
    }
    return [
        write_spec(
            folder / f"{name}.yaml",
            type=type_,
            source=local("own", f"{{all: {file}}}"),
            reader=reader,
            labels=labels,
            training="{epochs: 1, learning_rate: 5e-5, batch_size: 16}",
            **shared,
        )
        for name, (type_, file, reader, labels) in kinds.items()
    ]
