"""Which stored runs are new: made by this command, or by another process since this one began."""

from __future__ import annotations

from biobench.runs.plan import Item, RunPlan
from biobench.store import Store


class Freshness:
    """What is known of the plan's stored runs when it is made, so that later ones are told apart; asks no clock."""

    def __init__(self, plan: RunPlan) -> None:
        self._store, self._command = Store(plan.request.results_dir), plan.request.started
        self._before = {i.key: self._store.command_state(i.task.id, i.key) for i in plan.items}

    def __call__(self, item: Item) -> bool:
        """Whether this command made the stored run, or another process has since. Raises StoreError."""
        if self._store.command_state(item.task.id, item.key) != self._before[item.key]:
            return True
        return self._store.command_of(item.task.id, item.key) == self._command
