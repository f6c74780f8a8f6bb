"""A first recipe for a corpus of one's own: what the files say is filled in, and each choice is explained."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from biobench.errors import DataFormatError, UsageError
from trainer.corpus.sources import ReadMeter, files_of, texts
from trainer.recipe.corpus import CorpusSource
from trainer.recipe.quantities import Tokens, human

SAMPLE = 2000
"""Documents read to measure a corpus."""
CHARACTERS = 4
"""A token's, where the tokenizer is not on this machine."""
_STEPS = 500
"""Optimiser steps of the first phase that the batch leaves, where the corpus is large enough."""


@dataclass(frozen=True, slots=True)
class CorpusMeasure:
    """What a corpus and a base say.

    field: key or column of the text. tokens: of the whole corpus, one pass, about. long: tokens of a long document
    (nine of ten are shorter). counted: by the base's own tokenizer. window: of the base, None where unknown.
    """

    field: str
    tokens: int
    long: int
    counted: bool
    window: int | None


def write_recipe(
    corpus: Path, base: str, folder: Path, name: str, *, twin: bool = False, tokens: str | None = None
) -> Path:
    """Write `name`.yaml, the detour, with `twin` also as an arm; the file written.

    corpus: a file or folder of text. base: hub id or folder. tokens: of the first phase (`2B`), one pass by default.
    Raises UsageError where a file is there already, DataFormatError for a corpus that cannot be read.
    """
    path = folder / f"{name}.yaml"
    if path.exists():
        raise UsageError(f"{path} exists", hint="give another --name, or move it away")
    if not corpus.exists():
        raise UsageError(f"no such file or folder: {corpus}", hint="name a folder of texts, .jsonl, .csv or .parquet")
    measured = measure(corpus, base)
    budget = measured.tokens
    if tokens is not None:
        try:
            budget = TypeAdapter(Tokens).validate_python(tokens)
        except ValueError:
            raise UsageError(f"--tokens '{tokens}' is no amount of tokens", hint="write 300M or 2B") from None
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(_template(corpus.resolve(), base, name, measured, budget) + (_TWIN if twin else ""), "utf-8")
    return path


def measure(corpus: Path, base: str) -> CorpusMeasure:
    """Reads up to `SAMPLE` documents, and the base's tokenizer and window where they are on this machine."""
    source = CorpusSource(id="corpus", path=str(corpus.resolve()))
    field = text_field(files_of(source, Path())[0])
    source = source.model_copy(update={"field": field})
    meter = ReadMeter()
    documents = list(islice(texts(source, Path(), meter), SAMPLE))
    if not documents:
        raise DataFormatError("holds no text", hint="name files with documents", file=corpus)
    tokenizer, window = _local(base)
    if tokenizer is None:
        lengths = [math.ceil(len(text) / CHARACTERS) for text in documents]
    else:
        lengths = [len(ids) for ids in tokenizer(documents, add_special_tokens=False)["input_ids"]]
    share = 1.0 if len(documents) < SAMPLE or not meter.fraction > 0 else meter.fraction
    long = sorted(lengths)[int(0.9 * (len(lengths) - 1))]
    return CorpusMeasure(field, round(sum(lengths) / share), long, tokenizer is not None, window)


def text_field(file: Path) -> str:
    """`text` where the records of a file have it, else the key or column with the longest texts."""
    rows = list(islice(_records(file), 20))
    lengths: dict[str, int] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(value, str):
                lengths[key] = lengths.get(key, 0) + len(value)
    return "text" if "text" in lengths or not lengths else max(lengths, key=lambda key: lengths[key])


def _records(file: Path) -> Iterator[dict[str, Any]]:
    """The first records of a table or of JSON lines; none of plain text and of packed files."""
    ending = file.suffix.lower()
    if ending == ".parquet":
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(file).iter_batches(20):
            yield from batch.to_pylist()
    elif ending in (".jsonl", ".csv", ".tsv"):
        with file.open(encoding="utf-8", errors="replace", newline="") as lines:
            if ending == ".jsonl":
                for line in lines:
                    try:
                        value = json.loads(line)
                    except ValueError:
                        return  # the corpus's reader names the line
                    if isinstance(value, dict):
                        yield value
            else:
                yield from csv.DictReader(lines, delimiter="," if ending == ".csv" else "\t")


def _local(base: str) -> tuple[Any, int | None]:
    """The base's tokenizer and window, without asking the hub; None each where they are not on this machine."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        window = getattr(AutoConfig.from_pretrained(base, local_files_only=True), "max_position_embeddings", None)
        return AutoTokenizer.from_pretrained(base, local_files_only=True), window
    except (OSError, ValueError):
        return None, None


def _template(corpus: Path, base: str, name: str, measured: CorpusMeasure, budget: int) -> str:
    # the power of two that holds a long document, from 128 to the base's window (512 where it is unknown)
    length = min(1 << (max(measured.long, 128) - 1).bit_length(), measured.window or 512)
    batch = max(4, min(384, budget // (_STEPS * length)))
    how = "counted with the base's tokenizer" if measured.counted else f"{CHARACTERS} characters a token"
    field = "" if measured.field == "text" else f", field: {json.dumps(measured.field)}"
    return f"""name: {name}
description: The causal detour on a corpus of one's own.
base:
  model: {json.dumps(base)}
corpus:
  sources:
    - {{id: corpus, path: {json.dumps(corpus.name)}{field}}}
  root: {json.dumps(str(corpus.parent))}
  # Nine of ten documents have at most about {measured.long:,} tokens.
  sequence_length: {length}
  # Part of the documents kept for the validation loss.
  held_out: 0.01
# Windows a step: {math.ceil(budget / (batch * length)):,} steps of the first phase. micro: how many at once.
batch: {{sequences: {batch}}}
optimizer:
  # The paper's rate for continued pretraining of base models; 5e-4 and more are for weights from scratch.
  learning_rate: 2e-4
  weight_decay: 1e-5
seeds: {{data: 42, training: 17, init: 17}}   # a noise twin changes `training` alone
phases:
  - name: detour
    objective: clm
    # One pass over the corpus is about {human(measured.tokens)} ({how}).
    tokens: {budget}
    schedule: {{shape: constant, warmup: {max(1, budget // 100)}}}
  - name: decay
    objective: mlm
    masking: {{rate: 0.15}}
    # A tenth of the first phase, as in the paper's base models; its studies go from 2.5% to 50%.
    tokens: {max(1, budget // 10)}
    schedule: {{shape: 1-sqrt, final: 0.1}}
"""


_TWIN = """\
arms:
  # All but the first phase's objective is the detour's, so the two are a matched pair.
  twin:
    description: The masked twin.
    phases: {detour: {name: masked, objective: mlm, masking: {rate: 0.30}}}
"""
