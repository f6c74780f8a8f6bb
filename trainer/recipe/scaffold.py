"""A first recipe for a corpus of one's own: one commented template, filled in with what the files
say.
"""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path

from biobench.errors import DataFormatError, UsageError
from trainer.corpus.sources import ReadMeter, texts
from trainer.recipe.corpus import CorpusSource
from trainer.recipe.fields import human, parse_amount

SAMPLE = 2000
"""Documents read to measure a corpus."""
CHARACTERS = 4
"""Of a token."""
_STEPS = 500
"""Optimiser steps of the first phase that the batch leaves, where the corpus is large enough."""
_HELD_OUT, _MOST_HELD_OUT = 0.01, 0.2
"""Part of the documents kept for the validation loss: of a small corpus more, to fill windows."""
_TEMPLATE = """\
name: {name}
description: The causal detour on your own corpus.
base:
  model: {base}
corpus:
  sources:
    - {{id: corpus, path: {path}, field: {field}}}
  root: {root}
  # Nine of ten documents have at most about {long:,} tokens.
  sequence_length: {length}
  # Part of the documents kept for the validation loss.
  held_out: {held_out}
# Windows a step: {steps:,} steps of the first phase. micro: how many at once.
batch: {{sequences: {batch}}}
optimizer:
  # The paper's rate for continued pretraining of base models;
  # 5e-4 and more are for weights from scratch.
  learning_rate: 2e-4
  weight_decay: 1e-5
seeds: {{data: 42, training: 17, init: 17}}   # a noise twin changes `training` alone
phases:
  - name: detour
    objective: clm
    # One pass over the corpus is about {once} (4 characters a token).
    tokens: {budget}
    schedule: {{shape: constant, warmup: {warmup}}}
  - name: decay
    objective: mlm
    masking: {{rate: 0.15}}
    # A tenth of the first phase, as in the paper's base models; its studies go from 2.5% to 50%.
    tokens: {decay}
    schedule: {{shape: 1-sqrt, final: 0.1}}
arms:
  # All but the first phase's objective is the detour's, so the two are a matched pair.
  twin:
    description: The masked twin.
    phases: {{detour: {{name: masked, objective: mlm, masking: {{rate: 0.30}}}}}}
"""


def write_recipe(
    corpus: Path,
    base: str,
    folder: Path,
    name: str,
    *,
    field: str = "text",
    tokens: str | None = None,
) -> Path:
    """Write `name`.yaml, the detour with its masked twin as an arm; the file written.

    corpus: a file or folder of text. base: hub id or folder. field: key or column of the text.
    tokens: of the first phase (`2B`), one pass by default. Raises UsageError where a file is there
    already, DataFormatError for a corpus that cannot be read, ModelError for a base that cannot be
    pretrained.
    """
    path = folder / f"{name}.yaml"
    if path.exists():
        raise UsageError(f"{path} exists", hint="give another --name, or move it away")
    if not corpus.exists():
        raise UsageError(
            f"no such file or folder: {corpus}",
            hint="name a folder of texts, .jsonl, .csv or .parquet",
        )
    from trainer.model.network import check_base

    config = check_base(base)
    source = CorpusSource(id="corpus", path=corpus.resolve().name, field=field)
    meter = ReadMeter()
    lengths = sorted(
        math.ceil(len(text) / CHARACTERS)
        for text in islice(texts(source, corpus.resolve().parent, meter), SAMPLE)
    )
    if not lengths:
        raise DataFormatError("holds no text", hint="name files with documents", file=corpus)
    once = round(sum(lengths) / (1.0 if len(lengths) < SAMPLE else meter.fraction))
    long = lengths[int(0.9 * (len(lengths) - 1))]
    try:
        budget = once if tokens is None else int(str(parse_amount(tokens)))
    except ValueError:
        raise UsageError(
            f"--tokens '{tokens}' is no amount of tokens", hint="write 300M or 2B"
        ) from None
    # the power of two that holds a long document, from 128 to the base's window (512 where it is
    # unknown)
    length = min(
        1 << (max(long, 128) - 1).bit_length(),
        getattr(config, "max_position_embeddings", None) or 512,
    )
    of_two_windows = math.ceil(200 * length / once) / 100
    held_out = min(_MOST_HELD_OUT, max(_HELD_OUT, of_two_windows))
    batch = max(4, min(384, budget // (_STEPS * length)))
    recipe = _TEMPLATE.format(
        name=name,
        base=json.dumps(base),
        path=json.dumps(corpus.resolve().name),
        field=json.dumps(field),
        root=json.dumps(str(corpus.resolve().parent)),
        long=long,
        length=length,
        held_out=held_out,
        steps=math.ceil(budget / (batch * length)),
        batch=batch,
        once=human(once),
        budget=budget,
        warmup=max(1, budget // 100),
        decay=max(1, budget // 10),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(recipe, "utf-8")
    return path
