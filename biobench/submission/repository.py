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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from biobench.core.files import write_atomic, writing
from biobench.core.hub import client_errors, explain, patiently, set_patience
from biobench.errors import StoreError, UsageError
from biobench.report.entrants import line_name
from biobench.report.escape import plain
from biobench.report.results import SUBMITTED, load
from biobench.store import Store
from biobench.store.index import FILE as INDEX
from biobench.store.statements import FOLDER, MANIFEST, make_statement, mark_of, save_statement, statement_on
from biobench.submission.checks import Verification
from biobench.submission.git import run_git, without_password
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


@dataclass(frozen=True, slots=True)
class PulledSubmission:
    """One submission of a repository. kept: what is here was left alone, for the reason given."""

    name: str
    outcome: Literal["new", "updated", "unchanged", "refused", "kept"]
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
    shown, state = without_password(_checked(address)), _state(target)
    pulled: dict[str, PulledSubmission] = {}
    with tempfile.TemporaryDirectory() as place:
        remote = Path(place) / "remote"
        commit, files = _files_on_hub(address) if address.startswith(HUB) else _files_in_git(address, Path(place))
        for path, file in files.items():
            (remote / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, remote / path)
        for source in _submissions(remote, Path(place)):
            name = source.name
            if name in pulled:
                continue  # the owner's runs of a model that the owner submitted too
            known = state[name]["files"] if state.get(name, {}).get("from") == shown else None
            pulled[name] = _lay(source, remote, target, known, data_dir)
            if pulled[name].outcome in ("new", "updated"):
                state[name] = {"from": shown, "commit": commit, "files": _digest(source)}
                # after each, so that a killed command leaves nothing of which nobody knows where it came from
                write_atomic(target / _STATE, (json.dumps(state, indent=1, sort_keys=True) + "\n").encode())
    for name in sorted(state.keys() - pulled.keys()):
        if state[name].get("from") == shown and (target / name).exists():
            pulled[name] = PulledSubmission(name, "kept", "it is no longer in the repository")
    return commit, list(pulled.values())


def push(address: str, folder: str | Path) -> SentSubmission:
    """A branch (on the hub: a pull request) of the repository that adds this packed submission.

    Raises UsageError for a folder that is refused, and StoreError where the repository cannot be read or written.
    """
    folder = Path(folder)
    name, verification = folder.resolve().name, verify(folder)
    if not _NAME.fullmatch(name):
        raise UsageError(f"'{plain(name)}' cannot be a submission's folder", hint="letters, digits, '.', - and _")
    if (stopped := _stopped(verification)) is not None:
        raise UsageError(f"'{plain(str(folder))}' is {stopped}", hint="see `verify-submission`")
    text, place = request_text(folder, verification), f"{SUBMITTED}/{name}"
    title, _, body = text.partition("\n")
    files = {path.relative_to(folder).as_posix(): path for path in (folder / MANIFEST, *packed_files(folder))}
    sent: SentSubmission | None = None
    if address.startswith(HUB):
        from huggingface_hub import CommitOperationAdd, HfApi

        with _hub_errors(address):
            # One commit that opens the request: `upload_folder` sends several and leaves the request a draft.
            commit = HfApi().create_commit(
                repo_id=address.removeprefix(HUB),
                repo_type="dataset",
                operations=[CommitOperationAdd(f"{place}/{path}", str(file)) for path, file in files.items()],
                commit_message=title,
                commit_description=body.strip(),
                create_pr=True,
            )
        if commit.pr_url is not None:
            sent = SentSubmission(commit.pr_revision or "main", commit.pr_url, text)
    else:
        branch = f"submission/{name}"
        with tempfile.TemporaryDirectory() as temporary:
            clone = Path(temporary) / "clone"
            base = _clone(address, clone)[1]
            begin = "HEAD"
            if run_git(["ls-remote", "origin", f"refs/heads/{branch}"], clone).strip():
                # sent before: the request is continued, and nothing that somebody added to it is overwritten
                run_git(["fetch", "--quiet", "--depth", "1", "--no-tags", "origin", f"refs/heads/{branch}"], clone)
                begin = "FETCH_HEAD"
            run_git(["checkout", "--quiet", "-b", branch, begin], clone)
            run_git(["rm", "-r", "--quiet", "--force", "--ignore-unmatch", "--", place], clone)
            with writing(clone / place):
                for path, file in files.items():
                    (clone / place / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file, clone / place / path)
            run_git(["add", "--force", "--", place], clone)
            if run_git(["status", "--porcelain"], clone).strip():
                run_git(["commit", "--quiet", "-m", title], clone)
                run_git(["push", "--quiet", "origin", branch], clone)
                sent = SentSubmission(branch, _compare_page(address, base, branch), text)
    if sent is None:
        raise UsageError(f"{place} is there already, as it is here", hint="nothing is to be sent")
    return sent


def _stopped(verification: Verification) -> str | None:
    """Why a submission goes no further; None where it may. One that waits to be reproduced may be sent and shown."""
    stops = [c for c in verification.checks if c.grade == "error" or (c.grade == "person" and c.code != "W01")]
    if stops:
        return f"{verification.state}: {stops[0].where}: {plain(stops[0].what)}"
    return "refused" if verification.state == "refused" else None


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


