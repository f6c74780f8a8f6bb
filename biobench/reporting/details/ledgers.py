"""What training ledgers say, two side by side. The one place that knows the trainer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from biobench.core.packages import check_ours

if TYPE_CHECKING:
    from trainer.ledger import LedgerDiff

FILE = "ledger.json"


def ledger_table(first: Path, second: Path) -> LedgerDiff:
    """Every quantity of two ledgers, and the verdict in one line. Raises StoreError where one is
    damaged.
    """
    check_ours("trainer")
    from trainer.ledger import compare, read_ledger

    return compare(read_ledger(first), read_ledger(second))
