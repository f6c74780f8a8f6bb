"""Who leads a suite on the board's first page: the order of the means, and what `compare` says of the first two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from biobench.comparison.compare import Comparison, compared
from biobench.comparison.evidence import Evidence
from biobench.comparison.pairs import corrected
from biobench.comparison.result import PairResult, Verdict
from biobench.comparison.verdict import headline as pair_headline
from biobench.errors import UsageError
from biobench.report.frame import Report, build
from biobench.report.results import Results
from biobench.report.row import AverageName, Row
from biobench.report.wide import Block, ModelLine, blocks

TESTABLE = ("run", "external", "submitted")
"""Sources whose lines have runs or predictions of ours to test; the others are printed or stand for no model."""
SMALL = 100_000_000
"""Parameters below which a model is named as the best of the small ones."""
SUITES = ("fr", "en", "needle")
"""Those that ship, in the order of the pages; needle runs ask another kind of question and come last."""
MOST = 6
"""Models whose documents are read: the leader and its nearest rivals. The others get no rank."""


@dataclass(frozen=True, slots=True)
class Lead:
    """What the runs of the first models show. comparison: the leader and the runner-up on the tasks that both have, as
    `compare` gives it; pairs: the same, a language each, corrected over the leader's rivals (Holm).

    ranks: name -> possible ranks among the first models, on the tasks that all of these have.
    """

    comparison: Comparison | None = None
    pairs: tuple[PairResult, ...] = ()
    ranks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaders:
    """The lines with a mean, best first, and what is shown of the first of those with runs."""

    lines: tuple[ModelLine, ...]
    lead: Lead

    @property
    def testable(self) -> list[ModelLine]:
        """Those with runs."""
        return [line for line in self.lines if line.source in TESTABLE]

    @property
    def verdict(self) -> Verdict | None:
        """Of the leader against the runner-up; None without one, and where there are several languages."""
        return self.lead.pairs[0].verdict if len(self.lead.pairs) == 1 else None

    @property
    def badges(self) -> list[tuple[str, bool]]:
        """How sure the lead is, on these tasks and on others, and whether it is good news."""
        verdict = self.verdict
        if verdict is None or self.lead.pairs[0].better != self.testable[0].name:
            return [("Not tested", False)] if self.lines else []
        if verdict.guessing:
            return [("Not above guessing", False)]
        badges = [(f"{verdict.here.capitalize()} on these tasks", verdict.leads)]
        if verdict.beyond != "not tested":
            badges.append((f"{verdict.beyond.capitalize()} for other tasks like these", verdict.beyond == "shown"))
        return badges

    @property
    def ranks(self) -> Mapping[tuple[str, str], str]:
        """(name, source) of a line -> its possible ranks: ``2`` or ``1–3``; of printed means the order, in brackets."""
        tested = {(li.name, li.source): self.lead.ranks[li.name] for li in self.testable if li.name in self.lead.ranks}
        printed = [line for line in self.lines if line.source == "published"]
        return tested | {(line.name, line.source): f"({order})" for order, line in enumerate(printed, 1)}


def lead_of(
    results: Results,
    names: Sequence[str],
    average: AverageName,
    *,
    suite: str | None = None,
    tasks: Sequence[str] | None = None,
) -> Lead:
    """The first of `names`, which stand best first, against the next ones.

    A model that `compare` refuses beside the leader (runs under other conditions) is no rival.
    """
    if not names:
        return Lead()
    evidence = Evidence()

    def asked(who: Sequence[str]) -> Comparison | None:
        try:
            return compared(results, who, average, suite=suite, tasks=tasks, evidence=evidence)
        except UsageError:
            return None

    first, *others = names[:MOST]
    together = asked(names[:MOST]) if others else None
    ranks: dict[str, str] = {}
    if together is not None and len(together.parts) == 1:
        ranks = {s.model: s.shown_ranks for s in together.standings}
    against = [one for other in others if (one := asked((first, other))) is not None]
    if not against:
        return Lead(ranks=ranks)
    languages = [part.language for part in against[0].parts]
    pairs = tuple(
        corrected([pair for one in against for pair in one.pairs if pair.language == language], against[0].alpha)[0]
        for language in languages
    )
    return Lead(against[0], pairs, ranks)


def headline(standing: Leaders, named: Callable[[str], str], number: Callable[[float], str]) -> list[str]:
    """Who leads; what is shown of it; the best of the small ones. named: a model's name as it is shown."""
    rivals = standing.testable
    if not standing.lines:
        return ["No model has a score on every task asked for, so none leads."]
    first = (rivals or standing.lines)[0]
    mean, verdict = number(100 * mean_of(first).mean), standing.verdict
    if not rivals:
        return [
            f"Of the printed scores, {named(first.name)} has the highest mean: {mean}.",
            "Printed means come without spread, so their order is not tested.",
        ]
    leads = verdict is not None and verdict.leads and standing.lead.pairs[0].better == first.name
    sentences = [f"{named(first.name)} {'leads with' if leads else 'has the highest mean:'} {mean}."]
    if standing.lead.comparison is not None:
        for pair in standing.lead.pairs:
            shown = pair_headline(standing.lead.comparison, pair)
            for name in sorted({pair.first, pair.second}, key=len, reverse=True):
                shown = shown.replace(name, named(name))
            sentences.append(shown)
    else:
        sentences.append("No other model here has runs on these tasks under the same protocol.")
    small = next((line for line in rivals if 0 < (mean_of(line).parameters or 0) < SMALL), None)
    if small is not None and small is not first:
        mean = number(100 * mean_of(small).mean)
        sentences.append(f"Best below 100 million parameters: {named(small.name)} with {mean}.")
    return sentences


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
        if len(block.columns) == 1 and line.cells and line.source not in ("baseline", "oracle")
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


