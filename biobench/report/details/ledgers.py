"""What training ledgers say: one as a table of facts, two side by side. The one place that knows the trainer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.packages import check_ours
from biobench.errors import StoreError

if TYPE_CHECKING:
    from trainer.ledger import PhaseRecord

FILE = "ledger.json"


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """Two ledgers side by side. rows: (quantity, first, second, whether twins must agree on it)."""

    verdict: str
    matched: bool
    rows: tuple[tuple[str, str, str, bool], ...]


def ledger_table(first: Path, second: Path) -> LedgerTable:
    """Every quantity of two ledgers, and the verdict in one line. Raises StoreError where one is damaged."""
    check_ours("trainer")
    from trainer.ledger import compare, read_ledger

    try:
        diff = compare(read_ledger(first), read_ledger(second))
    except KeyError as error:
        raise StoreError(
            f"a ledger names no {error} seed", hint="export the run again with --resume", file=first
        ) from error
    return LedgerTable(diff.verdict, diff.matched, tuple((r.name, r.first, r.second, r.binding) for r in diff.rows))


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """One ledger. facts: (quantity, value) of the run; phases: the same of each phase, quantities in one order."""

    name: str
    facts: tuple[tuple[str, str], ...]
    phases: tuple[tuple[tuple[str, str], ...], ...]


def ledger_facts(file: Path) -> LedgerFacts:
    """What a model was trained on, in words and numbers. Raises StoreError where the ledger is damaged."""
    check_ours("trainer")
    from trainer.ledger import read_ledger

    ledger = read_ledger(file)
    seeds = ", ".join(f"{name} {seed}" for name, seed in sorted(ledger.seeds.items()))
    sources = ", ".join(f"{name} {share:.1%}" for name, share in ledger.corpus.sources.items())
    facts = (
        ("run", ledger.name),
        ("start", ledger.base.source + (f"@{ledger.base.revision}" if ledger.base.revision else "")),
        ("corpus", f"{ledger.corpus.manifest_hash[:16]} ({ledger.corpus.tokens:,} tokens; {sources})"),
        ("benchmark documents to be kept out", f"{ledger.corpus.excluded_documents:,}"),
        ("documents removed for it", "–" if (n := ledger.corpus.removed_documents) is None else f"{n:,}"),
        ("tasks not guarded", "–" if ledger.corpus.unguarded is None else ", ".join(ledger.corpus.unguarded) or "none"),
        ("tokens", f"{ledger.tokens:,}"),
        ("steps", f"{ledger.steps:,} of {ledger.step_tokens:,} tokens"),
        ("window tokens", f"{ledger.sequence_length:,}"),
        ("seeds", seeds),
        ("precision", ledger.precision),
        ("FLOPs", f"{ledger.flops:.2e}"),
        ("hours", f"{ledger.seconds / 3600:.2f}"),
        ("finished", ledger.finished),
        ("made with", f"BioBench {ledger.code_version}"),
    )
    return LedgerFacts(ledger.name, facts, tuple(_phase(phase) for phase in ledger.phases))


def _phase(phase: PhaseRecord) -> tuple[tuple[str, str], ...]:
    masking = "–" if phase.masking is None else f"{phase.masking.get('rate', '–')}"
    return (
        ("phase", phase.name),
        ("objective", phase.objective),
        ("masking rate", masking),
        ("tokens", f"{phase.tokens:,}"),
        ("epochs", f"{phase.epochs:.2f}"),
        ("peak rate", f"{phase.peak_rate:.3g}"),
        ("final rate", f"{phase.final_rate:.3g}"),
        ("frozen layers", phase.frozen_layers or "–"),
        ("training loss", f"{phase.train_loss:.4f}"),
        ("validation loss", "–" if phase.validation_loss is None else f"{phase.validation_loss:.4f}"),
    )
