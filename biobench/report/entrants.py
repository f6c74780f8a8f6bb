"""Who is compared: names as the report prints them, resolved to runs or published scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from biobench.errors import UsageError
from biobench.report.escape import plain
from biobench.report.groups import RunGroup, Source
from biobench.report.published import PublishedValue
from biobench.report.table import Results
from biobench.schema.strict import suggest

_PREFERRED: tuple[Source, ...] = ("run", "submitted", "floor", "ceiling")
"""Where the scores of one name are taken from when several hold it."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One model of a comparison.

    label: what it is called in the output, unique. groups: task -> its groups of runs (several where runs of
    different conditions are stored). published: our task id -> printed values; used where there is no group at all.
    """

    label: str
    model: str
    source: Source
    groups: Mapping[str, tuple[RunGroup, ...]]
    published: Mapping[str, PublishedValue]
    notes: tuple[str, ...] = ()

    @property
    def is_published(self) -> bool:
        """Only printed means are known of it, no runs."""
        return not self.groups


def line_name(model: str, variant: str) -> str:
    """A model's name in the tables: what sets its runs apart stands in brackets."""
    return f"{model} [{variant}]" if variant else model


def find_entrants(given: Sequence[str], results: Results) -> list[Entrant]:
    """The models of these names, in order; one that is named twice gets a number.

    A name is a model as the report prints it (with or without the bracket of its variant, with or without
    its revision), the folder that was run, or a published model. Raises UsageError.
    """
    found: list[Entrant] = []
    for name in given:
        entrant = _find(name, results)
        label, times, used = entrant.label, 1, {other.label for other in found}
        while label in used:
            times += 1
            label = f"{entrant.label} #{times}"
        found.append(replace(entrant, label=label))
    return found


def _find(name: str, results: Results) -> Entrant:
    groups = _matching(name, results.groups)
    if groups:
        sources = [s for s in _PREFERRED if any(g.source == s for g in groups)]
        kept = [g for g in groups if g.source == sources[0]]
        by_task: dict[str, list[RunGroup]] = defaultdict(list)
        for group in kept:
            by_task[group.task].append(group)
        variants = {g.variant for g in kept}
        label = line_name(kept[0].model, variants.pop()) if len(variants) == 1 else kept[0].model
        notes = [f"{plain(label)}: its {source} scores are left aside" for source in sources[1:]]
        if any(v.model == name for v in results.published):
            notes.append(f"{plain(label)}: the published scores of the same name are left aside, its runs are used")
        tasks = {task: tuple(members) for task, members in by_task.items()}
        return Entrant(plain(label), kept[0].model, sources[0], tasks, {}, tuple(notes))
    values = [v for v in results.published if v.model == name]
    if values:
        published = {
            info.id: value for value in values for info in results.infos.values() if info.published_as == value.task
        }
        return Entrant(plain(name), name, "published", {}, published)
    known = {line_name(g.model, g.variant) for g in results.groups} | {v.model for v in results.published}
    hint = suggest(name, [plain(k) for k in sorted(known)])
    if not hint.startswith("did you mean"):
        hint = "`biobench report` shows the models that have results"
    raise UsageError(f"no results of a model '{plain(name)}'", hint=hint)


def _matching(name: str, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """The groups that the name means. Raises UsageError where it means several models."""
    for wanted in _readings(name):
        exact = [g for g in groups if g.model == wanted or line_name(g.model, g.variant) == wanted]
        if exact:
            return exact
        without_revision = [g for g in groups if g.model.partition("@")[0] == wanted]
        models = sorted({g.model for g in without_revision})
        if len(models) > 1:
            raise UsageError(
                f"'{plain(name)}' is the name of {len(models)} models",
                hint="name the revision: " + ", ".join(plain(m) for m in models),
            )
        if models:
            return without_revision
    return []


def _readings(name: str) -> list[str]:
    """The name itself; for a folder also the ids that its runs may carry."""
    path = Path(name).expanduser()
    if not path.is_dir():
        return [name]
    resolved = path.resolve()
    return [name, f"{resolved.parent.name}/{resolved.name}", resolved.name]
