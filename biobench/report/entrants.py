"""Who is compared: names as the report prints them, resolved to runs or published scores."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from biobench.core.hub import cached_commit
from biobench.errors import UsageError
from biobench.report.escape import plain
from biobench.report.groups import RunGroup, Source
from biobench.report.literature.published import PublishedValue
from biobench.report.results import Results
from biobench.schema.checkpoint import model_folder
from biobench.schema.strict import suggest

_PREFERRED: tuple[Source, ...] = ("run", "frozen", "external", "submitted", "baseline", "oracle")
"""Where the scores of one name are taken from when several hold it."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One model of a comparison.

    label: what it is called in the output, unique. groups: task -> its groups of runs (several
    where runs of different conditions are stored). Without any, published: our task id -> printed
    values.
    """

    label: str
    model: str
    source: Source
    groups: Mapping[str, tuple[RunGroup, ...]]
    published: Mapping[str, PublishedValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def is_published(self) -> bool:
        """Only printed means are known of it, no runs."""
        return bool(self.published)


def line_name(model: str, variant: str) -> str:
    """A model's name in the tables: what sets its runs apart stands in brackets."""
    return f"{model} [{variant}]" if variant else model


def find_entrants(names: Sequence[str], results: Results) -> list[Entrant]:
    """The models of these names, in order; one that is named twice gets a number.

    A name is a model as the report prints it (with or without the bracket of its variant, with or
    without its revision), the folder that was run, or a published model. Raises UsageError.
    """
    entrants: list[Entrant] = []
    for name in names:
        entrant = _find(name, results)
        label, times, used = entrant.label, 1, {other.label for other in entrants}
        while label in used:
            times += 1
            label = f"{entrant.label} #{times}"
        entrants.append(replace(entrant, label=label))
    return entrants


def _find(name: str, results: Results) -> Entrant:
    groups = groups_named(name, results.groups)
    if groups:
        sources = [s for s in _PREFERRED if any(g.source == s for g in groups)]
        kept = [g for g in groups if g.source == sources[0]]
        by_task: dict[str, list[RunGroup]] = defaultdict(list)
        for group in kept:
            by_task[group.task].append(group)
        model = kept[0].model
        # the bracket is shown where it was asked for; what else is limited or overridden is in the
        # notes
        label = (
            name
            if any(g.variant and name == line_name(g.model, g.variant) for g in kept)
            else model
        )
        notes = [f"{plain(label)}: its {source} scores are left aside" for source in sources[1:]]
        if any(v.model == name for v in results.published):
            notes.append(
                f"{plain(label)}: the published scores of the same name are left aside, its runs "
                f"are used"
            )
        tasks = {task: tuple(members) for task, members in by_task.items()}
        return Entrant(plain(label), model, sources[0], tasks, notes=tuple(notes))
    values = [v for v in results.published if name in (v.model, line_name(v.model, v.variant))]
    lines = sorted({line_name(v.model, v.variant) for v in values})
    if len(lines) > 1:
        hint = "name one: " + ", ".join(f"'{plain(line)}'" for line in lines)
        raise UsageError(f"{len(lines)} papers print values of '{plain(name)}'", hint=hint)
    if values:
        of = {v.task: v for v in values}
        published = {
            i.id: of[i.published_as] for i in results.infos.values() if i.published_as in of
        }
        return Entrant(plain(name), name, "published", {}, published)
    refused = groups_named(name, [r.group for r in results.refusals])
    if refused:
        failing = ", ".join(sorted({g.task for g in refused}))
        reasons = dict.fromkeys(
            text for r in results.refusals if r.group in refused for text in r.reasons
        )
        what = (
            f"all runs of '{plain(name)}' ({failing}) are on data that fails its gate, and are "
            f"not compared"
        )
        raise UsageError(what, hint="; ".join(reasons))
    known = {text for g in results.groups for text in (g.model, line_name(g.model, g.variant))}
    known |= {text for v in results.published for text in (v.model, line_name(v.model, v.variant))}
    hint = suggest(name, [plain(k) for k in sorted(known)])
    if not hint.startswith("did you mean"):
        hint = "`biobench report` shows the models that have results"
    raise UsageError(f"no results of a model '{plain(name)}'", hint=hint)


def groups_named(name: str, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """The groups that the name means: also a folder by the ids that its runs may carry, a branch or
    tag by its commit.

    Raises UsageError where it means several models.
    """
    path = os.path.expanduser(name)
    model, _, revision = name.partition("@")
    names = [name]
    if os.path.isdir(path):  # unlike a Path's, it raises nothing for names of any length
        resolved = model_folder(Path(path)).resolve()
        names += [f"{resolved.parent.name}/{resolved.name}", resolved.name]
    elif revision and (commit := cached_commit(model, revision)) is not None:
        names.append(f"{model}@{commit}")
    for wanted in names:
        named = [g for g in groups if wanted in (g.model, line_name(g.model, g.variant))]
        named = named or [g for g in groups if wanted == g.model.partition("@")[0]]
        models = sorted({g.model for g in named})
        if len(models) > 1:
            hint = "name the revision: " + ", ".join(plain(m) for m in models)
            raise UsageError(f"'{plain(name)}' is the name of {len(models)} models", hint=hint)
        if named:
            return named
    return []
