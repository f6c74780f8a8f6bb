"""What training ledgers say: one as a table of facts, two side by side. The one place that knows the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.packages import check_ours

if TYPE_CHECKING:
    from trainer.ledger import LedgerDiff

FILE = "ledger.json"


def ledger_table(first: Path, second: Path) -> LedgerDiff:
    """Every quantity of two ledgers, and the verdict in one line. Raises StoreError where one is damaged."""
    check_ours("trainer")
    from trainer.ledger import compare, read_ledger

    return compare(read_ledger(first), read_ledger(second))


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """One ledger. facts: (quantity, value) of the run; phases: the same of each phase, quantities in one order."""

    facts: tuple[tuple[str, str], ...]
    phases: tuple[tuple[tuple[str, str], ...], ...]


def ledger_facts(file: Path) -> LedgerFacts:
    """What a model was trained on, in words and numbers. Raises StoreError where the ledger is damaged."""
    check_ours("trainer")
    from trainer.ledger import read_ledger

    ledger = read_ledger(file)
    corpus = ledger.corpus
    sources = ", ".join(f"{name} {share:.1%}" for name, share in corpus.sources.items())
    facts = (
        ("run", ledger.name),
        ("start", ledger.base.source + (f"@{ledger.base.revision}" if ledger.base.revision else "")),
        ("corpus", f"{corpus.manifest_hash[:16]} ({corpus.tokens:,} tokens; {sources})"),
        ("benchmark documents to exclude", f"{corpus.excluded_documents:,}"),
        ("documents removed for it", "–" if corpus.removed_documents is None else f"{corpus.removed_documents:,}"),
        ("tasks not guarded", "–" if corpus.unguarded is None else ", ".join(corpus.unguarded) or "none"),
        ("tokens", f"{ledger.tokens:,}"),
        ("steps", f"{ledger.steps:,} of {ledger.step_tokens:,} tokens"),
        ("window tokens", f"{ledger.sequence_length:,}"),
        ("seeds", ", ".join(f"{name} {seed}" for name, seed in sorted(ledger.seeds.items()))),
        ("precision", ledger.precision),
        ("FLOPs", f"{ledger.flops:.2e}"),
        ("hours", f"{ledger.seconds / 3600:.2f}"),
        ("finished", ledger.finished),
        ("made with", f"BioBench {ledger.code_version}"),
    )
    phases = tuple(
        (
            ("phase", p.name),
            ("objective", p.objective),
            ("masking rate", "–" if p.masking is None else f"{p.masking.get('rate', '–')}"),
            ("tokens", f"{p.tokens:,}"),
            ("epochs", f"{p.epochs:.2f}"),
            ("peak rate", f"{p.peak_rate:.3g}"),
            ("final rate", f"{p.final_rate:.3g}"),
            ("frozen layers", p.frozen_layers or "–"),
            ("training loss", f"{p.train_loss:.4f}"),
            ("validation loss", "–" if p.validation_loss is None else f"{p.validation_loss:.4f}"),
        )
        for p in ledger.phases
    )
    return LedgerFacts(facts, phases)
