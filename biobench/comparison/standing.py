"""Who leads a suite, who shares the place, and in which words: of the app's first page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from biobench.comparison.placing import Placing, holds_elsewhere, place
from biobench.report.rows import AverageName, Report, Row
from biobench.report.table import Results, build
from biobench.report.wide import Block, ModelLine, blocks

TESTABLE = ("run", "outside", "submitted")
"""Sources whose lines have runs or predictions of ours to test; the others are printed or stand for no model."""
SMALL = 100_000_000
"""Parameters below which a model is named as the best of the small ones."""
MOST_NAMED = 3
SUITES = ("fr", "en", "needle")
"""Those that ship, in the order of the pages; needle runs ask another kind of question and come last."""
WORDS: dict[str, str] = {
    "leads": "{} leads with {}.",
    "leads_printed": "Of the printed scores, {} has the highest mean: {}.",
    "no_leader": "No model has a score on every task asked for, so none leads.",
    "alone": "No other model here has runs on all of these tasks.",
    "unknown_spread": "It has too few seeds to say whether the lead would hold with others.",
    "shares": "Not told apart from it with other seeds: {}.",
    "and_more": " and {} more",
    "clearly": "On these tasks its lead over every other model with runs is larger than seeds explain.",
    "printed_unsure": "Printed means come without seeds, so nothing says how sure their order is.",
    "badge_sure": "Sure on these tasks",
    "badge_shared": "Not sure: the place is shared",
    "badge_unknown": "Not known whether it is sure",
    "badge_elsewhere": "Shown for other tasks like these",
    "badge_here_alone": "Not shown for other tasks",
    "in_percent": "{}, in percent.",
    "mean_over": "{}, in percent: mean over {} tasks.",
    "mean_of_one": "{}, in percent, on one task.",
    "best_small": "Best below 100 million parameters: {} with {}.",
}
"""Sentences and badges of page one."""


@dataclass(frozen=True, slots=True)
class Leaders:
    """The lines with a mean, best first, and where those with runs may stand (by their line name)."""

    lines: tuple[ModelLine, ...]
    placed: Mapping[str, Placing]
    elsewhere: bool | None = None
    """Whether the lead of the first of those with runs is shown for other tasks (`holds_elsewhere`)."""

    @property
    def badges(self) -> list[tuple[str, bool]]:
        """How sure the lead is, on these tasks and on others: keys of `WORDS`, and whether it is good news."""
        if not self.lines:
            return []
        first = self.testable[0] if self.testable else None
        placing = None if first is None else self.placed.get(first.name)
        if first is None or placing is None or mean_of(first).low is None:
            return [("badge_unknown", False)]
        badges = [("badge_shared", False) if placing.alike else ("badge_sure", True)]
        if self.elsewhere is not None:
            badges.append(("badge_elsewhere", True) if self.elsewhere else ("badge_here_alone", False))
        return badges

    @property
    def testable(self) -> list[ModelLine]:
        """Those with runs."""
        return [line for line in self.lines if line.source in TESTABLE]

    @property
    def ranks(self) -> Mapping[tuple[str, str], str]:
        """(name, source) of a line -> its rank: ``2`` or ``1–3``; of printed means their order, in brackets."""
        ranks = {
            (line.name, line.source): _words_of(self.placed[line.name])
            for line in self.testable
            if line.name in self.placed
        }
        printed = [line for line in self.lines if line.source == "published"]
        return ranks | {(line.name, line.source): f"({order})" for order, line in enumerate(printed, 1)}


def _words_of(placing: Placing) -> str:
    return str(placing.best) if placing.best == placing.worst else f"{placing.best}–{placing.worst}"


def mean_of(line: ModelLine) -> Row:
    """The line's mean, which it must have."""
    assert line.average is not None
    return line.average


def with_mean(block: Block) -> tuple[ModelLine, ...]:
    """The lines with a mean (over the suite or the tasks picked; the score where there is one task), best first.

    A score of a part of the test documents is no mean.
    """
    lines = [
        replace(line, average=next(iter(line.cells.values())))
        if len(block.columns) == 1 and line.cells and line.source not in ("floor", "ceiling")
        else line
        for line in block.lines
    ]
    has_mean = (line for line in lines if line.average is not None and not line.average.partial)
    # a probe on a frozen encoder is another question: below the encoders that were trained
    return tuple(sorted(has_mean, key=lambda line: (line.source == "frozen", -mean_of(line).mean)))


