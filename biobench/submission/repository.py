"""Community results: submissions taken from, and sent to, a git repository or a dataset of the model hub.

The layout is that of docs/sharing.md. Nothing of a repository is executed or checked out: of its newest
commit the plain files of results are read by name, within bounds, and each submission passes the checks of
`verify-submission` before it is laid into a results folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from biobench.core.files import write_atomic
from biobench.core.hub import client_errors, damage, explain, patiently, set_patience
from biobench.errors import StoreError, UsageError
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.results import SUBMITTED, load
from biobench.store import Store
from biobench.store.index import FILE as INDEX
from biobench.store.statements import FOLDER, MANIFEST, make_statement, mark_of, save_statement, statement_on
from biobench.submission.checks import Verification
from biobench.submission.git import run_git, run_git_bytes
from biobench.submission.guard import verify
from biobench.submission.layout import allowed_bytes
from biobench.submission.pack import packed_files, slug, submit

HUB = "hub:"
"""Before the name of a dataset repository of the hub."""
MOST_FILES, MOST_BYTES = 50_000, 4 * 2**30
"""Of one repository."""
_STATE = ".pulled.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ROOTS = (SUBMITTED, "runs", "floors", FOLDER)

Outcome = Literal["new", "updated", "unchanged", "refused", "kept"]


@dataclass(frozen=True, slots=True)
class PulledSubmission:
    """One submission of a repository. kept: what is here was left alone, for the reason given."""

    name: str
    outcome: Outcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SentSubmission:
    """branch: that holds the submission, a pull request's number on the hub. page: where to open the request."""

    branch: str
    page: str | None
    text: str


def pull(
    address: str, results_dir: str | Path, data_dir: str | Path | None = None
) -> tuple[str, list[PulledSubmission]]:
    """(commit, what became of each submission). The owner's own runs come as a submission of each model.

    Raises StoreError where the repository cannot be read and UsageError for an address that is none.
    """
    target = Path(results_dir) / SUBMITTED
    shown = without_password(address if address.startswith(HUB) else _checked(address))
    state = _state(target)
    with tempfile.TemporaryDirectory() as place:
        remote = Path(place) / "remote"
        commit = _fetch(address, remote)
        pulled: dict[str, PulledSubmission] = {}
        for name, source in _submissions(remote, Path(place) / "packed"):
            if name in pulled:
                continue  # the owner's runs of a model that the owner submitted too
            pulled[name] = _lay(name, source, remote, target, state.get(name), shown, data_dir)
            if pulled[name].outcome in ("new", "updated"):
                state[name] = {"from": shown, "commit": commit, "files": _digest(source)}
                # after each, so that a killed command leaves nothing of which nobody knows where it came from
                write_atomic(target / _STATE, (json.dumps(state, indent=1, sort_keys=True) + "\n").encode())
    for name in sorted(state):
        if state[name].get("from") == shown and name not in pulled and (target / name).exists():
            pulled[name] = PulledSubmission(name, "kept", "it is no longer in the repository")
    return commit, list(pulled.values())


def push(address: str, folder: str | Path) -> SentSubmission:
    """A branch (on the hub: a pull request) of the repository that adds this packed submission.

    Raises UsageError for a folder that is refused, and StoreError where the repository cannot be read or written.
    """
    folder = Path(folder)
    name = folder.resolve().name
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{plain(name)}' cannot be a submission's folder", hint="letters, digits, '.', - and _")
    verification = verify(folder)
    if (stopped := _stopped(verification)) is not None:
        raise UsageError(f"'{plain(str(folder))}' is {stopped}", hint="see `verify-submission`")
    text = request_text(folder, verification)
    if address.startswith(HUB):
        return _push_hub(address.removeprefix(HUB), folder, name, text)
    branch = f"submission/{name}"
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "clone"
        run_git(["clone", "--quiet", "--depth", "1", "--no-tags", "--", _checked(address), str(clone)])
        _head(clone, address)
        base = run_git(["rev-parse", "--abbrev-ref", "HEAD"], clone).strip()
        if run_git(["ls-remote", "origin", f"refs/heads/{branch}"], clone).strip():
            # sent before: the request is continued, and nothing that somebody added to it is overwritten
            run_git(["fetch", "--quiet", "--depth", "1", "--no-tags", "origin", f"refs/heads/{branch}"], clone)
            run_git(["checkout", "--quiet", "-b", branch, "FETCH_HEAD"], clone)
        else:
            run_git(["checkout", "--quiet", "-b", branch], clone)
        into = clone / SUBMITTED / name
        # links are checked out as files with the address in them, so that none is followed
        for part in (clone / SUBMITTED, into):
            if part.exists() and not part.is_dir():
                raise StoreError("is no folder in the repository", hint="ask its owner", file=part.relative_to(clone))
        if into.exists():
            shutil.rmtree(into)
        for path in [folder / MANIFEST, *packed_files(folder)]:
            file = into / path.relative_to(folder)
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, file)
        run_git(["add", "--force", "--", f"{SUBMITTED}/{name}"], clone)
        if not run_git(["status", "--porcelain"], clone).strip():
            raise UsageError(f"{SUBMITTED}/{name} is there already, as it is here", hint="nothing is to be sent")
        run_git(["commit", "--quiet", "-m", text.partition("\n")[0]], clone)
        run_git(["push", "--quiet", "origin", branch], clone)
    return SentSubmission(branch, _compare_page(address, base, branch), text)


