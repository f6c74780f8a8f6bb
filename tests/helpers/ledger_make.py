"""Training ledgers in miniature."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainer.ledger import Ledger, LedgerBase, LedgerCorpus, PhaseRecord


def ledger(name: str, objective: str = "mlm", *, training: int = 1, **changed: Any) -> Ledger:
    """A run's ledger in miniature."""
    phase = PhaseRecord(
        name="main",
        objective=objective,
        masking=None if objective == "clm" else {"rate": 0.3},
        tokens=1000,
        steps=10,
        targets=300,
        first_sample=0,
        last_sample=9,
        order_hash="o",
        epochs=0.5,
        peak_rate=1e-3,
        final_rate=0.0,
        schedule={"kind": "wsd"},
        frozen_layers=None,
        head="tied",
        data="main",
        isolate_documents=True,
        flops=1e9,
        leak=0.0,
        reach={"global": (-1, -1)},
        train_loss=2.0,
        validation_loss=None,
    )
    return Ledger(
        name=name,
        recipe_hash="r",
        base=LedgerBase(
            source="base", revision=None, architecture="x", parameters=1, init_hash="i", tokenizer_hash="t"
        ),
        corpus=LedgerCorpus(
            manifest_hash="m",
            windows=10,
            tokens=2000,
            sources={"s": 1.0},
            excluded_documents=0,
            exclusion_hash="e",
        ),
        sequence_length=100,
        batch_sequences=1,
        step_tokens=100,
        optimizer={"name": "adamw"},
        precision="fp32",
        dropout=0.0,
        attention="sdpa",
        distributed="none",
        world_sizes=(1,),
        seeds={"data": 1, "init": 1, "training": training},
        phases=(phase,),
        tokens=1000,
        steps=10,
        flops=1e9,
        seconds=1.0,
        finished="2026-01-01T00:00:00+00:00",
        code_version="1",
        packages={},
    ).model_copy(update=changed)


def write(path: Path, held: Ledger) -> Path:
    """The ledger as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(held.model_dump_json())
    return path
