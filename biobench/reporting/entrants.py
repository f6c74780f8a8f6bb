"""Who is compared: names as the report prints them, resolved to runs or published scores."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from biobench.core.grouped import grouped
from biobench.core.hub import cached_commit
from biobench.errors import UsageError
from biobench.reporting.baselines import Refusal
from biobench.reporting.escape import plain
from biobench.reporting.groups import RunGroup, Source
from biobench.reporting.literature.published import PublishedValue
from biobench.reporting.results import Results
from biobench.reporting.tasks import Infos
from biobench.schema.checkpoint import content_hash, model_folder
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
    if not variant:
        return model
    return f"{model} [{variant}]"


def ambiguous(message: str, names: Iterable[str]) -> UsageError:
    """An error whose hint lists the names to choose from."""
    quoted = [f"'{plain(name)}'" for name in sorted(names)]
    return UsageError(message, hint=f"name one: {', '.join(quoted)}")


def find_entrants(names: Sequence[str], results: Results) -> list[Entrant]:
    """The models of these names, in order; one that is named twice gets a number.

    A name is a model as the report prints it (with or without the bracket of its variant, with or
    without its revision), the folder that was run, or a published model. Raises UsageError.
    """
    entrants: dict[str, Entrant] = {}
    for name in names:
        entrant = _find(name, results)
        label = entrant.label
        times = 1
        while label in entrants:
            times += 1
            label = f"{entrant.label} #{times}"
        entrants[label] = replace(entrant, label=label)
    return list(entrants.values())


def names_of(scores: RunGroup | PublishedValue) -> tuple[str, str]:
    """The names that mean these scores: the model's, and its line's in the tables."""
    return scores.model, line_name(scores.model, scores.variant)


def _find(name: str, results: Results) -> Entrant:
    groups = groups_named(name, results.groups)
    if groups:
        return _entrant_with_runs(name, groups, results.published)
    values = [value for value in results.published if name in names_of(value)]
    if values:
        return _published_entrant(name, values, results.infos)
    _check_not_refused(name, results.refusals)
    raise _unknown_model(name, results)


def _check_not_refused(name: str, refusals: Sequence[Refusal]) -> None:
    """Raise UsageError where the gate refuses all that the name means."""
    refused = groups_named(name, [refusal.group for refusal in refusals])
    tasks: set[str] = set()
    reasons: dict[str, None] = {}
    for refusal in refusals:
        if refusal.group in refused:
            tasks.add(refusal.group.task)
            reasons |= dict.fromkeys(refusal.reasons)
    if tasks:
        raise UsageError(
            f"all runs of '{plain(name)}' ({', '.join(sorted(tasks))}) are on data that fails its "
            f"gate, and are not compared",
            hint="; ".join(reasons),
        )


def _entrant_with_runs(
    name: str, groups: Sequence[RunGroup], published: Sequence[PublishedValue]
) -> Entrant:
    """The model by its runs of the preferred source; notes say which of its scores are not used."""
    by_source = grouped(groups, lambda group: group.source)
    source, *unused = sorted(by_source, key=_PREFERRED.index)
    used = by_source[source]
    label = plain(used[0].model)
    for group in used:
        # the bracket is shown where it was asked for; what else is limited or overridden is in the
        # notes
        if group.variant and name == line_name(group.model, group.variant):
            label = plain(name)
    notes = [f"{label}: its {other} scores are left aside" for other in unused]
    if any(name == value.model for value in published):
        notes.append(f"{label}: the published scores of the same name are left aside")
    by_task = grouped(used, lambda group: group.task)
    return Entrant(
        label,
        used[0].model,
        source=source,
        groups={task: tuple(of_task) for task, of_task in by_task.items()},
        notes=tuple(notes),
    )


def _published_entrant(name: str, values: Sequence[PublishedValue], infos: Infos) -> Entrant:
    """The model by its printed values. Raises UsageError where several papers print some."""
    lines = {line_name(value.model, value.variant) for value in values}
    if len(lines) > 1:
        raise ambiguous(f"{len(lines)} papers print values of '{plain(name)}'", lines)
    printed = {value.task: value for value in values}
    published = {}
    for info in infos.values():
        if info.published_as in printed:
            published[info.id] = printed[info.published_as]
    return Entrant(
        label=plain(name),
        model=name,
        source="published",
        groups={},
        published=published,
    )


def _unknown_model(name: str, results: Results) -> UsageError:
    own = sorted({plain(group.model) for group in results.groups})
    otherwise = "`biobench report` shows the models that have results"
    if own:
        nearest = difflib.get_close_matches(plain(name), own, n=10, cutoff=0.0)
        otherwise = f"of {len(own)} models with runs the nearest: {', '.join(nearest)}"
    names: set[str] = set()
    stored: list[RunGroup | PublishedValue] = [*results.groups, *results.published]
    for scores in stored:
        names.update(map(plain, names_of(scores)))
    hint = suggest(name, sorted(names), otherwise=otherwise)
    return UsageError(f"no results of a model '{plain(name)}'", hint=hint)


def groups_named(name: str, groups: Sequence[RunGroup]) -> list[RunGroup]:
    """The groups that the name means: also a folder by the ids that its runs may carry, a branch or
    tag by its commit.

    Raises UsageError where it means several models.
    """
    for alias in _aliases(name):
        exactly = []
        without_revision = []
        for group in groups:
            if alias in names_of(group):
                exactly.append(group)
            elif alias == group.model.partition("@")[0]:
                without_revision.append(group)
        named = exactly or without_revision
        models = {group.model for group in named}
        if len(models) > 1:
            raise ambiguous(f"'{plain(name)}' is the name of {len(models)} models", models)
        if named:
            return _of_folder(named, os.path.expanduser(name))
    return []


def _aliases(name: str) -> Iterator[str]:
    """The name, and what the runs of a folder, a branch or a tag may be stored as."""
    yield name
    path = os.path.expanduser(name)
    if os.path.isdir(path):  # unlike a Path's, it raises nothing for names of any length
        resolved = model_folder(Path(path)).resolve()
        yield f"{resolved.parent.name}/{resolved.name}"
        yield resolved.name
        return
    model, _, revision = name.partition("@")
    if revision:
        commit = cached_commit(model, revision)
        if commit is not None:
            yield f"{model}@{commit}"


def _of_folder(groups: list[RunGroup], path: str) -> list[RunGroup]:
    """Of runs of several checkpoints with one name those of the folder's weights; all of them where
    it is the folder of none.
    """
    by_weights = grouped(groups, lambda group: group.briefs[0].weights)
    if len(by_weights) == 1 or not os.path.isdir(path):
        return groups
    folder = model_folder(Path(path))
    if not (folder / "config.json").is_file():
        return groups
    return by_weights.get(content_hash(folder), groups)