def _stopped(verification: Verification) -> str | None:
    """Why a submission goes no further; None where it may. One that waits to be reproduced may be sent and shown."""
    stops = [c for c in verification.checks if c.grade == "error" or (c.grade == "person" and c.code != "W01")]
    if stops:
        return f"{verification.state}: {stops[0].where}: {plain(stops[0].what)}"
    return "refused" if verification.state == "refused" else None


def _head(clone: Path, address: str) -> str:
    """The newest commit. Raises StoreError where there is none."""
    try:
        return run_git(["rev-parse", "--verify", "--quiet", "HEAD"], clone).strip()
    except StoreError:
        raise StoreError(f"{without_password(address)} has no commit", hint="name a repository of results") from None


def request_text(folder: Path, verification: Verification) -> str:
    """Title and body of the pull request, in Markdown."""
    # every record by itself: an index in the folder would be a foreign file
    records, _ = Store(folder).scan()
    lines = [f"Submission: {plain(verification.model)}", "", "| task | seeds | mean score |", "|---|--:|--:|"]
    for task in dict.fromkeys(record.task.id for record in records):
        runs = [record for record in records if record.task.id == task]
        metric = runs[0].task.primary
        mean = sum(run.scores[metric] for run in runs) / len(runs)
        lines.append(f"| {task} | {len(runs)} | {metric} {100 * mean:.1f} |")
    lines += ["", f"`biobench verify-submission`: {verification.summary()}"]
    lines += [f"- {check.code} {check.grade}: {plain(check.where)}: {check.what}" for check in verification.checks]
    return "\n".join(lines) + "\n"


def without_password(address: str) -> str:
    """The address as it may be stored and shown."""
    if "://" not in address:
        return address
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _submissions(remote: Path, packed: Path) -> Iterator[tuple[str, Path]]:
    """Name and folder of each; those of the owner's runs are packed on the way."""
    folder = remote / SUBMITTED
    for source in sorted(folder.iterdir()) if folder.is_dir() else []:
        yield source.name, source
    if (remote / "runs").is_dir():
        owner = Path(tempfile.mkdtemp(dir=packed.parent))
        for part in ("runs", "floors"):
            if (remote / part).is_dir():
                (remote / part).rename(owner / part)
        names = {line_name(g.model, g.variant) for g in load(owner).groups if g.source in ("run", "frozen")}
        for model in sorted(names):
            try:
                source = submit(model, owner, packed / slug(model))
            except UsageError:
                continue  # runs that no submission holds, or several weights of one name
            yield source.name, source


def _lay(
    name: str,
    source: Path,
    remote: Path,
    target: Path,
    known: dict[str, str] | None,
    address: str,
    data_dir: str | Path | None,
) -> PulledSubmission:
    if not _NAME.fullmatch(name):
        return PulledSubmission(plain(name), "refused", "its name is no folder's name")
    place, digest = target / name, _digest(source)
    if place.exists() or place.is_symlink():
        if known is None or known.get("from") != address:
            return PulledSubmission(name, "kept", "one of this name is here that did not come from there")
        if place.is_symlink() or _digest(place) != known.get("files"):
            return PulledSubmission(name, "kept", "it was changed here since; delete it to pull it again")
    try:
        statement = statement_on(source, remote)
    except StoreError as error:
        return PulledSubmission(name, "refused", f"the repository's statement on it {error.what}")
    if statement is not None and not all(draw.agrees for draw in statement.draws):
        return PulledSubmission(name, "refused", "a run that the repository's maintainer drew does not agree")
    outcome: Outcome = (
        "new" if known is None else "unchanged" if place.exists() and known["files"] == digest else "updated"
    )
    if outcome != "unchanged":
        verification = verify(source, data_dir, target.parent)
        if (stopped := _stopped(verification)) is not None:
            return PulledSubmission(name, "refused", stopped)
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pulled-") as aside:
            shutil.copytree(source, Path(aside) / name)
            if place.exists():
                place.rename(Path(aside) / "before")
            (Path(aside) / name).rename(place)
        if verification.mark == "re-scored" and statement is None:
            statement = make_statement(place, "re-scored")
    if statement is not None and mark_of(place) != "reproduced":
        save_statement(place, target.parent, statement)
    return PulledSubmission(name, outcome, mark_of(place))


