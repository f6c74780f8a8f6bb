"""`results pull` and `results push` against real git repositories; tests/hub has a stand-in for the hub."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from biobench.errors import StoreError, UsageError
from biobench.report.results import load
from biobench.store.statements import Draw, make_statement, mark_of, save_statement
from biobench.submission import repository
from biobench.submission.pack import slug, submit
from biobench.submission.verify import examine
from tests.helpers.cli_make import call
from tests.helpers.submission_make import honest_run

IDENTITY = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, env={**os.environ, **IDENTITY}
    )
    return done.stdout


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Committers have names; checks are made in this process, which spares seconds each."""
    monkeypatch.setattr(repository, "verify", examine)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def bare_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a bare repository (`there.git`), of its owner's clone and of the runs that were submitted."""
    folder = tmp_path_factory.mktemp("bare")
    work = folder / "owner"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    honest_run(folder / "theirs", model="org/first")
    submit("org/first", folder / "theirs", work / "submitted" / "first")
    liar = submit("org/first", folder / "theirs", work / "submitted" / "liar")
    (record,) = liar.glob("runs/*/*.json")
    record.write_text(record.read_text().replace('"macro_f1": 0.', '"macro_f1": 0.9', 1))
    honest_run(work, model="org/owner", weights="5" * 64)
    (work / "README.md").write_text("a results repository")
    (work / "submitted" / "first" / "evil.py").write_text("raise SystemExit")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "results")
    git(folder, "clone", "-q", "--bare", str(work), "there.git")
    return folder


@pytest.fixture
def bare(bare_once: Path, tmp_path: Path) -> Path:
    """A bare repository with one accepted submission, one that lies, and an owner's run."""
    shutil.copytree(bare_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "there.git"


def publish(bare: Path, work: Path) -> None:
    """What lies in the owner's folder becomes the repository's newest commit."""
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "news")
    git(work, "push", "-q", str(bare), "main")


def outcomes(pulled) -> dict[str, str]:
    return {one.name.partition("-")[0]: one.outcome for one in pulled}


def test_what_is_sound_is_pulled_and_shown_with_ones_own(bare: Path, tmp_path: Path) -> None:
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    commit, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert commit == git(bare, "rev-parse", "HEAD").strip()
    assert outcomes(pulled) == {"first": "new", "liar": "refused", "org": "new"}
    assert [one.reason.split(":")[0] for one in pulled if one.name == "liar"] == ["refused"]
    shown = {(g.model, g.source) for g in load(tmp_path / "mine").groups}
    assert shown == {("org/mine", "run"), ("org/first", "submitted"), ("org/owner", "submitted")}
    assert not (tmp_path / "mine" / "submitted" / "first" / "evil.py").exists(), "only files of results are read"


def test_pulled_again_what_changed_there_is_updated_and_what_changed_here_is_kept(bare: Path, tmp_path: Path) -> None:
    mine, work = tmp_path / "mine", tmp_path / "owner"
    laid = mine / "submitted" / "first"
    honest_run(tmp_path / "other", model="org/other")
    submit("org/other", tmp_path / "other", laid)
    assert outcomes(repository.pull(str(bare), mine)[1])["first"] == "kept", "another model's"
    shutil.rmtree(laid)
    repository.pull(str(bare), mine)
    (laid / "runs" / ".index.json").write_bytes(b"what a report leaves")
    assert outcomes(repository.pull(str(bare), mine)[1]) == {
        "first": "unchanged",
        "liar": "refused",
        "org": "unchanged",
    }
    (record,) = laid.glob("runs/*/*.json")
    record.write_text(record.read_text().replace('"seed": 42', '"seed": 41'))
    (first,) = (one for one in repository.pull(str(bare), mine)[1] if one.name == "first")
    assert (first.outcome, first.reason) == (
        "kept",
        "it is another submission, or was changed here since; delete it to pull it again",
    )
    shutil.rmtree(laid)
    repository.pull(str(bare), mine)
    shutil.rmtree(work / "submitted" / "first")
    honest_run(tmp_path / "theirs", model="org/first", seed=43)
    submit("org/first", tmp_path / "theirs", work / "submitted" / "first")
    submit("org/owner", work, work / "submitted" / slug("org/owner"), notes="by the owner")
    publish(bare, work)
    assert outcomes(repository.pull(str(bare), mine)[1]) == {"first": "updated", "liar": "refused", "org": "updated"}
    (group,) = [g for g in load(mine).groups if g.model == "org/first"]
    assert group.seeds == (42, 43)


def test_names_in_a_tree_that_lead_out_are_read_by_nobody(bare: Path, tmp_path: Path) -> None:
    """Made by hand: `git add` would refuse them."""
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=bare, input=b"{}", capture_output=True, check=True
    ).stdout.strip()
    tree = subprocess.run(
        ["git", "mktree"], cwd=bare, input=b"100644 blob %b\tsubmission.json\n" % blob, capture_output=True, check=True
    ).stdout.strip()

    def named(*names: bytes) -> None:
        listed = b"".join(b"040000 tree %b\t%b\n" % (tree, name) for name in names)
        inner = subprocess.run(["git", "mktree"], cwd=bare, input=listed, capture_output=True, check=True).stdout
        submitted = b"040000 tree %b\tsubmitted\n" % inner.strip()
        outer = subprocess.run(["git", "mktree"], cwd=bare, input=submitted, capture_output=True, check=True).stdout
        commit = git(bare, "commit-tree", outer.decode().strip(), "-m", "names").strip()
        git(bare, "update-ref", "refs/heads/main", commit)

    named(b"a b", b"-x", b"x" * 120)
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert {one.name: one.outcome for one in pulled} == dict.fromkeys(("a b", "-x", "x" * 120), "refused")
    assert all(one.reason == "its name is no folder's name" for one in pulled)
    named(b"..", b"sound")
    with pytest.raises(StoreError, match="invalid path"):
        repository.pull(str(bare), tmp_path / "mine")
    assert not (tmp_path / "mine" / "submitted").exists()


