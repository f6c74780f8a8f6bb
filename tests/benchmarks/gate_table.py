"""How often the gate and the needle tables are wrong: ``python -m tests.benchmarks.gate_table --repeats 400``.

Tasks without a leak, and tasks whose text says nothing, are made from random words; each row counts how often what
would be said of them is false.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from biobench.baselines import gate
from biobench.data.catalog import load_task
from biobench.schema.document import Document, Prediction, TaskData
from biobench.schema.needle import ABSENT, PRESENT, GridCell, NeedlePlan, example_id
from biobench.score.needle import grid
from tests.benchmarks.verdict_table import Row

LENGTHS, POSITIONS, TEMPLATES = (512, 1024, 2048, 4096), ("start", "middle", "end"), ("drug", "lab")
LABELS = (ABSENT, PRESENT)


def pairs(rng: np.random.Generator, split: str, count: int) -> list[Document]:
    """Pairs of one query and two documents of equally many random words; only together do they tell the answer."""
    documents = []
    for number in range(count):
        place = number % (len(LENGTHS) * len(POSITIONS) * len(TEMPLATES))
        cell = GridCell(LENGTHS[place % 4], POSITIONS[place // 4 % 3], TEMPLATES[place // 12])
        first, second = rng.integers(200, size=2)
        words = [f"w{n}" for n in rng.integers(500, size=30)]
        for label, needle in ((PRESENT, first), (ABSENT, second)):
            text = " ".join([*words[:15], f"n{needle:03d}", *words[15:]])
            name = example_id("en", cell, number, label)
            plan = NeedlePlan(cell.length, 0.5, f"n{needle:03d}", (), (), (), (), "", "words")
            query = f"n{first:03d}"
            documents.append(Document(name, f"{split}{number}", text, split, labels=(label,), query=query, plan=plan))
    return documents


def needle_data(rng: np.random.Generator) -> TaskData:
    """384 training and 384 test examples."""
    parts = {"train": pairs(rng, "train", 192), "validation": [], "test": pairs(rng, "test", 192)}
    return TaskData(parts, LABELS, LABELS, "generated", "h")


def guesses(rng: np.random.Generator, documents: Sequence[Document], agree: float) -> list[Prediction]:
    """Answers that do not look; agree: how often both documents of a pair get the same one."""
    drawn = []
    for d in documents:
        if d.labels == (PRESENT,):
            answer = int(rng.integers(2))
        elif rng.random() > agree:
            answer = 1 - answer
        drawn.append(Prediction(d.id, labels=(LABELS[answer],)))
    return drawn


def chance_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Needle tasks without a leak that the gate refuses."""
    task = load_task("demo_topic")
    spec = task.spec
    asks = spec.model_copy(update={"labels": list(LABELS), "gate": spec.gate.model_copy(update={"expect": "chance"})})
    task = replace(task, spec=asks)
    refused = sum(not gate(task, needle_data(rng)).passed for _ in range(repeats))
    yield Row("the gate refuses a needle task without a leak", "384 examples", refused / repeats, (0.0, 0.02))


def cell_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """A model that guesses: some cell of the table is away from 50."""
    for agree in (0.5, 0.9):
        together = each = 0
        for _ in range(2 * repeats):
            documents = pairs(rng, "test", 960)
            runs = [guesses(rng, documents, agree)]
            shares, _ = grid(documents, runs)
            cells = [share for key, share in shares.items() if key[0] is not None and key[1] is not None]
            together += any(not s.low <= 0.5 <= s.high for s in cells)
            # the interval that each cell had alone
            alone, _ = grid(documents, runs, 1 - 0.05 * len(cells))
            each += any(
                not s.low <= 0.5 <= s.high for key, s in alone.items() if key[0] is not None and key[1] is not None
            )
        name = f"12 cells, pairs answered alike in {agree:g} (uncorrected {each / (2 * repeats):.2f})"
        yield Row("a cell of a guessing model is away from 50", name, together / (2 * repeats), (0.0, 0.05))


def text_rows(rng: np.random.Generator, repeats: int) -> Iterator[Row]:
    """Texts that say nothing of their labels, and that the gate passes."""
    task = load_task("demo_topic")
    task = replace(task, spec=task.spec.model_copy(update={"labels": ["A", "B"]}))
    passed = 0
    for _ in range(repeats):
        parts = {
            split: [
                Document(f"{split}{i}", f"{split}{i}", " ".join(f"w{n}" for n in rng.integers(300, size=12)), split,
                         labels=(str(rng.choice(["A", "B"])),))
                for i in range(count)
            ]
            for split, count in (("train", 200), ("validation", 0), ("test", 100))
        }  # fmt: skip
        passed += gate(task, TaskData(parts, ("A", "B"), ("A", "B"), "generated", "h")).passed
    yield Row("the gate passes texts that say nothing of their labels", "100 documents", passed / repeats, (0.0, 0.01))


PARTS = (chance_rows, cell_rows, text_rows)


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description="how often the gate and the needle tables are wrong")
    parser.add_argument("--repeats", type=int, default=400)
    repeats = parser.parse_args().repeats
    print("| claim | world | measured | target |\n|---|---|---|---|")
    for place, part in enumerate(PARTS):
        for row in part(np.random.default_rng(place), repeats):
            mark = "" if row.is_within else " **outside**"
            print(f"| {row.what} | {row.world} | {row.measured:.3f}{mark} | ≤ {row.target[1]:g} |", flush=True)


if __name__ == "__main__":
    main()
