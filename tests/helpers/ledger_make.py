"""Training ledgers in miniature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from trainer.ledger import Ledger

LEDGER = """
recipe_hash: r
base: {source: base, revision: null, architecture: x, parameters: 1, init_hash: i,
  tokenizer_hash: t}
corpus: {manifest_hash: m, windows: 10, tokens: 2000, sources: {s: 1.0}, excluded_documents: 0,
  exclusion_hash: e}
phases:
  - {name: main, masking: {rate: 0.3, rule: mask}, tokens: 1000, steps: 10, targets: 300,
     first_sample: 0,
     last_sample: 9, order_hash: o, epochs: 0.5, peak_rate: 1.0e-3, final_rate: 0.0,
     schedule: {kind: wsd},
     frozen_layers: null, head: tied, data: main, isolate_documents: true, flops: 1.0e+9, leak: 0.0,
     reach: {global: [-1, -1]}, train_loss: 2.0, validation_loss: null}
sequence_length: 100
batch_sequences: 1
step_tokens: 100
optimizer: {name: adamw}
precision: fp32
dropout: 0.0
attention: sdpa
distributed: none
world_sizes: [1]
tokens: 1000
steps: 10
flops: 1.0e+9
seconds: 1.0
finished: "2026-01-01T00:00:00+00:00"
code_version: "1"
packages: {}
"""


def ledger(name: str, objective: str = "mlm", *, training: int = 1, **changed: Any) -> Ledger:
    """A run's ledger in miniature."""
    fields = yaml.safe_load(LEDGER)
    fields["phases"][0] |= {"objective": objective} | (
        {"masking": None} if objective == "clm" else {}
    )
    seeds = {"data": 1, "init": 1, "training": training}
    return Ledger.model_validate({**fields, "name": name, "seeds": seeds}).model_copy(
        update=changed
    )


def write(path: Path, held: Ledger) -> Path:
    """The ledger as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(held.model_dump_json())
    return path
