"""What a maintainer found out about a submission, `<results>/statements/<submission>.json`: the
source of its mark.

It lies next to `submitted/`, never inside a submission, whose files are the submitter's. It holds
for the one manifest that it names by its hash, and so for the files that this lists.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from biobench.core.files import file_hash
from biobench.errors import StoreError
from biobench.schema.record import Version
from biobench.schema.strict import Fraction, Line, Number, Positive, Strict, Text
from biobench.store.records import read_record, write_record
from biobench.version import __version__

Mark = Literal["reproduced", "re-scored", "claimed"]
"""reproduced: a maintainer made runs of seeds that they drew, and they agree. re-scored: the
predictions were scored again on the maintainer's data. claimed: neither; costs are always claims.
"""
FOLDER = "statements"
VERSION = 1
MANIFEST = "submission.json"
"""The submission's list of its files, with their hashes."""


class Draw(Strict):
    """One run that a maintainer made of a seed of their drawing; the submitted seeds have the same
    conditions.
    """

    task: Line
    task_hash: Line
    """Hash of the spec with the overrides of the runs."""
    track: Line
    seed: int
    metric: Line
    score: Number
    low: Number
    high: Number
    """The 95% prediction interval of the submitted scores for one more seed."""
    alike: Fraction
    """Mean share of test documents that it answers as a submitted run does."""
    alike_low: Number
    alike_high: Number
    """The 95% prediction interval of that share, from the submitted runs among each other."""
    agrees: bool


class Foreign(Strict):
    """What the repository that a submission was pulled from says of it. It proves nothing here."""

    address: Line
    mark: Mark


class Statement(Strict):
    """What a maintainer knows of one submission, apart from what it claims."""

    version: Positive = VERSION
    manifest: Line
    """SHA-256 of the submission's manifest."""
    mark: Mark
    draws: tuple[Draw, ...] = ()
    foreign: Foreign | None = None
    """None: the statement was made here."""
    biobench: Version
    date: Text
    """ISO 8601."""

    @property
    def proved(self) -> bool:
        """Whether runs of drawn seeds were made here, and all of them agree."""
        is_reproduced = self.mark == "reproduced" and self.foreign is None
        return is_reproduced and self.draws != () and self.agrees

    @property
    def agrees(self) -> bool:
        """Whether no drawn run contradicts the submission."""
        return all(draw.agrees for draw in self.draws)

    @property
    def shown(self) -> str:
        """The mark of the submission's rows, and what the repository that it is from says."""
        mark = "claimed" if self.mark == "reproduced" and not self.proved else self.mark
        if self.foreign is None:
            return mark
        return f"{mark}; {self.foreign.mark} by {self.foreign.address}"


def statement_path(submission: Path, results_dir: Path) -> Path:
    """Where the statement on a submission lies in the results folder."""
    return results_dir / FOLDER / f"{submission.resolve().name}.json"


def make_statement(
    submission: Path,
    mark: Mark,
    draws: tuple[Draw, ...] = (),
    foreign: Foreign | None = None,
) -> Statement:
    """A statement of now on a submission as it is."""
    return Statement(
        manifest=file_hash(submission / MANIFEST),
        mark=mark,
        draws=draws,
        foreign=foreign,
        biobench=__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def save_statement(submission: Path, results_dir: Path, statement: Statement) -> Path:
    """Write it, over an older one; gives its path. Raises StoreError."""
    path = statement_path(submission, results_dir)
    write_record(path, statement)
    return path


def statement_on(submission: Path, results_dir: Path) -> Statement | None:
    """What the results folder states of this submission as it is; None where nothing. Raises
    StoreError.
    """
    path = statement_path(submission, results_dir)
    manifest = submission / MANIFEST
    if not path.is_file() or not manifest.is_file():
        return None
    hint = "delete it and repeat `biobench reproduce --of SUBMISSION --draw`"
    statement = read_record(path, Statement, ("version", VERSION), hint)
    if statement is None or statement.manifest != file_hash(manifest):
        return None
    return statement


def mark_of(submission: Path) -> str:
    """The mark of the rows of `<results>/submitted/<name>`: claimed where no statement on it can be
    read; with what the repository that it is from says, where that says more.
    """
    try:
        statement = statement_on(submission, submission.parent.parent)
    except StoreError:
        return "claimed"
    return "claimed" if statement is None else statement.shown
