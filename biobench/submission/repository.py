"""Community results: submissions taken from, and sent to, a git repository or a dataset of the
model hub.

The layout is that of docs/sharing.md. Nothing of a repository is executed: of its newest commit
each submission passes the checks of `verify-submission` before it is copied into a results folder.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from biobench.core.files import temporary_folder, writing
from biobench.core.hub import client_errors, explain, patiently
from biobench.data.locate import DataRoot
from biobench.errors import StoreError, UsageError
from biobench.reporting.escape import plain
from biobench.reporting.results import SUBMITTED
from biobench.store.statements import (
    FOLDER,
    Foreign,
    Mark,
    Statement,
    make_statement,
    mark_of,
    save_statement,
    statement_on,
)
from biobench.submission.checks import Verification
from biobench.submission.git import ListedFile, clone, listed_files, run_git, without_password
from biobench.submission.guard import verify
from biobench.submission.layout import JSON_BYTES, MOST_FILES, TOTAL_BYTES, check_manifest
from biobench.submission.pack import Manifest

HUB = "hub:"
"""Before the name of a dataset repository of the hub."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Outcome = Literal["new", "updated", "unchanged", "refused", "kept"]


class PulledSubmission(NamedTuple):
    """One submission of a repository. kept: what is here was left alone, for the reason given."""

    name: str
    outcome: Outcome
    reason: str = ""


class SentSubmission(NamedTuple):
    """branch: that holds the submission, a pull request's number on the hub. page: of the request
    on the hub.
    """

    branch: str
    page: str | None
    text: str


def pull(
    address: str, results_dir: str | Path, data_dir: DataRoot = None
) -> tuple[str, list[PulledSubmission]]:
    """(commit, what became of each submission).

    Raises StoreError where the repository cannot be read and UsageError for an address that is
    none.
    """
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary, "repository")
        refused: list[PulledSubmission] = []
        if address.startswith(HUB):
            commit = _fetch(address, root)
        else:
            commit = clone(address, root, "--no-checkout")
            refused = _check_out(root)
        pulled = list(refused)
        for source in sorted(root.glob(f"{SUBMITTED}/*")):
            if source.is_dir():
                target = Path(results_dir, SUBMITTED)
                taken = _take(source, root, target, data_dir, address)
                pulled.append(PulledSubmission(plain(source.name), *taken))
        return commit, sorted(pulled)


def push(address: str, folder: Path) -> SentSubmission:
    """A branch (on the hub: a pull request) of the repository that adds this packed submission.

    Raises UsageError for a folder that is refused, and StoreError where the repository cannot be
    read or written.
    """
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{plain(name)}' cannot be a submission's folder", hint="letters, digits, '.', - and _"
        )
    verification = verify(folder)
    stopped = _stopped(verification)
    if stopped is not None:
        raise UsageError(f"'{plain(str(folder))}' is {stopped}", hint="see `verify-submission`")
    title = f"Submission: {plain(verification.model)}"
    path = f"{SUBMITTED}/{name}"
    text = _request_text(verification)
    if address.startswith(HUB):
        return _open_request(address, folder, path, title=title, text=text)
    return SentSubmission(_push_branch(address, folder, path, title), None, text)


def _request_text(verification: Verification) -> str:
    """What a request says of the check: its summary, then a line for each finding."""
    lines = [f"`biobench verify-submission`: {verification.summary()}"]
    for check in verification.checks:
        lines.append(f"{check.code} {check.grade}: {plain(check.where)}: {check.what}")
    return "\n- ".join(lines)


