"""A small nested corpus in BRAT files, and the task over it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers.spec_make import write_spec

FILLER = ("le", "patient", "prend", "depuis", "hier", "sans", "signe")
NOUNS = {"douleur": "DISO", "lésion": "DISO", "tumeur": "DISO"}
PLACES = ("foie", "rein", "genou")
DRUGS = ("ibuprofène", "morphine")


def make_nested(folder: Path, lines: int = 60) -> Path:
    """Write the corpus below `folder` and return the spec's path.

    "douleur du foie" is a DISO that holds a DISO (the noun) and an ANAT (the place); a drug is a
    CHEM and, as the very same span, a DISO.
    """
    rng = np.random.default_rng(3)
    for name, count in (("train", lines), ("dev", lines // 3), ("test", lines // 3)):
        (folder / "nested" / name).mkdir(parents=True)
        text, rows = "", []
        for _ in range(count):
            for _ in range(rng.integers(1, 4)):
                text += " ".join(rng.choice(FILLER, rng.integers(1, 4))) + " "
                start = len(text)
                if rng.random() < 0.6:
                    noun, place = rng.choice(list(NOUNS)), rng.choice(PLACES)
                    text += f"{noun} du {place}"
                    rows += [("DISO", start, len(text)), ("DISO", start, start + len(noun))]
                    rows.append(("ANAT", len(text) - len(place), len(text)))
                else:
                    text += str(rng.choice(DRUGS))
                    rows += [("CHEM", start, len(text)), ("DISO", start, len(text))]
                text += " "
            text = text.rstrip() + "\n"
        (folder / "nested" / name / f"{name}.txt").write_text(text, encoding="utf-8")
        ann = [f"T{i}\t{k} {s} {e}\t{text[s:e]}\n" for i, (k, s, e) in enumerate(rows, start=1)]
        (folder / "nested" / name / f"{name}.ann").write_text("".join(ann), encoding="utf-8")
    return write_spec(
        folder / "nested.yaml",
        type="span_ner",
        name="Nested",
        language="fr",
        unit="line",
        source="{id: made, folder: nested, files: {train: train/*.txt, validation: dev/*.txt, "
        "test: test/*.txt}}",
        labels="[DISO, ANAT, CHEM]",
        reader="{format: brat, segment: line, discontinuous: hull}",
        protocol="{max_length: 64}",
        metric="{paper: micro_f1}",
        training="{epochs: 2, learning_rate: 5e-4, head_learning_rate: 5e-3, batch_size: 8, "
        "max_grad_norm: 10.0}",
    )