def shared_tasks(rows: Sequence[Row], outside: Collection[str] = ()) -> tuple[str, ...]:
    """Of the lines with runs, the tasks that most have: where no model has a whole suite, these can still be ranked.

    Among the sets of tasks of a line or of two, the one with the most scores, tasks times the lines that have all of
    them, and then the most lines; sorted. Empty where no two lines share a task. outside: tasks that count in no suite
    (those of the demo); they are taken where no two lines share another, and never beside others.
    """
    if outside:
        inside = shared_tasks([row for row in rows if row.task not in outside])
        return inside or shared_tasks([row for row in rows if row.task in outside])
    lines: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        if row.source in TESTABLE and not row.partial:
            lines.setdefault(row.line, set()).add(row.task)
    alone = {frozenset(tasks) for tasks in lines.values()}
    best: tuple[int, int, list[str]] = (0, 0, [])
    for tasks in alone | {a & b for a in alone for b in alone}:
        count = sum(tasks <= have for have in lines.values())
        if tasks and count > 1:
            best = max(best, (count * len(tasks), count, sorted(tasks)))
    return tuple(best[2])


def means_over(results: Results, report: Report, shared: Sequence[str]) -> tuple[Row, ...]:
    """Of the lines of a report, the means over these tasks alone, where a line has them all; in a suite or not."""
    lines = {row.line for row in report.rows}
    infos = {task: replace(info, in_suite=info.in_suite or task in shared) for task, info in results.infos.items()}
    counting = replace(results, infos=infos)
    means = build(counting, report.average, tasks=shared, suites=report.suites, incomplete=True).averages
    return tuple(row for row in means if row.tasks == len(shared) and row.line in lines)


def outside_suite(report: Report) -> frozenset[str]:
    """The tasks of a report that count in no suite."""
    return frozenset(info.id for info in report.columns if not info.in_suite)


def lacks_leader(report: Report) -> bool:
    """Whether no line with runs has a mean over several tasks, so that `shared_tasks` must do."""
    return len(report.columns) > 1 and not any(row.source in TESTABLE for row in report.averages)


def part_of(block: Block, shared: Sequence[str], count: int) -> tuple[str, ...]:
    """The tasks that the means are over where these are not all `count` of the suite, for the page to say so."""
    if len(shared) == count:
        return ()
    return tuple(shared) or (tuple(c.id for c in block.columns) if len(block.columns) == 1 < count else ())


def scope_of(standing: Leaders, block: Block, part: Sequence[str], count: int) -> str | None:
    """The key of the sentence on what the means are over, or why there are none; None where all is as it should be.

    part: as `part_of` gives. count: of the suite's tasks; of all columns where there is no such suite. The sentence
    takes the size of the part, the count and the tasks' names.
    """
    if not standing.testable and any(row.partial for line in block.lines for row in line.cells.values()):
        return "only_partial"
    if not part:
        return None
    outside = not any(c.in_suite for c in block.columns if c.id in part)
    return "outside_tasks" if outside and count != len(block.columns) else "shared_tasks"


def placeable(lines: Sequence[ModelLine]) -> tuple[str, ...]:
    """Names of the lines with runs, best first; where one's own and a submission share one, `compare` knows neither."""
    names = [line.name for line in lines if line.source in TESTABLE]
    return tuple(name for name in names if names.count(name) == 1)


def suite_standing(
    results: Results,
    block: Block,
    average: AverageName,
    tasks: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
) -> Leaders:
    """tasks: those picked, none for the whole suite; weights: as of `place`."""
    lines = with_mean(block)
    names = placeable(lines)
    asked = [block.columns[0].id] if len(block.columns) == 1 else list(tasks)
    placed = {}
    if len(names) > 1:
        placed = dict(place(results, names, average, suite=block.suite, tasks=asked or None, weights=weights))
    return Leaders(lines, placed, lead_elsewhere(results, block.suite, average, placed, asked, weights))


def lead_elsewhere(
    results: Results,
    suite: str,
    average: AverageName,
    placed: Mapping[str, Placing],
    tasks: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
) -> bool | None:
    """Whether the lead of the first of those placed is shown for other tasks; None where weights are the reader's."""
    if weights is not None or len(placed) < 2:
        return None
    first, *others = placed
    return holds_elsewhere(results, first, others, average, suite=suite, tasks=tasks or None)


