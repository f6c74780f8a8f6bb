"""Models compared: paired task by task, tested over the suite, corrected for the number of pairs.

`compared` has the numbers, `verdict` and `compare_render` the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from biobench.comparison.contest import Contest, contest
from biobench.comparison.declared import suite_standing
from biobench.comparison.evidence import Evidence
from biobench.comparison.measure import FEWEST_RANKED, Options, duel_of, failed_in, grouped_notes, measured, ranks_of
from biobench.comparison.plan import load_plan
from biobench.comparison.render import to_json, to_text
from biobench.comparison.result import Compared, TaskLine
from biobench.comparison.twins import compare_ledgers, find_ledgers
from biobench.comparison.verdict import verdict
from biobench.data.catalog import load_task
from biobench.data.suite import load_suite
from biobench.errors import UsageError
from biobench.report.entrants import find_entrants
from biobench.report.floors import no_skill
from biobench.report.rows import AverageName
from biobench.report.suite import suite_results
from biobench.report.table import load
from biobench.schema.suite import Member
from biobench.store.floors import scan_floors

#: A difference in F1 that is worth finding unless told otherwise: one point.
WANTED = 0.01
#: Pairs for which test-set noise is computed task by task; with more, the pairs have the suite test alone.
MOST_DETAILED = 15


class Comparison(Compared):
    """What `compare` gives: the numbers, and how they read."""

    __slots__ = ()

    @property
    def verdict(self) -> tuple[str, ...]:
        """Plain sentences, the most important first."""
        return verdict(self)

    def text(self, width: int | None = None) -> str:
        """The verdict, then the tables; differences in points (percent). width: in columns; None: as wide as it is."""
        return to_text(self, width)

    def as_json(self) -> dict[str, Any]:
        """Plain data, numbers as fractions, nothing that is not JSON."""
        return to_json(self)


def compare(
    models: str | Path | Sequence[str | Path],
    *others: str | Path,
    results_dir: str | Path = "results",
    data_dir: str | Path | None = None,
    suite: str | None = None,
    tasks: str | Sequence[str] | None = None,
    average: AverageName | None = None,
    rope: float = 0.0,
    alpha: float = 0.05,
    wanted: float = WANTED,
    ledgers: Mapping[str, str | Path] | None = None,
    documents: bool = True,
    against_first: bool = False,
    pooled: bool = False,
    plan: str | Path | None = None,
) -> Comparison:
    """Compare two models or more on the tasks that all of them have.

    models: names as in the report, folders, or published models. suite, tasks (ids or YAML paths): keep only
    these; a declared suite (blurb, a YAML file) brings its own scores, and its own mean beside; the path of a spec
    of one's own also finds gold under an agreement in `data_dir`. average: macro, micro,
    weighted or paper; by default macro, or paper where a model is known from a publication alone. rope:
    differences up to this (a fraction) count as ties in win/tie/loss. alpha: of the corrected tests; intervals
    have level 1 - alpha. wanted: the difference to compute the needed seeds for. ledgers: model -> training
    ledger, besides those found in the models' folders. documents: read the stored predictions for test-set noise.
    against_first: test the first model against each other one only. pooled: one verdict over several languages;
    otherwise each has its own. plan: YAML file that declares pairs, average, suite, seeds and alpha; what
    it says replaces the options here, and pairs of other models are marked as exploratory.
    Raises UsageError where a name is unknown, where the runs may not be compared or nothing is shared, and
    StoreError for a damaged ledger. Damaged records become findings.
    """
    requested = [str(m) for m in (*([models] if isinstance(models, str | Path) else models), *others)]
    declared = None if plan is None else load_plan(plan)
    if declared is not None:
        requested = [*requested, *(m for m in declared.models if m not in requested)]
        average, suite, alpha = declared.average or average, declared.suite or suite, declared.alpha
        rope, pooled = declared.rope_fraction, declared.pooled
    _check(requested, rope, alpha, wanted)
    results = load(results_dir)
    terms = None if suite is None else load_suite(suite)
    members: dict[str, Member] = {}
    if terms is not None and suite is not None:
        if average not in (None, "paper"):
            raise UsageError(
                f"--suite {suite} compares each task by the score that it declares, not by {average}",
                hint="leave --average out",
            )
        results, members = suite_results(results, terms, suite)
        average, suite = "paper", "all"
    floors, damaged = scan_floors(results_dir)
    entrants = find_entrants(requested, results, floors)
    twins = compare_ledgers(find_ledgers(requested, entrants, ledgers))
    named = [tasks] if isinstance(tasks, str) else list(tasks or ())
    specs = {t: load_task(t) for t in named if t.endswith((".yaml", ".yml"))}
    chosen = [specs[t].id if t in specs else t for t in named]
    whole = contest(entrants, results, average, suite=suite, tasks=chosen or None)
    labels = [e.label for e in entrants]
    everyone = range(len(entrants))
    pairs = [(0, b) for b in everyone[1:]] if against_first else list(combinations(everyone, 2))
    planned = None if declared is None else declared.marks([(labels[a], labels[b]) for a, b in pairs])
    detailed = len(pairs) <= MOST_DETAILED
    paths = {spec.id: spec.path for spec in specs.values()}
    source = Evidence(None if data_dir is None else Path(data_dir), paths) if documents else None
    options = Options(rope, alpha, wanted, pooled)
    lines: dict[tuple[str, str, str], TaskLine] = {}

    def compared(part: Contest, parts: tuple[Compared, ...] = ()) -> Comparison:
        # what one pair shows does not depend on the others: each is tested on the seeds and counts of its two
        duels = [duel_of(part.match(a, b), source if detailed else None) for a, b in pairs]
        tested = measured(part, duels, options, planned, lines)
        names = [(labels[a], labels[b]) for a, b in pairs]
        notes = [*part.notes, *tested.many.notes, *grouped_notes(names, [duel.match.seed_notes for duel in duels])]
        if declared is not None:
            notes += declared.outside(part)
        if not detailed:
            form = "{count} pairs: test-set noise task by task is computed up to {most} pairs"
            notes.append(form.format(count=len(tested.pairs), most=MOST_DETAILED))
        elif documents:
            reasons = grouped_notes(names, [duel.reasons for duel in duels])
            notes += [f"test-set noise is unknown on {line}" for line in reasons]
        failed = failed_in(part, no_skill(floors))
        form = "{model} on {task}: the run with seed {seed} failed ({score:.1f}); means and intervals include it"
        notes += [form.format(model=f.model, task=f.task, seed=f.seed, score=100 * f.score) for f in failed]
        ranked = len(labels) > 2 and len(set(part.clusters)) >= FEWEST_RANKED
        languages = {info.language for info in part.tasks}
        return Comparison(
            models=tuple(labels),
            average=part.average,
            tasks=tuple(info.id for info in part.tasks),
            clusters=tuple(dict.fromkeys(part.clusters)),
            metrics=part.metrics,
            published=tuple(e.label for e in entrants if e.is_published),
            policies=tuple(e.label for e in entrants if e.is_policy),
            perfect=tuple(label for i, label in enumerate(labels) if _perfect(part, i)),
            pairs=tested.pairs,
            standings=tested.many.standings,
            ranks=ranks_of(duel_of(part.match(*everyone), source), labels, alpha) if ranked else (),
            twins=twins,
            alpha=alpha,
            estimand=tested.many.estimand,
            notes=tuple(dict.fromkeys(notes)),
            findings=tuple(dict.fromkeys((*results.findings, *damaged))),
            refused=part.refused,
            shares=tested.shares,
            failed=failed,
            language=languages.pop() if len(languages) == 1 else "",
            parts=parts,
            declared=None if terms is None else suite_standing(terms, members, part, tested.pairs, alpha),
            plan="" if declared is None else declared.hash,
        )

    spoken = dict.fromkeys(info.language for info in whole.tasks)
    apart = () if pooled or len(spoken) == 1 else tuple(compared(whole.of_language(language)) for language in spoken)
    return compared(whole, apart)


def _perfect(part: Contest, entrant: int) -> bool:
    """The gate's oracle, where the score compared gives it 1."""
    is_oracle = part.entrants[entrant].is_policy and part.entrants[entrant].source == "ceiling"
    return is_oracle and all(cell.mean == 1.0 for cell in part.cells[entrant].values())


def _check(names: Sequence[str], rope: float, alpha: float, wanted: float) -> None:
    if len(names) < 2:
        raise UsageError("a comparison needs two models or more", hint="for example: biobench compare A B")
    if not 0 < alpha < 0.5:
        raise UsageError(f"alpha {alpha} is not between 0 and 0.5", hint="0.05 is usual")
    if not 0 <= rope < 1:
        raise UsageError(f"rope {rope} is not a difference of scores", hint="zero or more, one point is 0.01")
    if not 0 < wanted < 1:
        raise UsageError(f"wanted difference {wanted} is not one of scores", hint="above zero, one point is 0.01")
