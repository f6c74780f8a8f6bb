"""The documents on hosting and on a results repository: their workflow, commands and container file hold."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from biobench.cli.main import app
from biobench.store import run_key
from biobench.store.tables import SCHEMA
from biobench.submission.pack import Manifest, SubmittedFile

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
HOSTING = (ROOT / "docs" / "leaderboard.md").read_text(encoding="utf-8")
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
    assert not any("${{" in s.get("run", "") for s in STEPS), "an expression in a script is an injection"
    assert "secrets." not in str(WORKFLOW)


def commands(text: str) -> list[list[str]]:
    """The words of every biobench command line in a text."""
    lines = re.findall(r"(?:^|[ /])(biobench (?!-)[^\n>|`#]*)", text.replace("\\\n", " "), flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_commands_and_their_options_exist():
    scripts = "\n".join(s.get("run", "") for s in STEPS)
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE + HOSTING, flags=re.DOTALL))
    known = get_command(app).commands  # type: ignore[attr-defined]
    found = [c for c in commands(f"{scripts}\n{blocks}") if c[1] in known]
    used = {"submit", "verify-submission", "leaderboard", "report", "reproduce", "results"}
    assert {c[1] for c in found} == used
    for _, name, *words in found:
        command = getattr(known[name], "commands", {}).get(words[0] if words else "", known[name])
        assert {w for w in words if w.startswith("--")} <= {o for p in command.params for o in p.opts}


def test_the_specification_names_what_the_files_hold():
    section = PAGE.split("## The files")[1].split("\n## ")[0]
    columns = re.findall(r"`(\w+)`", section.split("<!-- columns -->")[1].split("<!-- end -->")[0])
    assert sorted(columns) == sorted(SCHEMA.names)
    manifest = next(part for part in section.split("\n- ") if part.startswith("**`submission.json`**"))
    assert {*Manifest.model_fields, *SubmittedFile.model_fields} == set(re.findall(r"`(\w+)`", manifest))
    decided = re.search(r'`(\{"data".*?\})`', section)
    assert decided is not None
    names = {"seed": 1, "precision": "fp32", "track": "fixed", "limit": None, "protocol": None}
    names |= {"model": "m", "task": "t", "data": "d", "engine": 2}
    assert set(re.findall(r'"(\w+)"', decided[1])) == set(names)
    text = json.dumps(names, sort_keys=True, separators=(",", ":"))
    key = run_key(model_hash="m", task_hash="t", data_hash="d", seed=1, precision="fp32", engine_version=2)
    assert hashlib.sha256(text.encode()).hexdigest()[:32] == key
    program = re.search(r'`python -c "(.*?)"`', section)
    assert program is not None
    said = subprocess.run([sys.executable, "-c", program[1]], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {"key", "predictions_sha256", "scores"} <= set(json.loads(said.stdout)["properties"])


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def judged(tmp_path: Path, change) -> tuple[int, str, str]:
    """The paths step, with lower limits, over a request that `change` makes: (status, log, chosen folder)."""
    repo, output = tmp_path / "repo", tmp_path / "output"
    (repo / "tools").mkdir(parents=True)
    (repo / "tools" / "x").write_text("x")
    (repo / "submitted" / "old").mkdir(parents=True)
    (repo / "submitted" / "old" / "submission.json").write_text("{}")
    output.write_text("")
    git(repo, "init", "-q")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "base")
    change(repo)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "request")
    script = next(s["run"] for s in STEPS if s.get("id") == "paths")
    for real, here in (("$((512 * 1024 * 1024))", "1000"), ("most_files=2000", "most_files=3")):
        assert real in script
        script = script.replace(real, here)
    environment = os.environ | {"GITHUB_OUTPUT": str(output)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=repo, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, output.read_text().strip()


def add(path: str, content: str = "{}", mode: int = 0o644, times: int = 1):
    def change(repo: Path) -> None:
        for number in range(times):
            file = repo / (path if times == 1 else f"{path}{number}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
            file.chmod(mode)

    return change


def link(where: str, target: str):
    def change(repo: Path) -> None:
        (repo / where).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, repo / where)

    return change


def two(repo: Path) -> None:
    add("submitted/new/submission.json")(repo)
    add("submitted/other/submission.json")(repo)


def test_one_folder_is_taken(tmp_path):
    status, log, output = judged(tmp_path, add("submitted/new/runs/demo_topic/a.json"))
    assert (status, output) == (0, "folder=submitted/new"), log


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (add(".github/workflows/verify.yml"), "outside"),
        (add("tools/biobench.whl"), "outside"),
        (add("submitted/..x/a"), "outside"),
        (add("submitted/$(id)/a"), "outside"),
        (add("submitted/new/a\n::error::b"), "outside"),
        (link("submitted/new/submission.json", "/etc/passwd"), "not a plain file"),
        (link("submitted/new", "old"), "not a plain file"),
        (add("submitted/new/run.sh", mode=0o755), "not a plain file"),
        (two, "more than one submission"),
        (add("submitted/new/f", times=4), "more than 3 files"),
        (add("submitted/new/a", "x" * 1001), "or 1000 bytes"),
        (lambda repo: shutil.rmtree(repo / "submitted" / "old"), "no submission"),
    ],
)
def test_other_requests_are_refused(tmp_path, change, said):
    status, log, output = judged(tmp_path, change)
    assert status == 1
    assert said in log
    assert output == ""
    assert len(log.splitlines()) == 1