def suite_order(results: Results) -> list[str]:
    """The suites in the order of the pages: those with runs first, and of these the one with the most of its tasks run.

    Needle stands behind the two languages.
    """
    ran: dict[str, set[str]] = {}
    for group in results.groups:
        ran.setdefault(results.infos[group.task].suite, set()).add(group.task)
    whole: dict[str, set[str]] = {}
    for info in results.infos.values():
        if info.in_suite:
            whole.setdefault(info.suite, set()).add(info.id)

    def order(suite: str) -> tuple[bool, bool, float, int, str]:
        tasks = whole.get(suite, set())
        share = len(ran.get(suite, set()) & tasks) / len(tasks) if tasks else 0.0
        rank = SUITES.index(suite) if suite in SUITES else len(SUITES)
        return suite not in ran, suite == SUITES[-1], -share, rank, suite

    return sorted({*whole, *ran}, key=order)


def suite_block(results: Results, average: AverageName, suite: str) -> tuple[Block, tuple[str, ...]]:
    """A suite without filters, and the tasks that its means are over where no model has them all (`shared_tasks`)."""
    report = build(results, average, suites=[suite])
    shared = shared_tasks(report.rows, outside_suite(report)) if lacks_leader(report) else ()
    ranked = replace(report, averages=means_over(results, report, shared)) if shared else report
    first = next((block for block in blocks(ranked) if block.suite == suite), None)
    return first or Block(suite, suite, (), ()), shared


def first_pair(results: Results, average: AverageName) -> tuple[str, tuple[str, ...]]:
    """The first suite whose page names a first and a second model, and these two; runs before printed scores.

    An empty suite and no names where there are none.
    """
    printed: tuple[str, tuple[str, ...]] = "", ()
    for suite in suite_order(results):
        lines = with_mean(suite_block(results, average, suite)[0])
        ran, read = (
            tuple(dict.fromkeys(line.name for line in lines if line.source in sources))[:2]
            for sources in (TESTABLE, ("published",))
        )
        if len(ran) > 1:
            return suite, ran
        if len(read) > 1 and not printed[1]:
            printed = suite, read
    return printed


def what_means_are(standing: Leaders, average: AverageName, words: Mapping[str, str], *, counted: bool = False) -> str:
    """The score and over how many tasks, in a sentence; empty where nothing has a mean.

    counted: the sentence of `scope_of` beside it tells the tasks.
    """
    if not standing.lines:
        return ""
    if counted:
        return words["in_percent"].format(words[average])
    tasks = mean_of((standing.testable or standing.lines)[0]).tasks
    return words["mean_of_one" if tasks == 1 else "mean_over"].format(words[average], tasks)


def headline(
    standing: Leaders, words: Mapping[str, str], named: Callable[[ModelLine], str], number: Callable[[float], str]
) -> list[str]:
    """Who leads; who shares the place, or how sure the lead is; the best of the small ones. A sentence each.

    words: those of `WORDS`. named: a line's name; number: a percentage; both as they are shown.
    """
    rivals = standing.testable
    if not standing.lines:
        return [words["no_leader"]]
    first = (rivals or standing.lines)[0]
    sentences = [words["leads" if rivals else "leads_printed"].format(named(first), number(100 * mean_of(first).mean))]
    placing = standing.placed.get(first.name)
    if rivals and placing is None:
        sentences.append(words["alone"])
    elif placing is not None and mean_of(first).low is None:
        sentences.append(words["unknown_spread"])
    elif placing is not None and placing.alike:
        lines = {line.name: line for line in rivals}
        names = ", ".join(named(lines[name]) for name in placing.alike[:MOST_NAMED])
        more = len(placing.alike) - MOST_NAMED
        sentences.append(words["shares"].format(names + (words["and_more"].format(more) if more > 0 else "")))
    elif placing is not None:
        sentences.append(words["clearly"])
    elif not rivals:
        sentences.append(words["printed_unsure"])
    small = next((line for line in rivals if 0 < (mean_of(line).parameters or 0) < SMALL), None)
    if small is not None and small is not first:
        sentences.append(words["best_small"].format(named(small), number(100 * mean_of(small).mean)))
    return sentences