def tasks_shown(report: Report) -> tuple[str, ...]:
    """The tasks that the means of a report without a filter are over, where no line with runs has the whole suite."""
    if len(report.columns) < 2 or any(row.source in TESTABLE for row in report.averages):
        return ()
    return shared_tasks(report.rows, {info.id for info in report.columns if not info.in_suite})


def placeable(lines: Sequence[ModelLine]) -> tuple[str, ...]:
    """Names of the lines with runs, best first; where one's own and a submission share one, `compare` knows neither."""
    names = [line.name for line in lines if line.source in TESTABLE]
    return tuple(name for name in names if names.count(name) == 1)


def suite_order(results: Results) -> list[str]:
    """The suites in the order of the pages: those with runs first, and of these the one with the most of its tasks run.

    Needle stands behind the two languages.
    """
    ran: dict[str, set[str]] = {}
    whole: dict[str, set[str]] = {}
    for group in results.groups:
        ran.setdefault(results.infos[group.task].suite, set()).add(group.task)
    for info in results.infos.values():
        if info.in_suite:
            whole.setdefault(info.suite, set()).add(info.id)

    def order(suite: str) -> tuple[bool, bool, float, int, str]:
        tasks = whole.get(suite, set())
        share = len(ran.get(suite, set()) & tasks) / len(tasks) if tasks else 0.0
        rank = SUITES.index(suite) if suite in SUITES else len(SUITES)
        return suite not in ran, suite == SUITES[-1], -share, rank, suite

    return sorted({*whole, *ran}, key=order)


def suite_block(results: Results, average: AverageName, suite: str) -> Block:
    """A suite without filters."""
    report = build(results, average, suites=[suite])
    shared = tasks_shown(report)
    ranked = replace(report, averages=means_over(results, report, shared)) if shared else report
    first = next((block for block in blocks(ranked) if block.suite == suite), None)
    return first or Block(suite, suite, (), ())


def first_pair(results: Results, average: AverageName) -> tuple[str, tuple[str, ...]]:
    """The first suite whose page names a first and a second model, and these two; runs before printed scores.

    An empty suite and no names where there are none.
    """
    printed: tuple[str, tuple[str, ...]] = "", ()
    for suite in suite_order(results):
        lines = with_mean(suite_block(results, average, suite))
        ran, read = (
            tuple(dict.fromkeys(line.name for line in lines if line.source in sources))[:2]
            for sources in (TESTABLE, ("published",))
        )
        if len(ran) > 1:
            return suite, ran
        if len(read) > 1 and not printed[1]:
            printed = suite, read
    return printed
