"""A suite of tasks, declared in YAML: which tasks, by which score each counts, and how the suite
takes its mean.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator, model_validator

from biobench.schema.source import Below, check_once, fail
from biobench.schema.strict import Strict
from biobench.schema.task import MetricName
from biobench.schema.yaml12 import plain


class Member(Strict):
    """A task of the suite; without `task` it cannot be run, and `needs` says why."""

    name: str
    """Id in the suite; published values bear it."""
    task: Below | None = None
    """Id of a shipped task, or the path of a YAML file beside or below the suite's own."""
    type: str = ""
    """Type of task over which the suite averages."""
    metric: MetricName | None = None
    """Score by which the task counts in the suite; null: the spec's `metric.paper`."""
    access: Literal["open", "registration", "agreement"] = "open"
    needs: str | None = None
    differs: str | None = None
    """In what the task is not the suite's, so that scores are not quite comparable."""

    @model_validator(mode="after")
    def _runs_or_says_why(self) -> Member:
        if (self.task is None) == (self.needs is None):
            message = f"'{self.name}' needs either a task or a reason why there is none"
            raise fail(message, "add `task:` or `needs:`")
        return self


def _member_fields(member: Any) -> dict[str, Any]:
    if isinstance(member, dict):
        return member
    name = str(plain(member))
    return {"name": name, "task": name}


class SuiteSpec(Strict):
    """A suite. `tasks` may hold plain task ids or paths where nothing more is to be said."""

    id: str
    name: str = ""
    source: str = ""
    mean: Literal["tasks", "types"] = "tasks"
    """types: the mean over types of the means of their tasks; tasks: over the tasks."""
    tasks: tuple[Member, ...]

    @model_validator(mode="before")
    @classmethod
    def _names_alone(cls, data: Any) -> Any:
        """A task that is a text is a member of that name."""
        if not isinstance(data, dict) or not isinstance(data.get("tasks"), list):
            return data
        members = list(map(_member_fields, data["tasks"]))
        return {**data, "tasks": members}

    @field_validator("tasks")
    @classmethod
    def _distinct(cls, value: tuple[Member, ...]) -> tuple[Member, ...]:
        check_once("task", [member.name for member in value])
        if not value:
            raise fail("the suite has no task", "list ids under `tasks:`")
        return value
