"""A dry run as a table: a line for the seeds of a model on a task, with what they cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from biobench.runs import RunResult

_ADDRESSES = re.compile(r" \(from https?://[^)]*\)")


def plan_table(results: Sequence[RunResult]) -> Table:
    """model, task, seeds, status, steps and tokens of a run, time of all; settings where they are not the spec's.

    Steps, tokens and time are of runs that are still to be made, dashes where they are not known.
    """
    from rich.table import Table
    from rich.text import Text

    groups: dict[tuple[str, str, str, str], list[RunResult]] = {}
    for r in results:
        groups.setdefault((r.model, r.task, r.status, settings_of(r)), []).append(r)
    settings = any(key[-1] for key in groups)
    table = Table(box=None, pad_edge=False)
    for name in ("model", "task", "seeds", "status"):
        table.add_column(name, overflow="fold")
    for name in ("steps", "tokens", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    if settings:
        table.add_column("settings", overflow="fold")
    for (model, task, status, words), members in groups.items():
        cells = [
            seeds_in_words([r.seed for r in members if r.seed is not None]),
            status,
            _steps(members),
            _tokens(members),
        ]
        table.add_row(Text(model), task, *cells, _time(members), *([Text(words)] if settings else []))
    return table


def settings_of(result: RunResult) -> str:
    """In what a run departs from its spec, in words; empty where in nothing."""
    parts = [] if result.track == "fixed" else [f"track {result.track}"]
    parts += [] if result.limit is None else [f"limit {result.limit}"]
    parts += [] if result.split == "test" else ["no test"]
    from biobench.schema.protocols import FROZEN, protocol_named_by

    named = protocol_named_by(result.overrides)
    if named is not None:
        return ", ".join([*parts, f"{named} protocol"])
    return ", ".join([*parts, *(text for text in result.overrides if result.track != "frozen" or text not in FROZEN)])


def seeds_in_words(seeds: Sequence[int]) -> str:
    """``42-46`` for a run of numbers, else with commas: ``42, 44-46``."""
    parts: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def without_addresses(reason: str) -> str:
    """The reason without the files' addresses, which `biobench data status` has."""
    return _ADDRESSES.sub("", reason)


def _steps(members: Sequence[RunResult]) -> str:
    known = {r.steps_expected for r in members if r.steps_expected is not None}
    return "–" if not known else f"{max(known):,}"


def _tokens(members: Sequence[RunResult]) -> str:
    """Two digits, in thousands or millions."""
    known = max((r.tokens_expected for r in members if r.tokens_expected is not None), default=None)
    if known is None:
        return "–"
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if known >= size:
            number = known / size
            return f"{number:.1f} {letter}" if number < 10 else f"{number:.0f} {letter}"
    return str(known)


def _time(members: Sequence[RunResult]) -> str:
    from biobench.core.progress import in_words

    known = [r.seconds_expected for r in members if r.seconds_expected is not None]
    return in_words(sum(known)) if known and len(known) == len(members) else "–"
