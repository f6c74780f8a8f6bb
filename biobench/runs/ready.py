"""Heads of checkpoints that answer tasks as they are, and their labels: `run --track ready`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path

from biobench.core.text import listed
from biobench.data.catalog import LoadedTask
from biobench.errors import WITHHELD, SpecError, UsageError
from biobench.kinds.base import get_kind
from biobench.models.loading import Checkpoint
from biobench.models.stored_head import StoredHead, stored_head
from biobench.runs.options import RunRequest
from biobench.schema import yaml12
from biobench.schema.document import TaskData
from biobench.schema.strict import suggest

_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class ReadyHead:
    """A checkpoint's head that answers a task. matched: its labels to outputs of the task."""

    head: StoredHead
    matched: Mapping[str, str]

    @property
    def dropped(self) -> list[str]:
        """Labels that stand for nothing in the task."""
        return [label for label in self.head.labels if label not in self.matched]

    @property
    def note(self) -> str:
        """How many labels are dropped, and which; empty where none is."""
        if not self.matched or not self.dropped:
            return ""
        share = f"{len(self.dropped)} of {len(self.head.labels)} labels are dropped"
        return f"{share}: {listed(self.dropped, _MOST_LISTED)}"

    @property
    def never_begins(self) -> bool:
        """Whether a mention of some label has words but no first one, as where tags are bare."""
        labels: dict[str, set[str]] = defaultdict(set)
        for tag in self.matched.values():
            letter, _, label = tag.partition("-")
            labels[letter].add(label)
        return not labels["I"] <= labels["B"]


Heads = dict[tuple[str, str], ReadyHead]
"""(hash of a checkpoint, task id) to the head that answers; absent where it cannot."""


def read_label_map(file: str | Path) -> dict[str, str]:
    """A checkpoint's labels to a task's, from lines `MODEL_LABEL: TASK_LABEL`. Raises SpecError."""
    located = yaml12.parse_file(Path(file))
    hint = "write lines MODEL_LABEL: TASK_LABEL"
    if not isinstance(located.data, dict) or not located.data:
        raise SpecError("maps no labels", hint=hint, file=located.file, line=1)
    names = {}
    for label, target in located.data.items():
        text = getattr(target, "text", target)  # of a number: how it was written
        if not (text and isinstance(text, str)):
            raise SpecError(
                f"'{label}' is not mapped to one label",
                hint=hint,
                file=located.file,
                line=located.line_of((label,)),
            )
        names[label] = text
    return names


def match_heads(
    checkpoints: Sequence[Checkpoint],
    tasks: Sequence[tuple[LoadedTask, TaskData]],
    request: RunRequest,
) -> tuple[Heads, list[str]]:
    """Which heads answer which tasks, and a line for each label that is dropped and each task of a
    suite that is skipped.

    Raises ModelError for a checkpoint without a head, SpecError or UsageError for a wrong map, and
    UsageError where a named task, or every task of a suite, cannot be answered.
    """
    heads = list(map(stored_head, checkpoints))
    names: dict[str, str] = {}
    if request.label_map is not None:
        names = read_label_map(request.label_map)
        _check_label_map(request.label_map, names, heads, tasks)
    matched: Heads = {}
    lines: list[str] = []
    problem: UsageError | None = None
    models = zip(checkpoints, heads, strict=True)
    for (checkpoint, head), (task, data) in product(models, tasks):
        try:
            ready = match_head(head, task, data, names)
        except UsageError as error:
            if request.suite is None:
                raise
            problem = error
            lines.append(f"{task.id} is skipped: {error}")
            continue
        matched[checkpoint.hash, task.id] = ready
        if ready.note:
            lines.append(f"note: {checkpoint.id} on {task.id}: {ready.note}")
    if problem is not None and not matched:
        raise problem
    return matched, list(dict.fromkeys(lines))


def _check_label_map(
    file: str,
    names: Mapping[str, str],
    heads: Iterable[StoredHead],
    tasks: Iterable[tuple[LoadedTask, TaskData]],
) -> None:
    """Raise UsageError for a label that no checkpoint has, and for one that no task has."""
    known = set(chain.from_iterable(head.names for head in heads))
    targets = set[str]()
    for task, data in tasks:
        targets.update(data.labels, _outputs(task, data))
    unknown = _first_outside(known, names)
    if unknown is not None:
        raise UsageError(
            f"--label-map {file}: no checkpoint has a label '{unknown}'",
            hint=suggest(unknown, sorted(known)),
        )
    unknown = _first_outside(targets, names.values())
    if unknown is not None:
        raise UsageError(
            f"--label-map {file}: no task has a label '{unknown}'",
            hint="`biobench tasks show TASK` prints a task's labels",
        )


def _first_outside(known: Container[str], names: Iterable[str]) -> str | None:
    return next((name for name in names if name not in known), None)


def _outputs(task: LoadedTask, data: TaskData) -> tuple[str, ...]:
    """What a head of the task gives: labels, or tags."""
    return get_kind(task.spec.type).head_outputs(task.spec, data.labels)


def match_head(
    head: StoredHead, task: LoadedTask, data: TaskData, names: Mapping[str, str]
) -> ReadyHead:
    """The head with its labels matched. Raises UsageError where it cannot answer the task."""
    spec = task.spec
    kind = get_kind(spec.type)
    outputs = _outputs(task, data)
    if head.type not in (None, spec.type) or head.kind != kind.head:
        raise UsageError(
            f"{task.id} asks for a head of type {spec.type}, the checkpoint's is of type "
            f"{head.type or f'{head.kind} classification'}",
            hint="name a task of the checkpoint's type",
        )
    if not kind.counted or kind.head == "span":
        if (head.labels, head.options) != (outputs, spec.head):
            raise UsageError(
                f"the checkpoint's head was not fine-tuned on {task.id} with this protocol",
                hint="name its own task, with the --set head.* of its run",
            )
        return ReadyHead(head, {})
    if kind.thresholds and head.several is False:
        raise UsageError(
            f"{task.id} asks for several labels, the checkpoint gives one",
            hint="name a task of type single_label",
        )
    matched = head.matched(outputs, names)
    if not set(matched.values()) - {"O"}:
        labels = listed(data.labels, _MOST_LISTED)
        if spec.access == "agreement" and not isinstance(spec.labels, list):
            labels = WITHHELD
        raise UsageError(
            f"no label of the checkpoint stands for one of {task.id}: it has "
            f"{listed(head.labels, _MOST_LISTED)}; the task has {labels}",
            hint="--label-map FILE with lines MODEL_LABEL: TASK_LABEL",
        )
    return ReadyHead(head, matched)