def _digest(folder: Path) -> str:
    """Of names and contents, but for the index that a report lays into it."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink() and p.name != INDEX):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _state(target: Path) -> dict[str, dict[str, str]]:
    """Where each pulled submission came from. Raises StoreError where the file of it is damaged."""
    try:
        state = json.loads((target / _STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or not all(isinstance(known, dict) for known in state.values()):
        raise StoreError(
            "is damaged, so nobody can say what was pulled",
            hint="delete it and the submissions that came from repositories, and pull again",
            file=target / _STATE,
        )
    return state


def _fetch(address: str, folder: Path) -> str:
    """The repository's results as plain files in `folder`; the commit."""
    folder.mkdir()
    if address.startswith(HUB):
        return _fetch_hub(address.removeprefix(HUB), folder)
    clone = folder.parent / "clone"
    run_git(["clone", "--quiet", "--depth", "1", "--no-tags", "--no-checkout", "--", _checked(address), str(clone)])
    commit = _head(clone, address)
    entries = []
    for line in filter(None, run_git(["ls-tree", "-r", "-z", "-l", "HEAD", "--", *_ROOTS], clone).split("\0")):
        about, _, path = line.partition("\t")
        mode, _, blob, size = about.split()
        if mode == "100644" and _is_wanted(path):
            entries.append((path, blob, int(size)))
    _check_bounds([size for *_, size in entries], address)
    for path, blob, _ in entries:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(run_git_bytes(["cat-file", "blob", blob], clone))
    return commit


def _is_wanted(path: str) -> bool:
    """Whether a path of a repository is a file of results: no other is read."""
    parts = PurePosixPath(path).parts
    if ".." in parts or path.startswith("/") or len(parts) < 2 or parts[0] not in _ROOTS:
        return False
    if parts[0] == FOLDER:
        return len(parts) == 2 and path.endswith(".json")
    inside = "/".join(parts[2:]) if parts[0] == SUBMITTED else path
    return not inside.endswith((".index.parquet", ".index.json")) and allowed_bytes(inside) is not None


def _check_bounds(sizes: Sequence[int], address: str) -> None:
    if len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
        raise StoreError(
            f"{without_password(address)} holds {len(sizes)} files of {sum(sizes)} bytes",
            hint=f"at most {MOST_FILES} files and {MOST_BYTES} bytes are taken",
        )


def _checked(address: str) -> str:
    if not address or address.startswith("-") or "::" in address:
        raise UsageError(
            f"'{plain(address)}' is no repository", hint="give its https or ssh address, or hub:owner/name"
        )
    return str(Path(address).resolve()) if Path(address).is_dir() else address


def _compare_page(address: str, base: str, branch: str) -> str | None:
    """GitHub's page for opening the request; None elsewhere."""
    match = re.fullmatch(
        r"(?:https://(?:[^@/]*@)?github\.com/|git@github\.com:)([\w.-]+/[\w.-]+?)(?:\.git)?/?", address
    )
    return None if match is None else f"https://github.com/{match[1]}/compare/{base}...{branch}?expand=1"


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    try:
        yield
    except client_errors() as error:
        what, hint = explain(error, repository, "dataset", "main")
        raise StoreError(f"hub dataset {plain(repository)}: {plain(what)}", hint=hint) from error


def _fetch_hub(repository: str, folder: Path) -> str:
    from huggingface_hub import HfApi, hf_hub_download

    with _hub_errors(repository):
        set_patience()
        info = patiently(lambda: HfApi().dataset_info(repository, files_metadata=True))
        files = [f for f in info.siblings or [] if _is_wanted(f.rfilename)]
        _check_bounds([f.size or 0 for f in files], f"{HUB}{repository}")
        for file in files:
            got = Path(hf_hub_download(repository, file.rfilename, revision=info.sha, repo_type="dataset"))
            if (wrong := damage(got)) is not None:
                raise StoreError(
                    f"hub dataset {plain(repository)}: {plain(file.rfilename)}: {wrong}",
                    hint=f"delete {got.resolve()} and pull again",
                )
            (folder / file.rfilename).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(got, folder / file.rfilename)
    return info.sha or ""


def _push_hub(repository: str, folder: Path, name: str, text: str) -> SentSubmission:
    from huggingface_hub import CommitOperationAdd, HfApi

    title, _, body = text.partition("\n")
    files = [folder / MANIFEST, *packed_files(folder)]
    with _hub_errors(repository):
        # One commit that opens the request: `upload_folder` sends several and leaves the request a draft.
        commit = HfApi().create_commit(
            repo_id=repository,
            repo_type="dataset",
            operations=[
                CommitOperationAdd(f"{SUBMITTED}/{name}/{path.relative_to(folder).as_posix()}", str(path))
                for path in files
            ],
            commit_message=title,
            commit_description=body.strip(),
            create_pr=True,
        )
    if commit.pr_url is None:
        raise UsageError(f"{SUBMITTED}/{name} is there already, as it is here", hint="nothing is to be sent")
    return SentSubmission(commit.pr_revision or "main", commit.pr_url, text)
