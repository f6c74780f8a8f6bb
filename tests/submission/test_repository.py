"""`results pull`, `results push` and `submit --open-pr` against real git repositories, and a stand-in for the hub."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

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
def here(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Committers have names; checks are made in this process, which spares seconds each, but for one test."""
    if "ones_own" not in request.node.name:
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


def outcomes(pulled) -> dict[str, str]:
    return {one.name.partition("-")[0]: one.outcome for one in pulled}


def test_what_is_sound_is_pulled_and_shown_beside_ones_own(bare: Path, tmp_path: Path) -> None:
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    commit, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert commit == git(bare, "rev-parse", "HEAD").strip()
    assert outcomes(pulled) == {"first": "new", "liar": "refused", "org": "new"}
    (reason,) = [one.reason for one in pulled if one.outcome == "refused"]
    assert reason.startswith("refused: ")
    found = {(g.model, g.source) for g in load(tmp_path / "mine").groups}
    assert found == {("org/mine", "run"), ("org/first", "submitted"), ("org/owner", "submitted")}
    laid = tmp_path / "mine" / "submitted" / "first"
    assert not (laid / "evil.py").exists(), "only files of results are read"
    assert not list((tmp_path / "mine").glob(".pulled-*"))


def test_pulled_again_nothing_changes_and_what_changed_is_updated(bare: Path, tmp_path: Path) -> None:
    repository.pull(str(bare), tmp_path / "mine")
    _, again = repository.pull(str(bare), tmp_path / "mine")
    assert outcomes(again) == {"first": "unchanged", "liar": "refused", "org": "unchanged"}
    work = tmp_path / "owner"
    shutil.rmtree(work / "submitted" / "first")
    honest_run(tmp_path / "theirs", model="org/first", seed=43)
    submit("org/first", tmp_path / "theirs", work / "submitted" / "first")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "another seed")
    git(work, "push", "-q", str(bare), "main")
    _, later = repository.pull(str(bare), tmp_path / "mine")
    assert outcomes(later)["first"] == "updated"
    (group,) = [g for g in load(tmp_path / "mine").groups if g.model == "org/first"]
    assert group.seeds == (42, 43)


def test_what_was_changed_here_after_it_was_pulled_is_named_and_not_overwritten(bare: Path, tmp_path: Path) -> None:
    repository.pull(str(bare), tmp_path / "mine")
    laid = tmp_path / "mine" / "submitted" / "first"
    (laid / "runs" / ".index.json").write_bytes(b"what a report leaves")
    assert outcomes(repository.pull(str(bare), tmp_path / "mine")[1])["first"] == "unchanged"
    (record,) = laid.glob("runs/*/*.json")
    record.write_text(record.read_text().replace('"seed": 42', '"seed": 41'))
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    (reason,) = [one.reason for one in pulled if one.name == "first"]
    assert (outcomes(pulled)["first"], reason) == (
        "kept",
        "it did not come from there, or was changed here since; delete it to pull it again",
    )
    shutil.rmtree(laid)
    assert outcomes(repository.pull(str(bare), tmp_path / "mine")[1])["first"] == "updated"
    assert '"seed": 42' in next(laid.glob("runs/*/*.json")).read_text()


def test_what_the_repository_no_longer_holds_is_said(bare: Path, tmp_path: Path) -> None:
    repository.pull(str(bare), tmp_path / "mine")
    work = tmp_path / "owner"
    git(work, "rm", "-qrf", "submitted/first")
    git(work, "commit", "-q", "-m", "taken back")
    git(work, "push", "-q", str(bare), "main")
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    (first,) = [one for one in pulled if one.name == "first"]
    assert (first.outcome, first.reason) == ("kept", "it is no longer in the repository")


def test_the_owners_runs_of_a_submitted_model_are_not_taken_twice(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "owner"
    submit("org/owner", work, work / "submitted" / slug("org/owner"), notes="by the owner")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "own")
    git(work, "push", "-q", str(bare), "main")
    for expected in ("new", "unchanged"):
        _, pulled = repository.pull(str(bare), tmp_path / "mine")
        assert [one.outcome for one in pulled if one.name == slug("org/owner")] == [expected]


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
    for name in (b"..", b".git"):
        named(name, b"sound")
        with pytest.raises(StoreError, match="invalid path"):
            repository.pull(str(bare), tmp_path / "mine")
    assert not (tmp_path / "mine" / "submitted").exists()


