"""What stands below the table of a run: the means over seeds, where the results lie, and what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from biobench.cli.console.common import percent

if TYPE_CHECKING:
    from biobench.runs import RunResult

BY_FILES = (
    "claims: this file system has no locks, so a run is claimed by a file with a heartbeat, stale after 3 minutes "
    "(docs/cluster.md)"
)
KEPT = "Stopped. What is done is kept and what was begun resumes from its last state: give the same command again."


def end_of_run(results: Sequence[RunResult], results_dir: str) -> Iterator[str]:
    """The lines below the table, none where nothing was scored or planned."""
    yield from expected_time(results)
    scored = [r for r in results if r.status in ("done", "skipped") and r.scores]
    if not scored:
        return
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for r in scored:
        groups.setdefault((r.model, r.task), []).append(r)
    for (model, task), members in groups.items():
        if len(members) > 1:
            yield f"{model} on {task}: {_mean(members)}"
    if any(r.truncated_documents for r in scored):
        yield "cut: test documents longer than the model's window; what lies beyond it is not read"
    if any(r.lost_gold for r in scored):
        yield "lost: gold beyond the window; it counts as missed"
    folder = "" if results_dir == "results" else f" --results-dir {shlex.quote(results_dir)}"
    models = list(dict.fromkeys(r.model for r in scored))
    following = f"biobench report{folder}"
    if len(models) > 1:
        following += f"`, `biobench compare {' '.join(map(shlex.quote, models[:2]))}{folder}"
    yield f"Results: {results_dir}. Next: `{following}`"


def expected_time(results: Sequence[RunResult]) -> Iterator[str]:
    """The line of a dry run on how long it would take, one run after the other."""
    from biobench.core.progress import in_words

    planned = [r for r in results if r.status == "planned"]
    if not planned:
        return
    for task in dict.fromkeys(r.task for r in planned if r.fold is not None):
        splits = len({r.fold for r in results if r.task == task})
        yield f"{task}: {splits} splits of one corpus, a training each, which together are one result of a model"
    disk = max((r.disk_expected or 0 for r in planned), default=0)
    if disk:
        yield f"disk: up to {_bytes(disk)} for the state of a run of over 5 min, removed at its end"
    known = [r.seconds_expected for r in planned if r.seconds_expected is not None]
    if not known:
        yield f"{len(planned)} runs to make; how long they take is told after the first one on this device"
        return
    rest = len(planned) - len(known)
    more = f", {rest} more of unknown length" if rest else ""
    yield f"{len(planned)} runs to make: about {in_words(sum(known))}, judged by stored runs on this device{more}"


def _bytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{max(1, round(number / 1e6))} MB"


def _mean(members: Sequence[RunResult]) -> str:
    """The primary score's mean over seeds, with half its 95% t interval where the seeds differ."""
    from biobench.stats import seed_interval

    metric = members[0].primary
    if members[0].fold is not None:
        mean = sum(r.scores[metric] for r in members) / len(members)
        return f"{metric} {percent(mean)} over {len(members)} splits; `biobench report` has its interval"
    summary = seed_interval([r.scores[metric] for r in members])
    margin = "" if summary.interval is None else f" ± {percent(float(summary.interval.high) - summary.mean)}"
    return f"{metric} {percent(summary.mean)}{margin} over {len(members)} seeds"