def _submissions(remote: Path, place: Path) -> Iterator[Path]:
    """The folder of each; those of the owner's runs are packed on the way, below `place`."""
    yield from sorted((remote / SUBMITTED).glob("*"))
    owner = place / "owner"
    for part in ("runs", "floors"):
        if (remote / part).is_dir():
            shutil.copytree(remote / part, owner / part)
    groups = load(owner).groups if (owner / "runs").is_dir() else ()
    for model in sorted({line_name(g.model, g.variant) for g in groups if g.source in ("run", "frozen")}):
        with suppress(UsageError):  # runs that no submission holds, or several weights of one name
            yield submit(model, owner, place / "packed" / slug(model))


def _lay(source: Path, remote: Path, target: Path, known: str | None, data_dir: str | Path | None) -> PulledSubmission:
    """Check one submission and put it in its place. known: digest of what was pulled from there under its name."""
    name = source.name
    place = target / name
    if not _NAME.fullmatch(name):
        return PulledSubmission(plain(name), "refused", "its name is no folder's name")
    there = place.exists() or place.is_symlink()
    if there and (place.is_symlink() or _digest(place) != known):
        what = "it did not come from there, or was changed here since; delete it to pull it again"
        return PulledSubmission(name, "kept", what)
    try:
        statement = statement_on(source, remote)
    except StoreError as error:
        return PulledSubmission(name, "refused", f"the repository's statement on it {error.what}")
    if statement is not None and not all(draw.agrees for draw in statement.draws):
        return PulledSubmission(name, "refused", "a run that the repository's maintainer drew does not agree")
    unchanged = there and known == _digest(source)
    if not unchanged:
        verification = verify(source, data_dir, target.parent)
        if (stopped := _stopped(verification)) is not None:
            return PulledSubmission(name, "refused", stopped)
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pulled-") as aside:
            shutil.copytree(source, Path(aside) / name)
            if there:
                place.rename(Path(aside) / "before")
            (Path(aside) / name).rename(place)
        if verification.mark == "re-scored" and statement is None:
            statement = make_statement(place, "re-scored")
    if statement is not None and mark_of(place) != "reproduced":
        save_statement(place, target.parent, statement)
    return PulledSubmission(name, "unchanged" if unchanged else "updated" if known else "new", mark_of(place))


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
    if isinstance(state, dict) and all(isinstance(known, dict) for known in state.values()):
        return state
    raise StoreError(
        "is damaged, so nobody can say what was pulled",
        hint="delete it and the submissions that came from repositories, and pull again",
        file=target / _STATE,
    )


def _clone(address: str, folder: Path) -> tuple[str, str]:
    """(newest commit, its branch) of a clone, in which links are files with the address in them. Raises StoreError."""
    run_git(["clone", "--quiet", "--depth", "1", "--no-tags", "--", _checked(address), str(folder)])
    try:
        commit = run_git(["rev-parse", "--verify", "--quiet", "HEAD"], folder).strip()
    except StoreError:
        raise StoreError(f"{without_password(address)} has no commit", hint="name a repository of results") from None
    return commit, run_git(["rev-parse", "--abbrev-ref", "HEAD"], folder).strip()


def _files_in_git(address: str, place: Path) -> tuple[str, dict[str, Path]]:
    """The newest commit, and the repository's files of results by their paths."""
    clone = place / "clone"
    commit = _clone(address, clone)[0]
    # mode 120000 is a link, 160000 another repository
    listed = (line.split("\t", 1) for line in run_git(["ls-tree", "-r", "-z", "HEAD"], clone).split("\0") if line)
    wanted = [path for kind, path in listed if kind.startswith("100") and _is_wanted(path)]
    _check_bounds([(clone / path).stat().st_size for path in wanted], address)
    return commit, {path: clone / path for path in wanted}


def _files_on_hub(address: str) -> tuple[str, dict[str, Path]]:
    """As `_files_in_git`. That they arrived whole is held against the hashes of manifests and records."""
    from huggingface_hub import HfApi, hf_hub_download

    repository = address.removeprefix(HUB)
    with _hub_errors(address):
        set_patience()
        info = patiently(lambda: HfApi().dataset_info(repository, files_metadata=True))
        wanted = {f.rfilename: f.size or 0 for f in info.siblings or [] if _is_wanted(f.rfilename)}
        _check_bounds([*wanted.values()], address)
        got = {path: Path(hf_hub_download(repository, path, revision=info.sha, repo_type="dataset")) for path in wanted}
    return info.sha or "", got


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
        hint = "give its https or ssh address, or hub:owner/name"
        raise UsageError(f"'{plain(address)}' is no repository", hint=hint)
    return str(Path(address).resolve()) if Path(address).is_dir() else address


def _compare_page(address: str, base: str, branch: str) -> str | None:
    """GitHub's page for opening the request; None elsewhere."""
    match = re.fullmatch(
        r"(?:https://(?:[^@/]*@)?github\.com/|git@github\.com:)([\w.-]+/[\w.-]+?)(?:\.git)?/?", address
    )
    return None if match is None else f"https://github.com/{match[1]}/compare/{base}...{branch}?expand=1"


@contextmanager
def _hub_errors(address: str) -> Iterator[None]:
    try:
        yield
    except client_errors() as error:
        repository = address.removeprefix(HUB)
        what, hint = explain(error, repository, "dataset", "main")
        raise StoreError(f"hub dataset {plain(repository)}: {plain(what)}", hint=hint) from error