def test_a_submission_of_ones_own_of_that_name_stays(bare: Path, tmp_path: Path) -> None:
    honest_run(tmp_path / "other", model="org/other")
    submit("org/other", tmp_path / "other", tmp_path / "mine" / "submitted" / "first")
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert outcomes(pulled)["first"] == "kept"
    assert {g.model for g in load(tmp_path / "mine").groups} == {"org/other", "org/owner"}


def test_links_and_paths_that_lead_out_are_not_read(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "owner"
    (tmp_path / "secret.json").write_text("{}")
    target = work / "submitted" / "linked" / "runs" / "demo_topic"
    target.mkdir(parents=True)
    (target / f"{'0' * 32}.json").symlink_to(tmp_path / "secret.json")
    (work / "submitted" / "away").symlink_to(tmp_path)
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "links")
    git(work, "push", "-q", str(bare), "main")
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    assert set(outcomes(pulled)) == {"first", "liar", "org"}
    assert not any(p.is_symlink() for p in (tmp_path / "mine").rglob("*"))
    for path in (
        "submitted/a/../../x/submission.json",
        "/etc/passwd",
        "runs/gad/../../../x.json",
        "submitted/a/.git/hooks/x",
    ):
        assert not repository._is_wanted(path)


def test_too_much_is_refused_before_it_is_read(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MOST_FILES", 3)
    with pytest.raises(StoreError, match="holds 8 files"):
        repository.pull(str(bare), tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


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


def test_a_submission_is_sent_as_a_branch_with_its_text(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for seed in (42, 43):
        honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64, seed=seed)
    pack = tmp_path / "submissions" / "mine"
    shown = call(
        monkeypatch, capfd, "submit", "org/mine", "--results-dir", tmp_path / "mine", "--out", pack, "--open-pr", bare
    )
    assert shown.status == 0, shown.err
    assert "branch submission/mine" in shown.out
    assert "Submission: org/mine" in shown.out
    assert "| demo_topic | 2 | macro_f1 " in shown.out
    changed = git(bare, "diff", "--name-only", "main", "submission/mine").split()
    assert changed
    assert all(path.startswith("submitted/mine/") for path in changed)
    files = git(bare, "ls-tree", "-r", "--name-only", "submission/mine").split()
    assert sorted(f.removeprefix("submitted/mine/") for f in files if f.startswith("submitted/mine/")) == sorted(
        p.relative_to(pack).as_posix() for p in pack.rglob("*") if p.is_file()
    )
    git(bare, "update-ref", "refs/heads/main", "submission/mine")
    _, pulled = repository.pull(str(bare), tmp_path / "another")
    assert outcomes(pulled)["mine"] == "new"
    with pytest.raises(UsageError, match="is there already"):
        repository.push(str(bare), pack)


def test_sent_again_after_a_change_the_request_goes_on(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    pack = submit("org/mine", tmp_path / "mine", tmp_path / "packs" / "mine")
    repository.push(str(bare), pack)
    first = git(bare, "rev-parse", "submission/mine").strip()
    with pytest.raises(UsageError, match="is there already"):
        repository.push(str(bare), pack)
    # the branch of the repository moved on meanwhile
    (tmp_path / "owner" / "README.md").write_text("moved on")
    git(tmp_path / "owner", "commit", "-qam", "moved on")
    git(tmp_path / "owner", "push", "-q", str(bare), "main")
    shutil.rmtree(pack)
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64, seed=43)
    submit("org/mine", tmp_path / "mine", pack)
    repository.push(str(bare), pack)
    assert git(bare, "rev-parse", "submission/mine^").strip() == first
    files = git(bare, "ls-tree", "-r", "--name-only", "submission/mine", "submitted/mine/runs").split()
    assert len([f for f in files if f.endswith(".json")]) == 2


def test_a_lie_is_not_sent(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is refused"):
        repository.push(str(bare), tmp_path / "owner" / "submitted" / "liar")
    assert git(bare, "branch", "--list", "submission/*") == ""


def test_the_page_of_the_request() -> None:
    page = "https://github.com/org/results/compare/main...submission/x?expand=1"
    for address in (
        "https://github.com/org/results.git",
        "git@github.com:org/results",
        "https://me:pw@github.com/org/results/",
    ):
        assert repository._compare_page(address, "main", "submission/x") == page
    assert repository._compare_page("https://example.org/x.git", "main", "b") is None


def test_a_hub_dataset_is_pulled_at_one_commit_and_gets_a_pull_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    honest_run(tmp_path / "theirs", model="org/first")
    there = tmp_path / "there"
    submit("org/first", tmp_path / "theirs", there / "submitted" / "first")
    (there / "load.py").write_text("raise SystemExit")
    sent: list[dict[str, object]] = []

    def info(self: object, name: str, *, files_metadata: bool) -> SimpleNamespace:
        files = [p for p in there.rglob("*") if p.is_file()]
        siblings = [SimpleNamespace(rfilename=p.relative_to(there).as_posix(), size=p.stat().st_size) for p in files]
        return SimpleNamespace(sha="c" * 40, siblings=siblings)

    def got(name: str, path: str, *, revision: str, repo_type: str) -> str:
        assert (name, revision, repo_type) == ("org/results", "c" * 40, "dataset")
        assert not path.endswith(".py")
        return str(there / path)

    def upload(self: object, **words: object) -> SimpleNamespace:
        sent.append(words)
        return SimpleNamespace(pr_revision="refs/pr/7", pr_url="https://hub.example/pr/7")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", got)
    monkeypatch.setattr(huggingface_hub.HfApi, "create_commit", upload)
    commit, pulled = repository.pull("hub:org/results", tmp_path / "mine")
    assert (commit, outcomes(pulled)) == ("c" * 40, {"first": "new"})
    assert (
        json.loads((tmp_path / "mine" / "submitted" / ".pulled.json").read_text())["first"]["from"] == "hub:org/results"
    )
    answer = repository.push("hub:org/results", tmp_path / "mine" / "submitted" / "first")
    assert (answer.branch, answer.page) == ("refs/pr/7", "https://hub.example/pr/7")
    (words,) = sent
    assert (words["repo_id"], words["create_pr"]) == ("org/results", True)
    assert all(o.path_in_repo.startswith("submitted/first/") for o in words["operations"])  # type: ignore[attr-defined]


def test_what_the_repositorys_maintainer_states_comes_along(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "owner"
    first = work / "submitted" / "first"
    save_statement(first, work, make_statement(first, "reproduced"))
    (work / "statements" / "x.py").write_text("raise SystemExit")
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "reproduced")
    git(work, "push", "-q", str(bare), "main")
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    marks = {one.name.partition("-")[0]: one.reason for one in pulled if one.outcome == "new"}
    assert marks == {"first": "reproduced", "org": "re-scored"}, "the demo task's data is always at hand"
    assert {mark_of(p) for p in (tmp_path / "mine" / "submitted").iterdir() if p.is_dir()} == {
        "reproduced",
        "re-scored",
    }
    assert not (tmp_path / "mine" / "statements" / "x.py").exists()


def test_what_its_maintainer_drew_and_could_not_reproduce_is_not_taken(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "owner"
    first = work / "submitted" / "first"
    drawn = Draw(task="demo_topic", task_hash="a" * 64, track="fixed", seed=7, metric="macro_f1", score=0.1, low=0.8,
                 high=0.9, alike=0.2, alike_low=0.7, alike_high=0.9, agrees=False)  # fmt: skip
    save_statement(first, work, make_statement(first, "claimed", (drawn,)))
    git(work, "add", "-A", "-f")
    git(work, "commit", "-q", "-m", "not reproduced")
    git(work, "push", "-q", str(bare), "main")
    _, pulled = repository.pull(str(bare), tmp_path / "mine")
    (reason,) = [one.reason for one in pulled if one.name == "first"]
    assert reason == "a run that the repository's maintainer drew does not agree"
    assert outcomes(pulled)["first"] == "refused"
