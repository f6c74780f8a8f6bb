"""What a report must know of each task: its name, suite, corpus and which published scores go
beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from biobench.data.catalog import SUITES, list_tasks
from biobench.data.hashing import task_hash
from biobench.reporting.literature.published import PublishedValue
from biobench.schema.baseline import BaselineRecord
from biobench.schema.task import TaskSpec
from biobench.store import Brief

NEEDLE = "needle"
TASK_FAMILIES = {
    "token_ner": "entities",
    "span_ner": "entities",
    "single_label": "classes",
    "multi_label": "classes",
    "relation": "relations",
}
"""Types of task that ask the same kind of question, which has a mean of its own."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A column of the report.

    suite: fr, en or needle, by language and type for tasks outside the shipped suites. in_suite:
    counts for the suite's average. paper: the average that published scores of `published_as` stand
    beside, the name that papers' data files give the task. hashes: source id -> hash of the shipped
    spec, empty for tasks that are not shipped.
    """

    id: str
    name: str
    language: str
    type: str
    suite: str
    in_suite: bool
    corpus: str
    paper: str
    published_as: str
    hashes: Mapping[str, str] = field(default_factory=dict)
    spec: TaskSpec | None = None


Infos = Mapping[str, TaskInfo]
"""Task id -> what the report knows of it, in the order of the catalogue."""


@lru_cache(maxsize=1)
def shipped() -> dict[str, TaskInfo]:
    """All shipped tasks by id, in the order of the catalogue."""
    tasks: dict[str, TaskInfo] = {}
    for loaded in list_tasks():
        spec = loaded.spec
        folder = loaded.path.parent.name
        tasks[spec.id] = TaskInfo(
            id=spec.id,
            name=spec.name,
            language=spec.language,
            type=spec.type,
            suite=folder if folder in SUITES else _suite(spec.language, spec.type),
            in_suite=folder in SUITES and spec.variant_of is None,
            corpus=spec.corpus_id,
            paper=spec.metric.paper,
            published_as=spec.published_as or spec.id,
            hashes={source.id: task_hash(loaded, source.id) for source in spec.all_sources},
            spec=spec,
        )
    return tasks


def task_infos(
    records: Iterable[Brief],
    published: Iterable[PublishedValue],
    baselines: Iterable[BaselineRecord] = (),
) -> dict[str, TaskInfo]:
    """The shipped tasks, and those that only a record, a published score or a baseline names, by
    id.
    """
    infos = dict(shipped())
    for brief in records:
        if brief.task not in infos:
            infos[brief.task] = _of_stored(brief)
    taken = {info.published_as for info in infos.values()}
    for value in published:
        if value.task not in taken:
            infos.setdefault(value.task, unshipped(value.task, value.language, paper=value.likely))
    for baseline in baselines:
        infos.setdefault(baseline.task, _of_stored(baseline))
    return infos


def _of_stored(stored: Brief | BaselineRecord) -> TaskInfo:
    return unshipped(
        stored.task,
        language=stored.language,
        type=stored.type,
        corpus=stored.corpus,
        paper=stored.paper,
    )


def unshipped(
    task: str, language: str = "", type: str = "", corpus: str = "", paper: str = ""
) -> TaskInfo:
    """A task of which no spec is at hand; its corpus is its own unless one is named."""
    return TaskInfo(
        id=task,
        name=task,
        language=language,
        type=type,
        suite=_suite(language, type),
        in_suite=False,
        corpus=corpus or task,
        paper=paper,
        published_as=task,
    )


def _suite(language: str, type: str) -> str:
    return NEEDLE if type == NEEDLE else language
