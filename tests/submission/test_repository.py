"""`results pull` and `push` against real git repositories, and the page on a results repository."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from biobench.errors import StoreError, UsageError
from biobench.reporting.results import load
from biobench.store import run_key
from biobench.store.statements import Draw, make_statement, mark_of, save_statement
from biobench.store.tables import SCHEMA
from biobench.submission import repository
from biobench.submission.pack import Manifest, SubmittedFile, submit
from biobench.submission.verify import examine
from tests.helpers.cli_make import call
from tests.helpers.submission_make import findings, honest_run
from tests.test_docs import parse

IDENTITY = {
    f"GIT_{who}_{what}": "x@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def git(folder: Path, *words: str, text: str | None = None) -> str:
    environment = {**os.environ, **IDENTITY}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        input=text,
    )
    return done.stdout.strip()


def commit(folder: Path) -> None:
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "news")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Committers have names; checks are made in this process, which spares seconds each."""
    monkeypatch.setattr(repository, "verify", examine)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def bare_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a bare repository (`there.git`), of its owner's clone and of the runs that were
    submitted.
    """
    folder = tmp_path_factory.mktemp("bare")
    work = folder / "owner"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    honest_run(folder / "theirs", model="org/first")
    submit("org/first", folder / "theirs", work / "submitted" / "first")
    liar = submit("org/first", folder / "theirs", work / "submitted" / "liar")
    (record,) = liar.glob("runs/*/*.json")
    record.write_text(record.read_text().replace('"macro_f1": 0.', '"macro_f1": 0.9', 1))
    (work / "README.md").write_text("a results repository")
    commit(work)
    git(folder, "clone", "-q", "--bare", str(work), "there.git")
    return folder


@pytest.fixture
def bare(bare_once: Path, tmp_path: Path) -> Path:
    """A bare repository with one accepted submission and one that lies."""
    shutil.copytree(bare_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "there.git"


def publish(bare: Path, work: Path) -> None:
    """What lies in the owner's folder becomes the repository's newest commit."""
    commit(work)
    git(work, "push", "-q", str(bare), "main")


def pulled(bare: Path, target: Path) -> dict[str, str]:
    return {one.name: one.outcome for one in repository.pull(str(bare), target)[1]}


def test_what_is_sound_is_pulled_and_shown_with_ones_own(bare, tmp_path):
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    newest, (first, liar) = repository.pull(str(bare), tmp_path / "mine")
    assert newest == git(bare, "rev-parse", "HEAD")
    assert (first.name, first.outcome) == ("first", "new")
    assert liar.outcome == liar.reason.split(":")[0] == "refused"
    shown = {(g.model, g.source) for g in load(tmp_path / "mine").groups}
    assert shown == {("org/mine", "run"), ("org/first", "submitted")}


def test_pulled_again_what_changed_there_is_updated_and_what_changed_here_is_kept(bare, tmp_path):
    mine, work = tmp_path / "mine", tmp_path / "owner"
    place = mine / "submitted" / "first"
    honest_run(tmp_path / "other", model="org/other")
    submit("org/other", tmp_path / "other", place)
    assert pulled(bare, mine)["first"] == "kept", "another model's"
    shutil.rmtree(place)
    repository.pull(str(bare), mine)
    (place / "runs" / ".index.json").write_bytes(b"what a report leaves")
    assert pulled(bare, mine) == {"first": "unchanged", "liar": "refused"}
    (record,) = place.glob("runs/*/*.json")
    record.write_text(record.read_text().replace('"seed": 42', '"seed": 41'))
    first = repository.pull(str(bare), mine)[1][0]
    what = "it is another submission, or was changed here since; move it away to pull again"
    assert (first.outcome, first.reason) == ("kept", what)
    shutil.rmtree(place)
    repository.pull(str(bare), mine)
    shutil.rmtree(work / "submitted" / "first")
    honest_run(tmp_path / "theirs", model="org/first", seed=43)
    submit("org/first", tmp_path / "theirs", work / "submitted" / "first")
    publish(bare, work)
    assert pulled(bare, mine) == {"first": "updated", "liar": "refused"}
    (group,) = [g for g in load(mine).groups if g.model == "org/first"]
    assert group.seeds == (42, 43)


def blob(bare: Path) -> str:
    """The object of a file in a bare repository."""
    return git(bare, "hash-object", "-w", "--stdin", text="{}")


def tree(bare: Path, objects: dict[str, str], kind: str = "040000 tree") -> str:
    """The object of a folder: name -> object, all of one kind."""
    lines = [f"{kind} {digest}\t{name}\n" for name, digest in objects.items()]
    return git(bare, "mktree", text="".join(lines))


def commit_trees(bare: Path, **folders: str) -> None:
    """The newest commit holds these folders and nothing else."""
    made = git(bare, "commit-tree", tree(bare, folders), "-m", "made by hand")
    git(bare, "update-ref", "refs/heads/main", made)


def test_names_in_a_tree_that_lead_out_are_read_by_nobody(bare, tmp_path):
    """Made by hand: `git add` would refuse them."""
    submission = tree(bare, {"submission.json": blob(bare)}, "100644 blob")
    names = ("a b", "-x", "x" * 120)
    commit_trees(bare, submitted=tree(bare, dict.fromkeys(names, submission)))
    outcomes = {one.name: one[1:] for one in repository.pull(str(bare), tmp_path / "mine")[1]}
    assert outcomes == dict.fromkeys(names, ("refused", "its name is no folder's name"))
    commit_trees(bare, submitted=tree(bare, dict.fromkeys(("..", "sound"), submission)))
    assert pulled(bare, tmp_path / "mine") == {"..": "refused", "sound": "refused"}
    assert not (tmp_path / "mine" / "submitted").exists()


def test_a_tree_of_very_many_files_is_not_written(bare, tmp_path, monkeypatch):
    """Trees that hold one another: a few kilobytes stood for 100,000 files."""
    names = [f"f{number}" for number in range(9)]
    many = tree(bare, dict.fromkeys(names, blob(bare)), "100644 blob")
    for _ in range(3):
        many = tree(bare, dict.fromkeys(names, many))
    commit_trees(bare, submitted=tree(bare, {"many": many}), other=many)
    monkeypatch.setattr(repository, "_take", lambda *_: pytest.fail("it was written"))
    (found,) = repository.pull(str(bare), tmp_path / "mine")[1]
    assert (found.name, found.outcome) == ("many", "refused")
    assert found.reason.startswith("it holds more than 5000 files")
    monkeypatch.setattr("biobench.submission.git.MOST_LISTED", 10_000)
    with pytest.raises(StoreError, match="lists more than 10000 bytes of files"):
        repository.pull(str(bare), tmp_path / "mine")


def test_links_that_lead_out_are_not_followed(bare, tmp_path):
    work = tmp_path / "owner"
    (tmp_path / "secret.json").write_text("{}")
    target = work / "submitted" / "linked" / "runs" / "demo_topic"
    target.mkdir(parents=True)
    (target / f"{'0' * 32}.json").symlink_to(tmp_path / "secret.json")
    (work / "submitted" / "away").symlink_to(tmp_path)
    publish(bare, work)
    assert pulled(bare, tmp_path / "mine") == {
        "first": "new",
        "liar": "refused",
        "linked": "refused",
    }
    assert not any(p.is_symlink() for p in (tmp_path / "mine").rglob("*"))


@pytest.mark.parametrize("address", ["-oProxyCommand=x", "ext::sh -c touch% x", ""])
def test_addresses_that_run_something_are_refused(address, tmp_path):
    with pytest.raises(UsageError, match="is no repository"):
        repository.pull(address, tmp_path)


def test_what_cannot_be_read_is_one_line_without_a_password(tmp_path):
    with pytest.raises(StoreError) as caught:
        repository.pull(f"file://name:secret@localhost{tmp_path}/nothing.git", tmp_path)
    assert "secret" not in str(caught.value)
    # the path may be longer than a message; the last lines of git's answer are "Please make sure
    # ..."
    assert str(caught.value).startswith("git clone: fatal: '/")
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    with pytest.raises(StoreError, match=r"empty\.git has no commit yet") as refused:
        repository.pull(str(tmp_path / "empty.git"), tmp_path)
    assert "make its first one" in refused.value.hint


def test_a_submission_is_sent_as_a_branch_and_continued(bare, tmp_path, monkeypatch, capfd):
    honest_run(tmp_path / "mine", model="org/mine", weights="7" * 64)
    pack = submit("org/mine", tmp_path / "mine", tmp_path / "submissions" / "mine")
    shown = call(monkeypatch, capfd, "results", "push", bare, pack)
    assert shown.status == 0, shown.err
    assert shown.out.startswith(
        "branch submission/mine\n\n`biobench verify-submission`: verified: 1 runs"
    )
    first = git(bare, "rev-parse", "submission/mine")
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
    assert git(bare, "rev-parse", "submission/mine^") == first
    files = git(
        bare, "ls-tree", "-r", "--name-only", "submission/mine", "submitted/mine/runs"
    ).split()
    assert len([f for f in files if f.endswith(".json")]) == 2
    git(bare, "update-ref", "refs/heads/main", "submission/mine")
    assert pulled(bare, tmp_path / "another")["mine"] == "new"
    with pytest.raises(UsageError, match="is refused"):
        repository.push(str(bare), tmp_path / "owner" / "submitted" / "liar")


def test_what_the_repositorys_maintainer_states_comes_along(bare, tmp_path):
    work, mine = tmp_path / "owner", tmp_path / "mine"
    first = work / "submitted" / "first"
    assert repository.pull(str(bare), tmp_path / "before")[1][0].reason == "re-scored", (
        "the demo task's data is here"
    )
    assert mark_of(tmp_path / "before" / "submitted" / "first") == "re-scored"
    save_statement(first, work, make_statement(first, "reproduced"))
    (work / "statements" / "x.py").write_text("raise SystemExit")
    publish(bare, work)
    assert repository.pull(str(bare), mine)[1][0].reason == "re-scored", "it says of no run"
    assert not (mine / "statements" / "x.py").exists()
    drawn = Draw(
        task="demo_topic",
        task_hash="a" * 64,
        track="fixed",
        seed=7,
        metric="macro_f1",
        score=0.85,
        low=0.8,
        high=0.9,
        alike=0.8,
        alike_low=0.7,
        alike_high=0.9,
        agrees=True,
    )
    save_statement(first, work, make_statement(first, "reproduced", (drawn,)))
    publish(bare, work)
    said = f"re-scored; reproduced by {bare}"
    assert repository.pull(str(bare), mine)[1][0].reason == said, "another's word stays theirs"
    found = examine(mine / "submitted" / "first", against=mine)
    assert (found.mark, found.reproduced) == ("re-scored", False)
    assert findings(found, "W01")
    (group,) = load(mine).groups
    assert group.mark == said
    refusing = drawn.model_copy(update={"score": 0.1, "alike": 0.2, "agrees": False})
    save_statement(first, work, make_statement(first, "claimed", (refusing,)))
    publish(bare, work)
    what = "a run that the repository's maintainer drew does not agree"
    assert repository.pull(str(bare), tmp_path / "other")[1][0][1:] == ("refused", what)


ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "docs" / "examples" / "verify-submission.yml").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(EXAMPLE)
STEPS = WORKFLOW["jobs"]["verify"]["steps"]


def test_the_workflow_may_read_and_nothing_else():
    # YAML 1.1 reads the key `on` as true
    assert WORKFLOW[True] == {"pull_request": None}
    assert WORKFLOW["permissions"] == {"contents": "read"}
    (job,) = WORKFLOW["jobs"].values()
    assert "permissions" not in job
    assert job["timeout-minutes"] <= 30
    used = [s["uses"] for s in STEPS if "uses" in s]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", u) for u in used)
    assert STEPS[0]["with"]["persist-credentials"] is False
    assert not any("${{" in s.get("run", "") for s in STEPS), (
        "an expression in a script is an injection"
    )
    assert "secrets." not in str(WORKFLOW)
    (command,) = re.findall(r"^ *biobench (.+?) >", STEPS[-1]["run"], re.MULTILINE)
    parse(command.split())


def test_the_specification_names_what_the_files_hold(capsys):
    section = PAGE.split("## The files")[1].split("\n## ")[0]
    columns = re.findall(r"`(\w+)`", section.split("<!-- columns -->")[1].split("<!-- end -->")[0])
    assert sorted(columns) == sorted(SCHEMA.names)
    manifest = next(
        part for part in section.split("\n- ") if part.startswith("**`submission.json`**")
    )
    assert {*Manifest.model_fields, *SubmittedFile.model_fields} == set(
        re.findall(r"`(\w+)`", manifest)
    )
    decided = re.search(r'`(\{"data".*?\})`', section)
    names = {"seed": 1, "precision": "fp32", "track": "fixed", "limit": None, "protocol": None}
    names |= {"model": "m", "task": "t", "data": "d", "engine": 2}
    assert set(re.findall(r'"(\w+)"', decided[1])) == set(names)
    text = json.dumps(names, sort_keys=True, separators=(",", ":"))
    key = run_key(
        model_hash="m", task_hash="t", data_hash="d", seed=1, precision="fp32", engine_version=2
    )
    assert hashlib.sha256(text.encode()).hexdigest()[:32] == key
    program = re.search(r'`python -c "(.*?)"`', PAGE)
    exec(program[1], {})
    assert {"key", "predictions_sha256", "scores"} <= set(
        json.loads(capsys.readouterr().out)["properties"]
    )


OLD = "submitted/old/submission.json"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"submitted/new/runs/demo_topic/a.json": "{}"}, ""),
        ({".github/workflows/verify.yml": "{}"}, "outside"),
        ({"tools/biobench.whl": "{}"}, "outside"),
        ({"submitted/..x/a": "{}"}, "outside"),
        ({"submitted/$(id)/a": "{}"}, "outside"),
        ({"submitted/new/a\n::error::b": "{}"}, "outside"),
        ({"submitted/new": Path("old")}, "not a plain file"),
        ({"submitted/new/run.sh": "#!/bin/sh"}, "not a plain file"),
        (
            {"submitted/new/submission.json": "{}", "submitted/other/submission.json": "{}"},
            "more than one submission",
        ),
        ({f"submitted/new/f{number}": "{}" for number in range(4)}, "more than 3 files"),
        ({"submitted/new/a": "x" * 1001}, "or 1000 bytes"),
        ({OLD: ""}, "no submission"),
    ],
)
def test_one_folder_of_plain_files_is_taken_and_other_requests_are_refused(tmp_path, files, words):
    """The paths step, with lower limits, over a request with these files: a path is a link, no
    content a deletion.
    """
    repo, output = tmp_path / "repo", tmp_path / "output"
    (repo / OLD).parent.mkdir(parents=True)
    (repo / OLD).write_text("{}")
    output.write_text("")
    git(repo, "init", "-q")
    commit(repo)
    for path, content in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            (repo / path).symlink_to(content)
        elif content:
            (repo / path).write_text(content)
            (repo / path).chmod(0o755 if content.startswith("#!") else 0o644)
        else:
            shutil.rmtree((repo / path).parent)
    commit(repo)
    script = next(s["run"] for s in STEPS if s.get("id") == "paths")
    for real, here in (("$((512 * 1024 * 1024))", "1000"), ("most_files=2000", "most_files=3")):
        assert real in script
        script = script.replace(real, here)
    environment = os.environ | {"GITHUB_OUTPUT": str(output)}
    options = {"cwd": repo, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run(["bash", "-c", script], check=False, **options)
    chosen = output.read_text().strip()
    assert (done.returncode, chosen) == ((1, "") if words else (0, "folder=submitted/new")), (
        done.stdout
    )
    assert words in done.stdout
    assert len(done.stdout.splitlines()) == bool(words)
