"""What a check of a submission gives: coded findings, and how far each run is proved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Grade = Literal["error", "person", "warning"]
State = Literal["verified", "consistent", "person", "refused"]
"""verified: scored again on the data, with the claimed result. consistent: nothing contradicts it, but the data was not
there to score it again. person: somebody has to look at a finding first. refused: something is wrong."""
STATES: tuple[State, ...] = ("verified", "consistent", "person", "refused")
"""From best to worst."""

Bounded = Callable[[str], AbstractContextManager[None]]
"""Called with a file's path inside the submission; what is done with its content runs under the returned limits."""


def unbounded(where: str) -> AbstractContextManager[None]:
    """No limits: for files of one's own."""
    del where
    return nullcontext()


class Check(NamedTuple):
    """A coded finding. grade: an error refuses the submission, `person` needs one, a warning is shown beside it."""

    code: str
    grade: Grade
    where: str
    what: str


class RunState(NamedTuple):
    """One run of a submission and how far it is proved."""

    task: str
    key: str
    seed: int
    state: State


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in one submission."""

    folder: str
    model: str
    checks: tuple[Check, ...]
    runs: tuple[RunState, ...] = ()

    @property
    def state(self) -> State:
        """That of the submission: of its worst run, and no better than its findings allow."""
        grades = {c.grade for c in self.checks}
        states = {r.state for r in self.runs}
        if "error" in grades or "refused" in states or not self.runs:
            return "refused"
        if "person" in grades or "person" in states:
            return "person"
        return "consistent" if "consistent" in states else "verified"

    @property
    def accepted(self) -> bool:
        """Whether neither an error nor a finding for a person stands against it."""
        return self.state in ("verified", "consistent")

    @property
    def records(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    def count(self, state: State) -> int:
        """How many runs are in this state."""
        return sum(run.state == state for run in self.runs)

    def summary(self) -> str:
        """The state in a line."""
        words = {
            "verified": "verified",
            "consistent": "consistent, but not scored again",
            "person": "needs a person",
            "refused": "refused",
        }
        numbers = ", ".join(f"{self.count(s)} {words[s]}" for s in STATES if self.count(s))
        return f"{words[self.state]}: {self.records} runs" + (f" ({numbers})" if numbers else "")

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": self.folder,
            "model": self.model,
            "state": self.state,
            "accepted": self.accepted,
            "records": self.records,
            "verified": self.count("verified"),
            "runs": [r._asdict() for r in self.runs],
            "findings": [c._asdict() for c in self.checks],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verification:
        """Back from `as_json`."""
        checks = tuple(Check(**c) for c in data["findings"])
        return cls(data["folder"], data["model"], checks, tuple(RunState(**r) for r in data["runs"]))
