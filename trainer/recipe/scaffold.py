"""A first recipe for a corpus of one's own: one template, filled in with what the files and the base say."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter

from biobench.errors import DataFormatError, UsageError
from trainer.corpus.sources import ReadMeter, files_of, texts
from trainer.recipe.corpus import CorpusSource
from trainer.recipe.fields import Tokens, human

SAMPLE = 2000
"""Documents read to measure a corpus."""
CHARACTERS = 4
"""A token's, where the tokenizer is not on this machine."""
_STEPS = 500
"""Optimiser steps of the first phase that the batch leaves, where the corpus is large enough."""
_TEMPLATE = """\
name: {name}
description: The causal detour on a corpus of one's own.
base:
  model: {base}
corpus:
  sources:
    - {{id: corpus, path: {path}{field}}}
  root: {root}
  # Nine of ten documents have at most about {long:,} tokens.
  sequence_length: {length}
  # Part of the documents kept for the validation loss.
  held_out: 0.01
# Windows a step: {steps:,} steps of the first phase. micro: how many at once.
batch: {{sequences: {batch}}}
optimizer:
  # The paper's rate for continued pretraining of base models; 5e-4 and more are for weights from scratch.
  learning_rate: 2e-4
  weight_decay: 1e-5
seeds: {{data: 42, training: 17, init: 17}}   # a noise twin changes `training` alone
phases:
  - name: detour
    objective: clm
    # One pass over the corpus is about {once} ({how}).
    tokens: {budget}
    schedule: {{shape: constant, warmup: {warmup}}}
  - name: decay
    objective: mlm
    masking: {{rate: 0.15}}
    # A tenth of the first phase, as in the paper's base models; its studies go from 2.5% to 50%.
    tokens: {decay}
    schedule: {{shape: 1-sqrt, final: 0.1}}
"""
_TWIN = """\
arms:
  # All but the first phase's objective is the detour's, so the two are a matched pair.
  twin:
    description: The masked twin.
    phases: {detour: {name: masked, objective: mlm, masking: {rate: 0.30}}}
"""


def write_recipe(
    corpus: Path, base: str, folder: Path, name: str, *, twin: bool = False, tokens: str | None = None
) -> Path:
    """Write `name`.yaml, the detour, with `twin` also as an arm; the file written.

    corpus: a file or folder of text. base: hub id or folder. tokens: of the first phase (`2B`), one pass by default.
    Raises UsageError where a file is there already, DataFormatError for a corpus that cannot be read, ModelError for a
    base that cannot be pretrained.
    """
    path = folder / f"{name}.yaml"
    if path.exists():
        raise UsageError(f"{path} exists", hint="give another --name, or move it away")
    if not corpus.exists():
        raise UsageError(f"no such file or folder: {corpus}", hint="name a folder of texts, .jsonl, .csv or .parquet")
    from biobench.core.tokenizer import load_tokenizer
    from trainer.model.network import check_base

    config = check_base(base)
    tokenizer = None if config is None else load_tokenizer(base)
    source = CorpusSource(id="corpus", path=str(corpus.resolve()))
    field = text_field(files_of(source, Path())[0])
    meter = ReadMeter()
    documents = list(islice(texts(source.model_copy(update={"field": field}), Path(), meter), SAMPLE))
    if not documents:
        raise DataFormatError("holds no text", hint="name files with documents", file=corpus)
    if tokenizer is None:
        lengths = sorted(math.ceil(len(text) / CHARACTERS) for text in documents)
    else:
        lengths = sorted(map(len, tokenizer(documents, add_special_tokens=False)["input_ids"]))
    once = round(sum(lengths) / (1.0 if len(documents) < SAMPLE or not meter.fraction > 0 else meter.fraction))
    long = lengths[int(0.9 * (len(lengths) - 1))]
    try:
        budget = once if tokens is None else TypeAdapter(Tokens).validate_python(tokens)
    except ValueError:
        raise UsageError(f"--tokens '{tokens}' is no amount of tokens", hint="write 300M or 2B") from None
    # the power of two that holds a long document, from 128 to the base's window (512 where it is unknown)
    length = min(1 << (max(long, 128) - 1).bit_length(), getattr(config, "max_position_embeddings", None) or 512)
    batch = max(4, min(384, budget // (_STEPS * length)))
    recipe = _TEMPLATE.format(
        name=name,
        base=json.dumps(base),
        path=json.dumps(corpus.resolve().name),
        field="" if field == "text" else f", field: {json.dumps(field)}",
        root=json.dumps(str(corpus.resolve().parent)),
        long=long,
        length=length,
        steps=math.ceil(budget / (batch * length)),
        batch=batch,
        once=human(once),
        how=f"{CHARACTERS} characters a token" if tokenizer is None else "counted with the base's tokenizer",
        budget=budget,
        warmup=max(1, budget // 100),
        decay=max(1, budget // 10),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(recipe + (_TWIN if twin else ""), "utf-8")
    return path


def text_field(file: Path) -> str:
    """`text` where the records of a file have it, else the key or column with the longest texts."""
    import pandas as pd

    ending = file.suffix.lower()
    try:
        if ending == ".parquet":
            import pyarrow.parquet as pq

            rows = next(pq.ParquetFile(file).iter_batches(20)).to_pandas()
        elif ending == ".jsonl":
            rows = pd.read_json(file, lines=True, nrows=20, dtype=False)
        elif ending in (".csv", ".tsv"):
            rows = pd.read_csv(file, sep="," if ending == ".csv" else "\t", nrows=20)
        else:
            return "text"
    except (ValueError, StopIteration):
        return "text"  # the corpus's reader names what is wrong
    lengths = {str(name): sum(len(value) for value in rows[name] if isinstance(value, str)) for name in rows.columns}
    return "text" if "text" in lengths or not lengths else max(lengths, key=lambda name: lengths[name])
