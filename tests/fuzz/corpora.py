"""Corpora of all readers, of tasks and for pretraining, whose files are damaged in turn;
checkpoints likewise.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from biobench.data.catalog import load_task
from biobench.data.load import load_data
from tests.helpers.generators import GENERATORS, cos, deid, phenotype
from tests.helpers.layouts import LAYOUTS, rows
from tests.helpers.tiny import make_tiny_encoder
from trainer.corpus.sources import texts
from trainer.recipe.corpus import CorpusSource

_SMALL = {"cos": partial(cos, snippets=60, duplicates=3), "deid": partial(deid, records=60)}
_SMALL["phenotype"] = partial(phenotype, notes=20)


@dataclass(frozen=True)
class Damaged:
    """Files that `read` reads, one of which is damaged at a time: the first byte of an input says
    which.
    """

    files: list[tuple[Path, Callable[[], object]]]

    def seeds(self) -> tuple[bytes, ...]:
        """The sound files."""
        return tuple(bytes([i]) + path.read_bytes() for i, (path, _) in enumerate(self.files))

    def __call__(self, content: bytes) -> None:
        """Read with the rest of the input in place of a file, which is as before afterwards."""
        if not content:
            return
        path, read = self.files[content[0] % len(self.files)]
        kept = path.read_bytes()
        path.write_bytes(content[1:])
        try:
            read()
        finally:
            path.write_bytes(kept)


def _largest(folder: Path, count: int = 4) -> list[Path]:
    return sorted((p for p in folder.rglob("*") if p.is_file()), key=lambda p: -p.stat().st_size)[
        :count
    ]


def of_tasks(folder: Path) -> Damaged:
    """Each reader's layout, and larger corpora as shipped specs read them."""
    files: list[tuple[Path, Callable[[], object]]] = []
    for format, layout in LAYOUTS.items():
        place = folder / format
        (place / "corpus").mkdir(parents=True)
        layout.write(place / "corpus", rows())
        task = layout.task(format, place)
        load_data(task, place)
        files += [(path, partial(load_data, task, place)) for path in _largest(place / "corpus", 3)]
    for name in ("meddialog_fr", "diamed", "phenotype", "cos", "deid", "jnlpba", "chemprot"):
        (GENERATORS | _SMALL)[name](folder / name)
        task = load_task(name)
        load_data(task, folder / name)
        files += [
            (path, partial(load_data, task, folder / name)) for path in _largest(folder / name)
        ]
    return Damaged(files)


def of_pretraining(folder: Path) -> Damaged:
    """A file of each form that a recipe may name."""
    table = pa.table(
        {"text": [f"Sentence {i} tells of fever, {'é' * i} and of rest." for i in range(40)]}
    )
    frame = table.to_pandas()
    jsonl = frame.to_json(orient="records", lines=True).encode()
    contents = {
        "a.txt": frame["text"][0].encode(),
        "a.jsonl": jsonl,
        "a.jsonl.gz": gzip.compress(jsonl),
    }
    contents |= {
        f"a.{end}": frame.to_csv(index=False, sep=sep).encode()
        for end, sep in (("csv", ","), ("tsv", "\t"))
    }
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pq.write_table(table, folder / "a.parquet")
    with pa.ipc.new_stream(str(folder / "a.arrow"), table.schema) as stream:
        stream.write_table(table)
    return Damaged([(path, partial(_all, path)) for path in sorted(folder.iterdir())])


def _all(path: Path) -> None:
    for _ in texts(CorpusSource(id="own", path=path.name), path.parent):
        pass


def checkpoints(folder: Path) -> Damaged:
    """Config, tokenizer and weights of a tiny encoder."""
    model = make_tiny_encoder(folder / "tiny")
    return Damaged([(path, partial(_loaded, model)) for path in sorted(model.iterdir())])


def _loaded(model: Path) -> None:
    import torch

    from biobench.models.loading import find_checkpoint, load_tokenizer
    from biobench.models.weights import load_base

    checkpoint = find_checkpoint(str(model))
    checkpoint.identity(1)
    load_tokenizer(checkpoint)
    load_base(checkpoint, torch.float32)