def _open_request(
    address: str, folder: Path, target: str, *, title: str, text: str
) -> SentSubmission:
    """A pull request of the hub that adds the folder at `target`.

    One commit opens it: `upload_folder` sends several and leaves the request a draft.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    operations = []
    for path in folder.rglob("*"):
        if path.is_file():
            name = f"{target}/{path.relative_to(folder).as_posix()}"
            operations.append(CommitOperationAdd(name, str(path)))
    with _hub_errors(address) as repository:
        commit = HfApi().create_commit(
            repo_id=repository,
            repo_type="dataset",
            operations=operations,
            commit_message=title,
            commit_description=text,
            create_pr=True,
        )
    if commit.pr_url is None:
        raise _nothing_to_send(target)
    return SentSubmission(commit.pr_revision or "main", commit.pr_url, text)


def _push_branch(address: str, folder: Path, target: str, title: str) -> str:
    """The branch of a git repository, pushed, that adds the folder at `target`.

    Where it was sent before, its branch is continued, and nothing that somebody added to it is
    overwritten.
    """
    branch = f"submission/{folder.resolve().name}"
    head = f"refs/heads/{branch}"
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary, "clone")
        clone(address, copy)
        start = "HEAD"
        if run_git(["ls-remote", "origin", head], copy).strip():
            run_git(["fetch", "--quiet", "--depth", "1", "--no-tags", "origin", head], copy)
            start = "FETCH_HEAD"
        run_git(["checkout", "--quiet", "-b", branch, start], copy)
        shutil.rmtree(copy / target, ignore_errors=True)
        with writing(copy / target):
            shutil.copytree(folder, copy / target, copy_function=shutil.copyfile)
        run_git(["add", "--all", "--force", "--", target], copy)
        if not run_git(["status", "--porcelain"], copy).strip():
            raise _nothing_to_send(target)
        run_git(["commit", "--quiet", "-m", title], copy)
        run_git(["push", "--quiet", "origin", branch], copy)
    return branch


def _nothing_to_send(path: str) -> UsageError:
    return UsageError(f"{path} is there already, as it is here", hint="nothing is to be sent")


def _stopped(verification: Verification) -> str | None:
    """Why a submission goes no further; None where it may. One that waits to be reproduced may be
    sent and shown.
    """
    for check in verification.checks:
        if check.grade != "warning" and (check.grade, check.code) != ("person", "W01"):
            return f"{verification.state}: {check.where}: {plain(check.what)}"
    return None


def _take(
    source: Path, root: Path, target: Path, data_dir: DataRoot, address: str
) -> tuple[Outcome, str]:
    """Check one submission and put it in its place, over an earlier one of the same model that
    nobody changed here. Gives what became of it, and why.

    Its mark is what the check here finds. A statement of the repository is kept as its word.
    """
    folder = target / source.name
    if not _NAME.fullmatch(source.name):
        return "refused", "its name is no folder's name"
    exists = os.path.lexists(folder)
    ours = _whole(folder)
    theirs = _whole(source)
    if exists and theirs is not None and not _continues(ours, theirs):
        return (
            "kept",
            "it is another submission, or was changed here since; move it away to pull again",
        )
    try:
        their_statement = statement_on(source, root)
        our_statement = statement_on(folder, target.parent) if exists else None
    except StoreError as error:
        return "refused", f"the statement on it {error.what}"
    if their_statement is not None and not their_statement.agrees:
        return "refused", "a run that the repository's maintainer drew does not agree"
    foreign = _foreign(their_statement, address)
    if ours is not None and ours == theirs:
        _note_their_word(folder, our_statement, foreign)
        return "unchanged", mark_of(folder)
    verification = verify(source, data_dir, target.parent)
    stopped = _stopped(verification)
    if stopped is not None:
        return "refused", stopped
    _put(source, folder)
    statement = make_statement(folder, verification.mark, foreign=foreign)
    save_statement(folder, target.parent, statement)
    return "updated" if exists else "new", mark_of(folder)


def _continues(ours: Manifest | None, theirs: Manifest) -> bool:
    """Whether a submission that is here whole is of the same model, so that theirs replaces it."""
    return ours is not None and ours.model == theirs.model


def _note_their_word(folder: Path, statement: Statement | None, foreign: Foreign | None) -> None:
    """Keep what the repository says of a submission that is here unchanged, unless runs were drawn
    here.
    """
    if statement is not None and statement.draws:
        return
    mark: Mark = "claimed" if statement is None else statement.mark
    save_statement(folder, folder.parents[1], make_statement(folder, mark, foreign=foreign))


def _put(source: Path, folder: Path) -> None:
    """A copy of a submission in its place, over an earlier one."""
    with temporary_folder(folder) as aside, writing(folder):
        shutil.copytree(source, aside, copy_function=shutil.copyfile, dirs_exist_ok=True)
        if os.path.lexists(folder):
            shutil.rmtree(folder)


def _foreign(statement: Statement | None, address: str) -> Foreign | None:
    """What is shown of a repository's own statement: that it reproduced a run, if it says which."""
    if statement is None or not statement.proved:
        return None
    return Foreign(address=plain(without_password(address)), mark=statement.mark)


def _whole(folder: Path) -> Manifest | None:
    """The manifest of a submission whose files are those that it lists; None where they are not."""
    manifest, checks = check_manifest(folder)
    return None if checks or folder.is_symlink() else manifest


def _check_out(root: Path) -> list[PulledSubmission]:
    """Take what a commit holds of submissions and statements, within bounds, and nothing else.

    A few kilobytes of a repository can stand for any number of files, so they are counted before
    they are written. Gives the submissions that are left out. Raises StoreError for a repository
    beyond the bounds.
    """
    by_name: dict[str, list[ListedFile]] = defaultdict(list)
    wanted: list[str] = []
    for file in listed_files(root, SUBMITTED, FOLDER):
        path = Path(file.path)
        if path.parts[0] == SUBMITTED:
            by_name[path.parts[1]].append(file)
        elif file.size <= JSON_BYTES and path.parent == Path(FOLDER):
            wanted.append(file.path)
    refused = []
    for name, files in by_name.items():
        reason = _out_of_bounds(name, files)
        if reason:
            refused.append(PulledSubmission(plain(name), "refused", reason))
        else:
            wanted += [file.path for file in files]
    if wanted:
        words = ["--literal-pathspecs", "checkout", "--quiet", "HEAD"]
        words += ["--pathspec-from-file=-", "--pathspec-file-nul"]
        run_git(words, root, "\0".join(wanted))
    return refused


def _out_of_bounds(name: str, files: Sequence[ListedFile]) -> str:
    """Why a submission of a commit is not even written; empty where it is."""
    if not _NAME.fullmatch(name):
        return "its name is no folder's name"
    if len(files) > MOST_FILES or sum(file.size for file in files) > TOTAL_BYTES:
        return f"it holds more than {MOST_FILES} files or {TOTAL_BYTES} bytes"
    return ""


def _fetch(address: str, folder: Path) -> str:
    """The newest commit of a dataset, its files in `folder`. That they are whole is held against
    their manifests.
    """
    from huggingface_hub import HfApi, snapshot_download

    wanted = [f"{root}/*" for root in (SUBMITTED, FOLDER)]
    with _hub_errors(address) as repository:
        commit = patiently(lambda: HfApi().dataset_info(repository)).sha or ""
        cached = Path(
            snapshot_download(
                repository, repo_type="dataset", revision=commit, allow_patterns=wanted
            )
        )
        if cached.is_dir():  # else it has no results
            shutil.copytree(cached, folder)  # there the files are links
        return commit


@contextmanager
def _hub_errors(address: str) -> Iterator[str]:
    """The repository's name, whose client's errors become a StoreError."""
    repository = address.removeprefix(HUB)
    try:
        yield repository
    except client_errors() as error:
        message, hint = explain(error, repository, "dataset", "main")
        raise StoreError(f"hub dataset {plain(repository)}: {plain(message)}", hint=hint) from error
