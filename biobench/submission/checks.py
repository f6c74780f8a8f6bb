"""What a check of a submission gives: coded findings, and how far each run is proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, Literal, NamedTuple, TypeVar

from biobench.store.statements import Mark

Grade = Literal["error", "person", "warning"]
State = Literal["verified", "consistent", "person", "refused"]
"""verified: scored again on the data, with the claimed result. consistent: nothing contradicts it,
but the data was not there to score it again. person: a maintainer has to look at a finding first.
refused: something is wrong.
"""
_WORDS: dict[State, str] = {
    "verified": "verified",
    "consistent": "consistent, but not scored again",
    "person": "waits for a maintainer",
    "refused": "refused",
}
STATES: tuple[State, ...] = tuple(_WORDS)
"""From best to worst."""
DRAW_COMMAND = "biobench reproduce --of SUBMISSION --draw"
"""What a maintainer runs where a submission waits for a drawn seed (W01)."""


class Check(NamedTuple):
    """A coded finding. grade: an error refuses the submission, `person` needs one, a warning is
    only shown.
    """

    code: str
    grade: Grade
    where: str
    what: str


class Problem(NamedTuple):
    """What is wrong in one file: a finding without its place, which the caller knows."""

    code: str
    what: str
    grade: Grade = "error"

    def at(self, where: str) -> Check:
        """The finding in this file."""
        return Check(self.code, self.grade, where, self.what)


Finding = TypeVar("Finding", str, Problem)


def found(signs: Mapping[Finding, object]) -> Iterator[Finding]:
    """The findings whose sign is there (true), in their order. signs: what each finding is told by;
    all are looked at, and no finding stands twice.
    """
    return compress(signs, signs.values())


class RunState(NamedTuple):
    """One run of a submission and how far it is proved."""

    task: str
    key: str
    seed: int
    state: State
    rescored: bool = False
    """Whether its predictions were scored again on the data, with the claimed result."""


def error(code: str, where: str, what: str) -> Check:
    """A finding that refuses."""
    return Check(code, "error", where, what)


def is_refused(checks: Iterable[Check]) -> bool:
    """Whether one of them is an error."""
    return any(check.grade == "error" for check in checks)


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings in one submission. reproduced: a maintainer's statement stands for what leads in
    it.
    """

    folder: str
    model: str
    checks: tuple[Check, ...]
    runs: tuple[RunState, ...] = ()
    reproduced: bool = False

    @property
    def state(self) -> State:
        """That of the submission: of its worst run, and no better than its findings allow."""
        if is_refused(self.checks) or not self.runs:
            return "refused"
        if "person" in {check.grade for check in self.checks}:
            return "person"
        return max((run.state for run in self.runs), key=STATES.index)

    @property
    def accepted(self) -> bool:
        """Whether neither an error nor a finding for a person stands against it."""
        return self.state in ("verified", "consistent")

    @property
    def mark(self) -> Mark:
        """What the board says of its rows."""
        if self.state == "refused":
            return "claimed"
        if self.reproduced:
            return "reproduced"
        return "re-scored" if all(run.rescored for run in self.runs) else "claimed"

    def count(self, state: State) -> int:
        """How many runs are in this state."""
        return sum(run.state == state for run in self.runs)

    def summary(self) -> str:
        """The state in a line."""
        line = f"{_WORDS[self.state]}: {len(self.runs)} runs"
        counts = Counter(run.state for run in self.runs)
        numbers = [f"{_WORDS[state]}: {counts[state]}" for state in STATES if counts[state]]
        if counts.keys() - {self.state}:
            line += f" ({', '.join(numbers)})"
        if self.accepted:
            line += f"; the board marks it {self.mark}"
        return line

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "folder": self.folder,
            "model": self.model,
            "state": self.state,
            "mark": self.mark,
            "accepted": self.accepted,
            "records": len(self.runs),
            "verified": self.count("verified"),
            "runs": [run._asdict() for run in self.runs],
            "findings": [check._asdict() for check in self.checks],
        }