def test_links_that_lead_out_are_not_followed(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "owner"
    (tmp_path / "secret.json").write_text("{}")
    target = work / "submitted" / "linked" / "runs" / "demo_topic"
    target.mkdir(parents=True)
    (target / f"{'0' * 32}.json").symlink_to(tmp_path / "secret.json")
    (work / "submitted" / "away").symlink_to(tmp_path)
    publish(bare, work)
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert outcomes(pulled) == {"first": "new", "liar": "refused", "linked": "refused", "org": "new"}
    assert not any(p.is_symlink() for p in (tmp_path / "mine").rglob("*"))
    for path in (
        "submitted/a/../../x/submission.json",
        "/etc/passwd",
        "submitted/a/.git/hooks/x",
        "statements/a/b.json",
    ):
        assert not repository._is_wanted(Path(path))


@pytest.mark.parametrize("address", ["-oProxyCommand=x", "ext::sh -c touch% x", ""])
def test_addresses_that_run_something_are_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no repository"):
        repository.pull(address, tmp_path)


def test_what_cannot_be_read_is_one_line_without_a_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        repository.pull(f"file://name:secret@localhost{tmp_path}/nothing.git", tmp_path)
    assert "secret" not in str(caught.value)
    # the path may be longer than a message; the last lines of git's answer are "Please make sure ..."
    assert str(caught.value).startswith("git clone: fatal: '/")
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    with pytest.raises(StoreError, match="has no commit"):
        repository.pull(str(tmp_path / "empty.git"), tmp_path)


def test_a_submission_is_sent_as_a_branch_and_continued(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    pack = submit("org/mine", tmp_path / "mine", tmp_path / "submissions" / "mine")
    shown = call(monkeypatch, capfd, "results", "push", bare, pack)
    assert shown.status == 0, shown.err
    assert shown.out.startswith("branch submission/mine\n\n`biobench verify-submission`: verified: 1 runs")
    first = git(bare, "rev-parse", "submission/mine").strip()
    changed = git(bare, "diff", "--name-only", "main", "submission/mine").split()
    expected = sorted(p.relative_to(pack).as_posix() for p in pack.rglob("*") if p.is_file())
    assert sorted(changed) == [f"submitted/mine/{path}" for path in expected]
    with pytest.raises(UsageError, match="is there already"):
        repository.push(str(bare), pack)
    # the branch of the repository moved on meanwhile
    (tmp_path / "owner" / "README.md").write_text("moved on")
    publish(bare, tmp_path / "owner")
    shutil.rmtree(pack)
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64, seed=43)
    submit("org/mine", tmp_path / "mine", pack)
    repository.push(str(bare), pack)
    assert git(bare, "rev-parse", "submission/mine^").strip() == first
    files = git(bare, "ls-tree", "-r", "--name-only", "submission/mine", "submitted/mine/runs").split()
    assert len([f for f in files if f.endswith(".json")]) == 2
    git(bare, "update-ref", "refs/heads/main", "submission/mine")
    assert outcomes(repository.pull(str(bare), tmp_path / "another")[1])["mine"] == "new"
    with pytest.raises(UsageError, match="is refused"):
        repository.push(str(bare), tmp_path / "owner" / "submitted" / "liar")


def test_what_the_repositorys_maintainer_states_comes_along(bare: Path, tmp_path: Path) -> None:
    work, mine = tmp_path / "owner", tmp_path / "mine"
    first = work / "submitted" / "first"
    save_statement(first, work, make_statement(first, "reproduced"))
    (work / "statements" / "x.py").write_text("raise SystemExit")
    publish(bare, work)
    _, pulled = repository.pull(str(bare), mine)
    marks = {one.name.partition("-")[0]: one.reason for one in pulled if one.outcome == "new"}
    assert marks == {"first": "reproduced", "org": "re-scored"}, "the demo task's data is always at hand"
    assert [mark_of(p) for p in sorted((mine / "submitted").iterdir())] == ["reproduced", "re-scored"]
    assert not (mine / "statements" / "x.py").exists()
    drawn = Draw(task="demo_topic", task_hash="a" * 64, track="fixed", seed=7, metric="macro_f1", score=0.1, low=0.8,
                 high=0.9, alike=0.2, alike_low=0.7, alike_high=0.9, agrees=False)  # fmt: skip
    save_statement(first, work, make_statement(first, "claimed", (drawn,)))
    publish(bare, work)
    (first_again,) = (one for one in repository.pull(str(bare), tmp_path / "other")[1] if one.name == "first")
    assert first_again[1:] == ("refused", "a run that the repository's maintainer drew does not agree")
