"""What seeds until decided have shown, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping

from biobench.comparison.words import ends_of, margin, points_of
from biobench.stats import Look


def decided_sentences(first: str, second: str, look: Look, seeds: Mapping[str, int], *, rope: float) -> tuple[str, ...]:
    """The claim of `run_until_decided`, what it is about, and the seeds spent. rope: a fraction; seeds: by task."""
    interval = look.interval
    ends = "" if interval is None else f" (95% at any time: {ends_of(interval)} points)"
    size = margin(round(100 * abs(look.estimate), 2))
    better, worse = (first, second) if look.estimate > 0 else (second, first)
    if look.decision == "different":
        form = "{better} is better than {worse} on these tasks and test sets, by {size}{ends}."
        claim = form.format(better=better, worse=worse, size=size, ends=ends)
    elif look.decision == "same":
        form = "{first} and {second} are the same within {points} on these tasks and test sets{ends}."
        claim = form.format(first=first, second=second, points=points_of(rope), ends=ends)
    elif look.estimate == 0:
        form = "Not decided: the means of {first} and {second} are equal{ends}."
        claim = form.format(first=first, second=second, ends=ends)
    else:
        claim = f"Not decided: {better} is ahead by {size}{ends}."
    spent = ", ".join(f"{task} {count}" for task, count in seeds.items())
    return claim, f"Seeds of each model: {spent}."
