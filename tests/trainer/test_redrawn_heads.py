"""Runs that redraw a head are twins only where they draw the same one."""

from __future__ import annotations

from typing import Any

from trainer.ledger import Ledger
from trainer.twins import compare


def ledger(init: int, head: str) -> Ledger:
    """A ledger of one phase, made by hand."""
    phase: dict[str, Any] = {
        **dict.fromkeys(("tokens", "steps", "targets", "first_sample", "last_sample"), 1),
        **dict.fromkeys(("epochs", "peak_rate", "final_rate", "flops", "leak", "train_loss"), 1.0),
        **dict.fromkeys(("masking", "frozen_layers", "validation_loss")),
        "name": "a",
        "objective": "mlm",
        "order_hash": "o",
        "schedule": {},
        "head": head,
        "data": "continue",
        "isolate_documents": False,
        "reach": {},
    }
    base = {"source": "m", "revision": None, "architecture": "M", "parameters": 1, "init_hash": "i"}
    corpus = {"manifest_hash": "m", "windows": 1, "tokens": 1, "sources": {}, "excluded_documents": 0}
    return Ledger.model_validate(
        {
            **dict.fromkeys(("sequence_length", "batch_sequences", "step_tokens", "tokens", "steps"), 1),
            **dict.fromkeys(("dropout", "flops", "seconds"), 1.0),
            **dict.fromkeys(("name", "recipe_hash", "precision", "attention", "distributed"), "x"),
            "base": {**base, "tokenizer_hash": "t"},
            "corpus": {**corpus, "exclusion_hash": ""},
            "optimizer": {},
            "world_sizes": (1,),
            "phases": (phase,),
            "packages": {},
            "seeds": {"data": 1, "training": 1, "init": init},
            "finished": "",
            "code_version": "",
        }
    )


def test_other_redrawn_heads_are_no_twins() -> None:
    diff = compare(ledger(1, "reinit"), ledger(2, "reinit"))
    assert not diff.matched
    assert diff.verdict == "not matched: init seed"
    assert compare(ledger(1, "reinit"), ledger(1, "reinit")).matched


def test_the_seed_is_shown_and_free_where_nothing_is_redrawn() -> None:
    diff = compare(ledger(1, "keep"), ledger(2, "keep"))
    assert diff.matched
    assert any(line.startswith("~") and "init seed" in line for line in diff.lines())
