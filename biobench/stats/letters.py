"""Tie groups as a compact letter display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import combinations_with_replacement

from biobench.stats.types import StatsInputError


def letter_groups(count: int, different: Collection[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Groups of items such that two items share a group exactly when they are not in ``different``.

    count: items, numbered in the order of their rank. Groups come in the order of their best item. Built
    greedily: the first pair not yet together opens a group, which takes in every later or earlier item
    that differs from none of its members; every group is maximal; groups that add nothing are left out.
    (The display is Piepho's, 2004; the construction is not his.)
    """
    apart = set()
    for i, j in different:
        if not (0 <= i < count and 0 <= j < count and i != j):
            raise StatsInputError(f"pair ({i}, {j}) among {count} items", hint="pairs of different item numbers")
        apart |= {(i, j), (j, i)}
    groups: list[tuple[int, ...]] = []
    together: set[tuple[int, int]] = set()
    for i in range(count):
        for j in range(i, count):
            if (i, j) in together or (i, j) in apart:
                continue
            members = [i, j] if i != j else [i]
            # neighbours in rank first, so that a group is a run of the table wherever it can be
            for other in sorted(range(count), key=lambda k, low=i: (abs(k - low), k)):  # type: ignore[misc]
                if other not in members and all((other, member) not in apart for member in members):
                    members.append(other)
            group = tuple(sorted(members))
            groups.append(group)
            together |= {(a, b) for a in group for b in group}
    return sorted(_needed(groups))


def _needed(groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """``groups`` without those whose every pair stands together in another one too, small ones first."""
    times = Counter(pair for group in groups for pair in combinations_with_replacement(group, 2))
    needed = []
    for group in sorted(groups, key=len):
        pairs = list(combinations_with_replacement(group, 2))
        if all(times[pair] > 1 for pair in pairs):
            times.subtract(pairs)
        else:
            needed.append(group)
    return needed


def letters(count: int, different: Collection[tuple[int, int]]) -> tuple[str, ...]:
    """The letters of each item, ``a`` for the best group; after ``z`` come ``aa``, ``ab`` and so on.

    Letters of one item are joined by nothing up to 26 groups, by commas beyond.
    """
    groups = letter_groups(count, different)
    names = [_name(index) for index in range(len(groups))]
    joint = "" if len(groups) <= 26 else ","
    return tuple(
        joint.join(name for name, group in zip(names, groups, strict=True) if item in group) for item in range(count)
    )


def _name(index: int) -> str:
    name = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        name = chr(ord("a") + digit) + name
    return name
