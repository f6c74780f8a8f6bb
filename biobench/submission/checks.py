"""What a check of a submission gives: coded findings, and how far each run is proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from biobench.store.statements import Mark

Grade = Literal["error", "person", "warning"]
State = Literal["verified", "consistent", "person", "refused"]
"""verified: scored again on the data, with the claimed result. consistent: nothing contradicts it, but the data was not
there to score it again. person: a maintainer has to look at a finding first. refused: something is wrong."""
STATES: tuple[State, ...] = ("verified", "consistent", "person", "refused")
"""From best to worst."""
_WORDS = ("verified", "consistent, but not scored again", "waits for a maintainer", "refused")


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
    rescored: bool = False
    """Whether its predictions were scored again on the data, with the claimed result."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in one submission. reproduced: a maintainer's statement stands for what leads in it."""

    folder: str
    model: str
    checks: tuple[Check, ...]
    runs: tuple[RunState, ...] = ()
    reproduced: bool = False

    @property
    def state(self) -> State:
        """That of the submission: of its worst run, and no better than its findings allow."""
        grades = {c.grade for c in self.checks}
        if "error" in grades or not self.runs:
            return "refused"
        return "person" if "person" in grades else max((run.state for run in self.runs), key=STATES.index)

    @property
    def accepted(self) -> bool:
        """Whether neither an error nor a finding for a person stands against it."""
        return self.state in ("verified", "consistent")

    @property
    def mark(self) -> Mark:
        """What the board says of its rows."""
        if self.state == "refused" or not (self.reproduced or all(run.rescored for run in self.runs)):
            return "claimed"
        return "reproduced" if self.reproduced else "re-scored"

    @property
    def records(self) -> int:
        """How many runs there are."""
        return len(self.runs)

    def count(self, state: State) -> int:
        """How many runs are in this state."""
        return sum(run.state == state for run in self.runs)

    def summary(self) -> str:
        """The state in a line."""
        words = dict(zip(STATES, _WORDS, strict=True))
        numbers = ", ".join(f"{self.count(s)} {words[s]}" for s in STATES if self.count(s))
        mark = f"; the board marks it {self.mark}" if self.accepted else ""
        return f"{words[self.state]}: {self.records} runs" + (f" ({numbers})" if numbers else "") + mark

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": self.folder,
            "model": self.model,
            "state": self.state,
            "mark": self.mark,
            "accepted": self.accepted,
            "records": self.records,
            "verified": self.count("verified"),
            "runs": [r._asdict() for r in self.runs],
            "findings": [c._asdict() for c in self.checks],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Verification:
        """Back from `as_json`."""
        checks, runs = (Check(**c) for c in data["findings"]), (RunState(**r) for r in data["runs"])
        return cls(data["folder"], data["model"], tuple(checks), tuple(runs), data["mark"] == "reproduced")
